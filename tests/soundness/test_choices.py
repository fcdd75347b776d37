"""A small slice of the soundness of choices, and tests that it reports a broken library."""

import pytest

from tests.soundness import choices
from tests.soundness.broken import Broken
from tests.soundness.broken_choices import BROKEN_CHOICES


def test_bounds_with_choices_hold() -> None:
    ledger = choices.run(points=12, seed=1000, structures=("first", "two", "alone", "joint", "formula"))
    assert ledger.violations == 0, ledger.failures()
    assert ledger.checks >= 8_000


def test_gaps_with_choices_are_at_least_the_true_regret() -> None:
    ledger = choices.run(points=0, seed=1001, steps=4, structures=("first", "formula"))
    assert ledger.violations == 0, ledger.failures()
    assert ledger.checks >= 60


@pytest.mark.parametrize("broken", BROKEN_CHOICES, ids=lambda broken: broken.name)
def test_a_broken_library_is_noticed(broken: Broken) -> None:
    assert broken.is_caught()
