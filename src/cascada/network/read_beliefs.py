"""Beliefs about a network that is read with bounded errors.

All assumptions and readings together leave a set of possible functions and values. Every bound here holds on that set,
and is derived from bounds that hold on it: from above, beginning with what the norms alone imply. So bounds may be
derived from each other in any order. One round visits the stages, parents first:

1. the input of a stage at a run lies in a box; its middle is the nominal input C, and |f(input) − f(C)| ≤ ω;
2. the reading ± its error, and the bound of the stage over the box, contain the value; so f(C) lies within ω of this;
3. these rows give the belief about the stage, and it bounds the value over the box again.

The value of a choice is set and not read, so it is exact. Of a stage with categories, a run gives a row to the belief
about its own category only.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array, BoolArray, IntArray
from cascada.confidence import Boxes, Evidence, cell_bounds
from cascada.confidence.bounded_belief import BoundedBelief
from cascada.confidence.read_rows import ReadRows
from cascada.confidence.reading_evidence import Conflict
from cascada.confidence.split_bounded_belief import SplitBoundedBelief
from cascada.controls import setting_rounding
from cascada.errors import ArgumentError, RefutedError
from cascada.network.beliefs import Beliefs, StageBelief, learned_from, logarithmic_inputs
from cascada.network.category_cells import parts_at
from cascada.network.enclosure import enclose_network
from cascada.network.latent import Latent, around_readings, forwarded_error
from cascada.network.network import Network
from cascada.network.node import Node
from cascada.network.outputs import StageError
from cascada.network.reading_evidence import conflict, raw_latent, stage_evidence
from cascada.network.run_anchors import bounds_from_runs
from cascada.network.slack import around_setting
from cascada.network.stage_values import bounded, computed, copied

R = TypeVar("R", bound="ReadBeliefs")

#: Rounds over the stages after one more run, whose bounds are nearly those of the last time, and after many.
_ROUNDS, ROUNDS_AT_ONCE = 2, 4
# Points over the inputs of a stage at which its common weights are judged.
_SPREAD = 24


@dataclass(frozen=True, eq=False)
class ReadBeliefs(Beliefs):
    """One belief per stage, and intervals of the true values of every run; immutable.

    `alone` are readings of one stage by itself: its position, and a row (V,) with the values that its inputs were set
    to and with what was read.
    """

    latent: Latent
    alone: tuple[tuple[int, Array], ...] = ()

    @classmethod
    def prior(cls, network: Network, stages: tuple[StageBelief, ...]) -> "ReadBeliefs":
        """Before the first run."""
        return cls(network, stages, Latent.none(network))

    def spanned(self, values: Boxes) -> Self:
        """The same beliefs with the range of every stage's inputs, over which its weights are judged."""
        spanned = super().spanned(values)
        return replace(self, stages=tuple(_spread(stage) for stage in spanned.stages))

    def append(self, values: Array, *, each: bool = False) -> "ReadBeliefs":
        """The beliefs after more runs: rows (n, V) of `run_values`, NaN where nothing was read."""
        if each:
            after = self
            for row in values:
                after = after.append(row[None])
            return after
        if not len(values):
            return self
        try:
            before = self.before_reading(values)
        except RefutedError:  # the bounds of two fits are disjoint there
            return self.in_conflict(self.stages[-1]).append(values)
        grown = replace(self, latent=self.latent.joined(values, before))
        if self.evidence:
            return grown  # no function is left
        return grown.learned(_ROUNDS if len(values) == 1 else ROUNDS_AT_ONCE)

    def append_to(self, position: int, values: Array) -> Self:
        """The beliefs after readings of one stage by itself, whose inputs were set: see `Beliefs.append_to`."""
        stage = self.stages[position]
        seen = learned_from(stage, values)
        if stage.belief is None or not seen.any():
            return self
        grown = replace(self, alone=(*self.alone, *((position, row) for row in values[seen])))
        return grown if self.evidence else grown.learned()

    def imagined_at(self, position: int, values: Array) -> Self:
        """The beliefs as if one stage had been read at inputs that were set, in a row (1, V); no other stage learns."""
        stages = list(self.stages)
        for part, _ in parts_at(stages[position], values[:, list(stages[position].node.inputs)]):
            belief = part.belief
            if not isinstance(belief, BoundedBelief):
                return self
            after = belief.learned(belief.rows.joined(_rows_alone(belief, part, values)))
            if after.contradictory:  # a mean can be steeper than L
                return self
            stages[position] = stages[position].with_belief(part, after)
        return replace(self, stages=tuple(stages))

    def refined(self, point: Array) -> Self:
        """The beliefs with fits whose weights are chosen along the path of a point (d,), coordinates."""
        try:
            boxes = enclose_network(self, Boxes(point[None], point[None])).boxes.centre[0]
        except RefutedError:  # the bounds of two fits are disjoint there
            return self if self.evidence else self.in_conflict(self.stages[-1])
        except (StageError, ArgumentError):  # a formula need not be defined at all possible inputs
            return self
        stages = []
        for stage in self.stages:
            if isinstance(stage.belief, BoundedBelief | SplitBoundedBelief):
                stage = replace(stage, belief=stage.belief.refined(boxes[list(stage.node.inputs)]))
            stages.append(stage)
        after = replace(self, stages=tuple(stages))
        for stage in stages:
            if isinstance(stage.belief, BoundedBelief | SplitBoundedBelief) and stage.belief.contradictory:
                return after.in_conflict(stage)
        return after

    def relearned(self) -> Self:
        """The beliefs after one more round over the stages, with all fits that there are now."""
        return self if self.evidence or not len(self.latent) else self.learned(1)

    def from_runs(self, cells: Boxes) -> Boxes | None:
        """What the nearest runs say of all values over cells (n, d); None without runs."""
        return bounds_from_runs(self, self.latent, cells) if len(self.latent) else None

    # ---- what is learned

    def learned(self, rounds: int = _ROUNDS) -> Self:
        """The beliefs after some rounds over the stages, or with evidence against their assumptions."""
        latent, groups = self.latent, self.latent.groups()
        stages = list(self.stages)
        raw = raw_latent(latent, stages)
        for stage in stages:
            evidence = self.stage_evidence(stage, raw, groups[stage.node.stage.name])
            if evidence:
                return _refuted(self, stage, evidence)
        for _ in range(rounds):
            for i, stage in enumerate(stages):
                try:
                    stages[i], latent = self._stage_learned(stage, latent, groups[stage.node.stage.name])
                except RefutedError:
                    return self.in_conflict(stage)
        return replace(self, stages=tuple(stages), latent=latent)

    def stage_evidence(self, stage: StageBelief, raw: Latent, groups: IntArray) -> tuple[Evidence, ...]:
        """Evidence of the readings alone against the assumptions of one stage; `groups` (n,) tells repeats of a run."""
        return stage_evidence(stage, raw, groups)

    def averaged(self, _part: StageBelief, belief: BoundedBelief, _latent: Latent, _runs: IntArray) -> BoundedBelief:
        """The belief about a stage, or a category of it, with averages over its readings in some runs.

        Bounded errors are never averaged.
        """
        return belief

    def conflict(self, node: Node) -> Conflict:
        """What a contradiction at a stage refutes."""
        return conflict(self.network, node)

    def in_conflict(self, at: StageBelief) -> Self:
        """The beliefs with evidence against the assumptions of a stage and of all its ancestors together."""
        return _refuted(self, at, (self.conflict(at.node),))

    def _stage_learned(self, stage: StageBelief, latent: Latent, groups: IntArray) -> tuple[StageBelief, Latent]:
        """A stage after one visit, and narrower boxes of its outputs; raises `RefutedError` if no value is left."""
        node, inputs = stage.node, latent.inputs(stage.node)
        latent = copied(stage, latent, inputs)
        if stage.belief is None:
            return stage, _possible(node, computed(stage, latent, inputs) if node.stage.known else latent, groups)
        columns = node.modelled_columns
        latent = latent.intersected(columns, latent.read(node))
        latent = _possible(node, latent.intersected(columns, image(stage, inputs)), groups)
        alone = [row for position, row in self.alone if self.stages[position].node is node]
        every = np.concatenate([inputs.lower, *(row[None, list(node.inputs)] for row in alone)])
        for part, found in parts_at(stage, every):
            runs, own = found[found < len(latent)], [alone[i - len(latent)] for i in found if i >= len(latent)]
            stage = stage.with_belief(part, self._part_learned(part, latent, groups, runs, own))
        return stage, _possible(node, latent.intersected(columns, image(stage, inputs)), groups)

    def _part_learned(
        self, part: StageBelief, latent: Latent, groups: IntArray, runs: IntArray, alone: list[Array]
    ) -> BoundedBelief:
        """The belief about a stage, or about a category of it, from its readings in some runs and from those alone."""
        belief = part.belief
        assert isinstance(belief, BoundedBelief), "the stage is read with errors"
        rows = _rows(belief, latent, part, groups, runs)
        if alone:
            rows = rows.joined(_rows_alone(belief, part, np.array(alone)))
            if rows.values.empty.any():
                raise RefutedError("readings at the same inputs of a stage are too different.")
        belief = self.averaged(part, belief.learned(rows), latent, runs)
        if belief.contradictory:
            raise RefutedError("no function agrees with the rows of the stage.")
        return belief

    def before_reading(self, values: Array) -> Boxes:
        """Boxes (n, V) that contain the values of runs, whatever will be read."""
        d = self.network.domain.dimension
        around = around_setting(self, values[:, :d])
        forwarded = any(forwarded_error(self.network, column) is not None for column in range(d, self.network.width))
        if not forwarded and not self.evidence:
            with suppress(StageError, ArgumentError):  # a formula need not be defined at all possible inputs
                return enclose_network(self, around).boxes
        return self.unknown(values)

    def unknown(self, values: Array) -> Boxes:
        """Boxes (n, V) of the controls of runs, and infinite ones of all outputs."""
        d = self.network.domain.dimension
        unknown = np.full((len(values), self.network.width - d), np.inf)
        return around_setting(self, values[:, :d]).product(Boxes(-unknown, unknown))


