"""Counts how often a bound contains the truth, and how close it came."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Balls, Boxes


@dataclass
class Tally:
    """Checks of one kind of bound: how many, how many violated, the smallest margin, the median width."""

    name: str
    checks: int = 0
    violations: int = 0
    margin: float = np.inf  # the smallest distance from the truth to the bound, in units of B
    widths: list[float] = field(default_factory=list)  # medians of the widths, in units of B

    def add(self, margins: Array, widths: Array) -> None:
        """Count margins (≥ 0: the bound holds there; NaN: it does not)."""
        self.checks += margins.size
        self.violations += int(np.count_nonzero(~(margins >= 0)))
        self.margin = min(self.margin, float(np.min(margins, initial=np.inf)))
        self.widths.append(float(np.median(widths)))

    def boxes(self, bounds: Boxes, truth: Array, scale: float) -> None:
        """truth (n, p) or (n, k, p): one or k values that box i must contain."""
        values = truth if truth.ndim == 3 else truth[:, None, :]
        below, above = values - bounds.lower[:, None, :], bounds.upper[:, None, :] - values
        self.add(np.minimum(below, above) / scale, (bounds.upper - bounds.lower) / scale)

    def balls(self, regions: Balls, truth: Array, scale: float) -> None:
        """truth (n, p) or (n, k, p): one or k vectors that ball i must contain."""
        values = truth if truth.ndim == 3 else truth[:, None, :]
        distances = np.linalg.norm(values - regions.centre[:, None, :], axis=2)
        self.add((regions.radius[:, None] - distances) / scale, regions.diameter / scale)


class Ledger:
    """One tally for every kind of bound, in the order in which they were first used."""

    def __init__(self) -> None:
        self._tallies: dict[str, Tally] = {}

    def __getitem__(self, name: str) -> Tally:
        return self._tallies.setdefault(name, Tally(name))

    def merge(self, others: Iterable[Tally]) -> None:
        """Add what another ledger counted."""
        for other in others:
            mine = self[other.name]
            mine.checks += other.checks
            mine.violations += other.violations
            mine.margin = min(mine.margin, other.margin)
            mine.widths += other.widths

    @property
    def tallies(self) -> list[Tally]:
        return list(self._tallies.values())

    @property
    def checks(self) -> int:
        return sum(tally.checks for tally in self.tallies)

    @property
    def violations(self) -> int:
        return sum(tally.violations for tally in self.tallies)

    def table(self) -> str:
        """A Markdown table."""
        lines = [
            "| bound | checks | violations | smallest margin / B | median width / B |",
            "|---|---:|---:|---:|---:|",
        ]
        for tally in self.tallies:
            width = float(np.median(tally.widths))
            lines.append(f"| {tally.name} | {tally.checks:,} | {tally.violations} | {tally.margin:.1e} | {width:.2g} |")
        return "\n".join(lines)
