"""Rows of a stage that is read with errors: nominal inputs, and intervals that contain the function there."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array, BoolArray
from cascada.confidence.regions import Boxes


@dataclass(frozen=True, eq=False)
class ReadRows:
    """f(place) lies in a box, for every row.

    The boxes contain the error of the reading. If the input is known within an interval only, they also contain the
    most that f can change between the place and the input.
    """

    places: Array  # C, (n, d)
    values: Boxes  # (n, p)
    numbers: tuple[int, ...]  # of the observations

    @classmethod
    def none(cls, dimension: int, outputs: int) -> "ReadRows":
        """No rows."""
        return cls(np.empty((0, dimension)), Boxes(np.empty((0, outputs)), np.empty((0, outputs))), ())

    def __len__(self) -> int:
        return len(self.places)

    def joined(self, other: "ReadRows") -> "ReadRows":
        """These rows, followed by others; of those at the place of one of these only what they add to it."""
        lower, upper = self.values.lower.copy(), self.values.upper.copy()
        new = np.ones(len(other), dtype=bool)
        for j, place in enumerate(other.places):
            same = np.flatnonzero((self.places == place).all(axis=1))
            if len(same):  # two exact rows at one place would be one row too many
                lower[same[0]] = np.maximum(lower[same[0]], other.values.lower[j])
                upper[same[0]] = np.minimum(upper[same[0]], other.values.upper[j])
                new[j] = False
        more = other.take(new)
        values = Boxes(np.concatenate([lower, more.values.lower]), np.concatenate([upper, more.values.upper]))
        return ReadRows(np.concatenate([self.places, more.places]), values, (*self.numbers, *more.numbers))

    @property
    def middle(self) -> Array:
        """y: the middles of the boxes, (n, p)."""
        return self.values.centre

    @property
    def error(self) -> Array:
        """How far f(C) can be from the middles, (n, p), rounded up."""
        return self.values.half + UNIT_ROUNDOFF * np.abs(self.middle)

    def take(self, rows: BoolArray | Sequence[int]) -> "ReadRows":
        """Some of the rows, by a mask or by indices."""
        index = np.flatnonzero(rows) if isinstance(rows, np.ndarray) and rows.dtype == bool else np.array(rows, int)
        values = Boxes(self.values.lower[index], self.values.upper[index])
        return ReadRows(self.places[index], values, tuple(self.numbers[i] for i in index))