def _spread(stage: StageBelief) -> StageBelief:
    """A stage whose belief judges its weights at points of a low-discrepancy sequence over its inputs."""
    if not isinstance(stage.belief, BoundedBelief | SplitBoundedBelief) or stage.span is None:
        return stage
    d = len(stage.node.inputs)
    golden = 2.0
    for _ in range(40):  # the root of x^(d + 1) = x + 1: the generalised golden ratio
        golden = (1.0 + golden) ** (1.0 / (d + 1))
    steps = golden ** -np.arange(1.0, d + 1.0)
    unit = (0.5 + np.arange(_SPREAD)[:, None] * steps) % 1.0
    where = stage.span.lower + unit * (stage.span.upper - stage.span.lower)
    codes = list(stage.node.choices)
    where[:, codes] = np.floor(stage.span.lower + unit * (stage.span.upper - stage.span.lower + 1))[:, codes]
    return replace(stage, belief=stage.belief.spread_over(where))


def _refuted(beliefs: R, at: StageBelief, evidence: tuple[Evidence, ...]) -> R:
    """The beliefs with evidence at a stage; that of a formula is reported at the stage with a belief before it."""
    position = next(i for i, stage in enumerate(beliefs.stages) if stage.node is at.node)
    modelled = [i for i, stage in enumerate(beliefs.stages) if stage.belief is not None]
    place = max((i for i in modelled if i <= position), default=modelled[0])
    stages = list(beliefs.stages)
    belief = stages[place].belief
    assert isinstance(belief, BoundedBelief | SplitBoundedBelief), "chosen above"
    stages[place] = replace(stages[place], belief=belief.refuted_by(*evidence))
    return replace(beliefs, stages=tuple(stages))


