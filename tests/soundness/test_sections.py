"""Sections of the page of soundness that are written by some of its parts alone."""

from tests.soundness.__main__ import PARTS, SCATTER, TEXT, introduction, rows, section, with_sections
from tests.soundness.harness import Ledger

PAGE = "# Soundness\n\n## Limits\n\nold\n\n## Safe mode\n\nkept\n\n## Broken on purpose\n\ntable\n"


def test_every_part_has_a_section_of_its_own() -> None:
    headings = [introduction(part).partition("\n")[0] for part in (*PARTS, SCATTER)]
    assert len(set(headings)) == len(headings)
    for heading in headings:
        assert heading.startswith("## ")
        assert TEXT.count(f"{heading}\n") == 1


def test_sections_are_replaced_or_stand_before_the_last() -> None:
    assert with_sections(PAGE, ["## Limits\n\nnew\n\n"]) == PAGE.replace("old", "new")
    added = with_sections(PAGE, ["## Ranges\n\nnew\n\n"])
    assert added == PAGE.replace("## Broken", "## Ranges\n\nnew\n\n## Broken")


def test_a_section_says_how_it_was_written() -> None:
    ledger = Ledger()
    ledger["run is feasible"].verdict(True, "")
    text = section("safe", "python -m tests.soundness --parts safe", ledger, [])
    assert text.startswith("## Safe mode\n\nSearches that run only settings")
    assert "Written by `python -m tests.soundness --parts safe`: 1 checks with 0 violations." in text
    assert "| run is feasible |" in text


def test_counts_of_a_kind_are_those_of_all_structures() -> None:
    ledger = Ledger()
    for name, right in (("one: cells", True), ("two, alike: cells", False), ("one: points", True)):
        ledger[name].verdict(right, "note")
    kinds = {tally.name: (tally.checks, tally.violations) for tally in ledger.by_kind().tallies}
    assert kinds == {"cells": (2, 1), "points": (1, 0)}
    assert ledger.checks == ledger.by_kind().checks == 3
    assert rows("choices", ledger).count("cells") == 1
    assert rows("limits", ledger).count("cells") == 2
