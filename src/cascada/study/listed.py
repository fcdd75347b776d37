"""Candidates as the user gave them: a suggested one comes back exactly so, logarithms or not."""

from dataclasses import dataclass

from cascada.arrays import Array
from cascada.space import Domain


@dataclass(frozen=True, eq=False)
class Listed:
    """Candidates in user units (n, d), and their coordinates."""

    rows: Array
    coordinates: Array

    @classmethod
    def of(cls, rows: Array, domain: Domain) -> "Listed":
        """From rows in user units, checked."""
        return cls(rows, domain.encode(rows))

    def given(self, point: Array) -> Array | None:
        """The candidate (d,) in user units with these coordinates; None if there is none."""
        same = (self.coordinates == point).all(axis=1)
        return self.rows[same.argmax()] if same.any() else None

    def __contains__(self, row: Array) -> bool:
        return bool((self.rows == row).all(axis=1).any())
