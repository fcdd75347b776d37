"""The Matérn kernel for any smoothness ν > 0.

With u = sqrt(2ν)·r and φ_ν(u) = 2^{1−ν}/Γ(ν)·u^ν·K_ν(u), the Bessel recurrence K_{ν+1} = K_{ν−1} + (2ν/u)K_ν reads

    φ_{ν+1}(u) = φ_ν(u) + u²/(4ν(ν−1))·φ_{ν−1}(u)            (ν > 1),

a sum of positive terms, which neither cancels nor overflows. Every ν is computed from an order in (1, 2], where K_ν is
evaluated directly. For half-integers the same recurrence, started from exp(−u) and (1 + u)exp(−u), is applied to the
coefficients of a polynomial and gives the closed forms. The derivative is again a Matérn profile:

    φ'(r)/r = −ν/(ν−1)·φ_{ν−1}(u)                             (ν > 1).

Above ν = 100 the recurrence is long, and exp(−u) underflows although φ does not. There the mixture
φ_ν(u) = E[exp(−u²/(4G))], G ~ Gamma(ν), is integrated to machine precision by a few Gauss–Laguerre nodes.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array, as_positive
from cascada.kernels.radial import Radial

# Beyond this exp(−u) and φ_ν are nearly 0 for every ν ≤ 100; clipping avoids products 0·∞.
_LARGEST_U = 700.0
_LARGEST_RECURRENCE = 100.0
_MIXTURE_NODES = 48


@dataclass(frozen=True)
class Matern(Radial):
    """k(x, x') = s²·2^{1−ν}/Γ(ν)·u^ν·K_ν(u), u = sqrt(2ν)·‖(x − x')/ℓ‖₂ (the paper's k_Matérn).

    `nu` is ν, `lengthscale` is ℓ (one number, or one per input dimension), `variance` is s².

    >>> import numpy as np
    >>> Matern(0.5)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.3679]])
    """

    nu: float
    lengthscale: float | tuple[float, ...] = 1.0
    variance: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "nu", as_positive(self.nu, "nu"))

    def profile(self, r2: Array) -> Array:
        return _phi(self.nu, np.sqrt((2 * self.nu) * r2))

    def profile_and_slope(self, r2: Array) -> tuple[Array, Array]:
        u = np.sqrt((2 * self.nu) * r2)
        if self.curvature is None:
            return _phi(self.nu, u), _steep_slope(self.nu, u)
        before, now = _phi_pair(self.nu, u)
        before *= -self.curvature
        return now, before

    @property
    def curvature(self) -> float | None:
        return self.nu / (self.nu - 1) if self.nu > 1 else None

    @property
    def fourth_derivative(self) -> float | None:
        nu = self.nu
        return 3 * nu**2 / ((nu - 1) * (nu - 2)) if nu > 2 else None

    @property
    def rounding(self) -> float:
        # Measured in the tests by comparison with mpmath.
        return 32.0 if _is_half_integer(self.nu) or self.nu > _LARGEST_RECURRENCE else 256.0

    def spectral_density(self, frequencies: ArrayLike) -> Array:
        from scipy.special import gammaln  # slow to import

        scaled, log_mass = self._scaled_frequencies(frequencies)
        d, nu = np.shape(frequencies)[1], self.nu
        log_constant = d * math.log(2) + 0.5 * d * math.log(math.pi) + gammaln(nu + d / 2) - gammaln(nu)
        # (2ν)^ν·(2ν + ‖ℓω‖²)^{−ν−d/2} in logarithms, so that a large ν does not overflow.
        decay = -nu * np.log1p(scaled / (2 * nu)) - 0.5 * d * np.log(2 * nu + scaled)
        return np.exp(log_mass + log_constant + decay)


def _phi(nu: float, u: Array) -> Array:
    """φ_ν(u); 1 at u = 0."""
    if nu > 1 and not _is_half_integer(nu):
        return _phi_pair(nu, u)[1]
    u = np.minimum(u, _LARGEST_U)
    if not _is_half_integer(nu):
        return _direct(nu, u)
    value = np.exp(-u)
    value *= _polynomial(nu, u)
    return value


def _phi_pair(nu: float, u: Array) -> tuple[Array, Array]:
    """φ_{ν−1}(u) and φ_ν(u) for ν > 1."""
    if nu > _LARGEST_RECURRENCE:
        return _mixture(nu - 1, u), _mixture(nu, u)
    u = np.minimum(u, _LARGEST_U)
    if _is_half_integer(nu):
        decay = np.exp(-u)
        return _polynomial(nu - 1, u) * decay, _polynomial(nu, u) * decay
    steps = math.ceil(nu) - 2  # ν − steps is in (1, 2]
    order = nu - steps
    before, now = _direct(order - 1, u), _direct(order, u)
    for _ in range(steps):
        before, now = now, np.minimum(now + u * u / (4 * order * (order - 1)) * before, 1.0)
        order += 1
    return before, now


def _steep_slope(nu: float, u: Array) -> Array:
    """φ'(r)/r = −2ν·2^{1−ν}/Γ(ν)·u^{ν−1}·K_{1−ν}(u) for ν ≤ 1, which is infinite at 0 (0 by convention)."""
    from scipy.special import gamma  # slow to import

    v = np.clip(u, 1e-150, _LARGEST_U)  # below this the slope would overflow
    constant = 2 * nu * 2 ** (1 - nu) / gamma(nu)
    value = -constant * v ** (nu - 1) * _scaled_bessel(1 - nu, v) * np.exp(-v)
    return np.where(u > 0, value, 0.0)


