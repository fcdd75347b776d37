"""Beliefs about a network that is read with bounded errors.

All assumptions and readings together leave a set of possible functions and values. Every bound here holds on that set,
and is derived from bounds that hold on it: from above, beginning with what the norms alone imply. So bounds may be
derived from each other in any order. One round visits the stages, parents first:

1. the input of a stage at a run lies in a box; its middle is the nominal input C, and |f(input) − f(C)| ≤ ω;
2. the reading ± its error, and the bound of the stage over the box, contain the value; so f(C) lies within ω of this;
3. these rows give the belief about the stage, and it bounds the value over the box again.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array, BoolArray, IntArray
from cascada.confidence import Boxes, cell_bounds
from cascada.confidence.bounded_belief import BoundedBelief
from cascada.confidence.read_rows import ReadRows
from cascada.errors import ArgumentError
from cascada.network.beliefs import Beliefs, StageBelief
from cascada.network.enclosure import enclose_network
from cascada.network.formula import in_user_units, known_bounds
from cascada.network.latent import Latent, forwarded_error
from cascada.network.network import Network
from cascada.network.outputs import StageError
from cascada.network.run_anchors import bounds_from_runs
from cascada.network.slack import around_setting

_ROUNDS = 2
# Points over the inputs of a stage at which its common weights are judged.
_SPREAD = 24


@dataclass(frozen=True, eq=False)
class ReadBeliefs(Beliefs):
    """One belief per stage, and intervals of the true values of every run; immutable."""

    latent: Latent

    @classmethod
    def prior(cls, network: Network, stages: tuple[StageBelief, ...]) -> "ReadBeliefs":
        """Before the first run."""
        return cls(network, stages, Latent.none(network))

    def spanned(self, values: Boxes) -> "ReadBeliefs":
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
        latent = self.latent.joined(values, self._before_reading(values))
        if self.evidence:  # nothing more can be learned: no function is left
            return replace(self, latent=latent)
        return _learned(replace(self, latent=latent))

    def refined(self, point: Array) -> "ReadBeliefs":
        """The beliefs with fits whose weights are chosen along the path of a point (d,), coordinates."""
        boxes = enclose_network(self, Boxes(point[None], point[None])).boxes.centre[0]
        stages = []
        for stage in self.stages:
            if isinstance(stage.belief, BoundedBelief):
                stage = replace(stage, belief=stage.belief.refined(boxes[list(stage.node.inputs)]))
            stages.append(stage)
        return replace(self, stages=tuple(stages))

    def from_runs(self, cells: Boxes) -> Boxes | None:
        """What the nearest runs say of all values over cells (n, d); None without runs."""
        return bounds_from_runs(self, self.latent, cells) if len(self.latent) else None

    def _before_reading(self, values: Array) -> Boxes:
        """Boxes (n, V) that contain the values of runs, whatever will be read."""
        d = self.network.domain.dimension
        around = around_setting(self, values[:, :d])
        forwarded = any(forwarded_error(self.network, column) is not None for column in range(d, self.network.width))
        if not forwarded and not self.evidence:
            with suppress(StageError, ArgumentError):  # a formula need not be defined at all possible inputs
                return enclose_network(self, around).boxes
        unknown = np.full((len(values), self.network.width - d), np.inf)
        return around.product(Boxes(-unknown, unknown))


def _spread(stage: StageBelief) -> StageBelief:
    """A stage whose belief judges its weights at points of a low-discrepancy sequence over its inputs."""
    if not isinstance(stage.belief, BoundedBelief) or stage.span is None:
        return stage
    d = len(stage.node.inputs)
    golden = 2.0
    for _ in range(40):  # the root of x^(d + 1) = x + 1: the generalised golden ratio
        golden = (1.0 + golden) ** (1.0 / (d + 1))
    steps = golden ** -np.arange(1.0, d + 1.0)
    unit = (0.5 + np.arange(_SPREAD)[:, None] * steps) % 1.0
    where = stage.span.lower + unit * (stage.span.upper - stage.span.lower)
    return replace(stage, belief=stage.belief.spread_over(where))


def _learned(beliefs: ReadBeliefs) -> ReadBeliefs:
    """The beliefs after a few rounds over the stages."""
    latent, groups = beliefs.latent, beliefs.latent.groups()
    stages = list(beliefs.stages)
    for _ in range(_ROUNDS):
        for i, stage in enumerate(stages):
            node = stage.node
            stages[i], latent = _stage_learned(stage, latent, groups[node.stage.name])
            latent = latent.shared(node, groups[node.stage.name])
            belief = stages[i].belief
            if belief is not None and belief.evidence:
                return replace(beliefs, stages=tuple(stages), latent=latent)
    return replace(beliefs, stages=tuple(stages), latent=latent)


def _stage_learned(stage: StageBelief, latent: Latent, groups: IntArray) -> tuple[StageBelief, Latent]:
    """A stage after one visit, and narrower boxes of its outputs."""
    node, inputs = stage.node, latent.inputs(stage.node)
    latent = _copied(stage, latent, inputs)
    belief = stage.belief
    if not isinstance(belief, BoundedBelief):
        return stage, _computed(stage, latent, inputs) if node.stage.known else latent
    columns, offset = node.modelled_columns, node.stage.offset
    latent = latent.intersected(columns, latent.read(node))
    latent = latent.intersected(columns, _image(belief, inputs, offset)).shared(node, groups)
    belief = belief.learned(_rows(belief, latent, stage, inputs, groups))
    latent = latent.intersected(columns, _image(belief, inputs, offset))
    return replace(stage, belief=belief), latent


def _rows(belief: BoundedBelief, latent: Latent, stage: StageBelief, inputs: Boxes, groups: IntArray) -> ReadRows:
    """The rows of a stage: one for all repeats of a run that was read."""
    node, offset = stage.node, stage.node.stage.offset
    read = np.isfinite(latent.readings[:, node.modelled_columns]).all(axis=1)
    usable = read & _bounded(inputs)
    _, first = np.unique(np.where(usable, groups, -1), return_index=True)
    chosen = np.sort(first[usable[first]])
    box, values = Boxes(inputs.lower[chosen], inputs.upper[chosen]), latent.column(node.modelled_columns)
    shift = belief.shift(box.centre, box.half)
    own = Boxes(values.lower[chosen] - offset, values.upper[chosen] - offset)
    rounding = 2 * UNIT_ROUNDOFF * np.abs(offset)  # the difference of two numbers may be much smaller than they
    wide = Boxes(own.lower - shift - rounding, own.upper + shift + rounding).widened()
    return ReadRows(box.centre, wide, tuple(int(i) for i in chosen))


def _image(belief: BoundedBelief, inputs: Boxes, offset: Array) -> Boxes:
    """Boxes (n, p) of a stage's modelled outputs over boxes of its inputs; infinite where these are."""
    known = _bounded(inputs)
    unknown = np.full((len(known), len(offset)), np.inf)
    found = Boxes(-unknown, unknown)
    if known.any():
        bounds = cell_bounds(belief, Boxes(inputs.lower[known], inputs.upper[known]))
        shifted = Boxes(bounds.lower + offset, bounds.upper + offset).widened()
        found.lower[known], found.upper[known] = shifted.lower, shifted.upper
    return found


