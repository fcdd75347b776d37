"""The base class of stationary kernels of one output, with the bounds that hold for all of them.

A kernel is built from a profile φ of scaled distances. A `Radial` kernel is s²·φ(r) of one distance; an `Additive` one
is the mean of s²·φ(r_j) over its inputs. A subclass defines the profile with its slope and curvature. The kernel's
metric, Taylor remainders and Lipschitz factors are computed here for all kernels.

Letters: `r2` = r², `s` = sqrt(variance), `ell` = ℓ; shapes `(n, d)` for points, `(n, m)` for Gram matrices.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.errors import ArgumentError

#: Turns symmetric weights W (n, n) into Σ_ab W_ab·∂φ_ab/∂log ℓ_j, (d,).
PullToScales = Callable[[Array], Array]

# Gram matrices are computed in blocks of rows with about this many entries: larger temporaries do not fit into a cache,
# and each of them is new memory.
_BLOCK_ENTRIES = 1 << 14


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Slices of the rows of a matrix, in blocks of bounded size."""
    size = max(1, _BLOCK_ENTRIES // max(columns, 1))
    return (slice(i, min(i + size, rows)) for i in range(0, rows, size))


class Stationary(ABC):
    """A stationary kernel. A user-defined kernel that is a function of one distance derives from `Radial`."""

    # ---- parameters

    @property
    @abstractmethod
    def lengthscale(self) -> float | tuple[float, ...]:
        """ℓ: one number, or one per input dimension."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """s² = k(x, x)."""

    # ---- profile

    @abstractmethod
    def profile(self, r2: Array) -> Array:
        """φ(r) for squared scaled distances r²; φ(0) = 1 exactly."""

    @abstractmethod
    def profile_and_slope(self, r2: Array) -> tuple[Array, Array]:
        """φ(r) and φ'(r)/r, computed together because they share expensive parts.

        At r = 0 the slope is its limit φ''(0) if that is finite, else 0: ∇k is 0 there or, for ν ≤ 1/2, undefined.
        """

    @property
    @abstractmethod
    def curvature(self) -> float | None:
        """−φ''(0), or None if φ has no second derivative at 0."""

    @property
    @abstractmethod
    def fourth_derivative(self) -> float | None:
        """φ''''(0), or None if it does not exist."""

    @property
    @abstractmethod
    def rounding(self) -> float:
        """The largest error of a computed φ(r) or φ'(r) in unit roundoffs, including the rounding of r."""

    # ---- kernel of many inputs

    @abstractmethod
    def __call__(self, X: Array, Z: Array) -> Array:
        """The Gram matrix k(x_i, z_j), shape (n, m)."""

    @abstractmethod
    def jet(self, Z: Array, X: Array) -> Array:
        """k(z_i, x_j) and its gradient in z, stacked: shape (1 + d, n, m)."""

    @abstractmethod
    def by_scales(self, X: Array) -> tuple[Array, PullToScales]:
        """k(x_a, x_b)/s², (n, n), and the map from weights to its derivatives by the log-lengthscales."""

    @abstractmethod
    def scaled_norm(self, differences: Array) -> Array:
        """The length of Δ along the last axis, in lengthscales, as `distance` and `remainder` expect it."""

    @abstractmethod
    def derivative_variances(self, dimension: int) -> Array:
        """∂²k(x, z)/∂x_j∂z_j at x = z, (d,): the prior variances of ∂_j f; requires a curvature."""

    # ---- common to all kernels

    @property
    def codes(self) -> tuple[int, ...]:
        """The positions of inputs that are codes of unordered values; none for most kernels."""
        return ()

    def distance_of(self, differences: Array) -> Array:
        """d_k of differences along the last axis, rounded up."""
        return self.distance(self.scaled_norm(differences))

    def gradient(self, Z: Array, X: Array) -> Array:
        """∂k(z_i, x_j)/∂z_i, shape (n, m, d)."""
        return self.jet(Z, X)[1:].transpose(1, 2, 0)

    def distance(self, r: Array) -> Array:
        """d_k at scaled distance r, rounded up: d_k(x, x')² = 2s²(1 − φ(r)), so |f(x) − f(x')| ≤ ‖f‖·d_k.

        For small r, 1 − φ cancels and the upper bound 1 − φ ≤ ½(−φ''(0))r² is the smaller one.
        """
        r2 = _squared(r)
        return self._distance(np.asarray(r), r2, self.profile(r2))

    def remainder(self, r: Array) -> Array | None:
        """R(r), rounded up: |f(c + u) − f(c) − ∇f(c)·u| ≤ ‖f‖·R(‖u/ℓ‖); None if ∇f need not exist.

        The functional on the left has squared norm s²·(2(1 − φ(r)) + 2rφ'(r) − φ''(0)r²), which grows with r
        because φ'' is smallest at 0. Where it cancels, the upper bound ½·M₂·r² (its leading term) is smaller.
        """
        if self.curvature is None:
            return None
        r2 = _squared(r)
        return self._remainder(r2, *self.profile_and_slope(r2))

    def distance_and_remainder(self, r: Array) -> tuple[Array, Array | None]:
        """`distance` and `remainder` together: they share φ."""
        if self.curvature is None:
            return self.distance(r), None
        r2 = _squared(r)
        profile, slope = self.profile_and_slope(r2)
        return self._distance(r, r2, profile), self._remainder(r2, profile, slope)

    def _distance(self, r: Array, r2: Array, profile: Array) -> Array:
        gap = 1.0 - profile + self.rounding * UNIT_ROUNDOFF
        if self.curvature is not None:
            gap = np.minimum(gap, (0.5 * self.curvature) * r2)
        return np.where(r > 0, np.sqrt(2.0 * self.variance * gap) * (1.0 + 8 * UNIT_ROUNDOFF), 0.0)

    def _remainder(self, r2: Array, profile: Array, slope: Array) -> Array:
        assert self.curvature is not None, "called only for kernels with a derivative"
        square = 2.0 * (1.0 - profile) + 2.0 * r2 * slope + self.curvature * r2
        square += (4 * self.rounding + 8 * self.curvature * r2) * UNIT_ROUNDOFF
        bound = np.sqrt(self.variance * square)
        if self.second_order_factor is not None:
            bound = np.minimum(bound, (0.5 * self.second_order_factor) * r2)
        return np.where(r2 > 0, bound * (1.0 + 8 * UNIT_ROUNDOFF), 0.0)

    @property
    def lipschitz_factor(self) -> float | None:
        """s·sqrt(−φ''(0)): a function of norm B has Lipschitz constant B times this in *scaled* distance."""
        return None if self.curvature is None else float(np.sqrt(self.variance * self.curvature))

    @property
    def second_order_factor(self) -> float | None:
        """M₂ = s·sqrt(φ''''(0)): |∂²_u f| ≤ ‖f‖·M₂·‖u/ℓ‖²."""
        return None if self.fourth_derivative is None else float(np.sqrt(self.variance * self.fourth_derivative))

    def lengthscales(self, dimension: int) -> Array:
        """ℓ for every input dimension, shape (d,); raises `ArgumentError` if their number is wrong."""
        if isinstance(self.lengthscale, float):
            return _one_per_input(self.lengthscale, dimension)
        if len(self.lengthscale) != dimension:
            raise ArgumentError(
                f"the kernel has {len(self.lengthscale)} lengthscales but its inputs have {dimension} "
                f"dimensions; give one number, or one lengthscale per input dimension."
            )
        return np.array(self.lengthscale)


@lru_cache
def _one_per_input(lengthscale: float, dimension: int) -> Array:
    """The same lengthscale for every input; kept, because it is asked for in every evaluation of a kernel."""
    scales = np.full(dimension, lengthscale)
    scales.setflags(write=False)
    return scales


def _squared(r: Array) -> Array:
    """r², without overflow."""
    return np.minimum(np.asarray(r, dtype=np.float64), 1e150) ** 2