def _is_half_integer(nu: float) -> bool:
    return nu % 1 == 0.5 and nu <= _LARGEST_RECURRENCE


def _direct(nu: float, u: Array) -> Array:
    """φ_ν(u) for 0 < ν ≤ 2."""
    from scipy.special import gamma  # slow to import

    v = np.maximum(u, 1e-170 if nu <= 1 else 1e-30)  # below this, r² underflows to 0 or φ rounds to 1
    value = 2 ** (1 - nu) / gamma(nu) * v**nu * _scaled_bessel(nu, v) * np.exp(-v)
    return np.where(u > 0, np.minimum(value, 1.0), 1.0)


def _scaled_bessel(nu: float, u: Array) -> Array:
    """exp(u)·K_ν(u) for 0 ≤ ν ≤ 2.

    SciPy's kve loses up to three digits for u just below 2 if ν is slightly more than 0.1 from a whole number. There
    ∫₀^∞ exp(−2u·sinh²(t/2))·cosh(νt) dt is computed by the trapezoidal rule, a sum of positive terms. The integrand is
    analytic for |Im t| < π/2, so a step of 0.2 has an error of about exp(−π²/0.2) ≈ 1e-21.
    """
    from scipy.special import kve  # slow to import

    value = np.asarray(kve(nu, u), dtype=np.float64)
    hard = (u >= 0.1) & (u <= 2.0)
    if hard.any():
        middle = u[hard]
        total = np.full_like(middle, 0.5)
        for t in 0.2 * np.arange(1, 42):
            total += math.cosh(nu * t) * np.exp(-2.0 * math.sinh(t / 2) ** 2 * middle)
        value[hard] = 0.2 * total
    return value


def _polynomial(nu: float, u: Array) -> Array:
    """exp(u)·φ_ν(u) for half-integer ν, a polynomial with positive coefficients, by Horner's rule."""
    *lower, leading = _coefficients(nu)
    if not lower:
        return np.full_like(u, leading)
    polynomial = leading * u
    for c in lower[:0:-1]:
        polynomial += c
        polynomial *= u
    polynomial += lower[0]
    return polynomial


@lru_cache(maxsize=64)
def _coefficients(nu: float) -> tuple[float, ...]:
    """Coefficients, lowest first, of exp(u)·φ_ν(u) for half-integer ν."""
    before, now, order = [1.0], [1.0, 1.0], 1.5
    if nu == 0.5:
        return tuple(before)
    while order < nu:
        factor = 1 / (4 * order * (order - 1))
        raised = [0.0, 0.0, *(factor * c for c in before)]
        longer = max(len(now), len(raised))
        padded = now + [0.0] * (longer - len(now))
        raised += [0.0] * (longer - len(raised))
        before, now = now, [a + b for a, b in zip(padded, raised, strict=True)]
        order += 1
    return tuple(now)


def _mixture(nu: float, u: Array) -> Array:
    """E[exp(−u²/(4G))], G ~ Gamma(ν), as a sum of positive terms."""
    value = np.zeros_like(u)
    quarter = 0.25 * np.minimum(u, 1e150) ** 2
    for node, weight in zip(*_gauss_laguerre(nu), strict=True):
        value += weight * np.exp(-quarter / node)
    return np.where(u > 0, np.minimum(value, 1.0), 1.0)


@lru_cache(maxsize=16)
def _gauss_laguerre(nu: float) -> tuple[Array, Array]:
    """Nodes and weights for the Gamma(ν) density, by the eigenvalues of the Jacobi matrix of its polynomials."""
    k = np.arange(_MIXTURE_NODES)
    off = np.sqrt(k[1:] * (k[1:] + nu - 1))
    nodes, vectors = np.linalg.eigh(np.diag(2 * k + nu) + np.diag(off, 1) + np.diag(off, -1))
    weights = vectors[0] ** 2
    return nodes, weights / weights.sum()
