"""Formatting of results as Markdown: tables, numbers with units, verdicts, and sections of a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cascada.tables import markdown_table

NONE = "–"  # an empty cell

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


@dataclass(frozen=True)
class Target:
    """A lower or upper limit of a ratio."""

    limit: float
    at_least: bool

    def met_by(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def verdict(self, value: float) -> str:
        return f"{self}: {'met' if self.met_by(value) else '**not met**'}"

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {times(self.limit)}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A right-aligned Markdown table."""
    return markdown_table(header, rows, align="right")


def duration(seconds: float) -> str:
    """A duration with three digits and a unit: 118 µs."""
    scale, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    return f"{_three_digits(seconds / scale)} {unit}"


def times(ratio: float) -> str:
    """A ratio: 2.27×."""
    return f"{_three_digits(ratio)}×"


def write_section(path: Path, name: str, body: str) -> None:
    """Replace the section with this name in the file, or append it; the rest of the file is unchanged."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, found, rest = text.partition(begin)
    after = rest.partition(end)[2] if found else ""
    if not found and before:
        before += "\n"
    path.write_text(f"{before}{begin}{body.rstrip()}\n{end}{after}", encoding="utf-8")


def _three_digits(value: float) -> str:
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{decimals}f}"
