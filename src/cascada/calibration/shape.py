"""Shapes of kernels for one output: kernels up to their lengthscales and variance."""

import math
from dataclasses import dataclass

from cascada.kernels import Additive, Matern, Radial, SquaredExponential, Stationary

SE = math.inf  # the smoothness of the squared exponential kernel


@dataclass(frozen=True)
class Shape:
    """A smoothness ν, and whether the kernel is additive."""

    nu: float
    additive: bool = False

    def kernel(self, lengthscales: tuple[float, ...], variance: float = 1.0) -> Stationary:
        """The kernel of this shape with these hyper-parameters."""
        kernel: Radial
        if self.nu == SE:
            kernel = SquaredExponential(lengthscales, variance)
        else:
            kernel = Matern(self.nu, lengthscales, variance)
        return Additive(kernel) if self.additive else kernel
