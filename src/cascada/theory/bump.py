"""The needle of the hard functions: a bump of given height with the width for which its norm is exactly B.

h̃(x) = 2ε₁·H(x/w) with H = h/h(0) (eq:htil). Its norm in the RKHS of a Matérn kernel is one radial integral,

    ‖h̃‖² = (2π)^{−d} ∫ |ĥ(ω)|²/k̂(ω) dω = (2ε₁)²·N(w)²,    N(w)² = (2π)^{−d}·w^d·|S^{d−1}| ∫₀^∞ Ĥ(s)² s^{d−1}/k̂(s/w) ds,

where the paper has a constant C₁ and the order (1/w)^ν. log N² is convex in log w: its slope is 2(ν + d/2)·E[θ] − 2ν
with θ = 2ν/(2ν + (ℓs/w)²), and the mean of θ under the integrand's own weights grows with w. So N has one minimum.
Below it N decreases, and every height up to B/N has exactly one width there: the narrow one, which is harder to find.

Accuracy: about 1e-14 relative to the exact Sobolev norm if ν + d/2 is whole (tested). Ĥ has an error of 1e-13 of its
envelope at every frequency (`bump_spectrum`). The panels resolve Ĥ², whose transform has support up to 2, and they end
where the remainder is below 1e-17 of the integral.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cascada.arrays import Array, as_points, as_positive
from cascada.errors import ArgumentError, NumericalError
from cascada.kernels import Matern
from cascada.outwards import apart
from cascada.theory.bump_spectrum import transform

_PANEL, _NODES = 4.0, 16  # Ĥ² turns through at most 8 radians per panel, for which 16 nodes give full accuracy
_TOLERANCE = 1e-13
_DOWN = 1.0 - 1e-5  # a suggested bound is still valid after rounding to six digits
_GRADED = 60  # panels that halve towards 0, for the branch point of 1/k̂ at |s| = sqrt(2ν)·w/ℓ

# |∇H| is largest where 3‖x‖⁴ = 1: the derivative of 2ρ/(1−ρ²)²·exp(1 − 1/(1−ρ²)) vanishes there.
_STEEPEST = 3.0**-0.25
STEEPEST_SLOPE = 2.0 * _STEEPEST / (1.0 - _STEEPEST**2) ** 2 * math.exp(1.0 - 1.0 / (1.0 - _STEEPEST**2))


@dataclass(frozen=True)
class Needle:
    """h̃(·, ε₁, w) of eq:htil around the origin of ℝ^d: `height` is 2ε₁, `width` is w."""

    dimension: int
    height: float
    width: float

    def __call__(self, X: Array) -> Array:
        """h̃ at the rows of X (n, d), shape (n,); exactly 0 for ‖x‖ ≥ w."""
        scaled = as_points(X, "X", self.dimension) / self.width
        gap = 1.0 - np.vecdot(scaled, scaled)
        inside = gap > 0
        return np.where(inside, self.height * np.exp(1.0 - 1.0 / np.where(inside, gap, 1.0)), 0.0)  # eq:htil

    @property
    def lipschitz(self) -> float:
        """The smallest Lipschitz constant, the L' = Θ(ε₁/w) of thm:hard_chain, from the derivative."""
        return self.height / self.width * STEEPEST_SLOPE

    def norm(self, kernel: Matern) -> float:
        """‖h̃‖_k over ℝ^d; the norm on a smaller domain is not larger."""
        return self.height * unit_norm(kernel, self.dimension, self.width)


def unit_norm(kernel: Matern, dimension: int, width: float) -> float:
    """N(w): the norm of a bump of height 1 and radius w."""
    weights, _ = _weighted(kernel, dimension, as_positive(width, "width"))
    return math.sqrt(weights.sum())


@lru_cache(maxsize=64)
def widest(kernel: Matern, dimension: int) -> float:
    """The width w with the smallest N(w); wider bumps of the same height have a larger norm."""
    from scipy.optimize import brentq

    def slope(log_width: float) -> float:
        weights, theta = _weighted(kernel, dimension, math.exp(log_width))
        return (kernel.nu + 0.5 * dimension) * float(weights @ theta / weights.sum()) - kernel.nu

    middle = math.log(_scale(kernel))
    low, high = middle - 1.0, middle + 1.0
    while slope(low) > 0:
        low -= 1.0
    while slope(high) < 0:
        high += 1.0
    return math.exp(float(brentq(slope, low, high, xtol=1e-12)))


