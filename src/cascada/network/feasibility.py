"""Feasibility of cells: which of them contain settings that satisfy the limits, and what the values are at those.

A value that has a limit is cut to it before later stages use it. So the enclosure of a cell holds for its feasible
points only, which is all that counts for the best feasible setting. For a feasible point every value lies in its cut
interval and has its affine form, and a later stage's bound needs no more of its inputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array, BoolArray, IntArray
from cascada.confidence import Boxes
from cascada.confidence.affine import Affine
from cascada.network.beliefs import Beliefs
from cascada.network.enclosure import Enclosure, enclose_network, possible_values
from cascada.network.limits import Limit, satisfied
from cascada.network.mean import composite_mean
from cascada.network.slack import around_setting


@dataclass(frozen=True, eq=False)
class Feasibility:
    """Of every cell, what its bounds say about the limits, and bounds of all values at its feasible points.

    A cell that is neither impossible nor certain is undecided. Values are NaN where no point is feasible.
    """

    possible: BoolArray  #: (n,): False is a proof that no point of the cell is feasible
    certain: BoolArray  #: (n,): True is a proof that every point of the cell is feasible
    boxes: Boxes  #: (n, V)
    slope: Array  #: (n, V, d): by how much values move along the sides, to first order

    def above(self, column: int, sign: int) -> Array:
        """Upper bounds (n,) of a value times `sign` over the feasible points of every cell; −∞ where there are none."""
        bound = self.boxes.upper[:, column] if sign > 0 else -self.boxes.lower[:, column]
        return np.where(self.possible, bound, -np.inf)

    def below(self, column: int, sign: int) -> Array:
        """Lower bounds (n,) of the same; −∞ where not every point of the cell is proven to be feasible."""
        bound = self.boxes.lower[:, column] if sign > 0 else -self.boxes.upper[:, column]
        return np.where(self.certain, bound, -np.inf)


def enclose_feasible(beliefs: Beliefs, cells: Boxes, limits: Sequence[Limit]) -> Feasibility:
    """The feasibility of every cell of controls (coordinates, (n, d)).

    Raises `RefutedError` if the data leave no possible value, whatever the limits.
    """
    n, d = cells.lower.shape
    by_column = {limit.column: limit for limit in limits}
    certain, rows = np.ones(n, dtype=bool), np.arange(n)  # rows: the cells that may contain a feasible point
    enclosure = Enclosure(cells, Affine.of_cells(cells))
    near = beliefs.from_runs(cells)
    for stage in beliefs.stages:
        boxes, affine = possible_values(stage, *enclosure.columns(stage.node.inputs))
        if near is not None:
            columns = list(stage.node.columns)
            boxes = boxes.intersect(Boxes(near.lower[rows][:, columns], near.upper[rows][:, columns]))
        empty = (boxes.lower > boxes.upper).any(axis=1)
        if empty.any():
            # An empty box proves that the cell has no feasible point if an interval was cut before. It refutes an
            # assumption if the box is also empty without limits, for which the enclosure of the whole cell raises.
            left = rows[empty]
            enclose_network(beliefs, Boxes(cells.lower[left], cells.upper[left]))
        lower, upper, kept = boxes.lower.copy(), boxes.upper.copy(), np.asarray(~empty)
        for j, column in enumerate(stage.node.columns):
            if column in by_column:
                limit = by_column[column]
                certain[rows] &= (lower[:, j] >= limit.low) & (upper[:, j] <= limit.high)
                lower[:, j], upper[:, j] = np.maximum(lower[:, j], limit.low), np.minimum(upper[:, j], limit.high)
                kept &= lower[:, j] <= upper[:, j]
        assert affine is not None, "the enclosure has affine forms"
        enclosure = enclosure.joined(Boxes(lower, upper), affine)
        if not kept.all():  # nothing is handed on for a cell without a feasible point
            certain[rows[~kept]] = False
            rows, enclosure = rows[kept], enclosure.take(kept)
        if not len(rows):
            break
    return _spread_out(n, d, beliefs.network.width, rows, certain, enclosure)


def enclose_settings(beliefs: Beliefs, points: Array) -> Feasibility:
    """The feasibility of single settings, given by their coordinates (n, d), which may be rounded."""
    return enclose_feasible(beliefs, around_setting(beliefs, points), beliefs.network.limits)


def _spread_out(n: int, d: int, width: int, rows: IntArray, certain: BoolArray, enclosure: Enclosure) -> Feasibility:
    """The feasibility of all n cells from the enclosure of those, `rows`, that may contain a feasible point."""
    assert enclosure.affine is not None, "the enclosure has affine forms"
    possible = np.zeros(n, dtype=bool)
    possible[rows] = True
    lower, upper, slope = np.full((n, width), np.nan), np.full((n, width), np.nan), np.zeros((n, width, d))
    if len(rows):
        lower[rows], upper[rows] = enclosure.boxes.lower, enclosure.boxes.upper
        slope[rows] = np.abs(enclosure.affine.slope)
    return Feasibility(possible, certain, Boxes(lower, upper), slope)


def feasible_mean(beliefs: Beliefs, points: Array) -> Array:
    """The composite mean of what is maximised at points (n, d), (n,).

    It is −∞ where a formula is not defined, and where the mean of a limited output breaks its limit. The objective is
    not clipped to its range, because points are chosen by it.
    """
    network = beliefs.network
    means = composite_mean(beliefs, points, clip_objective=False)
    mean = np.nan_to_num(network.sign * means[:, network.objective_column], nan=-np.inf)
    return np.where(satisfied(network.limits, means), mean, -np.inf) if network.limits else mean
