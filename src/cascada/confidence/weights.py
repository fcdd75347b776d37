"""Weights λ of rows with bounded errors: any of them give valid bounds, and good ones give narrow bounds.

With y = f(C) + e, |e_i| ≤ ε_i and ‖f‖ ≤ B, every Λ = diag(λ) > 0 bounds every linear functional l of f by
l(μ) ± ρ·sd(l), ρ² = B² + Σ ε_i²/λ_i − yᵀ(K + Λ)⁻¹y. The smallest of these upper bounds over all Λ is the best bound
that B and the errors imply. It is found by alternating two minimisations of

    D(c) = cᵀy + Σ ε_i|c_i| + B·‖h‖ ≥ l(f),    h = l − Σ c_i k(·, C_i):

for given weights c = β − (sd/ρ)·α with α = (K + Λ)⁻¹y, β = (K + Λ)⁻¹l(k); for given c, λ_i = ε_i·‖h‖/(B·|c_i|). Most
λ_i grow without limit: their rows are left out. Nothing here needs to be rounded outwards.
"""

from typing import TYPE_CHECKING

import numpy as np

from cascada.arrays import Array
from cascada.kernels.stationary import Stationary

if TYPE_CHECKING:
    from cascada.confidence.read_rows import ReadRows

#: Rows with a larger λ, relative to s², are left out.
HEAVIEST = 1e3
_LIGHTEST = 1e-10
# The alternation: steps at most, and the relative improvement below which it ends.
_STEPS, _ENOUGH = 30, 1e-3
# The common weights that are tried.
_COMMON = 10.0 ** np.arange(-10, 3)


def relative_errors(rows: "ReadRows", norm_bound: Array, variance: float) -> Array:
    """The error of every row in units of the largest |f|, the largest over the outputs, (n,)."""
    return np.max(rows.error / (norm_bound * np.sqrt(variance)), axis=1, initial=0.0)


def common_weights(kernel: Stationary, rows: "ReadRows", norm_bound: Array, where: Array) -> Array:
    """Weights proportional to the errors of the rows, (n,), relative to s².

    Their factor is the one with the smallest mean half-width at points `where` (m, d), which are spread over all
    inputs: at the rows alone a tiny λ with a huge radius would be the best, and of no use elsewhere.
    """
    errors = relative_errors(rows, norm_bound, kernel.variance)
    if not errors.any():
        return np.full(len(rows), _LIGHTEST)
    shape = errors / errors.mean()
    where = where if len(where) else rows.places
    gram, section = kernel(rows.places, rows.places), kernel(rows.places, where)
    best: tuple[float, Array] = (np.inf, np.ones(len(rows)))
    for factor in _COMMON:
        lam = np.clip(factor * shape, _LIGHTEST, HEAVIEST)
        widths = _half_widths(gram, section, rows, norm_bound, kernel.variance, lam)
        if widths < best[0]:
            best = widths, lam
    return best[1]


def _half_widths(
    gram: Array, section: Array, rows: "ReadRows", norm_bound: Array, variance: float, lam: Array
) -> float:
    """The mean over points and outputs of the half-width in units of B·s, at most 1 each."""
    weighted = gram + np.diag(variance * lam)
    solved = np.linalg.solve(weighted, np.hstack([rows.middle, section]))
    p = rows.middle.shape[1]
    spent = np.einsum("np,np->p", rows.middle, solved[:, :p])
    radius2 = norm_bound**2 + (rows.error**2 / (variance * lam)[:, None]).sum(axis=0) - spent
    sd2 = np.maximum(variance - np.einsum("nm,nm->m", section, solved[:, p:]), 0.0)
    widths = np.sqrt(np.maximum(radius2, 0.0)) / norm_bound * np.sqrt(sd2 / variance)[:, None]
    return float(np.minimum(widths, 1.0).mean())


def best_weights(
    kernel: Stationary, rows: "ReadRows", norm_bound: float, output: int, point: Array, side: int, start: Array
) -> Array:
    """Weights (n,), relative to s², for a low upper (side 1) or a high lower (side −1) bound of an output.

    The bound is that at a point (d,). `start` are finite weights to begin with. Weights above `HEAVIEST` mean that the
    row is to be left out.
    """
    variance, y, error = kernel.variance, side * rows.middle[:, output], rows.error[:, output]
    gram, section = kernel(rows.places, rows.places), kernel(rows.places, point[None])[:, 0]
    lam = variance * np.clip(start, _LIGHTEST, HEAVIEST)
    best: tuple[float, Array] = (np.inf, lam)
    for _ in range(_STEPS):
        solved = np.linalg.solve(gram + np.diag(lam), np.stack([y, section], axis=1))
        radius2 = float(norm_bound**2 + np.sum(error**2 / lam) - y @ solved[:, 0])
        sd2 = max(float(variance - section @ solved[:, 1]), _LIGHTEST * variance * 1e-4)
        if radius2 <= 0:  # the readings refute the assumptions, which the fit reports
            break
        bound = float(y @ solved[:, 1] + np.sqrt(radius2 * sd2))
        if bound < best[0]:  # clipped weights may raise it
            improved, best = best[0] - bound, (bound, lam)
            if improved <= _ENOUGH * np.sqrt(radius2 * sd2):
                break
        c = solved[:, 1] - np.sqrt(sd2 / radius2) * solved[:, 0]
        h = np.sqrt(max(float(variance - 2 * c @ section + c @ gram @ c), 0.0))
        weights = error * h / (norm_bound * np.maximum(np.abs(c), 1e-300))
        lam = np.clip(weights, _LIGHTEST * variance, 1e5 * HEAVIEST * variance)
    return best[1] / variance
