"""The runs from which stages are calibrated, with likely values in place of the readings of stages with noise.

A stage with noise forwards its true value, of which a reading is all that is known. If the next stage is fitted to
readings of its input, their noise, times the slope of that stage, counts as noise of its output. The posterior mean at
the inputs of the run is closer to what the next stage received.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cascada.arrays import Array, IntArray
from cascada.gp import Posterior
from cascada.network import Node, StageBelief
from cascada.network.formula import likely_values


@dataclass(frozen=True, eq=False)
class Runs:
    """Rows of runs (t, V) and the numbers of their trials (t,): a run that is reported stage by stage has several."""

    data: Array
    trials: IntArray
    alone: tuple[tuple[int, Array], ...] = ()  # of single stages by their position
    received: Array | None = None  # (t, V): what stages received, where it is not the data

    def of(self, part: Node, position: int | None = None, *, as_read: bool = False) -> tuple[Array, Array]:
        """The inputs (n, d) and modelled outputs (n, p) of the runs in which all of them were observed, each once.

        Without noise, a second run with the same inputs and outputs is left out as well. Observations of the stage by
        itself, at its position, come last.
        """
        own = self.data[:0] if position is None else self.alone_of(position)
        data, trials = np.concatenate([self.data, own]), np.append(self.trials, -1 - np.arange(len(own)))
        received = self.data if self.received is None or as_read else self.received
        X, Y = np.concatenate([received, own])[:, list(part.inputs)], data[:, part.modelled_columns]
        seen = np.isfinite(X).all(axis=1) & np.isfinite(Y).all(axis=1)
        X, Y = X[seen], Y[seen]
        same = trials[seen] if part.stage.noisy else np.hstack([X, Y])
        once = np.sort(np.unique(same, axis=0, return_index=True)[1])
        return X[once], Y[once]

    def alone_of(self, position: int) -> Array:
        """The observations (n, V) of a stage by itself."""
        return np.array([row for i, row in self.alone if i == position]).reshape(-1, self.data.shape[1])

    def through(self, node: Node, read: Sequence[tuple[Node, Posterior]]) -> "Runs":
        """The runs for the stages after a node, given the posteriors of its parts that are `read` with noise.

        Readings of these parts become posterior means. Copies of such values, and formulas of them, follow.
        Observations of single stages keep their inputs.
        """
        if not read and self.received is None:
            return self
        received = (self.data if self.received is None else self.received).copy()
        X = received[:, list(node.inputs)]
        seen = np.isfinite(X).all(axis=1) & np.isfinite(self.data[:, list(node.columns)]).all(axis=1)
        if not seen.any():
            return self
        for part, posterior in read:
            received[np.ix_(seen, np.array(part.modelled_columns))] = (
                posterior.predict(X[seen]).mean + part.stage.offset
            )
        for output in node.stage.passes:
            column = node.columns[node.stage.outputs.index(output)]
            received[seen, column] = X[seen, node.input_names.index(output)]
        if node.stage.known:
            values, cells = likely_values(StageBelief(node, None), X[seen]), np.ix_(seen, np.array(node.columns))
            # Where a formula is not defined at the means, its value at the readings stays.
            received[cells] = np.where(np.isfinite(values), values, received[cells])
        return replace(self, received=received)