def _bounded(boxes: Boxes) -> BoolArray:
    """Which boxes are finite, (n,)."""
    return np.asarray((np.isfinite(boxes.lower) & np.isfinite(boxes.upper)).all(axis=1))


def _copied(stage: StageBelief, latent: Latent, inputs: Boxes) -> Latent:
    """With the boxes of inputs that a stage passes on."""
    if not stage.node.stage.passes:
        return latent
    user = in_user_units(stage, inputs)
    for output in stage.node.stage.passes:
        j = stage.node.input_names.index(output)
        column = stage.node.columns[stage.node.stage.outputs.index(output)]
        latent = latent.intersected([column], Boxes(user.lower[:, [j]], user.upper[:, [j]]))
    return latent


def _computed(stage: StageBelief, latent: Latent, inputs: Boxes) -> Latent:
    """With the boxes of a formula over the boxes of its inputs, where it is defined."""
    user, columns = in_user_units(stage, inputs), list(stage.node.columns)
    unknown = np.full((len(user.lower), len(columns)), np.inf)
    found = Boxes(-unknown, unknown)
    for i in np.flatnonzero(_bounded(user)):
        with suppress(StageError, ArgumentError):
            bounds = known_bounds(stage, Boxes(user.lower[[i]], user.upper[[i]]))
            found.lower[i], found.upper[i] = bounds.lower[0], bounds.upper[0]
    return latent.intersected(columns, found)
