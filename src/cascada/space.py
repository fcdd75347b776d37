"""Controls, the boxes they span, and grids of candidates.

A control has a value in user units (degrees, hours) and a coordinate on which kernels act: the same number, or its
logarithm for a logarithmic control. Points are `(n, d)`, with columns in the order of the domain's names.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import LARGEST_SCALE, SMALLEST_SCALE, Array, as_points, as_whole_number
from cascada.errors import ArgumentError

_LARGEST_INTEGER = 2**51


@dataclass(frozen=True)
class Real:
    """A control with real values in [low, high]; with `log`, kernels act on its logarithm."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        _check_range(self, self.low, self.high)
        if self.log and self.low <= 0:
            raise ArgumentError(f"a logarithmic control needs a range above 0; got {self}. Use log=False.")

    @property
    def integer(self) -> bool:
        """Whether only whole numbers are allowed."""
        return False


@dataclass(frozen=True)
class Integer:
    """A control with whole-number values from `low` to `high`, both included."""

    low: int
    high: int

    def __post_init__(self) -> None:
        _check_range(self, self.low, self.high)
        if self.low != int(self.low) or self.high != int(self.high):
            raise ArgumentError(f"the range of an integer control must be whole numbers; got {self}.")
        if max(abs(self.low), abs(self.high)) > _LARGEST_INTEGER:
            raise ArgumentError(
                f"an integer control must lie within ±2^51, where the mean of two whole numbers is exact; got {self}. "
                f"Subtract a constant, or use Real."
            )

    @property
    def log(self) -> bool:
        """Always False: kernels act on the number itself."""
        return False

    @property
    def integer(self) -> bool:
        """Whether only whole numbers are allowed."""
        return True


Control = Real | Integer


