"""Controls: what a user sets, as real numbers, real numbers in steps, whole numbers, or names (`choice`).

A control has a value in user units (degrees, hours) and a coordinate on which kernels act: the same number, or its
logarithm for a logarithmic control. A discrete control has separate values; cells of it are cut between two of them.
"""

import math
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from cascada.arrays import LARGEST_SCALE, SMALLEST_SCALE, UNIT_ROUNDOFF, Array, BoolArray
from cascada.choice import Choice
from cascada.errors import ArgumentError
from cascada.near_names import class_with_near_names

#: The value of a control in user units: a float or an int, or for a choice a text. It is Any for type checkers, so that
#: a user's function of numbers can be called with it.
ControlValue: TypeAlias = Any

_LARGEST_INTEGER = 2**51
# The logarithms of two neighbouring whole numbers differ by far more than rounding up to here.
_LARGEST_LOGARITHMIC_INTEGER = 2**36
_MOST_STEPS = 2**36
# How close the high end of a range must be to a whole number of steps above its low end, in steps.
_NEARLY = 1e-6


class _Range:
    """What all controls with a range share."""

    low: float
    high: float
    log: bool

    def __repr__(self) -> str:
        """The range, and what is not at its default."""
        always = ("low", "high", "log") if isinstance(self, Real) else ("low", "high")
        shown = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)  # type: ignore[arg-type]
            if field.name in always or getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def fixed(self) -> bool:
        """Whether there is only one value."""
        return self.low == self.high

    @property
    def unordered(self) -> bool:
        """False: numbers have an order."""
        return False

    def coded(self, value: Any, name: str) -> float:
        """A value of the control, which is called `name`, as a number; `ArgumentError` if it is none."""
        try:
            if isinstance(value, bool | np.bool_ | str | bytes):  # float() accepts these, but they are mistakes
                raise TypeError
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentError(f"control {name!r} must be a number; got {value!r:.100}.") from None

    def shown(self, value: float) -> ControlValue:
        """A number as a value of the control."""
        return int(value) if isinstance(self, Integer) else float(value)

    def at(self, value: Any) -> "Control":
        """The same control fixed at one of its values."""
        fixed: Control = (
            Integer(int(value), int(value), self.log) if isinstance(self, Integer) else Real(value, value, self.log)
        )
        return fixed


