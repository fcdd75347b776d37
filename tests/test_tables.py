"""Tests of Markdown and plain-text tables."""

import pytest

from cascada.tables import markdown_table, text_table

HEADER = ("run", "value")
ROWS = (("1", "0.25"), ("1024", "3"))


def test_columns_of_a_left_aligned_table_are_padded() -> None:
    assert markdown_table(HEADER, ROWS).splitlines() == [
        "| run  | value |",
        "|------|-------|",
        "| 1    | 0.25  |",
        "| 1024 | 3     |",
    ]


def test_a_right_aligned_table_marks_its_alignment() -> None:
    assert markdown_table(HEADER, ROWS, align="right").splitlines() == [
        "|  run | value |",
        "|-----:|------:|",
        "|    1 |  0.25 |",
        "| 1024 |     3 |",
    ]


def test_a_table_without_alignment_is_compact() -> None:
    assert markdown_table(HEADER, ROWS, align=None).splitlines() == [
        "| run | value |",
        "|---|---|",
        "| 1 | 0.25 |",
        "| 1024 | 3 |",
    ]


def test_plain_text_has_no_trailing_spaces() -> None:
    assert text_table(HEADER, ROWS).splitlines() == ["run   value", "1     0.25", "1024  3"]


@pytest.mark.parametrize("align", ["left", "right", None])
def test_a_table_without_rows_has_a_header(align) -> None:
    assert len(markdown_table(HEADER, [], align).splitlines()) == 2
