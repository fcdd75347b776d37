"""Fit of one output of a stage: kernels in the units of the inputs, and constant prior means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cascada.arrays import LARGEST_SCALE, SMALLEST_SCALE, Array
from cascada.calibration.likelihood import Likelihood
from cascada.calibration.settings import Calibration
from cascada.calibration.shape import Shape
from cascada.kernels import Stationary
from cascada.kernels.radial import STEEPNESS

# Starts in addition to the last fit, as shifts of the prior's mode in log ℓ.
_STARTS = (0.0, -1.5, 1.5)
# The shifts in log λ that belong to them: a rough function with little noise, and a smooth one with much.
_NOISE_STARTS = (0.0, -4.6, 4.6)
# For the gap a smoother kernel is chosen only if it is this much more likely, in log density: a factor of 20. A smooth
# model of a function with a kink gives narrow and wrong bounds. An additive kernel is chosen only if it is as much more
# likely, and never for the gap.
_CLEARLY = 3.0
# From this many observations on, the last fit is the only start.
MANY = 100
# From this many observations on, additive kernels that are this much less likely are not tried again: more observations
# do not remove the interaction of the inputs, and additive fits take longer than all others.
_ENOUGH = 30
_HOPELESS = 20.0
# Lengthscales stay within these factors of the range of an input.
BOUNDS = (np.log(5e-3), np.log(50.0))
# The variance of the noise over that of the function stays within these.
_NOISE_BOUNDS = (np.log(1e-9), np.log(10.0))


@dataclass(frozen=True, eq=False)
class Model:
    """A kernel in the units of inputs and output, a constant prior mean, and the sd of the noise of the output."""

    kernel: Stationary
    offset: float
    noise: float = 0.0  # 0 without noise


class _Maximum(NamedTuple):
    """The largest density that was found, and where."""

    theta: Array
    value: float


@dataclass(frozen=True, eq=False)
class Fit:
    """The fitted models of one output, and the number of observations."""

    log_scales: Mapping[Shape, Array]  # log ℓ of every shape that is still possible, for inputs in units of `ranges`,
    # and with noise log λ
    ranges: Array  # (d,)
    likely: Model  # the most likely model, for choosing points
    general: Model  # the most likely model in which all inputs interact
    cautious: Model  # the roughest such model that is not clearly less likely, for the gap
    count: int
    value: float = -np.inf  # the log density of the likely model, up to a constant of the outputs
    as_read: bool = False  # whether it is of readings of the inputs, although likely values are known


def fit_output(
    inputs: Array,
    outputs: Array,
    ranges: Array,
    settings: Calibration,
    before: Fit | None,
    noisy: bool = False,
    codes: tuple[int, ...] = (),
) -> Fit:
    """The maximum a posteriori fit of inputs (n, d) and outputs (n,), from the last fit and a few other starts.

    `noisy`: the noise of the outputs is fitted as well, and `before` is such a fit. The inputs `codes` are codes of
    unordered values.
    """
    if not noisy:
        inputs, first = np.unique(inputs, axis=0, return_index=True)
        outputs = outputs[first]
    offset, scale = centre(outputs)
    scaled, standardised = inputs / ranges, (outputs - offset) / scale
    shapes = settings.shapes(inputs.shape[1], codes) if before is None else before.log_scales
    density = {shape: Likelihood(scaled, standardised, shape, noisy) for shape in shapes}
    starts = {} if before is None else _rescaled(before, ranges)
    if starts and len(outputs) >= MANY:
        found = _followed(density, starts)
    else:
        found = {shape: _maximum(each, starts.get(shape)) for shape, each in density.items()}

    def model(shape: Shape) -> Model:
        theta = found[shape].theta
        mean, variance = density[shape].mean_and_variance(theta)
        # Data of any scale must have a model: a parameter outside a kernel's range is moved to the end of the range.
        variance = float(np.clip(scale**2 * variance, 1e-200, 1e200))
        shortest = max(SMALLEST_SCALE, 2 * np.sqrt(variance) / STEEPNESS[1])
        longest = min(LARGEST_SCALE, 0.5 * np.sqrt(variance) / STEEPNESS[0])
        lengthscales = tuple(np.clip(np.exp(theta[: len(ranges)]) * ranges, shortest, longest).tolist())
        noise = float(np.sqrt(density[shape].noise(theta) * variance)) if noisy else 0.0
        return Model(shape.kernel(lengthscales, variance), offset + scale * mean, noise)

    # Of equals the first: the rougher one, and one in which the inputs interact.
    best = max(found, key=lambda shape: found[shape].value - (_CLEARLY if shape.additive else 0.0))
    interacting = [shape for shape in found if not shape.additive]
    top = max(interacting, key=lambda shape: found[shape].value)
    rough = next(shape for shape in interacting if found[shape].value >= found[top].value - _CLEARLY)
    models = {shape: model(shape) for shape in {best, top, rough}}
    least = found[top].value - _HOPELESS if len(outputs) >= _ENOUGH else -np.inf
    kept = {shape: at.theta for shape, at in found.items() if not shape.additive or at.value >= least}
    return Fit(kept, ranges, models[best], models[top], models[rough], len(outputs), found[best].value)


def _rescaled(fit: Fit, ranges: Array) -> dict[Shape, Array]:
    """The parameters of a fit for inputs in other units: log λ is the same in all of them."""
    d, shift = len(ranges), np.log(fit.ranges / ranges)
    return {shape: np.append(theta[:d] + shift, theta[d:]) for shape, theta in fit.log_scales.items()}


def centre(outputs: Array) -> tuple[float, float]:
    """The shift and the scale that standardise the outputs; the scale is positive even for constant outputs."""
    if not len(outputs):
        return 0.0, 1.0
    offset, scale = float(outputs.mean()), float(outputs.std())
    if scale > max(1e-13 * abs(offset), 1e-100):
        return offset, scale
    return offset, max(1e-6 * abs(offset), 1e-6)  # the data do not show how the output varies


def _followed(density: Mapping[Shape, Likelihood], starts: Mapping[Shape, Array]) -> dict[Shape, _Maximum]:
    """The maxima that are found from those of the last fit alone, where there are many observations.

    A density that is far below the largest one is not maximised again. Of additive kernels only the most likely one is
    kept: they differ in smoothness, and one of them suffices for choosing points.
    """
    at = {shape: np.clip(start, *_limits(density[shape])) for shape, start in starts.items()}
    found = {shape: _Maximum(theta, density[shape](theta)[0]) for shape, theta in at.items()}
    least = max(each.value for shape, each in found.items() if not shape.additive) - _HOPELESS
    sums = {shape: each.value for shape, each in found.items() if shape.additive and each.value >= least}
    for shape, each in list(found.items()):
        if shape.additive and shape != max(sums, key=sums.__getitem__, default=None):
            del found[shape]
        elif each.value >= least:
            found[shape] = _climbed(density[shape], [each.theta])
    return found


def _maximum(density: Likelihood, before: Array | None) -> _Maximum:
    """The best of the local maxima that are found from several starts; the prior's mode without data."""
    mode = density.prior_mode
    if len(density.outputs) < 2:
        return _Maximum(mode, density(mode)[0])
    if before is not None:
        return _climbed(density, [before, mode])
    starts = [mode + shift for shift in _STARTS]
    if density.noisy:
        for start, shift in zip(starts, _NOISE_STARTS, strict=True):
            start[-1] = mode[-1] + shift
    return _climbed(density, starts)


def _climbed(density: Likelihood, starts: Sequence[Array]) -> _Maximum:
    """The best of the local maxima that are found from these starts."""
    from scipy.optimize import minimize

    def negated(theta: Array) -> tuple[float, Array]:
        value, gradient = density(theta)
        return -value, -gradient

    low, high = _limits(density)
    bounds = list(zip(low, high, strict=True))
    found = [
        minimize(
            negated, np.clip(start, low, high), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 50}
        )
        for start in starts
    ]
    best = min(found, key=lambda result: float(result.fun))
    return _Maximum(best.x, -float(best.fun))


def _limits(density: Likelihood) -> tuple[Array, Array]:
    """The smallest and the largest parameters."""
    limits = [BOUNDS] * len(density.prior_mode)
    if density.noisy:
        limits[-1] = _NOISE_BOUNDS
    low, high = np.array(limits).T
    return low, high
