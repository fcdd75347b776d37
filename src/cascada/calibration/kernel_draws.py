"""Kernels of one output, drawn from their posterior: smoothness, lengthscales, variance and mean.

The density of the fit counts with the power τ < 1. Most runs crowd around the best one: they say much about the
function there, and little about the rest of the box, which decides how much better it can be. Every shape of the fit
has a share by Laplace's approximation of its evidence. Lengthscales are drawn around the maxima of the fit and then
drawn again by importance; s² and m given them have closed forms, inverse χ² and normal.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.calibration.fit import BOUNDS, Fit, centre
from cascada.calibration.likelihood import PRIOR_COUNT, SPREAD, Likelihood
from cascada.calibration.shape import Shape
from cascada.kernels import Additive, Matern, Radial, SquaredExponential, Stationary

#: τ.
TEMPER = 0.3
_TRIES = 3  # lengthscales that are drawn for each kernel that is kept
_WIDER = 1.2  # than Laplace's approximation
_STEP = 1e-3  # of differences of the gradient, in log ℓ
_NEGLIGIBLE = 6.0  # shapes this much less likely, in log density to the power τ, are left out


@dataclass(frozen=True, eq=False)
class KernelDraw:
    """One draw of the kernel and the constant mean of an output."""

    kernel: Stationary
    mean: float

    def wider(self, factor: float) -> "KernelDraw":
        """The same with the sd of its functions times a factor."""
        return KernelDraw(with_variance(self.kernel, factor**2 * self.kernel.variance), self.mean)


def with_variance(kernel: Stationary, variance: float) -> Stationary:
    """A kernel of the same shape and lengthscales with another variance s²."""
    if isinstance(kernel, Additive):
        radial = with_variance(kernel.kernel, variance)
        assert isinstance(radial, Radial), "the effects of a sum are functions of one distance"
        return Additive(radial)
    if isinstance(kernel, Matern):
        return Matern(kernel.nu, kernel.lengthscale, variance)
    assert isinstance(kernel, SquaredExponential), "kernels of fits are one of these"
    return SquaredExponential(kernel.lengthscale, variance)


def kernel_draws(
    inputs: Array, outputs: Array, fit: Fit, count: int, rng: np.random.Generator, temper: float = TEMPER
) -> list[KernelDraw]:
    """`count` draws for inputs (t, d) and outputs (t,), from the maxima of a fit to these or most of them."""
    inputs, first = np.unique(inputs, axis=0, return_index=True)
    outputs = outputs[first]
    offset, scale = centre(outputs)
    scaled, standardised = inputs / fit.ranges, (outputs - offset) / scale
    density = {shape: Likelihood(scaled, standardised, shape) for shape in fit.log_scales}
    modes = {shape: np.clip(theta, *BOUNDS) for shape, theta in fit.log_scales.items()}
    shapes = _Shapes.of(density, modes, temper)
    tries = _TRIES * count
    drawn = [shapes.drawn(rng) for _ in range(tries)]
    weights = np.array([weight for _, _, weight in drawn])
    right = np.exp(weights - weights.max())
    right = np.minimum(right, right.mean() * math.sqrt(tries))  # no draw stands for most of the others
    found = []
    for i in rng.choice(tries, count, p=right / right.sum()):
        shape, theta, _ = drawn[i]
        mean, spent, weight = density[shape].moments(theta)
        n = density[shape].count + PRIOR_COUNT
        variance = spent * temper / rng.chisquare(temper * n)
        mean += rng.standard_normal() * math.sqrt(variance / weight)
        kernel = shape.kernel(tuple((np.exp(theta) * fit.ranges).tolist()), scale**2 * variance)
        found.append(KernelDraw(kernel, offset + scale * mean))
    return found


@dataclass(frozen=True, eq=False)
class _Shapes:
    """Shapes with their maxima, and normal approximations of the tempered density around them."""

    density: Mapping[Shape, Likelihood]
    modes: Mapping[Shape, Array]
    values: Mapping[Shape, float]  # log densities at the maxima
    roots: Mapping[Shape, Array]  # (d, d): θ is about normal with the covariance RRᵀ
    shares: Mapping[Shape, float]
    temper: float

    @classmethod
    def of(cls, density: Mapping[Shape, Likelihood], modes: Mapping[Shape, Array], temper: float) -> "_Shapes":
        values = {shape: density[shape](theta)[0] for shape, theta in modes.items()}
        least = max(values.values()) - _NEGLIGIBLE / temper
        values = {shape: value for shape, value in values.items() if value >= least}
        roots = {shape: _root(density[shape], modes[shape], temper) for shape in values}
        evidence = {shape: temper * values[shape] + np.linalg.slogdet(roots[shape])[1] for shape in values}
        shares = {shape: math.exp(value - max(evidence.values())) for shape, value in evidence.items()}
        return cls(density, modes, values, roots, shares, temper)

    def drawn(self, rng: np.random.Generator) -> tuple[Shape, Array, float]:
        """A shape, log-lengthscales, and the log of their importance."""
        names, shares = list(self.shares), np.array(list(self.shares.values()))
        shape = names[rng.choice(len(names), p=shares / shares.sum())]
        xi = _WIDER * rng.standard_normal(len(self.modes[shape]))
        theta = np.clip(self.modes[shape] + self.roots[shape] @ xi, *BOUNDS)
        gained = self.density[shape](theta)[0] - self.values[shape]
        return shape, theta, self.temper * gained + 0.5 * float(xi @ xi) / _WIDER**2


def _root(density: Likelihood, theta: Array, temper: float) -> Array:
    """A root of the covariance of θ around a maximum, in no direction wider than the prior."""
    steps = _STEP * np.eye(len(theta))
    slopes = np.array([(density(theta + step)[1] - density(theta - step)[1]) / (2 * _STEP) for step in steps])
    curvatures, vectors = np.linalg.eigh(-0.5 * (slopes + slopes.T))
    root: Array = vectors / np.sqrt(np.maximum(temper * curvatures, SPREAD**-2))
    return root
