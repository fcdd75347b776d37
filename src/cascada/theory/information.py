"""Upper bounds of γ_T, the maximum information gain of T observations at a set of points (`sec:ucb_disc`).

    γ_T = max over x_1, …, x_T of ½·log det(I + K_T/(λ's²)),  with repeated points counted each time

Points are chosen greedily by the largest posterior sd; a point may be chosen again. The gain of a set is monotone and
submodular, which gives two bounds of the maximum from the greedy choice:

* γ_T ≤ γ_greedy/(1 − 1/e), after T steps;
* γ_T ≤ γ(S) + T·(the largest gain that one more point has after S), for *every* set S, here the greedy sets of all
  sizes. The T points need not be among the given ones: if every point of a domain is within `fill` of a given one, no
  sd exceeds the largest at the given points by more than d_k(fill), and the bound holds for the whole domain.

λ' is relative to the kernel's variance s², like the jitter. Letters: `V` = L⁻¹k(X, ·) (T, n), `variance` (n,).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array, as_points, as_positive
from cascada.errors import ArgumentError
from cascada.gp.rounding import inflation, variance_rounding
from cascada.kernels import Stationary
from cascada.theory.layers import check_horizon

# The most greedy steps: each costs O(t·n), and the second bound holds after any number of them.
MOST_STEPS = 400
# Steps end when T more steps of the last size would add less than this fraction of the sum so far.
_NEGLIGIBLE = 1e-3


@dataclass(frozen=True, eq=False)
class Greedy:
    """Greedy steps: indices of the points (N,), and the largest sd before each step and after the last."""

    chosen: tuple[int, ...]
    largest_sd: Array  # (N + 1,)
    noise: float  # λ'


@dataclass(frozen=True)
class InformationGain:
    """Lower and upper bounds of γ_T at noise λ'."""

    horizon: int
    noise: float
    greedy: float  # ≤ γ_T
    upper: float  # ≥ γ_T
    by: str  # the name of the smallest upper bound
    whole: bool  # whether `upper` holds for the whole domain, not only for the given points


def greedy_sds(kernel: Stationary, points: ArrayLike, steps: int, noise: float, horizon: int | None = None) -> Greedy:
    """Repeatedly choose the point with the largest posterior sd and observe it with noise λ's².

    Each step adds one row of V, so T steps over n points take O(T²·n). With a horizon T it stops early if T further
    steps of the next size would change a sum of sds or of gains by at most a thousandth.
    """
    Z = _points(kernel, points)
    lam = as_positive(noise, "noise") * kernel.variance
    steps = check_horizon(steps)
    variance = np.full(len(Z), kernel.variance)
    V = np.empty((steps, len(Z)))
    chosen: list[int] = []
    largest: list[float] = []
    gains = 0.0
    for t in range(steps):
        j = int(variance.argmax())
        sd = math.sqrt(max(float(variance[j]), 0.0))
        gain = math.log1p(sd * sd / lam)
        if horizon is not None and t and horizon * sd <= _NEGLIGIBLE * sum(largest):
            break
        if horizon is not None and t and horizon * gain <= _NEGLIGIBLE * gains:
            break
        chosen.append(j)
        largest.append(sd)
        gains += gain
        row = kernel(Z[j : j + 1], Z)[0]
        row -= V[:t, j] @ V[:t]
        row /= math.sqrt(max(float(variance[j]), 0.0) + lam)
        V[t] = row
        variance -= row * row  # eq:var
    largest.append(math.sqrt(max(float(variance.max()), 0.0)))
    return Greedy(tuple(chosen), np.array(largest), float(noise))


def information_gain(
    kernel: Stationary, points: ArrayLike, horizon: int, noise: float, fill: float = 0.0
) -> InformationGain:
    """γ_T at noise λ' over the given points, or, with `fill`, over every domain covered by them.

    `fill` is a *scaled* distance ‖Δ/ℓ‖: every point of the domain must be within it of a given point.

    >>> from cascada.kernels import SquaredExponential
    >>> gain = information_gain(SquaredExponential(1.0), [[0.0], [9.0]], 2, noise=1.0)
    >>> round(gain.greedy, 6) == round(math.log(2), 6) and gain.upper >= gain.greedy
    True
    """
    steps = min(check_horizon(horizon), MOST_STEPS)
    return gain_of(greedy_sds(kernel, points, steps, noise, horizon), kernel, horizon, fill)


def gain_of(greedy: Greedy, kernel: Stationary, horizon: int, fill: float = 0.0) -> InformationGain:
    """The bounds of γ_T that greedy steps imply."""
    if not (np.isfinite(fill) and fill >= 0):
        raise ArgumentError(f"fill must be a finite distance ≥ 0; got {fill!r}.")
    noise, steps, s = greedy.noise, len(greedy.chosen), math.sqrt(kernel.variance)
    lam = noise * kernel.variance
    gains = 0.5 * np.log1p(greedy.largest_sd**2 / lam)  # of each step and of one more
    reached = np.concatenate([[0.0], np.cumsum(gains[:steps])])  # γ(S_0), …, γ(S_N)
    # Rounded up, because a computed sd may be too small by the amounts of `gp.rounding`.
    slack = inflation(steps, noise, kernel.rounding) * s
    raised = np.sqrt(greedy.largest_sd**2 + variance_rounding(steps) * kernel.variance) + slack
    above = np.cumsum(0.5 * np.log1p(raised[:steps] ** 2 / lam))
    away = float(kernel.distance(np.array(fill))) if fill else 0.0
    furthest = np.minimum(raised + away, s)
    after = np.concatenate([[0.0], above]) + horizon * 0.5 * np.log1p(furthest**2 / lam)
    bounds = {f"the gain after {int(after.argmin())} greedy steps, and T times the next": float(after.min())}
    if not fill and steps == horizon:
        bounds["the greedy gain over 1 − 1/e"] = float(above[-1]) / (1 - math.exp(-1))
    by = min(bounds, key=bounds.__getitem__)
    return InformationGain(horizon, noise, float(reached[-1]), bounds[by], by, fill > 0)


def _points(kernel: Stationary, points: ArrayLike) -> Array:
    if not isinstance(kernel, Stationary):
        raise ArgumentError(f"the information gain needs a scalar kernel such as Matern(2.5); got {kernel!r}.")
    Z = as_points(points, "points")
    if not len(Z):
        raise ArgumentError("points must hold at least one point; got none.")
    kernel.lengthscales(Z.shape[1])
    return Z