@class_with_near_names()
@dataclass(frozen=True, repr=False)
class Real(_Range):
    """A control with real values in [low, high]; with `log`, kernels act on its logarithm.

    With a `step`, only low, low + step, low + 2·step, … up to high are allowed. If `low` equals `high` the control is
    fixed. With `context`, it is measured before a run, not chosen. With a `deviation`, its value in use can differ from
    its setting by up to this much, in user units: what is maximised is the worst case over all deviations of settings
    in [low + deviation, high − deviation]. Runs are exact.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    context: bool = False
    deviation: float = 0.0

    def __post_init__(self) -> None:
        _check_range(self, self.low, self.high)
        if self.log and self.low <= 0:
            raise ArgumentError(f"a logarithmic control needs a range above 0; got {self}. Use log=False.")
        if self.step is not None:
            self._check_step()
        self._check_deviation()

    @property
    def integer(self) -> bool:
        """Whether only whole numbers are allowed."""
        return False

    @property
    def discrete(self) -> bool:
        """Whether its values are separate numbers."""
        return self.step is not None

    @cached_property
    def count(self) -> int | None:
        """The number of values; None if there are infinitely many."""
        if self.fixed:
            return 1
        return None if self.step is None else 1 + round((self.high - self.low) / self.step)

    def allows(self, value: float) -> bool:
        """Whether a number in the range is a value of the control."""
        return self.step is None or value == self.nearest(np.array([value], dtype=float))[0]

    def nearest(self, values: Array) -> Array:
        """The nearest allowed values (n,) to numbers (n,) in user units, before they are clipped to the range."""
        if self.step is None:
            return values
        assert self.count is not None, "a control with steps has a number of values"
        return self._level(np.clip(np.rint((values - self.low) / self.step), 0, self.count - 1))

    def halves(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Where cells (n,) of a discrete control are cut: the ends of left halves and the starts of right ones."""
        assert self.step is not None, "only asked of discrete controls"
        # The ends of a cell are values of the control, so that the division is exact to rounding.
        first, last = (np.rint((ends - self.low) / self.step) for ends in (lower, upper))
        middle = np.floor(0.5 * (first + last))
        return self._level(middle), self._level(middle + 1)

    def divisible(self, lower: Array, upper: Array) -> BoolArray:
        """Which cells (n,) of a discrete control can be cut: those with more than one value inside."""
        return upper > lower

    def spread(self, count: int) -> list[float]:
        """About `count` values at even distances, of logarithms if it is logarithmic; each of them once."""
        if self.log:
            inner = np.exp(np.linspace(math.log(self.low), math.log(self.high), count))
            return _once(np.clip(inner, self.low, self.high))
        return _once(self.nearest(np.linspace(self.low, self.high, count)))

    @cached_property
    def _digits(self) -> int | None:
        """The decimals of low and step, to which values are rounded; None if they have too many.

        So 0.1 + 2·0.1 is 0.3, as the user would write it.
        """
        assert self.step is not None, "only asked of a control with steps"
        exponents = [Decimal(repr(float(end))).as_tuple().exponent for end in (self.low, self.step)]
        digits = max(0, *(-e for e in exponents if isinstance(e, int)))
        return digits if max(abs(self.low), abs(self.high)) * 10.0**digits < 2**51 else None

    def _level(self, index: Array) -> Array:
        """The values with these numbers (n,), counted from 0 at `low`; the last one is `high` itself."""
        assert self.step is not None, "only asked of a control with steps"
        assert self.count is not None, "a control with steps has a number of values"
        values = self.low + index * self.step
        if self._digits is not None:
            values = np.round(values, self._digits)
        return np.where(index >= self.count - 1, self.high, np.where(index <= 0, self.low, values))

    def _check_deviation(self) -> None:
        size = self.deviation
        if isinstance(size, bool) or not isinstance(size, int | float | np.number) or not 0 <= size < math.inf:
            raise ArgumentError(f"deviation must be a finite number of at least 0; got {self}.")
        if not size:
            return
        for word, given in (("step=", self.step is not None), ("context=True", self.context)):
            if given:
                raise ArgumentError(f"deviation= does not work with {word}; got {self}. Leave one of them out.")
        if self.high - self.low <= 2 * size or not self.low + size < self.high - size:
            raise ArgumentError(
                f"the range must be wider than twice the deviation, so that some setting stays within it; got {self}."
            )

    def _check_step(self) -> None:
        step, width = self.step, self.high - self.low
        if isinstance(step, bool) or not isinstance(step, int | float | np.number) or not 0 < step < math.inf:
            raise ArgumentError(f"step must be a finite number above 0; got {self}.")
        if self.log:
            raise ArgumentError(
                f"step= does not work with log=True; got {self}. Use Integer(..., log=True), or no step."
            )
        steps = width / step
        if steps > _MOST_STEPS:
            raise ArgumentError(f"a control has at most 2^36 steps; got {self}. Use a larger step, or none.")
        if abs(steps - round(steps)) > _NEARLY or (width > 0 and round(steps) == 0):
            most = self.low + math.floor(steps) * step
            raise ArgumentError(
                f"high must be a whole number of steps above low; got {self}. The last value below it is {most:g}."
            )


