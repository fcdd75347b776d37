"""Log posterior density of lengthscales, and of noise if outputs have any, with its gradient.

For standardised outputs y ~ N(0, s²(K_ℓ + λI)) the variance is maximised in closed form. Its prior acts like two more
observations of mean square 1, so that constant outputs, or two points, cause no degenerate fit. Lengthscales are in
units of the inputs' ranges; their logarithms have a wide normal prior, which keeps them away from the bounds. Without
noise λ is a jitter. With noise it is the variance of the noise over s², and log λ is the last entry of θ. The
logarithm of the noise's variance λs² itself has a wide normal prior: s² grows without limit where a function is nearly
linear, and the noise does not.

Letters: X (n, d) scaled inputs, y (n,) standardised outputs, θ = log ℓ (d,), α = (K + λI)⁻¹y. Matrices are symmetric:
of each only the lower triangle is computed, and its entries beside the diagonal are in the order of `Pairs`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from cascada.arrays import Array
from cascada.calibration.pairs import Pairs
from cascada.calibration.shape import Shape
from cascada.kernels import Stationary
from cascada.kernels.stationary import PullToScales

JITTER = 1e-8
PRIOR_COUNT = 2.0
MEAN_VARIANCE = 1.0  # c: the constant mean has the prior N(0, c·s²)

# A lengthscale of the whole range, and a factor of e² either way; times √d where distances grow with dimension.
_CENTRE = 0.0
_SPREAD = 1.5
# The sd of the noise: a hundredth of that of the outputs, and a factor of e^1.5 either way. Few data do not tell noise
# from a rough function; then this decides.
_NOISE_CENTRE = math.log(1e-4)
_NOISE_SPREAD = 3.0


class _Routines(NamedTuple):
    """Routines of LAPACK."""

    dpotrf: Callable[..., Any]
    dpotrs: Callable[..., Any]
    dpotri: Callable[..., Any]


@cache
def _routines() -> _Routines:
    """The routines of this module: `scipy.linalg` is slow to import, and its own functions check every argument."""
    from scipy.linalg import lapack

    return _Routines(lapack.dpotrf, lapack.dpotrs, lapack.dpotri)


class _Solved(NamedTuple):
    """What follows from the Cholesky factor of K + λI for some data."""

    factor: Array  # (n, n), lower triangle
    ones: Array  # (K + λI)⁻¹1, (n,)
    weight: float  # 1ᵀ(K + λI)⁻¹1 + 1/c
    mean: float  # the posterior mean of m
    alpha: Array  # (K + λI)⁻¹(y − m), (n,)
    square: float  # s²


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The log posterior density of log-lengthscales for some data; `pairs`, if given, are those of the inputs."""

    inputs: Array
    outputs: Array
    shape: Shape
    noisy: bool = False
    pairs: Pairs | None = None

    @cached_property
    def count(self) -> int:
        """The number of observations, where a cluster of close inputs counts once.

        After many runs in one place the next value there is predicted very well, far better than the jitter suggests.
        If each of these runs counted, s² would shrink with every run near the best one. With noise each run counts:
        even the same input has another output every time.
        """
        return len(self.inputs) if self.noisy else self._pairs.clusters

    @cached_property
    def prior_mode(self) -> Array:
        """The mode of the prior of θ; with noise, for s² = 1."""
        d = self.inputs.shape[1]
        scales = np.full(d, _CENTRE + (0.0 if self.shape.additive else 0.5 * math.log(d)))
        return np.append(scales, _NOISE_CENTRE) if self.noisy else scales

    def noise(self, theta: Array) -> float:
        """λ: the variance of the noise over s²; the jitter without noise."""
        return math.exp(theta[-1]) if self.noisy else JITTER

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """The logarithm of the density, up to a constant, and its gradient; −∞ and 0 if K + λI is not definite."""
        gram, pull = self._gram(theta)
        solved = self._solved(gram, theta)
        if solved is None:
            return -math.inf, np.zeros(len(theta))
        spreads, away = np.full(len(theta), _SPREAD), theta - self.prior_mode
        if self.noisy:
            spreads[-1] = _NOISE_SPREAD
            away[-1] += math.log(solved.square)
        away = away / spreads
        value = -0.5 * (self.count + PRIOR_COUNT) * math.log(solved.square)
        value -= float(np.log(solved.factor.diagonal()).sum()) + 0.5 * math.log(solved.weight)
        value -= 0.5 * float(away @ away)
        if not len(self.inputs):
            return value, -away / spreads
        # The density's derivative in K is ½(ααᵀ/s² − K⁻¹), plus a term for m.
        inverse, _ = _routines().dpotri(solved.factor, lower=1, overwrite_c=1)
        share = 1.0 / solved.square
        if self.noisy:  # the prior of λs²: the derivative of log s² in K is −ααᵀ/((n + 2)s²)
            share += 2.0 * away[-1] / spreads[-1] / (self.count + PRIOR_COUNT) / solved.square
        first, second = self._pairs.first, self._pairs.second
        weights = (share * solved.alpha)[first] * solved.alpha[second]  # both triangles
        weights += (solved.ones / solved.weight)[first] * solved.ones[second]
        weights -= inverse.ravel(order="K")[self._pairs.places]
        slopes = pull(weights)
        if self.noisy:
            trace = share * float(solved.alpha @ solved.alpha) - float(np.trace(inverse))
            trace += float(solved.ones @ solved.ones) / solved.weight
            slopes = np.append(slopes, 0.5 * self.noise(theta) * trace)
        return value, slopes - away / spreads

    def mean_and_variance(self, theta: Array) -> tuple[float, float]:
        """The maximising m and s² for these lengthscales."""
        solved = self._solved(self._gram(theta)[0], theta)
        if solved is None:
            raise np.linalg.LinAlgError("the Gram matrix is not positive definite")
        return solved.mean, solved.square

    @cached_property
    def _pairs(self) -> Pairs:
        return Pairs(self.inputs) if self.pairs is None else self.pairs

    @cached_property
    def _kernel(self) -> Stationary:
        return self.shape.kernel((1.0,) * self.inputs.shape[1])

    def _gram(self, theta: Array) -> tuple[Array, PullToScales]:
        """k(x_a, x_b)/s² of all pairs, and the map from their weights to the derivatives by log ℓ."""
        scales = np.exp(-2.0 * theta[: self.inputs.shape[1]])
        return self._kernel.by_scales(self._pairs.squares * scales[:, None])

    def _solved(self, gram: Array, theta: Array) -> _Solved | None:
        """The solution for the Gram matrix of all pairs; None if K + λI is not positive definite."""
        n = len(self.inputs)
        if not n:
            return _Solved(np.empty((0, 0)), np.empty(0), 1.0 / MEAN_VARIANCE, 0.0, np.empty(0), 1.0)
        matrix = np.zeros((n, n), order="F")
        flat = matrix.ravel(order="K")  # a view
        flat[self._pairs.places] = gram
        flat[:: n + 1] = 1.0 + self.noise(theta)
        factor, info = _routines().dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            return None
        both = np.empty((n, 2), order="F")
        both[:, 0], both[:, 1] = 1.0, self.outputs
        ones, alpha = _routines().dpotrs(factor, both, lower=1, overwrite_b=1)[0].T
        weight = float(ones.sum()) + 1.0 / MEAN_VARIANCE
        mean = float(ones @ self.outputs) / weight
        alpha = alpha - mean * ones
        # With m integrated out, (y − m̂)ᵀK⁻¹(y − m̂) + m̂²/c is the whole square, and log|K| grows by log(1 + c·1ᵀK⁻¹1).
        spent = float((self.outputs - mean) @ alpha) + mean**2 / MEAN_VARIANCE
        return _Solved(factor, ones, weight, mean, alpha, (spent + PRIOR_COUNT) / (self.count + PRIOR_COUNT))
