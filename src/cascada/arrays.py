"""Conversion and validation of the arrays and numbers that users pass in.

Shapes used everywhere: points are `(n, d)` (the rank is never guessed), outputs `(n, p)`, constants per output `(p,)`.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cascada.errors import ArgumentError

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Half the distance from 1 to the next float: the largest relative error of one rounded operation.
UNIT_ROUNDOFF = float(np.finfo(np.float64).eps) / 2

# Limits of norms, lengthscales, prior standard deviations and outputs. Bounds contain squares of such numbers, times
# λ ≥ 1e-10 and u² ≈ 1e-32 in the rounding terms. All of them stay far inside the range of float64, so no term of a
# bound underflows to 0 or overflows.
SMALLEST_SCALE = 1e-100
LARGEST_SCALE = 1e100
# The largest output or offset in prior sds: the square of a larger one could overflow, and no norm bound allows it.
MOST_SDS = 1e120


def as_points(values: ArrayLike, name: str, dimension: int | None = None) -> Array:
    """Return points as a finite float64 array of shape (n, d); raise `ArgumentError` if they are not."""
    points = _as_float(values, name)
    if points.ndim != 2:
        raise ArgumentError(
            f"{name} must have two axes (n, d), one row per point; got shape {points.shape}. "
            f"Use reshape(-1, d) for a list of points or reshape(1, -1) for a single one."
        )
    if dimension is not None and points.shape[1] != dimension:
        raise ArgumentError(f"{name} must have {dimension} columns, one per input dimension; got shape {points.shape}.")
    _check_finite(points, name)
    return points


def as_outputs(values: ArrayLike, name: str, count: int, outputs: int | None = None) -> Array:
    """Return observed outputs as a finite float64 array of shape (count, p); a flat list means p = 1."""
    array = _as_float(values, name)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] != count or (outputs is not None and array.shape[1] != outputs):
        expected = f"({count}, {'p' if outputs is None else outputs})"
        raise ArgumentError(f"{name} must have shape {expected}, one row per input point; got {np.shape(values)}.")
    _check_finite(array, name)
    return array


def is_whole_number(value: Any, at_least: int = 1) -> bool:
    """Whether `value` is a Python or NumPy integer, not a bool, and not below `at_least`."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= at_least)


def as_whole_number(value: Any, name: str, at_least: int = 1, at_most: int | None = None, advice: str = "") -> int:
    """Return `value` as an int within the given limits; `advice` is appended to the error.

    >>> as_whole_number(-3, "budget")
    Traceback (most recent call last):
    cascada.errors.ArgumentError: budget must be a whole number ≥ 1; got -3.
    """
    if not is_whole_number(value, at_least) or (at_most is not None and value > at_most):
        limits = f"≥ {at_least}" if at_most is None else f"from {at_least} to {at_most}"
        raise ArgumentError(f"{name} must be a whole number {limits}; got {value!r:.100}.{' ' * bool(advice)}{advice}")
    return int(value)


def as_positive(value: Any, name: str) -> float:
    """Return a finite float above 0."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name} must be a number above 0; got {value!r:.100}.") from None
    if not (np.isfinite(number) and number > 0):
        raise ArgumentError(f"{name} must be a finite number above 0; got {value!r}.")
    return number


def as_scale(value: Any, name: str) -> float:
    """Return a float between SMALLEST_SCALE and LARGEST_SCALE."""
    number = as_positive(value, name)
    check_scale(number, name)
    return number


def check_scale(values: ArrayLike, name: str, smallest: float = SMALLEST_SCALE, largest: float = LARGEST_SCALE) -> None:
    """Raise `ArgumentError` unless every number lies in [smallest, largest]."""
    outside = [float(v) for v in np.ravel(values) if not smallest <= v <= largest]
    if outside:
        raise ArgumentError(
            f"{name} must lie between {smallest:g} and {largest:g}, where float64 can hold its square; got "
            f"{outside[0]!r}. Choose other units."
        )


def as_positive_per_output(values: ArrayLike, name: str, outputs: int) -> Array:
    """Return one finite positive constant per output, shape (p,); a single number is broadcast."""
    array = _as_float(values, name)
    if array.ndim > 1 or (array.ndim == 1 and array.shape != (outputs,)):
        raise ArgumentError(f"{name} must be one number or one per output ({outputs}); got shape {array.shape}.")
    if not (np.all(np.isfinite(array)) and np.all(array > 0)):
        raise ArgumentError(f"{name} must be finite and above 0; got {values!r}.")
    return np.array(np.broadcast_to(array, (outputs,)))


def _as_float(values: ArrayLike, name: str) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be an array of real numbers; got {values!r}.") from None


def _check_finite(array: Array, name: str) -> None:
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array).all(axis=1)))
        raise ArgumentError(
            f"{name} must be finite; row {row} is {array[row]}. Remove the row or report the run as failed."
        )
