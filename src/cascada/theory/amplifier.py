"""The amplifier of the hard functions: g̃_k, of norm exactly B, whose output is larger than its input on (0, ũ].

g̃_k(z) = L̃/2·(k(z, u) − k(z, −u)), L̃ = √2·B/√(k(0) − k(2u)) (eq:gtilk); as a function on ℝ^d its two centres are ±u·e₁
(thm:hard_mul, thm:hard_net). Corrected: the middle term of ‖g̃_k‖² is −2k(u, −u), printed with +; only then ‖g̃_k‖² = B².

The paper uses the largest chord slope r_max·L̃ as a Lipschitz constant. It is not one if the chord slope grows with z:
at ν = 1.5, u = 2, ũ = 1, B = 5 the derivative at ũ is larger by a quarter. Here L is the largest derivative, and chord
slopes are used only to bound heights (eq:height).

Condition 3 of the paper requires only r_min = Θ(1). The three conditions do not imply 1 < αL of eq:slope: at ν = 1.5,
u = 1.5, ũ = 1, B = 2 they hold, but the chord slope near 0 is 0.96. Here the third condition is r_min·L̃ > 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cascada.arrays import Array, as_points, as_positive
from cascada.errors import ArgumentError, NumericalError
from cascada.kernels import Expansion, Matern
from cascada.outwards import apart

_GRID = 1024  # chord slopes and derivatives are smooth, so a local search between two nodes finds the extremum
_NEAR = 0.5  # below u/2 the difference of two nearly equal kernel values is computed as the integral of a derivative
_TAU, _WEIGHTS = np.polynomial.legendre.leggauss(24)  # the singularity is at least twice as far away as the ends
_LEAST = 1e-5  # smallest k(0) − k(2u) relative to k(0), for which the norm equals B to 1e-10
_UP = 1.0 + 1e-5  # a suggested bound is still sufficient after rounding to six digits


@dataclass(frozen=True)
class Amplifier:
    """g̃_k for a kernel, B (`norm_bound`), u and ũ (`u_tilde`); raises if one of the paper's conditions fails."""

    kernel: Matern
    norm_bound: float
    u: float
    u_tilde: float

    def __post_init__(self) -> None:
        for name in ("norm_bound", "u", "u_tilde"):
            object.__setattr__(self, name, as_positive(getattr(self, name), name))
        if not isinstance(self.kernel.lengthscale, float):
            raise ArgumentError(f"an amplifier needs a kernel with one lengthscale; got {self.kernel.lengthscale!r}.")
        if not self.u_tilde < self.u:
            # Condition 1: k decreases with distance, hence on [u − ũ, u + ũ] if no distance there is negative.
            raise ArgumentError(
                f"u_tilde must lie below u, so that g̃_k grows on [0, ũ] (condition 1 of thm:hard_chain); "
                f"got u = {self.u:g}, u_tilde = {self.u_tilde:g}."
            )
        k0, k2u = self._radial(np.array([0.0, 2.0 * self.u]))
        if k0 - k2u < _LEAST * k0:
            raise ArgumentError(
                f"u is too small for the lengthscale {self.kernel.lengthscale:g}: rounding dominates k(0) − k(2u); "
                f"got u = {self.u:g}. Use a larger u."
            )
        if self.top < 1.0:
            raise ArgumentError(
                f"g̃_k(ũ) must be at least 1 (condition 2 of thm:hard_chain); it is {self.top:.6g} with norm_bound = "
                f"{self.norm_bound:g}. Use norm_bound ≥ {_UP * self.norm_bound / self.top:.6g}, or other u and u_tilde."
            )
        if self.scale * self.r_min <= 1.0:
            raise ArgumentError(
                f"g̃_k must be steeper than 1 in every chord, so that each layer raises the height (condition 3 of "
                f"thm:hard_chain, as eq:slope needs it); its smallest chord slope is {self.scale * self.r_min:.6g}. "
                f"Use norm_bound ≥ {_UP * self.norm_bound / (self.scale * self.r_min):.6g}, or other u and u_tilde."
            )

    @cached_property
    def scale(self) -> float:
        """L̃ = √2·B/√(k(0) − k(2u))."""
        k0, k2u = self._radial(np.array([0.0, 2.0 * self.u]))
        return math.sqrt(2.0) * self.norm_bound / math.sqrt(k0 - k2u)

    def expansion(self, dimension: int = 1) -> Expansion:
        """g̃_k on ℝ^d as a sum of two kernel sections; its norm is that of eq:norm."""
        centres = np.zeros((2, dimension))
        centres[:, 0] = self.u, -self.u
        return Expansion(self.kernel, centres, 0.5 * self.scale * np.array([[1.0], [-1.0]]))  # eq:gtilk

    def __call__(self, Z: Array) -> Array:
        """g̃_k at the rows of Z (n, d), shape (n,); accurate to the last digits for arbitrarily small z₁.

        k(z − ue₁) − k(z + ue₁) cancels for small z₁, and later amplifiers would amplify the rounding error. There it is
        computed as z₁·∫_{−1}^1 ∂₁k(τz₁e₁ + z⊥ − ue₁) dτ, an integral of an analytic function, by Gauss's rule.
        """
        points = as_points(Z, "Z")
        values = self.expansion(points.shape[1])(points)[:, 0]
        near = np.abs(points[:, 0]) <= _NEAR * self.u
        if near.any():
            values[near] = self._by_derivative(points[near])
        return values

    def inverse(self, height: float) -> float:
        """The z in [0, ũ] with g̃_k(z) = height; g̃_k grows there."""
        from scipy.optimize import brentq

        if height > self.top:
            got, most = apart(height, self.top)
            raise ArgumentError(f"g̃_k reaches at most {most} on [0, ũ]; got height {got}.")
        low, high = (
            height / (self.scale * r) for r in (self.r_max, self.r_min)
        )  # eq:slope; bisection of a wider interval is slow
        edges = 0.999 * low, min(1.001 * high, self.u_tilde)
        try:
            return float(brentq(lambda z: self.at(z) - height, *edges, xtol=1e-300, rtol=1e-15, maxiter=500))
        except (RuntimeError, ValueError):
            raise NumericalError(
                f"g̃_k cannot be inverted at the height {height:.3g}, which is close to the smallest positive float. "
                f"Use fewer layers."
            ) from None

    def at(self, z: float) -> float:
        """g̃_k at a single number."""
        return float(self(np.array([[z]]))[0])

    @cached_property
    def top(self) -> float:
        """g̃_k(ũ), the largest output of an amplifier."""
        return self.at(self.u_tilde)

    @cached_property
    def r_min(self) -> float:
        """inf over z in (0, ũ] of (k(u − z) − k(u + z))/(2z)."""
        return -_largest(lambda z: -self._chord(z), self.u_tilde)

    @cached_property
    def r_max(self) -> float:
        """sup over z in (0, ũ] of (k(u − z) − k(u + z))/(2z)."""
        return _largest(self._chord, self.u_tilde)

    @property
    def ratio(self) -> float:
        """c = r_min/r_max: the smallest amplification relative to the largest."""
        return self.r_min / self.r_max

    @cached_property
    def lipschitz(self) -> float:
        """The smallest Lipschitz constant of g̃_k on [0, ũ], its domain: the largest derivative there."""
        return 0.5 * self.scale * _largest(lambda z: self._fall(self.u - z) + self._fall(self.u + z), self.u_tilde)

    @cached_property
    def lipschitz_everywhere(self) -> float:
        """A Lipschitz constant of g̃_k on ℝ^d for any d: L̃·sup|k'|, because both sections may be steepest at once.

        Confidence regions of a stage's inputs extend beyond [0, ũ], so a process must state this constant.
        """
        assert isinstance(self.kernel.lengthscale, float)
        if self.kernel.nu <= 0.5:
            raise ArgumentError(
                f"nu must be above 0.5, because kernel sections with nu ≤ 0.5 have a kink; got {self.kernel.nu:g}."
            )
        # −φ' = const·r^ν·K_{ν−1}(√(2ν)r) has one maximum, at r < 1.2 for every ν.
        return self.scale * _largest(self._fall, 2.0 * self.kernel.lengthscale)

    def _radial(self, r: Array) -> Array:
        """k at distances (n,)."""
        return self.kernel(r[:, None], np.zeros((1, 1)))[:, 0]

    def _fall(self, r: Array) -> Array:
        """−k'(r) ≥ 0 at distances (n,)."""
        return -self.kernel.gradient(r[:, None], np.zeros((1, 1)))[:, 0, 0]

    def _chord(self, z: Array) -> Array:
        """(k(u − z) − k(u + z))/(2z) = g̃_k(z)/(L̃z), and its limit −k'(u) at 0."""
        positive = np.where(z > 0, z, 1.0)
        limit = self._fall(np.array([self.u]))
        return np.where(z > 0, self(z[:, None]) / (self.scale * positive), limit)

    def _by_derivative(self, points: Array) -> Array:
        first = points[:, :1]
        path = np.repeat(points[:, None, :], len(_TAU), axis=1)  # (n, nodes, d)
        path[:, :, 0] = first * _TAU - self.u
        gradient = self.kernel.gradient(path.reshape(-1, points.shape[1]), np.zeros((1, points.shape[1])))[:, 0, 0]
        slopes = gradient.reshape(-1, len(_TAU))
        return 0.5 * self.scale * first[:, 0] * np.vecdot(slopes, _WEIGHTS)


def _largest(function: Callable[[Array], Array], high: float) -> float:
    """The largest value of a smooth function on [0, high], found on a grid and refined around its best node."""
    from scipy.optimize import minimize_scalar

    nodes = np.linspace(0.0, high, _GRID + 1)
    values = function(nodes)
    best = int(values.argmax())
    ends = nodes[max(best - 1, 0)], nodes[min(best + 1, _GRID)]
    found = minimize_scalar(lambda z: -float(function(np.array([z]))[0]), bounds=ends, method="bounded")
    return max(float(values[best]), -float(found.fun))
