"""Limits that a result must satisfy, and ranges that an output cannot leave: intervals of single outputs.

A limit is a wish: settings whose outputs break it are infeasible. A range is an assumption: bounds are intersected with
it, and a run outside of it refutes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cascada.arrays import Array, BoolArray
from cascada.errors import ArgumentError
from cascada.outwards import as_given

#: The low and the high end of an interval, infinite where there is none.
Interval = tuple[float, float]


@dataclass(frozen=True)
class Limit:
    """`low` ≤ output ≤ `high` for one output of a network, which stands in `column`."""

    stage: str
    output: str
    column: int
    low: float
    high: float

    def __str__(self) -> str:
        return in_words(self.output, (self.low, self.high))


def as_intervals(values: Any, what: str, outputs: Sequence[str]) -> dict[str, Interval]:
    """Intervals by output, from `{"moisture": (None, 3.0)}`; `ArgumentError` if they are invalid."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ArgumentError(f"{what} must be a dict such as {{'moisture': (None, 3.0)}}; got {values!r:.100}.")
    strange = [name for name in values if name not in outputs]
    if strange:
        raise ArgumentError(
            f"{what} must name outputs of the stage, which are {', '.join(map(repr, outputs))}; got "
            f"{strange[0]!r:.100}."
        )
    return {name: _interval(values[name], f"{what} of {name!r}") for name in outputs if name in values}


def _interval(value: Any, what: str) -> Interval:
    pair = value if isinstance(value, tuple | list | np.ndarray) and len(value) == 2 else None
    if pair is None or not all(end is None or _is_number(end) for end in pair):
        raise ArgumentError(
            f"{what} must be a pair (low, high) of numbers, with None where there is no limit; got {value!r:.100}."
        )
    try:
        low, high = -np.inf if pair[0] is None else float(pair[0]), np.inf if pair[1] is None else float(pair[1])
    except OverflowError:
        raise ArgumentError(f"{what} must lie between ±1.8e308; got {value!r:.100}.") from None
    if np.isnan(low) or np.isnan(high):
        raise ArgumentError(f"{what} must not be NaN; got {value!r:.100}. Give None where there is no limit.")
    if low == np.inf or high == -np.inf or np.isinf([low, high]).all():
        raise ArgumentError(f"{what} must have at least one finite end; got {value!r:.100}.")
    if not low < high:
        advice = "Give a narrow band." if low == high else "Exchange the ends."
        raise ArgumentError(f"{what}: the low end must be below the high end; got {value!r:.100}. {advice}")
    return low + 0.0, high + 0.0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def in_words(output: str, interval: Interval) -> str:
    """An interval of an output as an inequality: `moisture ≤ 3.0`."""
    low, high = interval
    if np.isinf(low):
        return f"{output} ≤ {as_given(high)}"
    if np.isinf(high):
        return f"{output} ≥ {as_given(low)}"
    return f"{as_given(low)} ≤ {output} ≤ {as_given(high)}"


def margins(limits: Sequence[Limit], values: Array) -> Array:
    """By how much limits hold at rows of values (n, V), (n, number of limits); negative where they are broken."""
    found = [np.minimum(values[:, limit.column] - limit.low, limit.high - values[:, limit.column]) for limit in limits]
    return np.stack(found, axis=1) if found else np.empty((len(values), 0))


def closest_margin(limits: Sequence[Limit], values: Array, scales: Array) -> float:
    """The largest margin of a row of values (n, V), in the units of `scales`; −∞ if no row has all limited outputs."""
    found = (margins(limits, values) / scales).min(axis=1)
    return float(found[np.isfinite(found)].max(initial=-np.inf))


def proven(limits: Sequence[Limit], lower: Array, upper: Array) -> BoolArray:
    """The rows whose values between lower (n, V) and upper (n, V) all satisfy all limits, (n,)."""
    return np.asarray(satisfied(limits, lower) & satisfied(limits, upper))


def excluded(limit: Limit, lower: Array, upper: Array) -> BoolArray:
    """The rows in which no value between lower (n, V) and upper (n, V) satisfies a limit, (n,)."""
    return np.asarray((upper[:, limit.column] < limit.low) | (lower[:, limit.column] > limit.high))


def satisfied(limits: Sequence[Limit], values: Array) -> BoolArray:
    """The rows of values (n, V) that satisfy all limits, (n,); NaN satisfies none."""
    columns = [limit.column for limit in limits]
    low, high = (np.array([getattr(limit, end) for limit in limits]) for end in ("low", "high"))
    return np.asarray(((values[:, columns] >= low) & (values[:, columns] <= high)).all(axis=1))
