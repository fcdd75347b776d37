"""Shapes of kernels for one output: kernels up to their lengthscales and variance."""

import math
from dataclasses import dataclass

from cascada.kernels import Additive, Coded, Matern, Radial, SquaredExponential, Stationary

SE = math.inf  # the smoothness of the squared exponential kernel


@dataclass(frozen=True)
class Shape:
    """A smoothness ν, whether the kernel is additive, and which inputs are codes of unordered values.

    The lengthscale ℓ of a code says how alike its values are: the kernel between two of them is a = exp(−1/ℓ²) times
    that of one. So the likelihood decides whether values have much in common, or nothing.
    """

    nu: float
    additive: bool = False
    codes: tuple[int, ...] = ()

    def kernel(self, lengthscales: tuple[float, ...], variance: float = 1.0) -> Stationary:
        """The kernel of this shape with these hyper-parameters."""
        kernel: Radial
        scales = tuple(scale for j, scale in enumerate(lengthscales) if j not in self.codes) or 1.0
        kernel = SquaredExponential(scales, variance) if self.nu == SE else Matern(self.nu, scales, variance)
        if self.codes:
            return Coded(kernel, self.codes, tuple(math.exp(-(lengthscales[j] ** -2.0)) for j in self.codes))
        return Additive(kernel) if self.additive else kernel
