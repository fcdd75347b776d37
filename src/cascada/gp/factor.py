"""Cholesky factors that are extended by blocks, and triangular solves with them.

Factors are lower triangular and in Fortran order, so that BLAS needs no copy.
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
                f"the kernel matrix must be positive definite; its factorisation failed at row {t + info} of {t + b}. "
                f"If you defined the kernel, check that it is positive definite; otherwise raise the jitter."
            )
    return extended


def extend_solution(factor: Array, solution: Array, rows: Array) -> Array:
    """L⁻¹·[Y; rows] from the solution L⁻¹·Y of the earlier rows."""
    t = solution.shape[0]
    residual = rows - factor[t:, :t] @ solution
    return np.concatenate([solution, triangular_solve(factor[t:, t:], residual)])


def triangular_solve(factor: Array, rhs: Array, transposed: bool = False) -> Array:
    """L⁻¹·rhs, or L⁻ᵀ·rhs, for a (t, n) right-hand side that may be overwritten."""
    if rhs.size == 0:
        return rhs
    if rhs.shape[1] == 1:  # limited by memory bandwidth: dtrsv reads the factor about twice as fast as dtrsm
        solution: Array = _routines().dtrsv(factor, rhs[:, 0], lower=1, trans=int(transposed), overwrite_x=1)
        return solution[:, None]
    block: Array = _routines().dtrsm(1.0, factor, rhs, lower=1, trans_a=int(transposed), overwrite_b=1)
    return block
