"""Choices: controls whose values are names without an order.

The coordinate of a value is its code, its position among the values. Codes say nothing about distances: a cell never
contains two of them where a stage is bounded, and no two codes are averaged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cascada.arrays import Array, BoolArray
from cascada.errors import ArgumentError
from cascada.near_names import class_with_near_names

_LONGEST = 100  # characters of a value
#: The largest number of values, and of combinations of the choices of a process.
MOST_COMBINATIONS = 1024


@class_with_near_names(deviation="A value of a choice is set exactly: leave it out.")
@dataclass(frozen=True, repr=False)
class Choice:
    """A control with unordered values, given as text: `Choice(["oak", "pine", "steel"])`.

    By default a stage may do anything else with each value: its `norm_bound` holds for every value by itself. With
    `alike=a`, 0 ≤ a < 1, all values share one norm and a common part: the kernel between two different values is a
    times that of the same value. A choice with one value is fixed. With `context`, it is known before a run, not
    chosen.
    """

    values: tuple[str, ...]
    alike: float | None = None
    context: bool = False
    #: The code of the only value that is left in a slice; None for all values.
    only: int | None = None

    def __init__(
        self, values: Sequence[str], alike: float | None = None, context: bool = False, only: int | None = None
    ) -> None:
        _check(values, alike, context)
        for name, value in {
            "values": tuple(values),
            "alike": None if alike is None else float(alike),
            "context": context,
            "only": only,
        }.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        given = [repr(list(self.values))]
        given += [] if self.alike is None else [f"alike={self.alike!r}"]
        given += ["context=True"] if self.context else []
        return f"Choice({', '.join(given)})"

    # ---- what all controls have

    @property
    def low(self) -> int:
        """The first code."""
        return self.only or 0

    @property
    def high(self) -> int:
        """The last code."""
        return len(self.values) - 1 if self.only is None else self.only

    @property
    def log(self) -> bool:
        """False: codes have no logarithm."""
        return False

    @property
    def step(self) -> float | None:
        """None: codes are counted by ones."""
        return None

    @property
    def deviation(self) -> float:
        """0: a value is chosen exactly."""
        return 0.0

    @property
    def fixed(self) -> bool:
        """Whether there is only one value."""
        return self.low == self.high

    @property
    def integer(self) -> bool:
        """False: its values are no numbers."""
        return False

    @property
    def discrete(self) -> bool:
        """Whether its values are separate."""
        return True

    @property
    def unordered(self) -> bool:
        """Whether its values have no order."""
        return True

    @property
    def count(self) -> int | None:
        """The number of values."""
        return self.high - self.low + 1

    def at(self, value: Any) -> "Choice":
        """The same choice, of which one value is left; codes stay as they are."""
        return Choice(self.values, self.alike, self.context, self._codes[value])

    def allows(self, value: float) -> bool:
        """Whether a number in the range is a code."""
        return value % 1 == 0

    def nearest(self, values: Array) -> Array:
        """The nearest codes (n,), before they are clipped to the range."""
        return np.round(values)

    def halves(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Where cells (n,) with several codes are cut: the ends of left halves and the starts of right ones."""
        left = np.floor(0.5 * (lower + upper))
        return left, left + 1

    def divisible(self, lower: Array, upper: Array) -> BoolArray:
        """Which cells (n,) contain more than one code."""
        return upper > lower

    def spread(self, count: int) -> list[float]:
        """All codes; `ArgumentError` for another number of values."""
        if count != self.count:
            raise ArgumentError(
                f"a grid takes all {self.count} values of a choice, or those that you list; got {count} for {self}."
            )
        return [float(code) for code in range(self.low, self.high + 1)]

    # ---- values and codes

    def coded(self, value: Any, name: str) -> float:
        """The code of a value; `ArgumentError` if the choice does not have it."""
        code = self._codes.get(value) if isinstance(value, str) else None
        if code is None or not self.low <= code <= self.high:
            allowed = ", ".join(map(repr, self.values[self.low : self.high + 1]))
            raise ArgumentError(f"control {name!r} must be one of {allowed}; got {value!r:.100}.")
        return float(code)

    def shown(self, value: float) -> str:
        """The value of a code."""
        return self.values[round(value)]

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {value: code for code, value in enumerate(self.values)}


def _check(values: Any, alike: Any, context: Any) -> None:
    """Raise `ArgumentError` for invalid values, `alike` or `context`."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ArgumentError(f"a choice needs a list of values such as ['oak', 'pine']; got {values!r:.100}.")
    if not 1 <= len(values) <= MOST_COMBINATIONS:
        raise ArgumentError(f"a choice must have 1 to {MOST_COMBINATIONS} values; got {len(values)}.")
    for value in values:
        if not isinstance(value, str):
            raise ArgumentError(
                f"the values of a choice must be text; got {value!r:.100}. Numbers have an order: use Real or Integer, "
                f"or write {str(value)!r:.100} in quotes if theirs means nothing."
            )
        if not value or value != value.strip() or not value.isprintable() or len(value) > _LONGEST:
            raise ArgumentError(
                f"a value of a choice must be 1 to {_LONGEST} printable characters without blanks at its ends; got "
                f"{value!r:.200}."
            )
    twice = sorted({value for value in values if list(values).count(value) > 1})
    if twice:
        raise ArgumentError(f"the values of a choice must differ; {twice[0]!r} is given twice.")
    number = isinstance(alike, int | float | np.number) and not isinstance(alike, bool)
    if alike is not None and not (number and 0 <= alike < 1):
        raise ArgumentError(
            f"alike must be a number of at least 0 and below 1, or None for values that share nothing; got "
            f"{alike!r:.100}."
        )
    if not isinstance(context, bool):
        raise ArgumentError(f"context must be True or False; got {context!r:.100}.")
