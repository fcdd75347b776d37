"""A small slice of the soundness of readings with errors, and tests that it reports a broken library."""

import pytest

from tests.soundness import readings
from tests.soundness.broken import Broken
from tests.soundness.broken_readings import BROKEN_READINGS
from tests.soundness.harness import Ledger


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return readings.run(points=10, seed=3000)


def test_no_bound_from_readings_is_ever_violated(ledger: Ledger) -> None:
    assert ledger.violations == 0, ledger.failures()


def test_every_structure_is_checked_often_enough(ledger: Ledger) -> None:
    counts = dict.fromkeys(readings.STRUCTURES, 0)
    for tally in ledger.tallies:
        counts[tally.name.split(":")[0]] += tally.checks
    assert {name: count for name, count in counts.items() if count < 20_000} == {}


@pytest.mark.parametrize("broken", BROKEN_READINGS, ids=lambda broken: broken.name)
def test_a_broken_library_is_noticed(broken: Broken) -> None:
    found = broken.caught()
    assert found.violations > 0, found.table()