def tallest(kernel: Matern, dimension: int, norm: float, width: float = math.inf) -> float:
    """The largest height of a bump with this norm and at most this width."""
    return as_positive(norm, "norm") / unit_norm(kernel, dimension, min(width, widest(kernel, dimension)))


def needle(kernel: Matern, dimension: int, height: float, norm: float) -> Needle:
    """The narrowest bump of this height whose norm is `norm`, to about 1e-13."""
    from scipy.optimize import brentq

    height, norm = as_positive(height, "height"), as_positive(norm, "norm")
    high = math.log(widest(kernel, dimension))
    target = math.log(norm / height)

    def excess(log_width: float) -> float:
        return math.log(unit_norm(kernel, dimension, math.exp(log_width))) - target

    if excess(high) > _TOLERANCE:
        got, least = apart(norm, height * math.exp(target + excess(high)))
        raise ArgumentError(
            f"a bump of height {height:.6g} has a norm of at least {least} at every width; got norm {got}. "
            f"Use a height of at most {_DOWN * tallest(kernel, dimension, norm):.6g}."
        )
    if excess(high) >= 0:
        return Needle(dimension, height, math.exp(high))
    low = high - 1.0
    while excess(low) < 0:
        low -= 1.0
    width = math.exp(float(brentq(excess, low, high, xtol=1e-15, rtol=1e-15)))
    return Needle(dimension, height, width)


def _weighted(kernel: Matern, dimension: int, width: float) -> tuple[Array, Array]:
    """The terms whose sum is N(w)², and θ at their frequencies."""
    scale = _scale(kernel)
    s, energy = _energy(dimension, _largest_frequency(kernel.nu, dimension))
    frequencies = np.zeros((len(s), dimension))
    frequencies[:, 0] = s / width  # k̂ is radial
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        weights = energy * (width / (2 * math.pi)) ** dimension / kernel.spectral_density(frequencies)
    if not np.isfinite(weights).all():
        raise NumericalError(
            f"the norm of a bump of width {width:.3g} under {kernel!r} exceeds the range of floats. "
            f"Use a smaller nu or a larger epsilon."
        )
    return weights, 2 * kernel.nu / (2 * kernel.nu + (scale * s / width) ** 2)


@lru_cache(maxsize=16)
def _energy(dimension: int, largest: float) -> tuple[Array, Array]:
    """Frequencies s, and |S^{d−1}|·Ĥ(s)²·s^{d−1} times their quadrature weights."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    graded = _PANEL * 0.5 ** np.arange(_GRADED, 0, -1.0)
    edges = np.concatenate([[0.0], graded, np.arange(_PANEL, largest + _PANEL, _PANEL)])
    half = 0.5 * np.diff(edges)[:, None]
    s = (edges[:-1, None] + half * (1.0 + nodes)).ravel()
    sphere = 2.0 * math.pi ** (0.5 * dimension) / math.gamma(0.5 * dimension)
    return s, sphere * transform(s, dimension) ** 2 * s ** (dimension - 1) * (half * weights).ravel()


_LARGEST_SHAPE = 150  # beyond this all terms are zero or infinite


def _largest_frequency(nu: float, dimension: int) -> float:
    """The s beyond which ∫ exp(−2√s)·s^n ds is below 1e-17 of the whole, n = 2ν + 2d; Ĥ² decreases faster.

    With s = x² the integrand is x^{2n+1}·exp(−2x), a Gamma density of shape 2n + 2 and mean n + 1.
    """
    if nu + dimension > _LARGEST_SHAPE:
        raise NumericalError(
            f"the norm of a bump needs nu + dimension ≤ {_LARGEST_SHAPE}; got nu = {nu:g}, dimension {dimension}."
        )
    shape = 2.0 * (2.0 * nu + 2.0 * dimension) + 2.0
    x = 0.5 * (shape + 9.0 * math.sqrt(shape) + 45.0)
    return float(2.0 ** math.ceil(2.0 * math.log2(x)))  # few different values, so that cached transforms are reused


def _scale(kernel: Matern) -> float:
    if not isinstance(kernel.lengthscale, float):
        raise ArgumentError(
            f"hard functions need a kernel with one lengthscale, for which a round bump has a radial integral; "
            f"got {kernel.lengthscale!r}."
        )
    return kernel.lengthscale
