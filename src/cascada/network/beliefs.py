"""Beliefs about every stage of a network, from complete and partial runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cascada.arrays import MOST_SDS, UNIT_ROUNDOFF, Array, BoolArray
from cascada.confidence import Belief, BeliefBase, Boxes, EnvelopeTable, Evidence
from cascada.confidence.split_belief import SplitBelief
from cascada.controls import logarithm_rounding
from cascada.errors import RefutedError
from cascada.network.network import Network
from cascada.network.node import Node

if TYPE_CHECKING:
    from cascada.network.mean import StagePrediction

_TABLE_NODES = 400


@dataclass(frozen=True, eq=False)
class StageBelief:
    """A stage and the belief about its modelled outputs; None if it has none (a known stage, or all passed on)."""

    node: Node
    belief: BeliefBase[Any] | None
    span: Boxes | None = None  # one box that contains every possible input of the stage
    constant: tuple[float, ...] | None = None  # of a known stage whose outputs are these, whatever its inputs

    @cached_property
    def tables(self) -> tuple[EnvelopeTable, ...]:
        """For a stage with one input, a table of each output over all possible inputs; else an empty tuple."""
        belief = self.per_output
        if belief is None or self.span is None or len(self.node.inputs) != 1 or belief.raw_lipschitz is None:
            return ()
        if self.node.choices:  # there is nothing between two codes
            return ()
        nodes = np.linspace(self.span.lower.item(), self.span.upper.item(), _TABLE_NODES)
        return EnvelopeTable.of_outputs(belief, nodes)

    @cached_property
    def categories(self) -> tuple["StageBelief", ...]:
        """The beliefs about the stage in each category, without the inputs that tell these apart; empty without any."""
        belief = self.belief
        if not isinstance(belief, SplitBelief):
            return ()
        kept = belief.categories.others
        span = None if self.span is None else Boxes(self.span.lower[:, kept], self.span.upper[:, kept])
        pairs = zip(self.node.by_category, belief.parts, strict=True)
        return tuple(StageBelief(node, part, span) for node, part in pairs)

    def with_belief(self, part: "StageBelief", belief: BeliefBase[Any]) -> "StageBelief":
        """The stage with another belief about one of its categories, or about itself if it has none."""
        if isinstance(self.belief, SplitBelief):
            belief = self.belief.with_part(self.node.category_names.index(part.node.category), belief)
        return replace(self, belief=belief)

    @property
    def followed(self) -> "Belief | SplitBelief | None":
        """The belief about every output by itself, in each category if it has any; None as `per_output`."""
        return self.belief.outputs_alone if isinstance(self.belief, SplitBelief) else self.per_output

    @property
    def per_output(self) -> Belief | None:
        """The belief about every output by itself.

        None for a general operator-valued kernel, without a belief, and for a stage with categories.
        """
        return None if self.belief is None else self.belief.per_output

    def append(self, values: Array, *, each: bool = False) -> "StageBelief":
        """The stage's belief after more runs: rows (n, V) of `run_values`. `each`: see `Beliefs.append`."""
        if self.belief is None:
            return self
        X, Y = values[:, list(self.node.inputs)], values[:, self.node.modelled_columns]
        seen = learned_from(self, values)
        if not seen.any():
            return self
        offset, most = self.node.stage.offset, MOST_SDS * self.belief.largest_sd
        shifted = np.clip(Y[seen] - offset, -most, most)
        belief = self.belief.append(X[seen], shifted, each=each)
        # A number is exact to its last digit only, and so is its difference to an offset: this matters if the offset is
        # large.
        off, moved, logarithms = np.abs(Y[seen]), np.abs(shifted), _logarithm_errors(self, X[seen])
        if not each:  # the largest of each term: for a block, at least the largest sum
            off, moved, logarithms = (np.max(term, axis=0, keepdims=True) for term in (off, moved, logarithms))
        digits = 2 * UNIT_ROUNDOFF * np.minimum(off, most)
        digits += np.where(offset != 0, UNIT_ROUNDOFF * moved, 0.0)
        error = np.maximum((digits + logarithms).max(axis=0), self.belief.output_error)
        return replace(self, belief=belief.with_output_error(error))


