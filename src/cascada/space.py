"""The boxes that controls span, and grids of candidates.

Points are `(n, d)`, in user units or as coordinates (see `cascada.controls`), with columns in the order of the domain's
names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array, BoolArray, IntArray, as_points, as_whole_number
from cascada.choice import Choice
from cascada.controls import Control, ControlValue, Integer, Real
from cascada.errors import ArgumentError
from cascada.near_names import did_you_mean

__all__ = ["CandidatesLike", "Choice", "Control", "ControlValue", "Domain", "Grid", "Integer", "Real", "as_candidates"]


@dataclass(frozen=True)
class Domain:
    """The box spanned by named controls.

    Choices in `idle` change neither the objective nor a limited output.
    """

    controls: Mapping[str, Control]
    idle: frozenset[str] = frozenset()

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
    def discrete(self) -> list[int]:
        """The columns of controls with separate values."""
        return [j for j, c in enumerate(self.controls.values()) if c.discrete]

    @cached_property
    def choices(self) -> list[int]:
        """The columns of controls whose values have no order."""
        return [j for j, c in enumerate(self.controls.values()) if c.unordered]

    @cached_property
    def combinations(self) -> Array:
        """The codes (k, number of choices) of all combinations of values of the choices; idle ones have one value."""
        codes = [
            [float(c.low)] if name in self.idle else c.spread(c.high - c.low + 1)
            for name, c in self.controls.items()
            if isinstance(c, Choice)
        ]
        every = list(product(*codes))
        return np.array(every, dtype=float).reshape(len(every), len(codes))

    def uniform(self, rng: np.random.Generator, count: int) -> Array:
        """Coordinates (n, d) drawn uniformly from the box; a choice has one of its codes, all of them equally likely.

        Values of other discrete controls are not rounded.
        """
        points = rng.uniform(self.lower, self.upper, (count, self.dimension))
        for j in self.choices:
            low, values = self.lower[j], self.upper[j] - self.lower[j] + 1
            part = (points[:, j] - low) / max(values - 1, 1)
            points[:, j] = low + np.minimum(np.floor(part * values), values - 1)
        return points

    @cached_property
    def sides(self) -> Array:
        """The widths of the ranges as coordinates, (d,), so that they can be divided by.

        1 for a fixed control, and for a choice, of which two values are never close to each other.
        """
        fixed = [c.fixed or c.unordered for c in self.controls.values()]
        return np.where(fixed, 1.0, self.upper - self.lower)

    def encode(self, values: Array) -> Array:
        """Coordinates of points in user units."""
        coordinates = np.array(values, dtype=np.float64)
        coordinates[:, self.logarithmic] = np.log(coordinates[:, self.logarithmic])
        return coordinates

    def decode(self, coordinates: Array) -> Array:
        """Points in user units, clipped to the ranges and moved to the nearest value of discrete controls.

        The logarithm of an end of a range, which is rounded, is decoded to that end.
        """
        values = np.clip(coordinates, self.lower, self.upper)
        values[:, self.logarithmic] = np.exp(values[:, self.logarithmic])
        for j in self.discrete:
            values[:, j] = self._listed[j].nearest(values[:, j])
        values = np.clip(values, *self._ends)
        low, high = self._ends
        for j in self.logarithmic:
            values[coordinates[:, j] <= self._coded_ends[0, j], j] = low[j]
            values[coordinates[:, j] >= self._coded_ends[1, j], j] = high[j]
        return values

    @cached_property
    def _listed(self) -> list[Control]:
        return list(self.controls.values())

    @cached_property
    def _ends(self) -> Array:
        """The ends of the ranges in user units, shape (2, d)."""
        return np.array([[c.low for c in self._listed], [c.high for c in self._listed]], dtype=float)

    @cached_property
    def _coded_ends(self) -> Array:
        """Their coordinates, shape (2, d), as `encode` rounds them."""
        return self.encode(self._ends)

    # ---- cells

    def halves(self, side: IntArray, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Where cells are cut along a side each, (n,): the ends of left halves and the starts of right ones.

        `lower` and `upper` (n,) are the ends of the cells on that side. The two differ for discrete controls.
        """
        left = 0.5 * (lower + upper)
        right = left.copy()
        for j in self.discrete:
            cut = side == j
            if cut.any():
                left[cut], right[cut] = self._listed[j].halves(lower[cut], upper[cut])
        return left, right

    def divisible(self, lower: Array, upper: Array) -> BoolArray:
        """Along which sides cells (n, d) can be cut, (n, d): where they contain more than one value."""
        centre = 0.5 * (lower + upper)
        can = (centre > lower) & (centre < upper)  # a midpoint may round to an end
        for j in self.discrete:
            can[:, j] = self._listed[j].divisible(lower[:, j], upper[:, j])
        return can

    def row(self, controls: Mapping[str, Any]) -> Array:
        """One point (d,) in user units from named values; raises `ArgumentError` if a value is invalid."""
        unknown = [name for name in controls if name not in self.controls]
        missing = [name for name in self.names if name not in controls]
        meant = missing or self.names
        if unknown or missing:
            raise ArgumentError(
                f"the controls are {', '.join(self.names)}; missing: {', '.join(missing) or 'none'}, "
                f"unknown: {', '.join(f'{name!r}{did_you_mean(name, meant)}' for name in unknown) or 'none'}."
            )
        return self.check(np.array([[control.coded(controls[name], name) for name, control in self.controls.items()]]))[
            0
        ]

    def coded(self, controls: Mapping[str, Any]) -> list[float]:
        """Named values, which were validated before, as numbers in the order of the columns."""
        return [control.coded(controls[name], name) for name, control in self.controls.items()]

    def check(self, values: ArrayLike) -> Array:
        """Validate points (n, d) in user units; raises `ArgumentError` if one is no value of its control."""
        points = as_points(values, "the controls", self.dimension)
        for j, (name, control) in enumerate(self.controls.items()):
            column = points[:, j]
            outside = (column < control.low) | (column > control.high)
            if np.any(outside):
                raise ArgumentError(
                    f"control {name!r} must lie in [{control.low:g}, {control.high:g}]; got {column[outside][0]:.17g}."
                )
            strange = column != control.nearest(column)
            if np.any(strange):
                raise ArgumentError(f"control {name!r} must be {_allowed(control, column[strange][0])}.")
        return points

    def named(self, point: Array) -> dict[str, ControlValue]:
        """One point (d,) in user units as named values."""
        return {
            name: control.shown(float(value))
            for (name, control), value in zip(self.controls.items(), point, strict=True)
        }


