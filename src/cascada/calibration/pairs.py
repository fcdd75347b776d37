"""Differences between all pairs of inputs, which every kernel and every lengthscale of a fit shares."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from cascada.arrays import Array, IntArray

# Inputs this close to each other, in units of the ranges, count as one observation of the size of the outputs.
_CLUSTER = 1e-3


@dataclass(frozen=True, eq=False)
class Pairs:
    """The P = n(n − 1)/2 pairs of inputs (n, d), each once: those of the lower triangle, column by column."""

    inputs: Array

    @cached_property
    def squares(self) -> Array:
        """(x_aj − x_bj)² for every input j, (d, P)."""
        return self._differences**2

    @property
    def first(self) -> IntArray:
        """The smaller index of every pair, (P,)."""
        return _indices(len(self.inputs))[0]

    @property
    def second(self) -> IntArray:
        """The larger index of every pair, (P,)."""
        return _indices(len(self.inputs))[1]

    @property
    def places(self) -> IntArray:
        """The place of every pair in the lower triangle of a matrix (n, n) in Fortran order, (P,)."""
        return _indices(len(self.inputs))[2]

    @cached_property
    def clusters(self) -> int:
        """The number of inputs, where a cluster of close inputs counts once: an input counts if no earlier one that
        counts is close to it.
        """
        near = np.abs(self._differences).max(axis=0, initial=0.0) <= _CLUSTER
        close: dict[int, list[int]] = {}
        for earlier, later in zip(self.first[near].tolist(), self.second[near].tolist(), strict=True):
            close.setdefault(later, []).append(earlier)
        counts = [True] * len(self.inputs)
        for later in sorted(close):
            counts[later] = not any(counts[earlier] for earlier in close[later])
        return sum(counts)

    @cached_property
    def _differences(self) -> Array:
        """x_aj − x_bj, (d, P)."""
        columns = np.ascontiguousarray(self.inputs.T)
        return columns[:, self.first] - columns[:, self.second]


@lru_cache(maxsize=16)
def _indices(n: int) -> tuple[IntArray, IntArray, IntArray]:
    """Columns, rows and places of the lower triangle of a matrix (n, n), without the diagonal."""
    first, second = (index.astype(np.int64) for index in np.triu_indices(n, 1))
    return first, second, n * first + second