@class_with_near_names(
    deviation="A whole number is set exactly: leave it out, or use Real(..., deviation=...).",
    step="Use Real(..., step=...) for numbers in steps.",
)
@dataclass(frozen=True, repr=False)
class Integer(_Range):
    """A control with whole-number values from `low` to `high`, both included; with `log`, kernels act on its logarithm.

    If `low` equals `high` the control is fixed. With `context`, it is known before a run, not chosen.
    """

    low: int
    high: int
    log: bool = False
    context: bool = False

    def __post_init__(self) -> None:
        _check_range(self, self.low, self.high)
        if self.low != int(self.low) or self.high != int(self.high):
            raise ArgumentError(f"the range of an integer control must be whole numbers; got {self}.")
        if max(abs(self.low), abs(self.high)) > _LARGEST_INTEGER:
            raise ArgumentError(
                f"an integer control must lie within ±2^51, where the mean of two whole numbers is exact; got {self}. "
                f"Subtract a constant, or use Real."
            )
        if self.log and self.low <= 0:
            raise ArgumentError(f"a logarithmic control needs a range above 0; got {self}. Use log=False.")
        if self.log and self.high > _LARGEST_LOGARITHMIC_INTEGER:
            raise ArgumentError(
                f"a logarithmic integer control must lie below 2^36, where the logarithms of two whole numbers differ "
                f"by more than rounding; got {self}. Use Real(..., log=True)."
            )

    @property
    def integer(self) -> bool:
        """Whether only whole numbers are allowed."""
        return True

    @property
    def step(self) -> float | None:
        """None: the step of whole numbers is 1."""
        return None

    @property
    def deviation(self) -> float:
        """0: a whole number is set exactly."""
        return 0.0

    @property
    def discrete(self) -> bool:
        """Whether its values are separate numbers."""
        return True

    @property
    def count(self) -> int | None:
        """The number of values."""
        return int(self.high) - int(self.low) + 1

    def allows(self, value: float) -> bool:
        """Whether a number in the range is a value of the control."""
        return value % 1 == 0

    def nearest(self, values: Array) -> Array:
        """The nearest whole numbers (n,)."""
        return np.round(values)

    def halves(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Where cells (n,) are cut: the ends of left halves and the starts of right ones, coordinates."""
        middle = 0.5 * (lower + upper)
        if not self.log:
            left = np.floor(middle)
            return left, left + 1
        first, last = np.rint(np.exp(lower)), np.rint(np.exp(upper))
        whole = np.clip(np.floor(np.exp(middle)), first, last - 1)
        # The exact logarithm of a whole number is known to a rounding error only, so cells reach beyond it.
        left, right = np.log(whole), np.log(whole + 1)
        return left + setting_rounding(left), right - setting_rounding(right)

    def divisible(self, lower: Array, upper: Array) -> BoolArray:
        """Which cells (n,) can be cut: those with more than one value inside."""
        return np.rint(np.exp(upper)) > np.rint(np.exp(lower)) if self.log else upper > lower

    def spread(self, count: int) -> list[float]:
        """About `count` values at even distances, of logarithms if it is logarithmic; each of them once."""
        if not self.log:
            return _once(np.round(np.linspace(float(self.low), float(self.high), count)))
        return _once(np.round(np.exp(np.linspace(math.log(self.low), math.log(self.high), count))))


Control = Real | Integer | Choice


def logarithm_rounding(coordinates: Array) -> Array:
    """How far computed logarithms can be from the exact ones: two units in the last place."""
    return 4 * UNIT_ROUNDOFF * np.abs(coordinates)


def setting_rounding(coordinates: Array) -> Array:
    """How far the exact logarithms of settings can be from computed ones, or from coordinates that were decoded.

    The exponential is rounded, too, by a part of itself and so by an absolute amount of its logarithm.
    """
    return logarithm_rounding(coordinates) + 4 * UNIT_ROUNDOFF


def _once(values: "np.ndarray[Any, np.dtype[Any]]") -> list[float]:
    """Different values, in ascending order."""
    return sorted({float(value) for value in values})


def _check_range(control: Any, low: Any, high: Any) -> None:
    if not isinstance(control.context, bool):
        raise ArgumentError(f"context must be True or False; got {control}.")
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, int | float | np.number) or not math.isfinite(end):
            raise ArgumentError(f"a control's range must be two finite numbers; got {control}.")
    if low > high:
        raise ArgumentError(f"a control's range must not be empty: low must be below high; got {control}.")
    narrow = not control.log and 0 < high - low < SMALLEST_SCALE
    if max(abs(low), abs(high)) > LARGEST_SCALE or narrow:
        raise ArgumentError(
            f"a control's range must lie within ±{LARGEST_SCALE:g} and be at least {SMALLEST_SCALE:g} wide, so that "
            f"squares of distances can be computed; got {control}. Choose other units."
        )