@dataclass(frozen=True)
class Grid:
    """All combinations of values of the controls; for each control a number of evenly spaced values, or the values.

    >>> Grid({"x": 3, "y": [0.0, 5.0]}).points(Domain({"x": Real(0, 1), "y": Real(0, 9)})).tolist()
    [[0.0, 0.0], [0.0, 5.0], [0.5, 0.0], [0.5, 5.0], [1.0, 0.0], [1.0, 5.0]]
    """

    values: Mapping[str, int | Sequence[ControlValue]]

    def points(self, domain: Domain) -> Array:
        """The grid as an array (n, d) in user units; the last control varies fastest."""
        if set(self.values) != set(domain.names):
            raise ArgumentError(f"a grid needs the controls {', '.join(domain.names)}; got {', '.join(self.values)}.")
        axes = []
        for name, control in domain.controls.items():
            given = self.values[name]
            if isinstance(given, int):
                axes.append(control.spread(as_whole_number(given, f"the number of values of {name!r}")))
            else:
                axes.append([control.coded(v, name) for v in given])
        return domain.check(np.array(list(product(*axes)), dtype=float).reshape(-1, domain.dimension))


#: A grid, an array of points (n, d) in the order of the controls, or a list of points by name.
CandidatesLike = Grid | ArrayLike | Sequence[Mapping[str, ControlValue]]


def as_candidates(candidates: CandidatesLike, domain: Domain) -> Array:
    """Candidate points (n, d) in user units; raises `ArgumentError` if one is invalid or there is none."""
    if isinstance(candidates, Grid):
        points = candidates.points(domain)
    elif isinstance(candidates, list) and candidates and isinstance(candidates[0], Mapping):
        points = np.array([domain.row(one) for one in candidates])
    elif domain.choices:
        points = np.array([domain.row(_by_name(one, domain)) for one in cast("Sequence[Any]", candidates)])
    else:
        points = domain.check(cast("ArrayLike", candidates))
    if not len(points):
        raise ArgumentError("candidates must hold at least one point; got none.")
    return points


def _allowed(control: Control, value: float) -> str:
    """What a value must be instead, in words."""
    if control.integer:
        return f"a whole number; got {value:g}"
    nearest = float(control.nearest(np.array([value]))[0])
    return f"a whole number of steps of {control.step:g} above {control.low:g}; got {value:.17g}, next to {nearest!r}"


def plain_candidates(points: Array, domain: Domain) -> "Array | list[list[ControlValue]]":
    """Candidates (n, d) in a form that `as_candidates` reads: rows with the values of choices if there are any."""
    return points if not domain.choices else [list(domain.named(point).values()) for point in points]


def _by_name(row: Any, domain: Domain) -> dict[str, Any]:
    """One row of candidates by name; `ArgumentError` if it has another length."""
    if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != domain.dimension:
        raise ArgumentError(
            f"with choices, give candidates as a Grid, a list of dicts, or rows with values of "
            f"{', '.join(domain.names)}; got {row!r:.100}."
        )
    return dict(zip(domain.names, row, strict=True))
