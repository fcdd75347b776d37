"""Kernels of inputs of which some are codes of unordered values.

k((x, c), (x', c')) = k(x, x')·∏_j T_j(c_j, c'_j), with T_j = 1 for equal codes and a_j for different ones. So values of
a choice have a common part if a_j > 0, and nothing in common if a_j = 0.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.errors import ArgumentError
from cascada.kernels.stationary import PullToScales, Stationary


@dataclass(frozen=True)
class Coded(Stationary):
    """Another kernel of the inputs that are numbers, times a_j for each input `positions[j]` in which codes differ.

    Cells of inputs have one code each: within them its functions are those of the other kernel. The lengthscale of a
    code is infinite, because a function does not change with it within a cell.

    >>> import numpy as np
    >>> from cascada.kernels.squared_exponential import SquaredExponential
    >>> Coded(SquaredExponential(1.0), (0,), (0.5,))(np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 0.0]]))
    array([[1. , 0.5]])
    """

    kernel: Stationary
    positions: tuple[int, ...]
    alike: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.positions) != len(self.alike) or not all(0 <= a < 1 for a in self.alike):
            raise ArgumentError(
                f"a kernel of codes needs a number of at least 0 and below 1 for each of them; got {self.positions!r} "
                f"and {self.alike!r}."
            )

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
        return self.kernel.rounding + 2 * len(self.positions) + 1  # a product of a few factors

    # ---- many inputs

    def __call__(self, X: Array, Z: Array) -> Array:
        gram = self.kernel(self._plain(X), self._plain(Z))
        gram *= self.likeness(X, Z)
        return gram

    def jet(self, Z: Array, X: Array) -> Array:
        numbers = self.numbers(Z.shape[1])
        jet = np.zeros((1 + Z.shape[1], len(Z), len(X)))
        plain = self.kernel.jet(self._plain(Z), self._plain(X)) * self.likeness(Z, X)
        jet[[0, *(1 + j for j in numbers)]] = plain[: 1 + len(numbers)]
        return jet

    def by_scales(self, X: Array) -> tuple[Array, PullToScales]:
        """See `Stationary.by_scales`; log ℓ_j of a code stands for a_j = exp(−1/ℓ_j²)."""
        numbers = self.numbers(X.shape[1])
        plain, pull_numbers = self.kernel.by_scales(self._plain(X))
        likeness = self.likeness(X, X)
        gram = plain * likeness
        with np.errstate(divide="ignore"):
            rates = np.where(np.array(self.alike) > 0, -2.0 * np.log(np.array(self.alike)), 0.0)  # 2/ℓ_j²

        def pull(weights: Array) -> Array:
            slopes = np.empty(X.shape[1])
            slopes[numbers] = pull_numbers(weights * likeness)[: len(numbers)]
            product = weights * gram
            for code, rate in zip(self.positions, rates, strict=True):
                slopes[code] = rate * product[X[:, [code]] != X[:, code]].sum()
            return slopes

        return gram, pull

    def scaled_norm(self, differences: Array) -> Array:
        return self.kernel.scaled_norm(self._plain(differences))

    def distance_of(self, differences: Array) -> Array:
        """d_k of differences: d_k² = 2s²(1 − a·φ(r)) where codes differ, a the product of their a_j, rounded up."""
        r = self.scaled_norm(differences)
        within = self.distance(r)
        different = differences[..., list(self.positions)] != 0
        if not different.any():
            return within
        a = np.where(different, np.array(self.alike), 1.0).prod(axis=-1)
        gap = 1.0 - a * self.profile(np.minimum(r, 1e150) ** 2) + self.rounding * UNIT_ROUNDOFF
        between = np.sqrt(2.0 * self.variance * gap) * (1.0 + 8 * UNIT_ROUNDOFF)
        return np.where(different.any(axis=-1), between, within)

    def derivative_variances(self, dimension: int) -> Array:
        variances = np.zeros(dimension)
        numbers = self.numbers(dimension)
        if numbers:
            variances[numbers] = self.kernel.derivative_variances(len(numbers))
        return variances

    def lengthscales(self, dimension: int) -> Array:
        scales = np.full(dimension, np.inf)
        numbers = self.numbers(dimension)
        scales[numbers] = self.kernel.lengthscales(max(len(numbers), 1))[: len(numbers)]
        return scales

    # ---- codes

    @property
    def codes(self) -> tuple[int, ...]:
        return self.positions

    def numbers(self, dimension: int) -> list[int]:
        """The positions of the inputs that are numbers."""
        return list(_others(dimension, self.positions))

    def _plain(self, points: Array) -> Array:
        """The inputs that are numbers, along the last axis; one zero if there are none."""
        numbers = self.numbers(points.shape[-1])
        return points[..., numbers] if numbers else np.zeros((*points.shape[:-1], 1))

    def likeness(self, X: Array, Z: Array) -> Array:
        """∏_j T_j between all rows, (n, m)."""
        found = np.ones((len(X), len(Z)))
        for code, a in zip(self.positions, self.alike, strict=True):
            found *= np.where(X[:, [code]] == Z[:, code], 1.0, a)
        return found


@cache
def _others(dimension: int, codes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(j for j in range(dimension) if j not in codes)
