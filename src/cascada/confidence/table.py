"""Tabulated envelope of a stage with one input: bounds over any number of intervals, in O(log N) each.

Between two nodes a distance s apart, an L-Lipschitz f with upper bounds U_a, U_b at the nodes lies below the tent
min(U_a + L·(z − a), U_b + L·(b − z)), whose peak is (U_a + U_b + L·s)/2. The maximum over the nodes in an interval is
not a bound; the maximum of the tents over it is. Beyond the table f rises by at most L per unit. A belief also
bounds f over each gap between neighbours as a cell (`cells.cell_bounds`), which caps the tents where data are dense.
"""

from dataclasses import dataclass

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
    _highest: Array  # sparse table of the highest values over the gaps, (levels, N − 1)
    _lowest: Array  # sparse table of minus the lowest values

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
        return cls(nodes, upper, lower, constant, sparse_maxima(highest), sparse_maxima(lowest))

    def over(self, intervals: Boxes) -> Boxes:
        """Bounds of f over every interval, boxes in ℝ¹."""
        if intervals.lower.shape[1] != 1 or np.any(intervals.empty):
            raise ArgumentError("an envelope table takes intervals that are not empty: boxes of one dimension.")
        left, right = intervals.lower[:, 0], intervals.upper[:, 0]
        upper = self._maximum(self.upper, self._highest, left, right)
        lower = -self._maximum(-self.lower, self._lowest, left, right)
        return Boxes(lower[:, None], upper[:, None])

    def _maximum(self, values: Array, sparse: Array, left: Array, right: Array) -> Array:
        """The most that f can be over [left, right]: whole gaps, the two cut gaps, and the parts beyond the table."""
        first = np.searchsorted(self.nodes, left, side="right") - 1  # the gap that `left` lies in; −1 before the table
        last = np.searchsorted(self.nodes, right, side="left") - 1  # the gap that `right` lies in; N − 1 behind it
        best = np.maximum(
            self._part(values, sparse[0], first, left, right), self._part(values, sparse[0], last, left, right)
        )
        low, high = first + 1, last - 1  # whole gaps
        some = low <= high
        if np.any(some):
            best[some] = np.maximum(best[some], range_maximum(sparse, low[some], high[some]))
        return best

    def _part(self, values: Array, caps: Array, gap: IntArray, left: Array, right: Array) -> Array:
        """The most that f can be over the part of [left, right] in this gap: its tent, limited by its cap."""
        a, b = np.clip(gap, 0, None), np.clip(gap + 1, None, len(self.nodes) - 1)  # equal beyond the table
        inside = a < b
        low = np.where(gap >= 0, self.nodes[a], -np.inf)
        high = np.where(gap + 1 < len(self.nodes), self.nodes[b], np.inf)
        left, right = np.clip(left, low, high), np.clip(right, low, high)
        width = self.nodes[b] - self.nodes[a]
        summit = 0.5 * (width + (values[b] - values[a]) / self.lipschitz)  # from node a
        peak = 0.5 * (values[a] + values[b] + self.lipschitz * width)
        near = 4 * np.spacing(np.abs(self.nodes).max())  # rounding may move an end past the summit
        hit = inside & (summit >= left - self.nodes[a] - near) & (summit <= right - self.nodes[a] + near)
        tent = np.maximum(self._tent(values, a, b, left), self._tent(values, a, b, right))
        tent = np.where(hit, np.maximum(tent, peak), tent)
        if not len(caps):
            return tent
        return np.where(inside, np.minimum(tent, caps[np.minimum(a, len(caps) - 1)]), tent)

    def _tent(self, values: Array, a: IntArray, b: IntArray, z: Array) -> Array:
        """The envelope at z from nodes a and b."""
        from_left = values[a] + self.lipschitz * np.abs(z - self.nodes[a])
        from_right = values[b] + self.lipschitz * np.abs(self.nodes[b] - z)
        return np.minimum(from_left, from_right)


def _sweep(nodes: Array, values: Array, lipschitz: float) -> Array:
    """min over nodes z' of values(z') + L|z − z'|, in two linear passes (`eq:ucb_i` on the nodes)."""
    slope = lipschitz * (nodes - nodes[0])
    from_left = np.minimum.accumulate(values - slope) + slope
    from_right = np.minimum.accumulate((values + slope)[::-1])[::-1] - slope
    return np.minimum(values, np.minimum(from_left, from_right))


def _peaks(nodes: Array, values: Array, lipschitz: float) -> Array:
    """The peak of the tent over every gap between neighbouring nodes, (N − 1,)."""
    return 0.5 * (values[:-1] + values[1:] + lipschitz * np.diff(nodes))