def _possible(node: Node, latent: Latent, groups: IntArray) -> Latent:
    """The boxes, shared by repeats; raises `RefutedError` if one of a stage's outputs is empty."""
    shared = latent.shared(node, groups)
    if shared.column(list(node.columns)).empty.any():
        raise RefutedError("no value agrees with the readings of the stage.")
    return shared


def _rows(belief: BoundedBelief, latent: Latent, part: StageBelief, groups: IntArray, runs: IntArray) -> ReadRows:
    """The rows of a stage, or of a category, from some runs: one for all repeats of a run that was read."""
    node, offset, inputs = part.node, part.node.stage.offset, latent.inputs(part.node)
    read = np.isfinite(latent.readings[:, node.modelled_columns]).all(axis=1)
    usable = read & bounded(inputs) & _among(runs, len(latent))
    _, first = np.unique(np.where(usable, groups, -1), return_index=True)
    chosen = np.sort(first[usable[first]])
    box, values = Boxes(inputs.lower[chosen], inputs.upper[chosen]), latent.column(node.modelled_columns)
    shift = belief.shift(box.centre, box.half)
    own = Boxes(values.lower[chosen] - offset, values.upper[chosen] - offset)
    rounding = 2 * UNIT_ROUNDOFF * np.abs(offset)  # the difference of two numbers may be much smaller than they
    wide = Boxes(own.lower - shift - rounding, own.upper + shift + rounding).widened()
    return ReadRows(box.centre, wide, tuple(int(i) for i in chosen))


