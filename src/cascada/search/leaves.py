"""Leaves of a branch-and-bound tree: cells that cover every point that may still be best."""

from dataclasses import dataclass, replace

import numpy as np

from cascada.arrays import Array, BoolArray, IntArray
from cascada.confidence import Boxes
from cascada.space import Domain


@dataclass(frozen=True, eq=False)
class Leaves:
    """Cells (n, d) with an upper bound of the objective over each, and the change of the bound along each side.

    A bound stays valid when data are added, because it bounds the same process. `version` is the number of the data it
    was computed from, so that it can be recomputed when needed. A changed assumption needs a new tree.
    """

    lower: Array
    upper: Array
    bound: Array  # (n,)
    slope: Array  # (n, d)
    version: IntArray  # (n,)

    @classmethod
    def root(cls, domain: Domain) -> "Leaves":
        """The whole box as one leaf, with an infinite bound."""
        d = domain.dimension
        return cls(
            domain.lower[None].copy(),
            domain.upper[None].copy(),
            np.array([np.inf]),
            np.zeros((1, d)),
            np.array([-1], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.bound)

    @property
    def highest(self) -> float:
        """The largest bound; −∞ if no cell is left."""
        return float(self.bound.max(initial=-np.inf))

    @property
    def centre(self) -> Array:
        """The midpoints, shape (n, d)."""
        return 0.5 * (self.lower + self.upper)

    def cells(self, rows: IntArray) -> Boxes:
        """The cells of these rows."""
        return Boxes(self.lower[rows], self.upper[rows])

    def take(self, rows: IntArray | BoolArray) -> "Leaves":
        """The leaves selected by a mask or by indices."""
        return Leaves(self.lower[rows], self.upper[rows], self.bound[rows], self.slope[rows], self.version[rows])

    def joined(self, other: "Leaves") -> "Leaves":
        """These leaves followed by others."""
        return Leaves(
            np.concatenate([self.lower, other.lower]),
            np.concatenate([self.upper, other.upper]),
            np.concatenate([self.bound, other.bound]),
            np.concatenate([self.slope, other.slope]),
            np.concatenate([self.version, other.version]),
        )

    def rebounded(self, rows: IntArray, bound: Array, slope: Array, version: int) -> "Leaves":
        """The same cells with the bounds of some rows recomputed; a bound never grows."""
        bounds, slopes, versions = self.bound.copy(), self.slope.copy(), self.version.copy()
        bounds[rows] = np.minimum(bounds[rows], bound)
        slopes[rows], versions[rows] = slope, version
        return Leaves(self.lower, self.upper, bounds, slopes, versions)


def halves(leaves: Leaves, side: IntArray, whole: list[int]) -> Leaves:
    """Both halves of every leaf, cut along this side; between whole numbers for integer controls."""
    rows = np.arange(len(leaves))
    middle = leaves.centre[rows, side]
    left_end, right_start = middle.copy(), middle.copy()
    integers = np.isin(side, whole)
    left_end[integers] = np.floor(middle[integers])
    right_start[integers] = left_end[integers] + 1
    upper, lower = leaves.upper.copy(), leaves.lower.copy()
    upper[rows, side], lower[rows, side] = left_end, right_start
    return replace(leaves, upper=upper).joined(replace(leaves, lower=lower))
