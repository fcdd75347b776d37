"""A small slice of the soundness of readings with errors, and tests that it reports a broken library."""

import pytest

from tests.soundness import read_studies, readings
from tests.soundness.broken import Broken
from tests.soundness.broken_read_studies import BROKEN_READ_STUDIES
from tests.soundness.broken_readings import BROKEN_READINGS
from tests.thorough import THOROUGH


def test_no_bound_from_readings_is_ever_violated() -> None:
    """Each structure, some with each kernel and with each kind of errors; all three of them together if thorough."""
    ledger = readings.run(points=10, seed=3000, every=1 if THOROUGH else 6)
    assert ledger.violations == 0, ledger.failures()
    enough = 20_000 if THOROUGH else 2_000
    counts = dict.fromkeys(readings.STRUCTURES, 0)
    for tally in ledger.tallies:
        counts[tally.name.split(":")[0]] += tally.checks
    assert {name: count for name, count in counts.items() if count < enough} == {}


def test_no_certificate_from_readings_is_ever_wrong() -> None:
    structures = readings.STRUCTURES if THOROUGH else ("chain", "known")
    ledger = read_studies.run(3000, structures, 2 if THOROUGH else 1, every=3, points=100, runs=7 if THOROUGH else 4)
    assert ledger.violations == 0, ledger.failures()
    assert ledger.checks > (40_000 if THOROUGH else 1_000)


@pytest.mark.parametrize("broken", [*BROKEN_READINGS, *BROKEN_READ_STUDIES], ids=lambda broken: broken.name)
def test_a_broken_library_is_noticed(broken: Broken) -> None:
    assert broken.is_caught()