def _among(runs: IntArray, count: int) -> BoolArray:
    """Which of so many runs are these, (n,)."""
    found = np.zeros(count, dtype=bool)
    found[runs] = True
    return found


def _rows_alone(belief: BoundedBelief, stage: StageBelief, values: Array) -> ReadRows:
    """The rows of a stage from readings (n, V) of it alone: one for all readings at the same inputs."""
    node, offset = stage.node, stage.node.stage.offset
    places, group = np.unique(values[:, list(node.inputs)] + 0.0, axis=0, return_inverse=True)
    read = around_readings(values[:, node.modelled_columns], node.stage.error_bound)
    lower, upper = np.full((len(places), len(offset)), -np.inf), np.full((len(places), len(offset)), np.inf)
    np.maximum.at(lower, group.reshape(-1), read.lower - offset)
    np.minimum.at(upper, group.reshape(-1), read.upper - offset)
    half = np.zeros_like(places)  # a logarithm is rounded
    logarithms = logarithmic_inputs(node)
    half[:, logarithms] = setting_rounding(places[:, logarithms])
    rounding = 2 * UNIT_ROUNDOFF * np.abs(offset)
    shift = belief.shift(places, half) + rounding
    return ReadRows(places, Boxes(lower - shift, upper + shift).widened(), (0,) * len(places))


def image(stage: StageBelief, inputs: Boxes) -> Boxes:
    """Boxes (n, p) of a stage's modelled outputs over boxes of its inputs; infinite where these are.

    The boxes contain one value of every choice.
    """
    offset, known = stage.node.stage.offset, bounded(inputs)
    unknown = np.full((len(known), len(offset)), np.inf)
    found = Boxes(-unknown, unknown)
    for part, rows in parts_at(stage, inputs.lower):
        some = rows[known[rows]]
        if len(some):
            assert isinstance(part.belief, BoundedBelief), "only asked of stages that are read with errors"
            kept = [stage.node.inputs.index(column) for column in part.node.inputs]
            bounds = cell_bounds(part.belief, Boxes(inputs.lower[some][:, kept], inputs.upper[some][:, kept]))
            shifted = Boxes(bounds.lower + offset, bounds.upper + offset).widened()
            found.lower[some], found.upper[some] = shifted.lower, shifted.upper
    return found
