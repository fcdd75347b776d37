"""Latent values of runs that are read with scatter: which readings were made when, and their nominal inputs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array, IntArray
from cascada.confidence import Boxes
from cascada.network.latent import Latent, around_readings
from cascada.network.network import Network
from cascada.network.node import Node
from cascada.network.scatter import Scatter


@dataclass(frozen=True, eq=False)
class ScatterLatent(Latent):
    """One row for every run, however often it was reported; readings are numbered in the order of their reports.

    The nominal inputs of a stage at a run are chosen before the stage is read there, and never change.
    """

    scatter: Scatter
    runs: tuple[int, ...]  # the name of every run
    turns: IntArray  # (n, V): 1 for the first reading of an output, 2 for the second, …; 0 if it was not read
    nominal: Mapping[str, Array]  # stage with scatter → (n, d), NaN where there is none

    @classmethod
    def begun(cls, network: Network, scatter: Scatter) -> "ScatterLatent":
        """No runs."""
        nothing = np.empty((0, network.width))
        nominal = {
            node.stage.name: np.empty((0, len(node.inputs)))
            for node in network.nodes
            if node.stage.sub_gaussian is not None
        }
        return cls(network, nothing, Boxes(nothing, nothing), scatter, (), np.empty(nothing.shape, np.int64), nominal)

    def with_run(self, run: int, controls: Array) -> "ScatterLatent":
        """With a row for a run at these coordinates (d,), of which nothing is read and nothing is known."""
        row = np.full((1, self.network.width), np.nan)
        row[0, : len(controls)] = controls
        unknown = np.full(row.shape, np.inf)
        return replace(
            super().joined(row, Boxes(-unknown, unknown)),
            runs=(*self.runs, run),
            turns=np.vstack([self.turns, np.zeros(row.shape, dtype=np.int64)]),
            nominal={
                name: np.vstack([known, np.full((1, known.shape[1]), np.nan)]) for name, known in self.nominal.items()
            },
        )

    def row(self, row: int) -> "ScatterLatent":
        """One of the runs by itself."""
        one = slice(row, row + 1)
        return replace(
            self,
            readings=self.readings[one],
            values=Boxes(self.values.lower[one], self.values.upper[one]),
            runs=self.runs[one],
            turns=self.turns[one],
            nominal={name: places[one] for name, places in self.nominal.items()},
        )

    def with_row(self, row: int, controls: Array, boxes: Boxes) -> "ScatterLatent":
        """With other coordinates (d,) and boxes (1, V) of one run; what was read of it stays."""
        readings, lower, upper = self.readings.copy(), self.values.lower.copy(), self.values.upper.copy()
        readings[row, : len(controls)] = controls
        lower[row], upper[row] = boxes.lower[0], boxes.upper[0]
        return replace(self, readings=readings, values=Boxes(lower, upper))

    def with_reading(self, row: int, node: Node, outputs: Array, nominal: Array | None) -> "ScatterLatent":
        """With the outputs of a stage in one run (p,), and the nominal input (d,) that was chosen before."""
        columns = list(node.columns)
        readings, turns = self.readings.copy(), self.turns.copy()
        readings[row, columns] = outputs
        new = np.isfinite(outputs)
        turns[row, columns] = np.where(new, self.turns[:, columns].max(axis=0, initial=0) + 1, 0)
        chosen = dict(self.nominal)
        if nominal is not None:
            chosen[node.stage.name] = chosen[node.stage.name].copy()
            chosen[node.stage.name][row] = nominal
        return replace(self, readings=readings, turns=turns, nominal=chosen)

    def was_read(self, row: int, node: Node) -> bool:
        """Whether an output of a stage was read in a run."""
        return bool(np.isfinite(self.readings[row, list(node.columns)]).any())

    def read(self, node: Node) -> Boxes:
        """Boxes (n, p) of the modelled outputs of a stage from single readings; infinite where there are none."""
        columns, scale = node.modelled_columns, node.stage.error_scale
        most = scale * self.scatter.most_sds(np.maximum(self.turns[:, columns], 1))
        reach = (node.stage.error_bound + most) * (1 + 4 * UNIT_ROUNDOFF)
        return around_readings(self.readings[:, columns], np.where(scale > 0, reach, node.stage.error_bound))
