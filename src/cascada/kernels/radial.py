"""Kernels of one scaled distance: `k(x, x') = s²·φ(r)`, `r = ‖(x − x')/ℓ‖₂`."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array, as_points, as_positive, as_scale, check_scale
from cascada.errors import ArgumentError
from cascada.kernels.stationary import PullToScales, Stationary, row_blocks

# The range of s/ℓ, the scale of derivatives: its square fits into float64 with a margin for rounding terms.
STEEPNESS = (1e-130, 1e130)


@cache
def _cdist() -> Callable[..., Any]:
    """SciPy's `cdist`. `scipy.spatial` is slow to import, and many commands need no kernel."""
    from scipy.spatial.distance import cdist

    return cdist


class Radial(Stationary):
    """A kernel of one distance; subclasses define its profile φ and its spectral density."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", _as_lengthscale(self.lengthscale))
        object.__setattr__(self, "variance", as_positive(self.variance, "variance"))
        check_scale(self.variance, "variance", 1e-200, 1e200)
        # The prior variance of a derivative is s²/ℓ² times a constant.
        check_scale(np.sqrt(self.variance) / np.asarray(self.lengthscale), "sqrt(variance)/lengthscale", *STEEPNESS)

    @abstractmethod
    def spectral_density(self, frequencies: ArrayLike) -> Array:
        """k̂(ω) = ∫ k(x, 0)·exp(−i⟨ω, x⟩) dx at the rows of `frequencies` (n, d); shape (n,)."""

    def __call__(self, X: Array, Z: Array) -> Array:
        """The Gram matrix k(x_i, z_j), shape (n, m)."""
        gram = self.squared_distances(X, Z)
        for block in row_blocks(*gram.shape):
            gram[block] = self.profile(gram[block])
        if self.variance != 1.0:
            gram *= self.variance
        return gram

    def squared_distances(self, X: Array, Z: Array) -> Array:
        """r² between all rows, shape (n, m), with a relative error of a few roundings for any origin.

        Differences are computed first, because a² + b² − 2ab, or dividing by ℓ first, would cancel.
        """
        if isinstance(self.lengthscale, float):
            r2 = _cdist()(X, Z, "sqeuclidean")
            if self.lengthscale != 1.0:
                r2 *= self.lengthscale**-2
            return cast(Array, r2)
        weights = self.lengthscales(X.shape[1]) ** -2.0
        return cast(Array, _cdist()(X, Z, "sqeuclidean", w=weights))

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

    def by_scales(self, X: Array) -> tuple[Array, PullToScales]:
        gram, slope = self.profile_and_slope(self.squared_distances(X, X))
        inverse = self.lengthscales(X.shape[1]) ** -2.0
        C = X - X.mean(axis=0) if len(X) else X  # otherwise the squares below would cancel far from the origin

        def pull(weights: Array) -> Array:
            # ∂φ/∂log ℓ_j = −(φ'(r)/r)·(Δ_j/ℓ_j)², and Σ_ab w_ab(x_aj − x_bj)² = 2·Σ_a x_aj²·w_a − 2·x_jᵀWx_j.
            W = -weights * slope
            return inverse * (2 * (C * C).T @ W.sum(axis=1) - 2 * np.einsum("aj,ab,bj->j", C, W, C))

        return gram, pull

    def scaled_norm(self, differences: Array) -> Array:
        """‖Δ/ℓ‖₂ along the last axis."""
        scaled = differences / self.lengthscales(differences.shape[-1])
        return cast(Array, np.sqrt(np.einsum("...j,...j->...", scaled, scaled)))

    def derivative_variances(self, dimension: int) -> Array:
        assert self.curvature is not None, "called only for kernels whose functions have derivatives"
        return self.variance * self.curvature / self.lengthscales(dimension) ** 2

    def _scaled_frequencies(self, frequencies: ArrayLike) -> tuple[Array, float]:
        """‖ℓω‖² for every row, and log(s²·∏ℓ_j)."""
        omega = as_points(frequencies, "frequencies")
        ell = self.lengthscales(omega.shape[1])
        scaled = omega * ell
        return np.einsum("nj,nj->n", scaled, scaled), float(np.log(self.variance) + np.log(ell).sum())


def _as_lengthscale(value: Any) -> float | tuple[float, ...]:
    scales: float | tuple[float, ...]
    if np.ndim(value) > 0:
        scales = tuple(as_scale(v, "every lengthscale") for v in value)
        if not scales:
            raise ArgumentError(
                "lengthscale must be one number, or one number per input dimension; got an empty sequence."
            )
    else:
        scales = as_scale(value, "lengthscale")
    return scales
