"""Formatting of tables as Markdown and as plain text."""

from collections.abc import Sequence
from typing import Literal

Cells = Sequence[str]


def markdown_table(header: Cells, rows: Sequence[Cells], align: Literal["left", "right"] | None = "left") -> str:
    """A Markdown table; with an alignment its columns are padded to equal width, without one it is compact.

    >>> print(markdown_table(["run", "value"], [["1", "0.25"], ["12", "3"]], align="right"))
    | run | value |
    |----:|------:|
    |   1 |  0.25 |
    |  12 |     3 |
    """
    widths = _widths(header, rows) if align else [0] * len(header)
    lines = ["| " + " | ".join(_pad(line, widths, align)) + " |" for line in (header, *rows)]
    last = ":" if align == "right" else "-"
    rule = "|" + "|".join("-" * (width + 1) + last for width in widths) + "|" if align else "|" + "---|" * len(header)
    return "\n".join([lines[0], rule, *lines[1:]])


def text_table(header: Cells, rows: Sequence[Cells]) -> str:
    """A table as plain text: columns of equal width, two spaces between them.

    >>> print(text_table(["run", "value"], [["1", "0.25"], ["12", "3"]]))
    run  value
    1    0.25
    12   3
    """
    widths = _widths(header, rows)
    return "\n".join("  ".join(_pad(line, widths, "left")).rstrip() for line in (header, *rows))


def _widths(header: Cells, rows: Sequence[Cells]) -> list[int]:
    return [max(map(len, column)) for column in zip(header, *rows, strict=True)]


def _pad(cells: Cells, widths: Sequence[int], align: str | None) -> list[str]:
    return [
        cell.rjust(width) if align == "right" else cell.ljust(width) for cell, width in zip(cells, widths, strict=True)
    ]
