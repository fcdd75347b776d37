"""Tallies of checks: how often a bound contains the truth, and with which margin."""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Balls, Boxes

Result = TypeVar("Result")

# The number of failures of a kind that are described; all are counted.
_NOTES = 5
# Whether the first violation ends the run, for those who ask only whether there is one.
_ENDS: ContextVar[bool] = ContextVar("ends", default=False)


class _Violated(BaseException):
    """The first violation; no `except Exception` of a harness takes it for an error of the library."""


def is_violated(run: Callable[[], "Ledger"]) -> bool:
    """Whether a run finds a violation; it ends at the first one."""
    token = _ENDS.set(True)
    try:
        return run().violations > 0
    except _Violated:
        return True
    finally:
        _ENDS.reset(token)


@dataclass
class Tally:
    """Checks of one kind of bound: how many, how many violated, the smallest margin, the median width."""

    name: str
    checks: int = 0
    violations: int = 0
    margin: float = np.inf  # the smallest distance from the truth to the bound, in units of B
    widths: list[float] = field(default_factory=list)  # medians of the widths, in units of B
    notes: list[str] = field(default_factory=list)  # the first failures, in words

    def verdict(self, right: bool, note: str) -> None:
        """Count a check without a margin: whether something happened as it must."""
        self.checks += 1
        if not right:
            self._violated(1)
            self._note(note)

    def attempt(self, action: Callable[[], Result], note: str) -> Result | None:
        """The result of an action that must not raise; None, and a violation, if it does."""
        try:
            result = action()
        except Exception as error:  # true data must not raise any error
            self.verdict(False, f"{note}: {type(error).__name__}: {error}")
            return None
        self.verdict(True, note)
        return result

    def judge(self, happened: Callable[[], bool], note: str) -> None:
        """Count a check without a margin; an error is a violation."""
        try:
            right = happened()
        except Exception as error:
            right, note = False, f"{note}: {type(error).__name__}: {error}"
        self.verdict(right, note)

    def try_boxes(self, compute: Callable[[], Boxes], truth: Array, scale: float | Array, note: str) -> None:
        """Like `boxes`, with bounds whose computation must not raise."""
        bounds = self._computed(compute, truth.size, note)
        if bounds is not None:
            self.boxes(bounds, truth, scale, note)

    def try_balls(self, compute: Callable[[], Balls], truth: Array, scale: float, note: str) -> None:
        """Like `balls`, with regions whose computation must not raise."""
        regions = self._computed(compute, truth[..., 0].size, note)
        if regions is not None:
            self.balls(regions, truth, scale, note)

    def try_margins(self, compute: Callable[[], Array], checks: int, note: str) -> None:
        """Like `add`, with margins whose computation must not raise; they have no width."""
        margins = self._computed(compute, checks, note)
        if margins is not None:
            self.add(margins, np.zeros(1), note)

    def _computed(self, compute: Callable[[], Result], checks: int, note: str) -> Result | None:
        """The result, or None if the computation raises: then all checks that rest on it are violations."""
        try:
            return compute()
        except Exception as error:
            self.checks += checks
            self._violated(checks)
            self._note(f"{note}: {type(error).__name__}: {error}")
            return None

    def _violated(self, times: int) -> None:
        self.violations += times
        if times and _ENDS.get():
            raise _Violated

    def _note(self, note: str) -> None:
        if len(self.notes) < _NOTES:
            self.notes.append(note)

    def add(self, margins: Array, widths: Array, note: str = "") -> None:
        """Count margins (≥ 0: the bound holds there; NaN: it does not)."""
        self.checks += margins.size
        wrong = int(np.count_nonzero(~(margins >= 0)))
        self._violated(wrong)
        if wrong and note:
            self._note(f"{note}: {wrong} of {margins.size}, worst margin {np.min(margins):.3g}")
        self.margin = min(self.margin, float(np.min(margins, initial=np.inf)))
        self.widths.append(float(np.median(widths)))

    def boxes(self, bounds: Boxes, truth: Array, scale: float | Array, note: str = "") -> None:
        """truth (n, p) or (n, k, p): one or k values that box i must contain; `scale` is one number or (p,)."""
        values = truth if truth.ndim == 3 else truth[:, None, :]
        below, above = values - bounds.lower[:, None, :], bounds.upper[:, None, :] - values
        self.add(np.minimum(below, above) / scale, (bounds.upper - bounds.lower) / scale, note)

    def balls(self, regions: Balls, truth: Array, scale: float, note: str = "") -> None:
        """truth (n, p) or (n, k, p): one or k vectors that ball i must contain."""
        values = truth if truth.ndim == 3 else truth[:, None, :]
        distances = np.linalg.norm(values - regions.centre[:, None, :], axis=2)
        self.add((regions.radius[:, None] - distances) / scale, 2.0 * np.maximum(regions.radius, 0.0) / scale, note)


class Ledger:
    """One tally for every kind of bound, in the order in which they were first used."""

    def __init__(self) -> None:
        self._tallies: dict[str, Tally] = {}

    def __getitem__(self, name: str) -> Tally:
        return self._tallies.setdefault(name, Tally(name))

    def merge(self, others: Iterable[Tally]) -> None:
        """Add the counts of another ledger."""
        for other in others:
            mine = self[other.name]
            mine.checks += other.checks
            mine.violations += other.violations
            mine.margin = min(mine.margin, other.margin)
            mine.widths += other.widths
            for note in other.notes:
                mine._note(note)

    def by_kind(self) -> "Ledger":
        """The counts of each kind of bound over all structures: what a name says after its last colon."""
        found = Ledger()
        for tally in self.tallies:
            found.merge([replace(tally, name=tally.name.rpartition(": ")[2])])
        return found

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
            margin = f"{tally.margin:.1e}" if tally.widths else "–"
            width = f"{np.median(tally.widths):.2g}" if tally.widths else "–"
            lines.append(f"| {tally.name} | {tally.checks:,} | {tally.violations} | {margin} | {width} |")
        return "\n".join(lines)

    def failures(self) -> str:
        """The table, and the first violations of every kind in words."""
        notes = [f"{tally.name}: {note}" for tally in self.tallies for note in tally.notes]
        return "\n".join([self.table(), *notes])
