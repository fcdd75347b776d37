"""Bounds of Σ_T = max over z_1, …, z_T of Σ_t σ_{t−1}(z_t), where σ_{t−1} is the sd given z_1, …, z_{t−1}.

Σ_T is the largest total uncertainty of a layer over all sequences of inputs. It cannot be computed exactly, because
there are n^T sequences. A greedy sequence gives a lower bound. For every noise λ' ≥ λ, γ_T gives an upper bound: with
u_t = log(1 + σ'²_{t−1}(z_t)/(λ's²)) and c = log(1 + 1/λ'),

    Σ_t u_t ≤ 2γ_T,   0 ≤ u_t ≤ c,   σ_{t−1} ≤ σ'_{t−1} = s·h(u_t),   h(u) = sqrt(λ'·(e^u − 1)).

The paper uses h(u) ≤ sqrt(u/c) and Cauchy–Schwarz, which gives s·sqrt(2Tγ_T/c) (`sec:ucb_disc`). The concave envelope
ĥ of h on [0, c] is smaller, and s·T·ĥ(2γ_T/T) is the best bound that follows from these facts alone. The bound is the
smallest over a few λ', each with its own γ_T. In addition, Σ_T ≤ T·s; and on n points a repeated one adds at most
s·sqrt(λ), so that Σ_T ≤ n·s + (T − n)·s·sqrt(λ).

For Γ = k·A, Γ_t = σ_t²·A, hence Σ^Γ_T = sqrt(‖A‖₂)·Σ_T; for Γ = k·I they coincide (`rem:mul`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import as_points
from cascada.errors import ArgumentError
from cascada.gp.rounding import SMALLEST_JITTER, as_jitter
from cascada.kernels import OperatorKernel, Separable, Stationary
from cascada.outwards import rounded_down
from cascada.theory.information import MOST_STEPS, gain_of, greedy_sds
from cascada.theory.layers import check_horizon

#: The values of λ' that are tried: small ones are best for smooth kernels, large ones for rough kernels.
NOISES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-6)


@dataclass(frozen=True)
class SdSum:
    """Bounds of Σ_T (of Σ^Γ_T for a separable kernel) and the origin of the upper one."""

    horizon: int
    points: int
    greedy: float  # ≤ Σ_T, from a greedy sequence
    upper: float  # ≥ Σ_T, proven
    by: str  # the argument that gives the upper bound
    noise: float | None  # its λ' if it follows from γ_T
    gain: float | None  # its bound of γ_T
    cauchy_schwarz: float  # the paper's form s·sqrt(2Tγ_T/log(1 + 1/λ')), the smallest over λ'
    covers: str  # the set for which it is proven


def sd_sum(
    kernel: Stationary | OperatorKernel,
    points: ArrayLike,
    horizon: int,
    *,
    fill: float = 0.0,
    jitter: float = SMALLEST_JITTER,
    noises: Sequence[float] | None = None,
) -> SdSum:
    """Bounds of Σ_T over the given points (n, d), or, with `fill`, over every domain covered by them (`information`).

    `jitter` is the λ of the posterior whose sds are summed; the bounds also hold for every smaller one, including 0.
    `noises` are the λ' to try, all at least λ; the default is `NOISES`.

    >>> from cascada.kernels import Matern
    >>> sums = sd_sum(Matern(2.5), [[0.0], [0.5], [1.0]], 20)
    >>> sums.greedy <= sums.upper <= 3.01
    True
    """
    scalar, root = _scalar(kernel)
    Z = as_points(points, "points")
    T, lam = check_horizon(horizon), as_jitter(jitter)
    tried = [noise for noise in NOISES if noise >= lam] or [lam] if noises is None else list(noises)
    if not tried or min(tried) < lam:
        raise ArgumentError(f"noises must be numbers ≥ the jitter {lam:g}, because λ ≤ λ'; got {noises!r}.")
    s, steps = math.sqrt(scalar.variance), min(T, MOST_STEPS)
    below = float(greedy_sds(scalar, Z, steps, lam, T).largest_sd[:-1].sum())
    choices: list[tuple[float, str, float | None, float | None]] = [(T * s, "T times the prior sd", None, None)]
    if not fill and len(Z) < T:
        repeats = (T - len(Z)) * s * math.sqrt(lam)
        choices.append((len(Z) * s + repeats, "every point surprises once", None, None))
    paper = math.inf
    for noise in tried:
        gain = gain_of(greedy_sds(scalar, Z, steps, noise, T), scalar, T, fill).upper
        ceiling = math.log1p(1 / noise)
        paper = min(paper, s * math.sqrt(2 * T * gain / ceiling))
        choices.append((s * T * concave_envelope(min(2 * gain / T, ceiling), noise), "γ_T", noise, gain))
    upper, by, chosen, gain_used = min(choices, key=lambda choice: choice[0])
    covers = f"all sequences in the {len(Z)} given points"
    if fill:
        within = rounded_down(fill, 3)
        covers = f"all sequences in any domain within scaled distance {within} of the {len(Z)} given points"
    return SdSum(T, len(Z), root * below, root * upper, by, chosen, gain_used, root * paper, covers)


def concave_envelope(u: float, noise: float) -> float:
    """ĥ(u): the concave envelope of h(u) = sqrt(λ'(e^u − 1)) on [0, log(1 + 1/λ')], rounded up.

    h is concave up to log 2 and convex beyond it. So ĥ equals h up to a point u₀ and then its tangent there, which goes
    through (c, 1). A tangent at any smaller point lies above it, so bisection always gives an upper bound.
    """
    c = math.log1p(1 / noise)

    def h(v: float) -> float:
        return math.sqrt(noise * math.expm1(v))

    def slope(v: float) -> float:
        return noise * math.exp(v) / (2 * h(v))

    low, high = 0.0, min(math.log(2), c)
    if c > math.log(2):
        for _ in range(60):
            middle = 0.5 * (low + high)
            if h(middle) + slope(middle) * (c - middle) >= 1:
                low = middle
            else:
                high = middle
    else:
        low = c
    value = h(u) if u <= low else h(low) + slope(low) * (u - low)
    return min(value * (1 + 1e-12), 1.0)


def _scalar(kernel: Stationary | OperatorKernel) -> tuple[Stationary, float]:
    """The scalar kernel, and sqrt(‖A‖₂) of a separable one."""
    if isinstance(kernel, Separable):
        return kernel.kernel, float(np.sqrt(kernel.spectral_norm))  # rem:mul
    if isinstance(kernel, Stationary):
        return kernel, 1.0
    raise ArgumentError(
        f"Σ_T is bounded for scalar and separable kernels, such as Matern(2.5) or Separable(Matern(2.5), A); "
        f"got {kernel!r}."
    )
