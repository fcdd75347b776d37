"""The envelope of a stage with one input, tabulated: bounds over any number of intervals in O(log N) each.

Between two nodes a distance s apart, an L-Lipschitz f with upper bounds U_a, U_b at the nodes lies below the tent
min(U_a + L·(z − a), U_b + L·(b − z)), whose peak is (U_a + U_b + L·s)/2. A maximum over nodes inside an interval would
not be a bound; the maximum of the tents over it is. Beyond the table f rises by at most L per unit.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import UNIT_ROUNDOFF, Array, IntArray, as_points
from cascada.confidence.belief import Belief
from cascada.confidence.regions import Boxes
from cascada.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class EnvelopeTable:
    """Upper and lower envelopes of one output of a stage with one input, on sorted nodes."""

    nodes: Array  # (N,), increasing
    upper: Array  # (N,): f(node) is at most this
    lower: Array  # (N,): f(node) is at least this
    lipschitz: float
    _highest: Array  # sparse table of the peaks of the tents, (levels, N − 1)
    _lowest: Array  # sparse table of the mirrored tents' peaks

    @classmethod
    def of(cls, belief: Belief, nodes: ArrayLike, output: int = 0) -> "EnvelopeTable":
        """Tabulate a belief at these nodes (any order) and at its data, which enter with their exact values."""
        if belief.posterior.dimension != 1:
            raise ArgumentError(
                f"an envelope table needs a stage with one input; this one has {belief.posterior.dimension}."
            )
        if belief.raw_lipschitz is None:
            raise ArgumentError(f"{belief.kernel} implies no Lipschitz constant; give the stage one (lipschitz=).")
        places = as_points(np.reshape(np.asarray(nodes, dtype=np.float64), (-1, 1)), "nodes")
        bounds = belief.bounds(places)
        data, values = belief.posterior.inputs[:, 0], belief.posterior.outputs[:, output]
        return cls.build(
            np.append(places[:, 0], data),
            np.append(bounds.lower[:, output], values),
            np.append(bounds.upper[:, output], values),
            float(belief.raw_lipschitz[output]),
        )

    @classmethod
    def build(cls, nodes: Array, lower: Array, upper: Array, lipschitz: float) -> "EnvelopeTable":
        """Tabulate given bounds at given nodes; where a node comes twice, both bounds count."""
        if len(nodes) == 0:
            raise ArgumentError("an envelope table needs at least one node.")
        places, index = np.unique(nodes, return_inverse=True)
        high, low = np.full(len(places), np.inf), np.full(len(places), -np.inf)
        np.minimum.at(high, index, upper)
        np.maximum.at(low, index, lower)
        # Sums with L·z are rounded: the constant is raised, and the bounds are moved outwards, by more than that.
        constant = lipschitz * (1 + 8 * UNIT_ROUNDOFF)
        pad = 16 * UNIT_ROUNDOFF * (constant * np.ptp(places) + np.abs(high).max() + np.abs(low).max())
        high, low = _sweep(places, high, constant) + pad, -_sweep(places, -low, constant) - pad
        return cls(
            places,
            high,
            low,
            constant,
            _sparse(_peaks(places, high, constant)),
            _sparse(_peaks(places, -low, constant)),
        )

    def over(self, intervals: Boxes) -> Boxes:
        """Bounds of f over every interval, boxes in ℝ¹."""
        if intervals.lower.shape[1] != 1 or np.any(intervals.empty):
            raise ArgumentError("an envelope table takes intervals that are not empty: boxes of one dimension.")
        left, right = intervals.lower[:, 0], intervals.upper[:, 0]
        upper = self._maximum(self.upper, self._highest, left, right)
        lower = -self._maximum(-self.lower, self._lowest, left, right)
        return Boxes(lower[:, None], upper[:, None])

    def _maximum(self, values: Array, sparse: Array, left: Array, right: Array) -> Array:
        """The maximum of the tents over [left, right]: both ends, peaks of whole gaps, and of the two cut ones."""
        best = np.maximum(self._tent(values, left), self._tent(values, right))
        first = np.searchsorted(self.nodes, left, side="right") - 1  # the gap that `left` lies in; −1 before the table
        last = np.searchsorted(self.nodes, right, side="left") - 1  # the gap that `right` lies in; N − 1 behind it
        best = np.maximum(best, self._cut_peak(values, first, left, right))
        best = np.maximum(best, self._cut_peak(values, last, left, right))
        low, high = first + 1, last - 1  # whole gaps
        some = low <= high
        if np.any(some):
            best[some] = np.maximum(best[some], _range_maximum(sparse, low[some], high[some]))
        return best

    def _tent(self, values: Array, z: Array) -> Array:
        """The envelope at z."""
        after = np.searchsorted(self.nodes, z, side="left")
        a, b = np.clip(after - 1, 0, None), np.clip(after, None, len(self.nodes) - 1)
        from_left = values[a] + self.lipschitz * np.abs(z - self.nodes[a])
        from_right = values[b] + self.lipschitz * np.abs(self.nodes[b] - z)
        return np.minimum(from_left, from_right)

    def _cut_peak(self, values: Array, gap: IntArray, left: Array, right: Array) -> Array:
        """The envelope at the peak of a gap, where the peak lies in the interval; −∞ elsewhere."""
        inside = (gap >= 0) & (gap < len(self.nodes) - 1)
        a = np.where(inside, gap, 0)
        b = np.minimum(a + 1, len(self.nodes) - 1)
        rise = (values[b] - values[a]) / self.lipschitz
        summit = 0.5 * (self.nodes[a] + self.nodes[b] + rise)
        peak = 0.5 * (values[a] + values[b] + self.lipschitz * (self.nodes[b] - self.nodes[a]))
        # A summit that is rounded across an end of the interval: let a little more count.
        margin = 8 * UNIT_ROUNDOFF * (np.abs(summit) + np.abs(rise))
        return np.where(inside & (left - margin <= summit) & (summit <= right + margin), peak, -np.inf)


def _sweep(nodes: Array, values: Array, lipschitz: float) -> Array:
    """min over nodes z' of values(z') + L|z − z'|, in two linear passes (`eq:ucb_i` on the nodes)."""
    slope = lipschitz * (nodes - nodes[0])
    from_left = np.minimum.accumulate(values - slope) + slope
    from_right = np.minimum.accumulate((values + slope)[::-1])[::-1] - slope
    return np.minimum(values, np.minimum(from_left, from_right))


def _peaks(nodes: Array, values: Array, lipschitz: float) -> Array:
    """The peak of the tent over every gap between neighbouring nodes, (N − 1,)."""
    return 0.5 * (values[:-1] + values[1:] + lipschitz * np.diff(nodes))


def _sparse(values: Array) -> Array:
    """Row k holds the maxima of 2^k neighbours, so that two look-ups give the maximum of any range."""
    rows, width = [values], 1
    while 2 * width <= len(values):
        row = rows[-1].copy()
        row[: len(values) - width] = np.maximum(row[:-width], row[width:])
        rows.append(row)
        width *= 2
    return np.array(rows)


def _range_maximum(sparse: Array, low: IntArray, high: IntArray) -> Array:
    """max of values[low..high], both ends included, for many ranges."""
    level = np.frexp(high - low + 1.0)[1] - 1  # the largest k with 2^k ≤ length
    return np.maximum(sparse[level, low], sparse[level, high - (1 << level) + 1])
