"""Functions drawn from the posterior of one output, by pathwise conditioning (Matheron's rule).

A function of the prior, drawn by random Fourier features, is corrected by what it misses at the data:

    f(z) = g(z) + k(z, X)(K + λs²I)⁻¹(y − g(X)),    g(z) = m + Σ_j A_j·cos(ω_j·z + φ_j).

The correction is exact, so every function takes the values of the data there; only the prior between them is
approximate, because it is a sum of finitely many waves. Frequencies ω_j are drawn from the spectral density of k.
With Rayleigh amplitudes A_j and uniform phases the prior variance is s² everywhere.

Letters: S functions, H kernels with S/H functions each, F waves, t observations, n points.
"""

import math
from collections.abc import Sequence

import numpy as np

from cascada.arrays import Array, IntArray
from cascada.errors import ArgumentError
from cascada.kernels import Additive, Matern, SquaredExponential, Stationary

_JITTER = 1e-10  # λ; more where K + λs²I is not positive definite by rounding
_WAVES = 128


class Paths:
    """Functions of one output that take its values at the data, each drawn under one of several kernels.

    Every kernel has the same number of functions: those of kernel h are numbered from h·S/H on.
    """

    def __init__(
        self,
        inputs: Array,
        outputs: Array,
        kernels: Sequence[Stationary],
        means: Sequence[float],
        each: int,
        rng: np.random.Generator,
        waves: int = _WAVES,
    ) -> None:
        (t, d), count = inputs.shape, len(kernels) * each
        self.count, self._each, self._inputs = count, each, inputs
        self._kernels, self._means = tuple(kernels), np.array(means, dtype=np.float64)
        self._frequencies = np.concatenate([_frequencies(k, d, waves * each, rng) for k in kernels], axis=1)
        self._frequencies = self._frequencies.reshape(d, count, waves).transpose(1, 0, 2).copy()  # (S, d, F)
        self._phases = rng.uniform(0.0, 2.0 * math.pi, (count, waves))
        sds = np.sqrt(np.repeat([kernel.variance for kernel in kernels], each))
        self._amplitudes = sds[:, None] * np.sqrt(2.0 / waves * rng.standard_exponential((count, waves)))
        self._weights = np.zeros((count, t))
        for h, kernel in enumerate(kernels if t else ()):
            own = np.arange(h * each, (h + 1) * each)
            prior = self._prior(np.tile(inputs, (each, 1)), np.repeat(own, t))[0].reshape(each, t)
            inverse = inverse_factor(kernel(inputs, inputs))
            self._weights[own] = (outputs - self._means[h] - prior) @ inverse.T @ inverse

    def __call__(self, points: Array, path: IntArray, slopes: bool = False) -> tuple[Array, Array | None]:
        """Values (n,) of the functions with the numbers `path` (n,) at points (n, d), and with `slopes` gradients."""
        values, gradients = self._prior(points, path, slopes)
        kernel_of = path // self._each
        for h in np.unique(kernel_of):
            rows = np.flatnonzero(kernel_of == h)
            weights = self._weights[path[rows]]
            if gradients is None:
                values[rows] += np.vecdot(self._kernels[h](points[rows], self._inputs), weights)
                continue
            jet = self._kernels[h].jet(points[rows], self._inputs)
            values[rows] += np.vecdot(jet[0], weights)
            gradients[rows] += np.vecdot(jet[1:], weights).T
        return values + self._means[kernel_of], gradients

    def _prior(self, points: Array, path: IntArray, slopes: bool = False) -> tuple[Array, Array | None]:
        """The same of the prior functions g − m."""
        angles = np.einsum("nd,ndf->nf", points, self._frequencies[path]) + self._phases[path]
        amplitudes = self._amplitudes[path]
        values = np.vecdot(np.cos(angles), amplitudes)
        if not slopes:
            return values, None
        return values, -np.einsum("nf,ndf->nd", np.sin(angles) * amplitudes, self._frequencies[path])


def inverse_factor(gram: Array) -> Array:
    """L⁻¹ for the Cholesky factor L of K + λs²I, from a Gram matrix K (t, t): (K + λs²I)⁻¹ = L⁻ᵀL⁻¹."""
    jitter, eye = _JITTER * gram[0, 0], np.eye(len(gram))
    while True:
        try:
            return np.linalg.inv(np.linalg.cholesky(gram + jitter * eye))
        except np.linalg.LinAlgError:
            jitter *= 10.0


def _frequencies(kernel: Stationary, dimension: int, count: int, rng: np.random.Generator) -> Array:
    """Frequencies (d, count) from the spectral density of a kernel; for a sum of effects each is of one input."""
    radial = kernel.kernel if isinstance(kernel, Additive) else kernel
    normal = rng.standard_normal((dimension, count))
    if isinstance(radial, Matern):  # the spectral density is that of a multivariate t distribution
        normal *= np.sqrt(2 * radial.nu / rng.chisquare(2 * radial.nu, count))
    elif not isinstance(radial, SquaredExponential):
        raise ArgumentError(
            f"functions can be drawn under Matern and SquaredExponential kernels and sums of their effects; got "
            f"{kernel!r}. Use one of these, or leave the kernel out."
        )
    frequencies: Array = normal / kernel.lengthscales(dimension)[:, None]
    if isinstance(kernel, Additive):
        frequencies *= np.arange(count) % dimension == np.arange(dimension)[:, None]
    return frequencies
