"""The additive kernel, whose functions are sums of effects of one input each."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from cascada.arrays import Array, IntArray
from cascada.errors import ArgumentError
from cascada.kernels.radial import Radial
from cascada.kernels.stationary import PullToScales, Stationary, row_blocks

_BLOCK = 1 << 20  # entries of a fit processed at once, a few megabytes


@lru_cache(maxsize=16)
def _pairs(n: int) -> tuple[IntArray, IntArray]:
    """The rows and columns of the upper triangle of a matrix (n, n), without the diagonal."""
    first, second = np.triu_indices(n, 1)
    return first, second


@dataclass(frozen=True)
class Additive(Stationary):
    """k(x, x') = (s²/d)·Σ_j φ(|x_j − x'_j|/ℓ_j), with φ, ℓ and s² of another kernel.

    Its functions are f(x) = Σ_j f_j(x_j): inputs do not interact, so few data suffice for many inputs.

    >>> import numpy as np
    >>> from cascada.kernels import SquaredExponential
    >>> Additive(SquaredExponential(2.0))(np.zeros((1, 2)), np.array([[0.0, 0.0], [0.0, 2.0]])).round(4)
    array([[1.    , 0.8033]])

    Lengths are measured by the largest scaled difference, ‖Δ/ℓ‖_∞. The squared norms of f ↦ f(x) − f(x') and of the
    Taylor remainder are means over the inputs of those for one input, which never decrease with |Δ_j|/ℓ_j.
    """

    kernel: Radial

    MOST_INPUTS: ClassVar[int] = 128  # `rounding` is valid for sums of up to this many terms

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Radial):
            raise ArgumentError(f"Additive needs a kernel of one distance, such as Matern(2.5); got {self.kernel!r}.")

    # ---- parameters and profile of the other kernel

    @property
    def lengthscale(self) -> float | tuple[float, ...]:
        return self.kernel.lengthscale

    @property
    def variance(self) -> float:
        return self.kernel.variance

    def profile(self, r2: Array) -> Array:
        return self.kernel.profile(r2)

    def profile_and_slope(self, r2: Array) -> tuple[Array, Array]:
        return self.kernel.profile_and_slope(r2)

    @property
    def curvature(self) -> float | None:
        return self.kernel.curvature

    @property
    def fourth_derivative(self) -> float | None:
        return self.kernel.fourth_derivative

    @property
    def rounding(self) -> float:
        # Rounding of partial sums of j values up to 1 adds d(d + 1)/2 in total, then /d; 2 for the factors 1/d, s².
        return self.kernel.rounding + (self.MOST_INPUTS + 1) / 2 + 2

    # ---- sums over the inputs

    def __call__(self, X: Array, Z: Array) -> Array:
        total = np.zeros((len(X), len(Z)))
        for block in row_blocks(*total.shape):
            for difference in self._scaled_differences(X[block], Z):
                total[block] += self.profile(difference * difference)
        total /= X.shape[1]
        total *= self.variance
        return total

    def jet(self, Z: Array, X: Array) -> Array:
        d = Z.shape[1]
        ell = self.lengthscales(d)
        jet = np.zeros((1 + d, len(Z), len(X)))
        for j, difference in enumerate(self._scaled_differences(Z, X)):
            profile, slope = self.profile_and_slope(difference * difference)
            jet[0] += profile
            jet[1 + j] = slope * difference / ell[j]
        jet /= d
        jet *= self.variance
        return jet

    def by_scales(self, X: Array) -> tuple[Array, PullToScales]:
        n, d = X.shape
        ell = self.lengthscales(d)
        # Each pair once and many inputs per call, because fitting spends most of its time here.
        first, second = _pairs(n)
        total, changes = np.zeros(len(first)), np.empty((d, len(first)))
        step = max(1, _BLOCK // max(len(first), 1))
        for some in (slice(j, j + step) for j in range(0, d, step)):
            r2 = ((X[first, some] - X[second, some]) / ell[some]).T ** 2
            profile, slope = self.profile_and_slope(r2)
            total += profile.sum(axis=0)
            np.multiply(slope, r2, out=changes[some])  # ∂φ/∂log ℓ_j = −(φ'(r)/r)·r²

        def pull(weights: Array) -> Array:
            return changes @ weights[first, second] * (-2.0 / d)  # both triangles

        gram = np.eye(n)
        gram[first, second] = gram[second, first] = total / d
        return gram, pull

    def scaled_norm(self, differences: Array) -> Array:
        scaled = np.abs(differences) / self.lengthscales(differences.shape[-1])
        return np.asarray(scaled.max(axis=-1))

    def derivative_variances(self, dimension: int) -> Array:
        return self.kernel.derivative_variances(dimension) / dimension

    def lengthscales(self, dimension: int) -> Array:
        if dimension > self.MOST_INPUTS:
            raise ArgumentError(f"an additive kernel must have at most {self.MOST_INPUTS} inputs; got {dimension}.")
        return super().lengthscales(dimension)

    def _scaled_differences(self, X: Array, Z: Array) -> Iterator[Array]:
        """(x_aj − z_bj)/ℓ_j, (n, m), one input at a time, which saves memory."""
        ell = self.lengthscales(X.shape[1])
        for x, z, unit in zip(X.T, Z.T, ell, strict=True):
            yield np.subtract.outer(x, z) / unit
