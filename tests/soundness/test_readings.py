"""A small slice of the soundness of readings with errors, and tests that it reports a broken library."""

import pytest

from tests.soundness import readings
from tests.soundness.broken import Broken
from tests.soundness.broken_readings import BROKEN_READINGS
from tests.thorough import THOROUGH


def test_no_bound_from_readings_is_ever_violated() -> None:
    """Each structure with each kernel and with each kind of errors, but all three of them together only if thorough."""
    ledger = readings.run(points=10, seed=3000, every=1 if THOROUGH else 3)
    assert ledger.violations == 0, ledger.failures()
    enough = 20_000 if THOROUGH else 6_000
    counts = dict.fromkeys(readings.STRUCTURES, 0)
    for tally in ledger.tallies:
        counts[tally.name.split(":")[0]] += tally.checks
    assert {name: count for name, count in counts.items() if count < enough} == {}


@pytest.mark.parametrize("broken", BROKEN_READINGS, ids=lambda broken: broken.name)
def test_a_broken_library_is_noticed(broken: Broken) -> None:
    assert broken.is_caught()
