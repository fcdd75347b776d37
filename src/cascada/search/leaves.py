"""Leaves of a branch-and-bound tree: cells that cover every point that may still be best."""

from dataclasses import dataclass

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
    def root(cls, domain: Domain, within: Boxes | None = None) -> "Leaves":
        """The whole box as leaves with infinite bounds, or the part of it `within` one box (1, d).

        There is one leaf for every combination of values of the choices, and so just one without choices. A side
        without width is never cut: such a leaf is a slice, in which some controls are fixed.
        """
        whole = Boxes(domain.lower[None], domain.upper[None]) if within is None else within
        codes, combinations = domain.choices, domain.combinations
        inside = (whole.lower[:, codes] <= combinations) & (combinations <= whole.upper[:, codes])
        # Of a choice that matters for nothing, any value stands for all of them.
        idle = np.array([domain.names[j] in domain.idle for j in codes], dtype=bool)
        combinations = combinations[(inside | idle).all(axis=1)]
        lower, upper = (np.repeat(end, len(combinations), axis=0) for end in (whole.lower, whole.upper))
        lower[:, codes] = upper[:, codes] = combinations
        n, d = lower.shape
        return cls(lower, upper, np.full(n, np.inf), np.zeros((n, d)), np.full(n, -1, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.bound)

    @property
    def centre(self) -> Array:
        """The midpoints, shape (n, d)."""
        return 0.5 * (self.lower + self.upper)

    def take(self, rows: IntArray | BoolArray | slice) -> "Leaves":
        """The leaves selected by a mask, by indices or by a slice (which copies nothing)."""
        return Leaves(self.lower[rows], self.upper[rows], self.bound[rows], self.slope[rows], self.version[rows])

    def padded(self, more: int) -> "Leaves":
        """A copy followed by room for more leaves, whose values mean nothing."""
        parts = (self.lower, self.upper, self.bound, self.slope, self.version)
        return Leaves(*(np.concatenate([part, np.empty((more, *part.shape[1:]), part.dtype)]) for part in parts))
