"""The squared exponential kernel, φ(r) = exp(−r²/2)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array
from cascada.kernels.radial import Radial


@dataclass(frozen=True)
class SquaredExponential(Radial):
    """k(x, x') = s²·exp(−r²/2), r = ‖(x − x')/ℓ‖₂.

    `lengthscale` is ℓ (one number, or one per input dimension), `variance` is s².

    >>> import numpy as np
    >>> SquaredExponential(2.0)(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.6065]])
    """

    lengthscale: float | tuple[float, ...] = 1.0
    variance: float = 1.0

    def profile(self, r2: Array) -> Array:
        return np.exp(-0.5 * r2)

    def profile_and_slope(self, r2: Array) -> tuple[Array, Array]:
        profile = self.profile(r2)
        return profile, -profile

    @property
    def curvature(self) -> float:
        return 1.0

    @property
    def fourth_derivative(self) -> float:
        return 3.0

    @property
    def rounding(self) -> float:
        return 32.0

    def spectral_density(self, frequencies: ArrayLike) -> Array:
        scaled, log_mass = self._scaled_frequencies(frequencies)
        dimension = np.shape(frequencies)[1]
        return np.exp(log_mass + 0.5 * dimension * math.log(2 * math.pi) - 0.5 * scaled)
