"""Bounds of a function from readings with sub-Gaussian errors: they hold with a probability, at all times at once.

Reading i of an output is y_i = f(v_i) + e_i + ε_i. Given all that was reported before it, E exp(s·ε_i) ≤ exp(s²R²/2)
for every s, and |e_i| is bounded. Its nominal input C_i was chosen before. With b_i = f(v_i) + e_i − f(C_i),
|b_i − b̂_i| ≤ ω_i and ŷ = y − b̂, the following holds with probability at least 1 − α, for all numbers of readings,
every linear functional l of f and every λ ≥ λ0:

    |l(f) − l(μ)| ≤ ρ·sd(l) + Σ_i |β_i(l)|·ω_i
    ρ² = B² + (R²/λ)·(log det(I + K/λ0) + 2·log(1/α)) − ŷᵀNŷ + 2·Σ_i |Nŷ|_i·ω_i,
    N = (K + λI)⁻¹ − (λ0/λ)·(K + λ0I)⁻¹, positive semi-definite, and 0 at λ0.

μ and sd are those of the posterior of ŷ with λ in all rows; β(l) = (K + λI)⁻¹l(k).

Proof. Let z = y − b = f(C) + ε. For every function g that was fixed in advance, exp((‖z − f(C)‖² − ‖z − g(C)‖²)/2R²) is
a supermartingale. Its mixture over g ~ N(0, (R²/λ0)·K) and Ville's inequality imply that, at all times,
‖ε‖² ≤ λ0·zᵀ(K + λ0I)⁻¹z + R²(log det(I + K/λ0) + 2·log(1/α)). This bounds f as errors of a known size do (`weights`),
from the data z. Of b, only b̂ and ω are known; they may be derived from all readings. λ0, R, α and C may not.

Readings at the same nominal input are merged: n of them are one row with their mean, the mean of their ω, and λ/n. The
determinant is that of all readings.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.confidence.belief import Belief
from cascada.confidence.jet_bounds import PointBounds, point_bounds
from cascada.gp.posterior import Posterior
from cascada.gp.rounding import AVERAGE_ROUNDING, error_rounding, smallest_noise, square_rounding
from cascada.kernels.stationary import Stationary

#: λ/λ0 of the fits whose bounds are intersected.
FACTORS = (1.0, 4.0, 16.0, 64.0)
# λ0·B²/R², and the smallest λ0 relative to s².
_FIRST, _SMALLEST = 16.0, 1e-8
# Bias that is this small, in units of B·s, is bounded by its norm instead of row by row.
_NEGLIGIBLE = 1e-10


def first_weight(scale: float, norm_bound: float, variance: float) -> float:
    """λ0 of an output with scatter R = scale: it has to be fixed before the first reading."""
    return max(_FIRST * (scale / norm_bound) ** 2, _SMALLEST * variance)


@dataclass(frozen=True, eq=False)
class ScatteredRows:
    """All readings of one output: nominal inputs, readings without the estimated bias, and what is left of the bias."""

    places: Array  # C, (t, d): chosen before the reading
    values: Array  # ŷ, (t,)
    bias: Array  # ω, (t,)

    def merged(self, most: int) -> tuple["ScatteredRows", Array]:
        """Rows of readings with the same nominal input, at most so many in each, and the number of readings (n,)."""
        _, group = np.unique(self.places + 0.0, axis=0, return_inverse=True)
        keys: dict[tuple[int, int], int] = {}
        seen: dict[int, int] = {}
        index = np.empty(len(self.values), dtype=np.int64)
        for i, g in enumerate(np.reshape(group, -1).tolist()):
            part = seen.get(g, 0)
            seen[g] = part + 1
            index[i] = keys.setdefault((g, part // most), len(keys))
        count = np.bincount(index, minlength=len(keys)).astype(np.float64)
        first = np.unique(index, return_index=True)[1]
        values, bias = (np.bincount(index, part, len(keys)) / count for part in (self.values, self.bias))
        # The means are rounded: by a few unit roundoffs of the largest number in them.
        largest = np.zeros(len(keys))
        np.maximum.at(largest, index, np.abs(self.values))
        bias = bias * (1 + 2 * (count + 2) * UNIT_ROUNDOFF) + 2 * (count + 2) * UNIT_ROUNDOFF * largest
        return ScatteredRows(self.places[first], values, bias), count


@dataclass(frozen=True)
class ScatteredOutput:
    """What is assumed of one output of a stage with scatter, and what was fixed before its first reading."""

    kernel: Stationary
    norm_bound: float  # B
    scale: float  # R
    first: float  # λ0
    risk: float  # α
    position: int  # among the outputs of the stage
    outputs: int  # of the stage


def averaged_fits(output: ScatteredOutput, rows: ScatteredRows) -> tuple["AveragedFit", ...]:
    """The fits to all readings of an output, one for each of `FACTORS`; none if rounding could break their bounds."""
    kernel, total = output.kernel, len(rows.values)
    relative = output.first / kernel.variance
    if not total or smallest_noise(total, kernel.rounding) > relative:
        return ()
    # λ0/n must not be too small for the factorisation, so a place with very many readings has several rows.
    merged, count = rows.merged(int(relative / smallest_noise(total, kernel.rounding)))
    base = _posterior(kernel, merged, relative / count)
    t = len(count)
    theta = error_rounding(t, base.jitter, kernel.rounding)
    diagonal = np.log(np.diag(base.factor))
    determinant = 2 * float(diagonal.sum()) + float(np.log(count / output.first).sum())
    rounding = 8 * (t + 8) * UNIT_ROUNDOFF * float(np.abs(diagonal).sum() + np.abs(np.log(count / output.first)).sum())
    price = max(determinant + 2 * t * theta + rounding, 0.0) + 2 * np.log(1 / output.risk) * (1 + 4 * UNIT_ROUNDOFF)
    squares = float((count * merged.bias**2).sum()) / output.first
    pad = AVERAGE_ROUNDING * theta * (float(base.spent[0]) + squares)
    alpha = base.data_weights[:, 0]
    fits = []
    for factor in FACTORS:
        posterior = base if factor == 1.0 else _posterior(kernel, merged, factor * relative / count)
        solved = 0.0 * alpha if factor == 1.0 else posterior.data_weights[:, 0] - alpha / factor  # Nŷ
        theta_here = error_rounding(t, posterior.jitter, kernel.rounding)
        noise = output.scale**2 / (factor * output.first) * price / (1 - theta_here)
        spent = float(merged.values @ solved) - 2 * float(np.abs(solved) @ merged.bias)
        size = output.norm_bound**2 + noise + float(np.abs(merged.values) @ np.abs(solved))
        size += 2 * float(np.abs(solved) @ merged.bias)
        left = output.norm_bound**2 + noise - spent + pad + 4 * (t + 8) * UNIT_ROUNDOFF * size
        fits.append(AveragedFit(output, posterior, merged.bias, left))
    return tuple(fits)


def _posterior(kernel: Stationary, rows: ScatteredRows, noise: Array) -> Posterior:
    return Posterior.weighted(kernel, rows.places, rows.values[:, None], noise)


class AveragedFit:
    """The bounds of one output from one λ; the other outputs of the stage are not bounded.

    f minus the mean need not have a norm within the radius, because the readings have a bias: of the slacks in `cells`,
    only 1 and 3 can be used.
    """

    def __init__(self, output: ScatteredOutput, posterior: Posterior, bias: Array, left: float) -> None:
        self.output, self.bias = output, bias
        self.refuted = left < 0  # no f of this norm agrees with the readings
        radius = np.sqrt(np.array([max(left, 0.0)])) * (1 + square_rounding(0))
        self.belief = Belief(posterior, output.norm_bound, joint_radius=radius)

    @cached_property
    def _bias_norm(self) -> float:
        """sqrt(Σ ω_i²/λ_i): the most that the bias moves the mean of a functional of prior sd 1."""
        noise = self.belief.posterior.noise * self.output.kernel.variance
        return float(np.sqrt(np.sum(self.bias**2 / noise))) * (1 + 4 * (len(noise) + 8) * UNIT_ROUNDOFF)

    def at_points(self, points: Array, slopes: bool) -> PointBounds:
        """The bounds of the output at points (n, d); infinite for the others."""
        own = point_bounds(self.belief, points, slopes)
        moved = self._moved(points, slopes)
        n, p = len(points), self.output.outputs
        lower, upper = np.full((n, p), -np.inf), np.full((n, p), np.inf)
        j = self.output.position
        lower[:, j], upper[:, j] = own.lower[:, 0] - moved[0], own.upper[:, 0] + moved[0]
        if own.low_slope is None or own.high_slope is None:
            return PointBounds(lower, upper)
        d = points.shape[1]
        low, high = np.full((n, p, d), -np.inf), np.full((n, p, d), np.inf)
        low[:, j], high[:, j] = own.low_slope[:, 0] - moved[1:].T, own.high_slope[:, 0] + moved[1:].T
        return PointBounds(lower, upper, low, high)

    def _moved(self, points: Array, slopes: bool) -> Array:
        """How far the bias can move the mean of f, and of every ∂_j f, at points, (1 or 1 + d, n), rounded up."""
        posterior, kernel = self.belief.posterior, self.output.kernel
        prior = np.sqrt(kernel.variance) * np.append(1.0, self.belief.derivative_scales if slopes else [])[:, None]
        most = prior * self._bias_norm
        if most[0] <= _NEGLIGIBLE * self.output.norm_bound * np.sqrt(kernel.variance):
            return np.tile(most, (1, len(points)))
        beta = np.abs(posterior.influence(points, slopes))
        theta = error_rounding(posterior.count, posterior.jitter, kernel.rounding)
        moved = (beta @ self.bias) * (1 + 4 * (posterior.count + 8) * UNIT_ROUNDOFF) + 4 * theta * most
        return np.asarray(np.minimum(moved, most))


def intervals_of_bias(slope: Array, width: Array, away: Array, half: Array, rest: Array) -> tuple[Array, Array]:
    """Middles and half-widths of f(v) − f(C), (n, p), to first order around C.

    The slopes at C are slope ± width (n, p, d), v − C is away ± half (n, d), and the remainder is at most rest (n, p).
    """
    reach = np.abs(away) + half
    middle = np.einsum("npd,nd->np", slope, away)
    wide = np.einsum("npd,nd->np", np.abs(slope), half) + np.einsum("npd,nd->np", width, reach) + rest
    rounding = 8 * (away.shape[1] + 4) * UNIT_ROUNDOFF
    size = np.einsum("npd,nd->np", np.abs(slope) + width, reach) + rest
    return middle, wide + rounding * size
