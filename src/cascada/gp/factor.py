"""A Cholesky factor that grows by a block at a time, and solves with it.

Factors are lower triangular in Fortran order, as BLAS takes them without a copy.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cascada.arrays import Array
from cascada.errors import NumericalError


class _Routines(NamedTuple):
    """Routines of BLAS and LAPACK."""

    dtrsm: Callable[..., Any]
    dtrsv: Callable[..., Any]
    dpotrf: Callable[..., Any]


@cache
def _routines() -> _Routines:
    """The routines of this module. `scipy.linalg` is slow to import, and many commands need no factor."""
    from scipy.linalg import blas, lapack

    return _Routines(blas.dtrsm, blas.dtrsv, lapack.dpotrf)


def extend_factor(factor: Array, cross: Array, corner: Array) -> Array:
    """The factor of [M Cᵀ; C D] from the factor of M (t, t), the rows C (b, t) and the block D (b, b).

    It is [L 0; S R] with S = C·L⁻ᵀ and RRᵀ = D − SSᵀ; O(t²b + b³). `cross` and `corner` may be overwritten.
    """
    t, b = factor.shape[0], corner.shape[0]
    border = triangular_solve(factor, cross.T).T  # S
    corner -= border @ border.T
    extended = np.empty((t + b, t + b), order="F")
    extended[:t, :t] = factor
    extended[:t, t:] = 0.0
    extended[t:, :t] = border
    if b:
        extended[t:, t:], info = _routines().dpotrf(corner, lower=1, clean=1)
        if info != 0:
            raise NumericalError(
                f"the kernel matrix is not positive definite: its factorisation broke down at row {t + info} of "
                f"{t + b}. If the kernel is one of your own, check that it is positive definite; else raise the jitter."
            )
    return extended


def extend_solution(factor: Array, solution: Array, rows: Array) -> Array:
    """L⁻¹·[Y; rows] from the solution L⁻¹·Y of the rows before."""
    t = solution.shape[0]
    residual = rows - factor[t:, :t] @ solution
    return np.concatenate([solution, triangular_solve(factor[t:, t:], residual)])


def triangular_solve(factor: Array, rhs: Array, transposed: bool = False) -> Array:
    """L⁻¹·rhs, or L⁻ᵀ·rhs, for a (t, n) right-hand side that may be overwritten."""
    if rhs.size == 0:
        return rhs
    if rhs.shape[1] == 1:  # bound by memory: dtrsv reads the factor about twice as fast as dtrsm
        solution: Array = _routines().dtrsv(factor, rhs[:, 0], lower=1, trans=int(transposed), overwrite_x=1)
        return solution[:, None]
    block: Array = _routines().dtrsm(1.0, factor, rhs, lower=1, trans_a=int(transposed), overwrite_b=1)
    return block
