"""Wrong versions of what limits and ranges are computed with, for `broken`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cascada.arrays import Array, BoolArray
from cascada.confidence import Boxes
from cascada.confidence.affine import Affine
from cascada.confidence.table import EnvelopeTable
from cascada.network import Beliefs
from cascada.network.beliefs import StageBelief
from cascada.network.enclosure import Enclosure, enclose_stage
from cascada.network.feasibility import Feasibility, enclose_feasible, enclose_settings
from cascada.network.limits import Limit
from cascada.search.feasible import MarginBounds
from cascada.search.incumbent import _proven
from cascada.search.safe import nearest_safe

_tables = vars(StageBelief)["tables"].func


def enclosure(*, cut_first: bool = False, hand_on: bool = False) -> Callable[..., Feasibility]:
    """`enclose_feasible` with an error.

    `cut_first`: whether a cell is certain to be feasible is read off its cut intervals. `hand_on`: an interval that is
    empty once it is cut is handed on to later stages, like any other.
    """

    def wrong(beliefs: Beliefs, cells: Boxes, limits: Sequence[Limit]) -> Feasibility:
        n = len(cells.lower)
        possible, certain = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
        by_column, values = {limit.column: limit for limit in limits}, Enclosure(cells, Affine.of_cells(cells))
        for stage in beliefs.stages:
            boxes, affine = enclose_stage(stage, *values.columns(stage.node.inputs))
            lower, upper = boxes.lower.copy(), boxes.upper.copy()
            for j, column in enumerate(stage.node.columns):
                if column not in by_column:
                    continue
                low, high = by_column[column].low, by_column[column].high
                cut = np.maximum(lower[:, j], low), np.minimum(upper[:, j], high)
                ends = cut if cut_first else (lower[:, j], upper[:, j])
                certain &= (ends[0] >= low) & (ends[1] <= high)
                possible &= cut[0] <= cut[1]
                kept = np.ones(n, dtype=bool) if hand_on else cut[0] <= cut[1]
                lower[:, j], upper[:, j] = np.where(kept, cut, (lower[:, j], upper[:, j]))
            assert affine is not None, "the enclosure has affine forms"
            values = values.joined(Boxes(lower, upper), affine)
        assert values.affine is not None, "the enclosure has affine forms"
        return Feasibility(possible, certain & possible, values.boxes, np.abs(values.affine.slope))

    return wrong


def margins_of_cut_boxes(self: MarginBounds, cells: Boxes) -> tuple[Array, Array]:
    """The margin from intervals that were cut to the limits: nothing is left of those that break one."""
    found = enclose_feasible(self._beliefs, cells, self._beliefs.network.limits)
    most = np.full(len(cells.lower), np.inf)
    for limit, scale in zip(self._beliefs.network.limits, self._scales, strict=True):
        lower, upper = found.boxes.lower[:, limit.column], found.boxes.upper[:, limit.column]
        most = np.fmin(most, np.minimum(upper - limit.low, limit.high - lower) / scale)
    return np.where(found.possible, most, -1e3), np.ones_like(cells.lower)


def upper_of_any_sense(self: Feasibility, column: int, _sign: int) -> Array:
    """The upper end, also for an objective that is minimised."""
    return np.where(self.possible, self.boxes.upper[:, column], -np.inf)


def value_without_proof(beliefs: Beliefs, points: Array) -> tuple[Array, Array]:
    """Lower bounds of what is maximised at settings, feasible or not."""
    column, sign = beliefs.network.objective_column, beliefs.network.sign
    boxes = enclosure_of(beliefs, points)
    return (boxes.lower if sign > 0 else -boxes.upper)[:, column], _proven(beliefs, points)[1]


def enclosure_of(beliefs: Beliefs, points: Array) -> Boxes:
    """Bounds of all values at settings, whatever the limits."""
    return enclose_feasible(beliefs, Boxes(points, points), ()).boxes


def possibly_safe(beliefs: Beliefs, points: Array) -> BoolArray:
    """Whether settings may satisfy the limits."""
    return enclose_settings(beliefs, points).possible


def safe_if_imagined(_beliefs: Beliefs, imagined: Beliefs, *rest: Any, **options: Any) -> Array | None:
    """The nearest setting that would be proven safe if pending runs returned their means."""
    return nearest_safe(imagined, imagined, *rest, **options)


def narrow_range(stage: StageBelief, boxes: Boxes) -> Boxes:
    """Boxes of outputs, intersected with ranges that are a tenth too narrow."""
    ranges = stage.node.ranges
    if ranges is None:
        return boxes
    off = 0.05 * (ranges[1] - ranges[0])
    return Boxes(np.maximum(boxes.lower, ranges[0] + off), np.minimum(boxes.upper, ranges[1] - off))


def clipped_tables(stage: StageBelief) -> tuple[EnvelopeTable, ...]:
    """The tables of a stage, clipped at their nodes to the ranges of the outputs."""
    found: tuple[EnvelopeTable, ...] = _tables(stage)
    ranges, offset = stage.node.ranges, stage.node.stage.offset
    if ranges is None or not found:
        return found
    ends = [np.asarray(end)[stage.node.stage.modelled_positions] - offset for end in ranges]
    clipped = []
    for table, low, high in zip(found, *ends, strict=True):
        values = Boxes(np.maximum(table.lower, low)[:, None], np.minimum(table.upper, high)[:, None])
        clipped.append(EnvelopeTable.build(table.nodes, values, table.lipschitz))
    return tuple(clipped)
