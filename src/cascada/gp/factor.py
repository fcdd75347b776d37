"""Cholesky factors that are extended by blocks, and triangular solves with them.

Factors are lower triangular and in Fortran order, so that LAPACK needs no copy. Copying a factor for every row that is
appended would take longer than the solve, so a factor lies in a buffer with spare capacity, which it shares with the
factors that extend it.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cascada.arrays import Array
from cascada.errors import NumericalError

# Two threads may extend the same factor, of a study and of its branch: only one of them gets the rows of the buffer.
_CLAIMING = threading.Lock()


class _Routines(NamedTuple):
    """Routines of LAPACK."""

    dtrtrs: Callable[..., Any]
    dpotrf: Callable[..., Any]


@cache
def _routines() -> _Routines:
    """The routines of this module. `scipy.linalg` is slow to import, and many commands need no factor."""
    from scipy.linalg import lapack

    return _Routines(lapack.dtrtrs, lapack.dpotrf)


@dataclass
class _Buffer:
    """Memory of factors that share their first rows."""

    columns: Array  # (capacity, capacity), in Fortran order, with zeros above the diagonal
    used: int  # the number of rows that belong to some factor


@dataclass(frozen=True, eq=False)
class Factor:
    """A lower Cholesky factor L (t, t); immutable: `extended` returns a new one."""

    count: int  # t
    _buffer: _Buffer

    @classmethod
    def empty(cls) -> "Factor":
        """The factor of a matrix without rows."""
        return cls(0, _Buffer(np.zeros((0, 0), order="F"), 0))

    @property
    def array(self) -> Array:
        """L as a view of the buffer."""
        return self._buffer.columns[: self.count, : self.count]

    def extended(self, cross: Array, corner: Array) -> "Factor":
        """The factor of [M Cᵀ; C D] if this is the factor of M (t, t), with rows C (b, t) and a block D (b, b).

        It is [L 0; S R] with S = C·L⁻ᵀ and RRᵀ = D − SSᵀ; O(t²b + b³). `cross` and `corner` may be overwritten.
        """
        t, b = self.count, corner.shape[0]
        if not b:
            return self
        border = self.solve(cross.T).T  # S
        corner -= border @ border.T
        block, info = _routines().dpotrf(corner, lower=1, clean=1)
        if info != 0:
            raise NumericalError(
                f"the kernel matrix must be positive definite; its factorisation failed at row {t + info} of {t + b}. "
                f"If you defined the kernel, check that it is positive definite; otherwise raise the jitter."
            )
        buffer = self._room_for(t + b)
        buffer.columns[t : t + b, :t] = border
        buffer.columns[t : t + b, t : t + b] = block
        return Factor(t + b, buffer)

    def solve(self, rhs: Array, transposed: bool = False) -> Array:
        """L⁻¹·rhs, or L⁻ᵀ·rhs, for a (t, n) right-hand side that may be overwritten."""
        return _solved(self._buffer.columns[:, : self.count], rhs, transposed)

    def _room_for(self, total: int) -> _Buffer:
        """A buffer with these rows and `total` in use: the own one, or a copy if it is full or another factor's."""
        t, own = self.count, self._buffer
        with _CLAIMING:
            if own.used == t and total <= len(own.columns):
                own.used = total
                return own
        # A first block is often all there is. Beyond, a quarter more each time: then copying adds up to O(t²).
        # Columns an odd multiple of 64 bytes apart do not compete for the same lines of a cache.
        size = total if not t else ((total + total // 4 + 16) // 8 | 1) * 8
        columns = np.zeros((size, size), order="F")
        columns[:t, :t] = self.array
        return _Buffer(columns, total)


def extend_solution(factor: Array, solution: Array, rows: Array) -> Array:
    """L⁻¹·[Y; rows] from the solution L⁻¹·Y of the earlier rows."""
    t = solution.shape[0]
    residual = rows - factor[t:, :t] @ solution
    return np.concatenate([solution, triangular_solve(factor[t:, t:], residual)])


def triangular_solve(factor: Array, rhs: Array, transposed: bool = False) -> Array:
    """L⁻¹·rhs, or L⁻ᵀ·rhs, for a factor (t, t) and a (t, n) right-hand side that may be overwritten."""
    return _solved(factor, rhs, transposed)


def _solved(columns: Array, rhs: Array, transposed: bool) -> Array:
    """The same for a factor in the first t rows of its columns (capacity, t)."""
    if rhs.size == 0:
        return rhs
    # Unlike dtrsv and dtrsm, dtrtrs takes the distance between two columns. It gives the same bits: OpenBLAS calls
    # dtrsv for a single right-hand side, which is limited by memory bandwidth, and dtrsm for several.
    solution: Array
    solution, _ = _routines().dtrtrs(
        columns, rhs, lower=1, trans=int(transposed), lda=max(1, len(columns)), overwrite_b=1
    )
    return solution