@dataclass(frozen=True)
class Domain:
    """The box spanned by named controls."""

    controls: Mapping[str, Control]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the controls, in the order of the columns."""
        return tuple(self.controls)

    @property
    def dimension(self) -> int:
        """d: the number of controls."""
        return len(self.names)

    @cached_property
    def lower(self) -> Array:
        """The lower ends of the ranges as coordinates, shape (d,)."""
        return self._outwards(-np.inf, [c.low for c in self.controls.values()])

    @cached_property
    def upper(self) -> Array:
        """The upper ends of the ranges as coordinates, shape (d,)."""
        return self._outwards(np.inf, [c.high for c in self.controls.values()])

    def _outwards(self, direction: float, ends: Sequence[float]) -> Array:
        """The ends as coordinates. Logarithms are rounded, so they are moved outwards by one float."""
        coordinates = self.encode(np.array([ends], dtype=float))[0]
        logarithms = coordinates[self.logarithmic]
        coordinates[self.logarithmic] = np.nextafter(logarithms, direction)
        return coordinates

    @cached_property
    def logarithmic(self) -> list[int]:
        """The columns of logarithmic controls."""
        return [j for j, c in enumerate(self.controls.values()) if c.log]

    @cached_property
    def whole(self) -> list[int]:
        """The columns of integer controls."""
        return [j for j, c in enumerate(self.controls.values()) if c.integer]

    def encode(self, values: Array) -> Array:
        """Coordinates of points in user units."""
        coordinates = np.array(values, dtype=np.float64)
        coordinates[:, self.logarithmic] = np.log(coordinates[:, self.logarithmic])
        return coordinates

    def decode(self, coordinates: Array) -> Array:
        """Points in user units, clipped to the ranges and rounded for integer controls."""
        values = np.clip(coordinates, self.lower, self.upper)
        values[:, self.logarithmic] = np.exp(values[:, self.logarithmic])
        values[:, self.whole] = np.round(values[:, self.whole])
        low = [c.low for c in self.controls.values()]
        high = [c.high for c in self.controls.values()]
        return np.clip(values, low, high)

    def row(self, controls: Mapping[str, Any]) -> Array:
        """One point (d,) in user units from named values; raises `ArgumentError` if a value is invalid."""
        unknown = [name for name in controls if name not in self.controls]
        missing = [name for name in self.names if name not in controls]
        if unknown or missing:
            raise ArgumentError(
                f"the controls are {', '.join(self.names)}; missing: {', '.join(missing) or 'none'}, "
                f"unknown: {', '.join(map(repr, unknown)) or 'none'}."
            )
        return self.check(np.array([[_as_number(controls[name], name) for name in self.names]]))[0]

    def check(self, values: ArrayLike) -> Array:
        """Validate points (n, d) in user units; raises `ArgumentError` if one is outside its range or not whole."""
        points = as_points(values, "the controls", self.dimension)
        for j, (name, control) in enumerate(self.controls.items()):
            column = points[:, j]
            outside = (column < control.low) | (column > control.high)
            if np.any(outside):
                raise ArgumentError(
                    f"control {name!r} must lie in [{control.low:g}, {control.high:g}]; got {column[outside][0]:.17g}."
                )
            if control.integer and np.any(column != np.round(column)):
                raise ArgumentError(
                    f"control {name!r} must be a whole number; got {column[column != np.round(column)][0]:g}."
                )
        return points

    def named(self, point: Array) -> dict[str, float | int]:
        """One point (d,) in user units as named values."""
        return {
            name: int(value) if control.integer else float(value)
            for (name, control), value in zip(self.controls.items(), point, strict=True)
        }


@dataclass(frozen=True)
class Grid:
    """All combinations of values of the controls; for each control a number of evenly spaced values, or the values.

    >>> Grid({"x": 3, "y": [0.0, 5.0]}).points(Domain({"x": Real(0, 1), "y": Real(0, 9)})).tolist()
    [[0.0, 0.0], [0.0, 5.0], [0.5, 0.0], [0.5, 5.0], [1.0, 0.0], [1.0, 5.0]]
    """

    values: Mapping[str, int | Sequence[float]]

    def points(self, domain: Domain) -> Array:
        """The grid as an array (n, d) in user units; the last control varies fastest."""
        if set(self.values) != set(domain.names):
            raise ArgumentError(f"a grid needs the controls {', '.join(domain.names)}; got {', '.join(self.values)}.")
        axes = []
        for name, control in domain.controls.items():
            given = self.values[name]
            if isinstance(given, int):
                axes.append(_spread(control, as_whole_number(given, f"the number of values of {name!r}")))
            else:
                axes.append([float(v) for v in given])
        return domain.check(np.array(list(product(*axes)), dtype=float).reshape(-1, domain.dimension))


#: A grid, an array of points (n, d) in the order of the controls, or a list of points by name.
CandidatesLike = Grid | ArrayLike | Sequence[Mapping[str, float | int]]


def as_candidates(candidates: CandidatesLike, domain: Domain) -> Array:
    """Candidate points (n, d) in user units; raises `ArgumentError` if one is invalid or there is none."""
    if isinstance(candidates, Grid):
        points = candidates.points(domain)
    elif isinstance(candidates, list) and candidates and isinstance(candidates[0], Mapping):
        points = np.array([domain.row(one) for one in candidates])
    else:
        points = domain.check(cast("ArrayLike", candidates))
    if not len(points):
        raise ArgumentError("candidates must hold at least one point; got none.")
    return points


def _spread(control: Control, count: int) -> list[float]:
    if isinstance(control, Integer):
        return sorted({float(v) for v in np.round(np.linspace(control.low, control.high, count))})
    if control.log:
        inner = np.exp(np.linspace(math.log(control.low), math.log(control.high), count))
        return [float(v) for v in np.clip(inner, control.low, control.high)]
    return [float(v) for v in np.linspace(control.low, control.high, count)]


def _check_range(control: Any, low: Any, high: Any) -> None:
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, int | float | np.number) or not math.isfinite(end):
            raise ArgumentError(f"a control's range must be two finite numbers; got {control}.")
    if low >= high:
        raise ArgumentError(f"a control's range must not be empty: low must be below high; got {control}.")
    if max(abs(low), abs(high)) > LARGEST_SCALE or (not control.log and high - low < SMALLEST_SCALE):
        raise ArgumentError(
            f"a control's range must lie within ±{LARGEST_SCALE:g} and be at least {SMALLEST_SCALE:g} wide, so that "
            f"squares of distances can be computed; got {control}. Choose other units."
        )


def _as_number(value: Any, name: str) -> float:
    try:
        if isinstance(value, bool | np.bool_ | str | bytes):  # float() accepts these, but they are mistakes
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"control {name!r} must be a number; got {value!r:.100}.") from None
