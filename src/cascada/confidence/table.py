"""Tabulated envelope of a stage with one input: bounds over any number of intervals, in O(log N) each.

Between two nodes a distance s apart, an L-Lipschitz f with upper bounds U_a, U_b at the nodes lies below the tent
min(U_a + L·(z − a), U_b + L·(b − z)), whose peak is (U_a + U_b + L·s)/2. The maximum over the nodes in an interval is
not a bound; the maximum of the tents over it is. Beyond the table f rises by at most L per unit. A belief also
bounds f over each gap between neighbours as a cell (`cells.cell_bounds`), which caps the tents where data are dense.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import UNIT_ROUNDOFF, Array, IntArray, as_points
from cascada.confidence.belief import Belief
from cascada.confidence.cells import cell_bounds
from cascada.confidence.range_maximum import range_maximum, sparse_maxima
from cascada.confidence.regions import Boxes
from cascada.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class EnvelopeTable:
    """Upper and lower envelopes of one output of a stage with one input, on sorted nodes."""

    nodes: Array  # (N,), increasing
    upper: Array  # (N,): f(node) is at most this
    lower: Array  # (N,): f(node) is at least this
    lipschitz: float
    _extremes: Array  # sparse tables of the highest values, and of minus the lowest, over the gaps, (levels, 2, N − 1)

    @classmethod
    def of_outputs(cls, belief: Belief, nodes: ArrayLike) -> "tuple[EnvelopeTable, ...]":
        """One table per output of a belief, at these nodes (any order) and at its data with their exact values.

        Raises `ArgumentError` unless the stage has one input and a Lipschitz constant, and there is a node.
        """
        if belief.posterior.dimension != 1:
            raise ArgumentError(
                f"an envelope table needs a stage with one input; this one has {belief.posterior.dimension}."
            )
        if belief.raw_lipschitz is None:
            raise ArgumentError(f"{belief.kernel} implies no Lipschitz constant; give the stage one (lipschitz=).")
        points = as_points(np.reshape(np.asarray(nodes, dtype=np.float64), (-1, 1)), "nodes")
        places = np.unique(np.concatenate([points, belief.posterior.inputs]))[:, None]
        if not len(places):
            raise ArgumentError("an envelope table needs at least one node.")
        at_nodes = cell_bounds(belief, Boxes(places, places))
        over_gaps = cell_bounds(belief, Boxes(places[:-1], places[1:]))
        return tuple(
            cls.build(
                places[:, 0],
                Boxes(at_nodes.lower[:, [j]], at_nodes.upper[:, [j]]),
                float(constant),
                Boxes(over_gaps.lower[:, [j]], over_gaps.upper[:, [j]]),
            )
            for j, constant in enumerate(belief.raw_lipschitz)
        )

    @classmethod
    def build(cls, nodes: Array, values: Boxes, lipschitz: float, gaps: Boxes | None = None) -> "EnvelopeTable":
        """A table from bounds of f at increasing nodes, and from bounds over the gaps between them, if known."""
        # Sums with L·z are rounded. The constant is raised, and the bounds are moved outwards, by more than that.
        constant = lipschitz * (1 + 8 * UNIT_ROUNDOFF)
        pad = 16 * UNIT_ROUNDOFF * (constant * np.ptp(nodes) + np.abs([values.upper, values.lower]).max())
        upper = _sweep(nodes, values.upper[:, 0], constant) + pad
        lower = -_sweep(nodes, -values.lower[:, 0], constant) - pad
        highest, lowest = _peaks(nodes, upper, constant), _peaks(nodes, -lower, constant)
        if gaps is not None:
            highest, lowest = np.minimum(highest, gaps.upper[:, 0]), np.minimum(lowest, -gaps.lower[:, 0])
        return cls(nodes, upper, lower, constant, np.stack([sparse_maxima(highest), sparse_maxima(lowest)], axis=1))

    def over(self, intervals: Boxes) -> Boxes:
        """Bounds of f over every interval, boxes in ℝ¹."""
        if intervals.lower.shape[1] != 1 or np.any(intervals.empty):
            raise ArgumentError("an envelope table takes intervals that are not empty: boxes of one dimension.")
        highest, lowest = self._maxima(intervals.lower[:, 0], intervals.upper[:, 0])
        return Boxes(-lowest[:, None], highest[:, None])

    def _maxima(self, left: Array, right: Array) -> Array:
        """The most that f and −f can be over [left, right], (2, n): whole gaps, the two cut gaps, beyond the table."""
        first = np.searchsorted(self.nodes, left, side="right") - 1  # the gap that `left` lies in; −1 before the table
        last = np.searchsorted(self.nodes, right, side="left") - 1  # the gap that `right` lies in; N − 1 behind it
        ends = np.concatenate([left, left]), np.concatenate([right, right])
        best = self._parts(np.concatenate([first, last]), *ends).reshape(2, 2, len(left)).max(axis=1)
        low, high = first + 1, last - 1  # whole gaps
        some = np.flatnonzero(low <= high)
        if len(some):
            best[:, some] = np.maximum(best[:, some], range_maximum(self._extremes, low[some], high[some]).T)
        return best

    def _parts(self, gap: IntArray, left: Array, right: Array) -> Array:
        """The most that f and −f can be over the part of [left, right] in a gap, (2, n): its tent, limited by its cap.

        Both at once, because most of the time is NumPy's, per call.
        """
        a, b = np.maximum(gap, 0), np.minimum(gap + 1, len(self.nodes) - 1)  # equal beyond the table
        inside = a < b
        values, start, end = self._signed, self.nodes[a], self.nodes[b]
        at_start, at_end, width = values[:, a], values[:, b], end - start
        low = np.where(gap >= 0, start, -np.inf)
        high = np.where(gap + 1 < len(self.nodes), end, np.inf)
        left, right = np.minimum(np.maximum(left, low), high), np.minimum(np.maximum(right, low), high)
        summit = 0.5 * (width + (at_end - at_start) / self.lipschitz)  # from node a
        peak = 0.5 * (at_start + at_end + self.lipschitz * width)
        hit = inside & (summit >= left - start - self._near) & (summit <= right - start + self._near)
        # The envelope at both ends, from nodes a and b.
        at_left = np.minimum(
            at_start + self.lipschitz * np.abs(left - start), at_end + self.lipschitz * np.abs(end - left)
        )
        at_right = np.minimum(
            at_start + self.lipschitz * np.abs(right - start), at_end + self.lipschitz * np.abs(end - right)
        )
        tent = np.maximum(at_left, at_right)
        tent = np.where(hit, np.maximum(tent, peak), tent)
        caps = self._extremes[0]
        if not caps.shape[1]:
            return tent
        return np.where(inside, np.minimum(tent, caps[:, np.minimum(a, caps.shape[1] - 1)]), tent)

    @cached_property
    def _signed(self) -> Array:
        """The most that f and −f can be at the nodes, (2, N)."""
        return np.stack([self.upper, -self.lower])

    @cached_property
    def _near(self) -> float:
        """How far rounding may move an end past a summit."""
        return 4 * float(np.spacing(np.abs(self.nodes).max()))


def _sweep(nodes: Array, values: Array, lipschitz: float) -> Array:
    """min over nodes z' of values(z') + L|z − z'|, in two linear passes (`eq:ucb_i` on the nodes)."""
    slope = lipschitz * (nodes - nodes[0])
    from_left = np.minimum.accumulate(values - slope) + slope
    from_right = np.minimum.accumulate((values + slope)[::-1])[::-1] - slope
    return np.minimum(values, np.minimum(from_left, from_right))


def _peaks(nodes: Array, values: Array, lipschitz: float) -> Array:
    """The peak of the tent over every gap between neighbouring nodes, (N − 1,)."""
    return 0.5 * (values[:-1] + values[1:] + lipschitz * np.diff(nodes))
