"""Bounds of rounding errors in a posterior, as functions of t, λ and the unit roundoff u.

For *every* positive definite Λ, exact data f(X) = y and ‖f‖ ≤ B imply

    |l(f) − l(μ)| ≤ sqrt(B² − yᵀ(K+Λ)⁻¹y)·sd(l)

for every bounded linear functional l, with μ and sd computed from K + Λ. A computed Cholesky factor is the exact
factor of K + Λ with Λ = λI + E, |E_ij| ≤ (t + c)·u·s², where c counts the roundings in a kernel value. So rounding in
the factor acts like jitter and is harmless as long as the jitter exceeds it, which `jitters` ensures.

With errors, y = f(X) + e, E = eᵀΛ⁻¹e is added to B². The computed factor is that of Λ + E_r, |(E_r)_ij| at most
(t + c)·u·sqrt((s² + λ_i)(s² + λ_j)), so eᵀ(Λ + E_r)⁻¹e ≤ E/(1 − θ) with θ = `error_rounding`, the norm of
Λ^{−1/2}E_rΛ^{−1/2}. There the rows have different λ_i; what is said of λ holds for the smallest of them, or for 1 if
that is larger: the entry i of a right-hand side has an error of at most (2t + c)·u·s·sqrt(s² + λ_i), and counts with
its square over λ_i.

The other source is the right-hand side. A computed triangular solve is the exact solution for a right-hand side with an
error of at most (2t + c)·u·s² in each entry (backward stability; ‖row of L‖·‖v‖ ≤ s²). The smallest eigenvalue of K + Λ
is at least λs²/2, so this changes the sd by at most s·ε and the mean by at most ‖w‖·s·ε, with ε = `inflation`. The
rounding of the sum s² − ‖v‖², `variance_rounding`, is added inside the root.

A bound from averaged errors (`confidence.averages`) contains differences of two factorisations with λ ≥ λ0 in all rows,
and the determinant of one of them. The computed factor is that of M + E_r, and (1 − θ)·M ⪯ M + E_r ⪯ (1 + θ)·M because
M ⪰ Λ. So the logarithm of the determinant is off by at most 2tθ, a square yᵀM⁻¹y by 2θ of itself, and entries of M⁻¹y,
weighted with sqrt(λ_i), by 2θ·sqrt(yᵀM⁻¹y) together. Rounding in the solves adds no more than this. All of it is
largest at λ0; the readings without their bias have a square of at most 2·(yᵀM⁻¹y + Σ ω_i²/λ_i). Added up, the squared
radius is off by less than `AVERAGE_ROUNDING`·θ·(yᵀM⁻¹y + Σ ω_i²/λ_i) at λ0.
"""

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.errors import ArgumentError

SMALLEST_JITTER = 1e-10

# Outward rounding of what is computed from bounds. Each constant is a relative error, well above what the sums it is
# for can lose: k operations lose at most k·u of the largest numbers in them, u ≈ 1.1e-16.
#
# A computed ℓ2 norm, such as that of the half-widths of a cell: some ten operations for each of up to ten inputs.
NORM_ROUNDING = 1e-14
# A value plus a constant offset, relative to the sum of their magnitudes: the sum, and the value's own last digit.
OFFSET_ROUNDING = 4e-16
# The same for the midpoint of an interval and its offset, relative to the offset alone.
INTERVAL_OFFSET_ROUNDING = 1e-15
# The squared radius of a bound from averaged errors, in units of θ: see above.
AVERAGE_ROUNDING = 24.0
# An error carried through all stages of a network: sums of some ten terms per stage, each a norm times a constant.
CARRIED_ROUNDING = 1e-13


def as_jitter(jitter: float) -> float:
    """Return λ as a float; raise `ArgumentError` if it is below SMALLEST_JITTER."""
    if not isinstance(jitter, int | float | np.number) or not (np.isfinite(jitter) and jitter >= SMALLEST_JITTER):
        raise ArgumentError(
            f"jitter must be at least {SMALLEST_JITTER:g}; got {jitter!r}. Below it, rounding can break the bounds."
        )
    return float(jitter)


def jitters(start: int, stop: int, jitter: float, kernel_rounding: float) -> Array:
    """The jitter of rows start..stop−1, relative to s²: λ, raised where rounding in t rows could exceed it.

    With λ = 1e-10 and a closed-form kernel it is λ up to t = 458. The jitter of a row never changes, so an appended
    posterior equals a refitted one.
    """
    row = np.arange(start + 1, stop + 1, dtype=np.float64)
    return np.maximum(jitter, 4.0 * row * (row + kernel_rounding) * UNIT_ROUNDOFF)


def inflation(t: int, jitter: float, kernel_rounding: float) -> float:
    """ε: the largest deficit of a computed sd in units of s, and the largest error of a mean in units of s·‖w‖."""
    return float(2.0 * np.sqrt(t) * (2.0 * t + kernel_rounding) * UNIT_ROUNDOFF / np.sqrt(jitter))


def smallest_noise(t: int, kernel_rounding: float) -> float:
    """The smallest λ_i, relative to s², that a row of a posterior with t rows may have: the jitter of the last row."""
    return max(SMALLEST_JITTER, float(4.0 * t * (t + kernel_rounding) * UNIT_ROUNDOFF))


def error_rounding(t: int, noise: float, kernel_rounding: float) -> float:
    """θ: how far rounding in the factor can raise eᵀΛ⁻¹e of t errors, relatively; `noise` is the smallest λ_i.

    At most 0.51 for noise that `smallest_noise` allows; the factor 2 is for the rounding of solves with the factor.
    """
    return float(2.0 * t * (t + kernel_rounding) * UNIT_ROUNDOFF * (1.0 + 1.0 / noise))


def variance_rounding(t: int) -> float:
    """The largest error of s² − ‖v‖² in units of s²."""
    return 2.0 * (t + 8.0) * UNIT_ROUNDOFF


def square_rounding(t: int) -> float:
    """η: the relative error of a computed ‖w‖²."""
    return 2.0 * (t + 8.0) * UNIT_ROUNDOFF