@dataclass(frozen=True, eq=False)
class Beliefs:
    """One belief per stage, in the order of the network's nodes; immutable: `append` returns a new object."""

    network: Network
    stages: tuple[StageBelief, ...]

    def spanned(self, values: Boxes) -> Self:
        """The same beliefs with the range of every stage's inputs, from one box (1, V) that contains every value."""
        spans = [Boxes(values.lower[:, list(s.node.inputs)], values.upper[:, list(s.node.inputs)]) for s in self.stages]
        stages = [replace(stage, span=span) for stage, span in zip(self.stages, spans, strict=True)]
        return replace(self, stages=tuple(stages))

    def from_runs(self, cells: Boxes) -> Boxes | None:  # noqa: ARG002
        """Bounds (n, V) of all values over cells (n, d) from whole runs; None: stages learn all that exact runs say."""
        return None

    def append(self, values: Array, *, each: bool = False) -> "Beliefs":
        """The beliefs after more runs: rows (n, V) of `run_values`, NaN where nothing was observed.

        A stage learns from every run in which all its inputs and modelled outputs were observed. With `each` the result
        is bit for bit that of one call for every run.
        """
        return Beliefs(self.network, tuple(stage.append(values, each=each) for stage in self.stages))

    def append_to(self, position: int, values: Array) -> "Beliefs":
        """The beliefs after observations of one stage by itself: rows (n, V) with its inputs and modelled outputs.

        No other stage learns from them. In such a row the outputs of a parent are values that were set, or come from
        another run than the rest, and need not be what the parent gives at the controls in the row.
        """
        stages = list(self.stages)
        for i in self.parts(position):
            stages[i] = stages[i].append(values)
        return replace(self, stages=tuple(stages))

    def parts(self, position: int) -> list[int]:
        """Where in `stages` the node with a position in the network is: several parts if its kernels are estimated."""
        columns = self.network.nodes[position].columns
        return [i for i, stage in enumerate(self.stages) if stage.node.columns[0] in columns]

    def predict(self, controls: Mapping[str, Any]) -> "dict[str, StagePrediction]":
        """Mean, sd, lower and upper bound of every stage's outputs at named controls in user units."""
        from cascada.network.mean import predict  # mean.py imports this module

        return predict(self, controls)

    @property
    def evidence(self) -> Mapping[str, tuple[Evidence, ...]]:
        """Stages whose data refute their assumptions, with the evidence."""
        found = {stage.node.stage.name: stage.belief.evidence for stage in self.stages if stage.belief is not None}
        return {name: evidence for name, evidence in found.items() if evidence}

    def check(self) -> None:
        """Raise `RefutedError` if the data refute an assumption of any stage."""
        for name, evidence in self.evidence.items():
            raise RefutedError(f"stage {name!r}: {evidence[0]}")


def run_values(network: Network, controls: Array, outputs: Sequence[Mapping[str, Sequence[float]]]) -> Array:
    """Rows (n, V) of coordinates and outputs, from controls (n, d) in user units and observed outputs of each run."""
    values = np.full((len(controls), network.width), np.nan)
    values[:, : network.domain.dimension] = network.domain.encode(controls)
    for row, observed in zip(values, outputs, strict=True):
        for node in network.nodes:
            if node.stage.name in observed:
                row[list(node.columns)] = observed[node.stage.name]
    return values


def logarithmic_inputs(node: Node) -> list[int]:
    """The positions of the inputs of a stage that are logarithms of controls, and therefore rounded."""
    controls = node.stage.controls
    return [j for j, name in enumerate(node.input_names) if name in controls and controls[name].log]


def stretch(node: Node) -> float:
    """The factor from a Lipschitz constant per user unit to one per coordinate: Δx ≤ high·Δ ln x for logarithmic x."""
    scales = [control.high for control in node.stage.controls.values() if control.log]
    return max([1.0, *scales])


def learned_from(stage: StageBelief, values: Array) -> BoolArray:
    """The rows (n,) of values (n, V) in which all inputs and modelled outputs of a stage were observed."""
    return np.asarray(np.isfinite(values[:, [*stage.node.inputs, *stage.node.modelled_columns]]).all(axis=1))


def observations(stage: StageBelief, values: Array) -> list[int]:
    """The rows of values (t, V) behind the observations of a stage, by the number of the observation.

    A stage whose norm is estimated learns every observation once, however many rows contain it.
    """
    rows = np.flatnonzero(learned_from(stage, values))
    if stage.node.stage.estimated:
        known = values[rows][:, [*stage.node.inputs, *stage.node.modelled_columns]]
        rows = rows[np.sort(np.unique(known, axis=0, return_index=True)[1])]
    return [int(row) for row in rows]


def _logarithm_errors(stage: StageBelief, inputs: Array) -> Array:
    """How far outputs at inputs (n, d) can be off because logarithms of controls are rounded, (n, p), or zeros (1, 1).

    This error also distinguishes two settings that share one floating-point logarithm: both observations are kept, each
    as one of f at that logarithm with this error (`Posterior.rounded_inputs`).
    """
    columns = logarithmic_inputs(stage.node)
    if not columns or stage.belief is None:
        return np.zeros((1, 1))
    shift = np.zeros_like(inputs)
    shift[:, columns] = logarithm_rounding(inputs[:, columns])
    return stage.belief.modulus(shift)
