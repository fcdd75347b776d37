"""One output of a stage, calibrated: its kernel in the units of the inputs, and a constant prior mean."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.calibration.likelihood import Likelihood
from cascada.calibration.settings import Calibration, Family
from cascada.kernels import Stationary

# Starts besides the last fit, as shifts of the prior's mode in log ℓ.
_STARTS = (0.0, -1.5, 1.5)
# Lengthscales stay within these factors of the range of an input.
_BOUNDS = (np.log(5e-3), np.log(50.0))


@dataclass(frozen=True, eq=False)
class Fit:
    """Hyper-parameters of one output, and how many observations they were fitted to."""

    log_scales: Mapping[Family, Array]  # θ of every family that was tried, for inputs in units of `ranges`
    ranges: Array  # (d,)
    kernel: Stationary
    offset: float
    count: int


def fit_output(inputs: Array, outputs: Array, ranges: Array, settings: Calibration, before: Fit | None) -> Fit:
    """The maximum a posteriori for inputs (n, d) and outputs (n,); from the last fit and a few other starts."""
    inputs, first = np.unique(inputs, axis=0, return_index=True)
    outputs = outputs[first]
    offset, scale = _centre(outputs)
    scales: dict[Family, Array] = {}
    density: dict[Family, float] = {}
    for family in settings.families:
        likelihood = Likelihood(inputs / ranges, (outputs - offset) / scale, settings, family)
        start = None if before is None else before.log_scales[family] + np.log(before.ranges / ranges)
        scales[family] = likelihood.prior_mode if len(outputs) < 2 else _maximised(likelihood, start)
        density[family] = likelihood(scales[family])[0]
    best = max(settings.families, key=density.__getitem__)  # the first where they are equal: the rougher one
    theta = scales[best]
    mean, variance = Likelihood(inputs / ranges, (outputs - offset) / scale, settings, best).mean_and_variance(theta)
    kernel = settings.kernel(best, tuple((np.exp(theta) * ranges).tolist()), scale**2 * variance)
    return Fit(scales, ranges, kernel, offset + scale * mean, len(outputs))


def _centre(outputs: Array) -> tuple[float, float]:
    """What is taken off the outputs, and what they are divided by; a constant output still has some scale."""
    if not len(outputs):
        return 0.0, 1.0
    offset, scale = float(outputs.mean()), float(outputs.std())
    if scale > max(1e-13 * abs(offset), 1e-100):
        return offset, scale
    return offset, max(1e-6 * abs(offset), 1e-6)  # nothing tells how it would vary


def _maximised(likelihood: Likelihood, before: Array | None) -> Array:
    from scipy.optimize import minimize

    mode = likelihood.prior_mode
    starts = [mode + shift for shift in _STARTS]
    if before is not None:
        starts = [before, mode]

    def negated(theta: Array) -> tuple[float, Array]:
        value, gradient = likelihood(theta)
        return -value, -gradient

    bounds = [_BOUNDS] * len(mode)
    found = [
        minimize(negated, np.clip(start, *_BOUNDS), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 50})
        for start in starts
    ]
    return min(found, key=lambda result: float(result.fun)).x
