"""Log posterior density of lengthscales, and of noise if outputs have any, with its gradient.

For standardised outputs y ~ N(0, s²(K_ℓ + λI)) the variance is maximised in closed form. Its prior acts like two more
observations of mean square 1, so that constant outputs, or two points, cause no degenerate fit. Lengthscales are in
units of the inputs' ranges; their logarithms have a wide normal prior, which keeps them away from the bounds. Without
noise λ is a jitter. With noise it is the variance of the noise over s², and log λ is the last entry of θ. The
logarithm of the noise's variance λs² itself has a wide normal prior: s² grows without limit where a function is nearly
linear, and the noise does not.

Letters: X (n, d) scaled inputs, y (n,) standardised outputs, θ = log ℓ (d,), α = (K + λI)⁻¹y.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from cascada.arrays import Array
from cascada.calibration.shape import Shape
from cascada.kernels import Stationary

JITTER = 1e-8
PRIOR_COUNT = 2.0
MEAN_VARIANCE = 1.0  # c: the constant mean has the prior N(0, c·s²)

# A lengthscale of the whole range, and a factor of e² either way; times √d where distances grow with dimension.
_CENTRE = 0.0
SPREAD = 1.5
# The sd of the noise: a hundredth of that of the outputs, and a factor of e^1.5 either way. Few data do not tell noise
# from a rough function; then this decides.
_NOISE_CENTRE = math.log(1e-4)
_NOISE_SPREAD = 3.0


class _Routines(NamedTuple):
    """Routines of LAPACK."""

    dpotrf: Callable[..., Any]
    dpotrs: Callable[..., Any]


@cache
def _routines() -> _Routines:
    """The routines of this module: SciPy's own functions check every argument, and `scipy.linalg` is slow to import."""
    from scipy.linalg import lapack

    return _Routines(lapack.dpotrf, lapack.dpotrs)


@lru_cache(maxsize=16)
def _identity(n: int) -> Array:
    """The identity matrix (n, n); read-only, because it is shared."""
    matrix = np.eye(n)
    matrix.flags.writeable = False
    return matrix


# Inputs this close to each other, in units of the ranges, count as one observation of the size of the outputs.
_CLUSTER = 1e-3


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The log posterior density of log-lengthscales for some data."""

    inputs: Array
    outputs: Array
    shape: Shape
    noisy: bool = False

    @cached_property
    def count(self) -> int:
        """The number of observations, where a cluster of close inputs counts once.

        After many runs in one place the next value there is predicted very well, far better than the jitter suggests.
        If each of these runs counted, s² would shrink with every run near the best one. With noise each run counts:
        even the same input has another output every time.
        """
        if self.noisy:
            return len(self.inputs)
        kept = np.empty((0, self.inputs.shape[1]))
        for row in self.inputs:
            if not (np.abs(kept - row).max(axis=1, initial=0.0) <= _CLUSTER).any():
                kept = np.append(kept, row[None], axis=0)
        return len(kept)

    @cached_property
    def prior_mode(self) -> Array:
        """The mode of the prior of θ; with noise, for s² = 1."""
        d = self.inputs.shape[1]
        scales = np.full(d, _CENTRE + (0.0 if self.shape.additive else 0.5 * math.log(d)))
        scales[list(self.shape.codes)] = _CENTRE  # two codes are one unit apart, whatever the other inputs are
        return np.append(scales, _NOISE_CENTRE) if self.noisy else scales

    def noise(self, theta: Array) -> float:
        """λ: the variance of the noise over s²; the jitter without noise."""
        return math.exp(theta[-1]) if self.noisy else JITTER

    def _kernel(self, theta: Array) -> Stationary:
        return self.shape.kernel(tuple(np.exp(theta[: self.inputs.shape[1]]).tolist()))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """The logarithm of the density, up to a constant, and its gradient."""
        n = len(self.inputs)
        K, pull = self._kernel(theta).by_scales(self.inputs)
        if n:
            K.flat[:: n + 1] += self.noise(theta)
        factor, info = _routines().dpotrf(K, lower=1, clean=0) if n else (K, 0)
        if info:
            return -math.inf, np.zeros(len(theta))
        inverse = _routines().dpotrs(factor, _identity(n), lower=1)[0] if n else K
        ones = inverse.sum(axis=1)
        total_weight = float(ones.sum()) + 1.0 / MEAN_VARIANCE
        mean = float(ones @ self.outputs) / total_weight
        alpha = inverse @ (self.outputs - mean)
        # With m integrated out, (y − m̂)ᵀK⁻¹(y − m̂) + m̂²/c is the whole square, and log|K| grows by log(1 + c·1ᵀK⁻¹1).
        spent = float((self.outputs - mean) @ alpha) + mean**2 / MEAN_VARIANCE
        square = (spent + PRIOR_COUNT) / (self.count + PRIOR_COUNT)  # s²
        spreads, away = np.full(len(theta), SPREAD), theta - self.prior_mode
        if self.noisy:
            spreads[-1] = _NOISE_SPREAD
            away[-1] += math.log(square)
        away = away / spreads
        value = -0.5 * (self.count + PRIOR_COUNT) * math.log(square) - float(np.log(factor.diagonal()).sum())
        value -= 0.5 * math.log(total_weight) + 0.5 * float(away @ away)
        # The density's derivative in K is ½(ααᵀ/s² − K⁻¹), plus a term for m.
        weights = np.multiply.outer(alpha, alpha)
        weights /= square
        weights -= inverse
        weights += np.multiply.outer(ones, ones) / total_weight
        weights *= 0.5
        if self.noisy:  # the prior of λs²: the derivative of log s² in K is −ααᵀ/((n + 2)s²)
            weights += away[-1] / spreads[-1] / (self.count + PRIOR_COUNT) / square * np.outer(alpha, alpha)
        slopes = pull(weights)
        if self.noisy:
            slopes = np.append(slopes, self.noise(theta) * np.trace(weights))
        return value, slopes - away / spreads

    def mean_and_variance(self, theta: Array) -> tuple[float, float]:
        """The maximising m and s² for these lengthscales."""
        if not len(self.outputs):
            return 0.0, 1.0
        mean, spent, _ = self.moments(theta)
        return mean, spent / (self.count + PRIOR_COUNT)

    def moments(self, theta: Array) -> tuple[float, float, float]:
        """What the posteriors of m and s² for these lengthscales consist of, for at least one observation.

        The maximising m, the sum of squares of which s² is the mean, and the precision of m in units of 1/s².
        """
        from scipy.linalg import cho_factor, cho_solve  # slow to import

        n = len(self.outputs)
        K = self._kernel(theta)(self.inputs, self.inputs) + self.noise(theta) * np.eye(n)
        factor = cho_factor(K, lower=True)
        ones = cho_solve(factor, np.ones(n))
        weight = float(ones.sum()) + 1.0 / MEAN_VARIANCE
        mean = float(ones @ self.outputs) / weight
        rest = self.outputs - mean
        spent = float(rest @ cho_solve(factor, rest)) + mean**2 / MEAN_VARIANCE
        return mean, spent + PRIOR_COUNT, weight
