"""The interface of a stationary kernel `k(x, x') = s²·φ(r)`, `r = ‖(x − x')/ℓ‖₂`.

A leaf writes its profile φ and what φ implies (slope, curvature, spectrum); everything that is the same for
all kernels (Gram matrices, input gradients, the kernel's own metric, Lipschitz factors) lives here once.

Letters: `r2` = r², `s` = sqrt(variance), `ell` = ℓ; shapes `(n, d)` for points, `(n, m)` for Gram matrices.
"""

from abc import ABC, abstractmethod
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from cascada.arrays import UNIT_ROUNDOFF, Array, as_points, as_positive
from cascada.errors import ArgumentError


class Stationary(ABC):
    """A stationary kernel; see `SquaredExponential` and `Matern` for the leaves."""

    lengthscale: float | tuple[float, ...]
    variance: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", _as_lengthscale(self.lengthscale))
        object.__setattr__(self, "variance", as_positive(self.variance, "variance"))

    # ---- what a leaf writes

    @abstractmethod
    def profile(self, r2: Array) -> Array:
        """φ(r) for squared scaled distances r²; φ(0) = 1 exactly."""

    @abstractmethod
    def profile_and_slope(self, r2: Array) -> tuple[Array, Array]:
        """φ(r) and φ'(r)/r, which share their costly parts.

        At r = 0 the slope is its limit −φ''(0) where that is finite and 0 where it is not: ∇k is 0 there, or (ν ≤ 1/2)
        does not exist.
        """

    @property
    @abstractmethod
    def curvature(self) -> float | None:
        """−φ''(0), or None where φ has no second derivative at 0."""

    @property
    @abstractmethod
    def fourth_derivative(self) -> float | None:
        """φ''''(0), or None where it does not exist."""

    @property
    @abstractmethod
    def rounding(self) -> float:
        """How many unit roundoffs a computed φ(r) or φ'(r) may be off, rounding of r included."""

    @abstractmethod
    def spectral_density(self, frequencies: ArrayLike) -> Array:
        """k̂(ω) = ∫ k(x, 0)·exp(−i⟨ω, x⟩) dx at the rows of `frequencies` (n, d); shape (n,)."""

    # ---- what follows for all

    def __call__(self, X: Array, Z: Array) -> Array:
        """The Gram matrix k(x_i, z_j), shape (n, m)."""
        gram = self.profile(self.squared_distances(X, Z))
        if self.variance != 1.0:
            gram *= self.variance
        return gram

    def squared_distances(self, X: Array, Z: Array) -> Array:
        """r² between all rows, shape (n, m), to a relative error of a few roundings wherever the origin lies.

        Differences are taken before anything else: a² + b² − 2ab, or dividing by ℓ first, would cancel.
        """
        if isinstance(self.lengthscale, float):
            r2 = cdist(X, Z, "sqeuclidean")
            if self.lengthscale != 1.0:
                r2 *= self.lengthscale**-2
            return cast(Array, r2)
        weights = self.lengthscales(X.shape[1]) ** -2.0
        return cast(Array, cdist(X, Z, "sqeuclidean", w=weights))

    def jet(self, Z: Array, X: Array) -> Array:
        """k(z_i, x_j) and its gradient in z, stacked: shape (1 + d, n, m)."""
        r2 = self.squared_distances(Z, X)
        profile, slope = self.profile_and_slope(r2)
        inverse = self.variance * self.lengthscales(Z.shape[1]) ** -2.0
        jet = np.empty((1 + Z.shape[1], *r2.shape))
        np.multiply(self.variance, profile, out=jet[0])
        np.subtract(Z.T[:, :, None], X.T[:, None, :], out=jet[1:])
        jet[1:] *= inverse[:, None, None]
        jet[1:] *= slope
        return jet

    def gradient(self, Z: Array, X: Array) -> Array:
        """∂k(z_i, x_j)/∂z_i, shape (n, m, d)."""
        return self.jet(Z, X)[1:].transpose(1, 2, 0)

    def distance(self, r: Array) -> Array:
        """d_k at scaled distance r, rounded up: d_k(x, x')² = 2s²(1 − φ(r)), so |f(x) − f(x')| ≤ ‖f‖·d_k.

        1 − φ cancels for small r; there 1 − φ ≤ ½(−φ''(0))r² is the smaller of two upper bounds.
        """
        r = np.minimum(np.asarray(r, dtype=np.float64), 1e150)
        gap = 1.0 - self.profile(r * r) + self.rounding * UNIT_ROUNDOFF
        if self.curvature is not None:
            gap = np.minimum(gap, 0.5 * self.curvature * r * r)
        up = 1.0 + 8 * UNIT_ROUNDOFF
        return np.where(r > 0, np.sqrt(2.0 * self.variance * gap) * up, 0.0)

    def remainder(self, r: Array) -> Array | None:
        """R(r), rounded up: |f(c + u) − f(c) − ∇f(c)·u| ≤ ‖f‖·R(‖u/ℓ‖); None where ∇f need not exist.

        The functional on the left has squared norm s²·(2(1 − φ(r)) + 2rφ'(r) − φ''(0)r²), which grows with r
        because φ'' is smallest at 0. Where it cancels, ½·M₂·r² (its leading term, and an upper bound) is smaller.
        """
        if self.curvature is None:
            return None
        r2 = np.minimum(np.asarray(r, dtype=np.float64), 1e150) ** 2
        profile, slope = self.profile_and_slope(r2)
        square = 2.0 * (1.0 - profile) + 2.0 * r2 * slope + self.curvature * r2
        square += (4 * self.rounding + 8 * self.curvature * r2) * UNIT_ROUNDOFF
        bound = np.sqrt(self.variance * square)
        if self.second_order_factor is not None:
            bound = np.minimum(bound, 0.5 * self.second_order_factor * r2)
        return np.where(r2 > 0, bound * (1.0 + 8 * UNIT_ROUNDOFF), 0.0)

    @property
    def lipschitz_factor(self) -> float | None:
        """s·sqrt(−φ''(0)): a function of norm B has Lipschitz constant B times this in *scaled* distance."""
        return None if self.curvature is None else float(np.sqrt(self.variance * self.curvature))

    @property
    def second_order_factor(self) -> float | None:
        """M₂ = s·sqrt(φ''''(0)): |∂²_u f| ≤ ‖f‖·M₂·‖u/ℓ‖²."""
        return None if self.fourth_derivative is None else float(np.sqrt(self.variance * self.fourth_derivative))

    def scaled_norm(self, differences: Array) -> Array:
        """‖Δ/ℓ‖₂ along the last axis."""
        scaled = differences / self.lengthscales(differences.shape[-1])
        return cast(Array, np.sqrt(np.einsum("...j,...j->...", scaled, scaled)))

    def lengthscales(self, dimension: int) -> Array:
        """ℓ for every input dimension, shape (d,); an error when their number does not fit."""
        if isinstance(self.lengthscale, float):
            return np.full(dimension, self.lengthscale)
        if len(self.lengthscale) != dimension:
            raise ArgumentError(
                f"the kernel has {len(self.lengthscale)} lengthscales but its inputs have {dimension} "
                f"dimensions; give one number, or one lengthscale per input dimension."
            )
        return np.array(self.lengthscale)

    def _scaled_frequencies(self, frequencies: ArrayLike) -> tuple[Array, float]:
        """‖ℓω‖² for every row, and log(s²·∏ℓ_j)."""
        omega = as_points(frequencies, "frequencies")
        ell = self.lengthscales(omega.shape[1])
        scaled = omega * ell
        return np.einsum("nj,nj->n", scaled, scaled), float(np.log(self.variance) + np.log(ell).sum())


def _as_lengthscale(value: Any) -> float | tuple[float, ...]:
    scales: float | tuple[float, ...]
    if np.ndim(value) > 0:
        scales = tuple(as_positive(v, "every lengthscale") for v in value)
        if not scales:
            raise ArgumentError("lengthscale must be a number or one number per input dimension; got none.")
    else:
        scales = as_positive(value, "lengthscale")
    if not 1e-150 <= np.min(scales) <= np.max(scales) <= 1e150:  # their squares are floats, too
        raise ArgumentError(f"lengthscales must lie between 1e-150 and 1e150; got {value!r}.")
    return scales
