"""Local maximum of a smooth function of a few variables within bounds, by projected BFGS steps."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cascada.arrays import Array, BoolArray

#: A value and its gradient (d,); −∞ where the function has none.
Function = Callable[[Array], tuple[float, Array]]

# A search ends if a step gained, and the next one promises, less than this: the function is a log density.
_ENOUGH = 1e-6
_MOST_STEPS = 50
_MOST_TRIES = 12  # of one step, each shorter than the last
# The longest first step and the longest later one, in any variable. Longer ones skip the nearest maximum more often.
_FIRST, _LONGEST = 0.2, 1.0
_SUFFICIENT = 1e-4  # of the gain that the slope promises


class Maximum(NamedTuple):
    """A local maximum θ (d,) and the value there."""

    theta: Array
    value: float


def maximised(function: Function, start: Array, bounds: tuple[float, float]) -> Maximum:
    """The local maximum that is found from a start, which is moved into the bounds."""
    low, high = bounds
    at = np.clip(start, low, high)
    value, slope = function(at)
    inverse = _first_guess(slope)  # of the negated Hessian
    for _ in range(_MOST_STEPS if math.isfinite(value) else 0):
        free = ~(((at <= low) & (slope < 0)) | ((at >= high) & (slope > 0)))
        step = _step(inverse, slope, free)
        if 0.5 * float(step @ slope) < _ENOUGH:
            break
        found = _climbed(function, at, value, slope, step, bounds)
        if found is None:
            break
        then, risen, after = found
        gained = risen - value
        inverse = _updated(inverse, then - at, slope - after)
        at, value, slope = then, risen, after
        if gained < _ENOUGH:
            break
    return Maximum(at, value)


def _first_guess(slope: Array) -> Array:
    """A multiple of the identity with which the first step is at most `_FIRST` long in any variable."""
    return _FIRST * np.eye(len(slope)) / max(1.0, float(np.abs(slope).max(initial=0.0)))


def _step(inverse: Array, slope: Array, free: BoolArray) -> Array:
    """The quasi-Newton step in the free variables, no longer than `_LONGEST`; 0 in the others."""
    restricted = np.where(free, slope, 0.0)
    step = np.where(free, inverse @ restricted, 0.0)
    longest = float(np.abs(step).max(initial=0.0))
    return step * (_LONGEST / longest) if longest > _LONGEST else step


def _climbed(
    function: Function, at: Array, value: float, slope: Array, step: Array, bounds: tuple[float, float]
) -> tuple[Array, float, Array] | None:
    """A point along the step with a sufficient gain, its value and gradient; None if there is none."""
    length = 1.0
    for _ in range(_MOST_TRIES):
        then = np.clip(at + length * step, *bounds)
        expected = float(slope @ (then - at))
        risen, after = function(then)
        if risen >= value + _SUFFICIENT * expected and risen > value:
            return then, risen, after
        # The maximum of the parabola through both values with this slope; a tenth to a half where that is no help.
        curved = 2.0 * (expected - (risen - value))
        part = expected / curved if math.isfinite(curved) and curved > 0 else 0.1
        length *= min(max(part, 0.1), 0.5)
    return None


def _updated(inverse: Array, moved: Array, fallen: Array) -> Array:
    """The BFGS update for a step after which the slope fell by `fallen`; none if the function curves upwards."""
    curvature = float(moved @ fallen)
    if curvature <= 1e-10 * float(np.linalg.norm(moved) * np.linalg.norm(fallen)):
        return inverse
    seen = inverse @ fallen
    factor = (1.0 + float(fallen @ seen) / curvature) / curvature
    cross = np.outer(moved, seen / curvature)
    return inverse + factor * np.outer(moved, moved) - cross - cross.T
