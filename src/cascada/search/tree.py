"""The tree of a running search: leaves that are cut and bounded again in place.

A search makes thousands of small changes to many leaves. Here both halves of a cut cell are appended to arrays with
room to grow, and the whole one is dropped, so that a change costs as much as the cells that it is about. Halves are
younger than all other cells: among equal bounds, of which there are many before there are data, the widest cells are
cut first.
"""

from collections.abc import Callable

import numpy as np

from cascada.arrays import Array, IntArray
from cascada.confidence import Boxes
from cascada.search.leaves import Leaves
from cascada.space import Domain


class Tree:
    """Cells with upper bounds, of which those at most `best` cannot contain a better value and are dropped."""

    def __init__(self, leaves: Leaves, best: float) -> None:
        self._best = best
        self._leaves = leaves.take(~(leaves.bound <= best))  # a copy: other searches may start from the same leaves
        self._count = len(self._leaves)

    def leaves(self) -> Leaves:
        """The leaves that may still contain a better value."""
        grown = self._leaves.take(slice(self._count))
        return grown.take(~(grown.bound <= self._best))

    @property
    def _bounds(self) -> Array:
        return self._leaves.bound[: self._count]

    @property
    def highest(self) -> float:
        """The largest bound; −∞ if no cell is left."""
        return float(self._bounds.max(initial=-np.inf))

    def bound(self, rows: IntArray) -> Array:
        """The bounds of these rows, (n,)."""
        return self._leaves.bound[rows]

    def top(self, count: int) -> IntArray:
        """The rows with the highest bounds, at most `count`: the highest first, the older first of equal ones."""
        bound = self._bounds
        rows = np.flatnonzero(~(bound <= self._best))
        if 2 * len(rows) < len(bound):
            self._leaves, self._count = self._leaves.take(rows), len(rows)
            bound, rows = self._leaves.bound, np.arange(len(rows))
        if len(rows) > count:
            least = np.partition(bound[rows], len(rows) - count)[len(rows) - count]
            rows = rows[bound[rows] >= least]
        return rows[np.argsort(-bound[rows], kind="stable")[:count]]

    def take(self, rows: IntArray) -> Leaves:
        """A copy of the leaves in these rows."""
        return self._leaves.take(rows)

    def older(self, rows: IntArray, version: int) -> IntArray:
        """Those of the rows whose bounds were computed from older data."""
        return rows[self._leaves.version[rows] < version]

    def rebound(self, rows: IntArray, bounds: Callable[[Boxes], tuple[Array, Array]], version: int) -> None:
        """Compute the bounds of these rows; a bound never grows."""
        leaves = self._leaves
        bound, slope = bounds(Boxes(leaves.lower[rows], leaves.upper[rows]))
        leaves.bound[rows] = np.minimum(leaves.bound[rows], bound)
        leaves.slope[rows], leaves.version[rows] = slope, version

    def cut(self, rows: IntArray, side: IntArray, domain: Domain) -> IntArray:
        """Cut the cells of these rows along a side; between two values for discrete controls.

        Returns the rows of all left halves and of all right ones, which keep the bound of the whole cell.
        """
        start, k = self._count, len(rows)
        if start + 2 * k > len(self._leaves):
            self._leaves = self._leaves.take(slice(start)).padded(start + 2 * k)
        leaves, self._count = self._leaves, start + 2 * k
        left, right = np.arange(start, start + k), np.arange(start + k, start + 2 * k)
        for values in (leaves.lower, leaves.upper, leaves.bound, leaves.slope, leaves.version):
            values[left] = values[right] = values[rows]
        leaves.bound[rows] = -np.inf  # dropped
        halves = domain.halves(side, leaves.lower[rows, side], leaves.upper[rows, side])
        leaves.upper[left, side], leaves.lower[right, side] = halves
        return np.concatenate([left, right])
