"""A small slice of the soundness of choices that are read with errors, and tests that it reports a broken library."""

from typing import Any
from unittest import mock

import numpy as np
import pytest

from cascada.confidence.bounded_belief import BoundedBelief
from cascada.network.scatter_beliefs import ScatterBeliefs
from tests.soundness import choices, read_choices
from tests.soundness.broken import Broken
from tests.soundness.broken_read_choices import BROKEN_READ_CHOICES
from tests.thorough import THOROUGH


def test_bounds_of_choices_from_readings_hold() -> None:
    structures = choices.STRUCTURES if THOROUGH else ("first", "joint", "formula")
    ledger = read_choices.run(points=8, seed=3100, structures=structures, counts=(1, 12))
    assert ledger.violations == 0, ledger.failures()
    assert ledger.checks >= 4_500


def test_certificates_of_choices_from_readings_are_never_wrong() -> None:
    runs, alikes = (4, (False, True)) if THOROUGH else (2, (False,))
    ledger = read_choices.run(points=0, seed=3101, runs=runs, structures=("first",), alikes=alikes)
    assert ledger.violations == 0, ledger.failures()
    assert ledger.checks >= 500


def test_bounds_of_choices_from_readings_with_scatter_hold() -> None:
    structures = read_choices.SCATTERED if THOROUGH else ("first", "two")
    ledgers = read_choices.run_scatter(6, 3102, 1, (1, 8), structures)
    assert sum(ledger.violations for ledger in ledgers) == 0, "\n".join(ledger.failures() for ledger in ledgers)
    assert sum(ledger.checks for ledger in ledgers) >= 600


@pytest.mark.parametrize("broken", BROKEN_READ_CHOICES, ids=lambda broken: broken.name)
def test_a_broken_library_is_noticed(broken: Broken) -> None:
    assert broken.is_caught()


_averaged = ScatterBeliefs.averaged


def _over_all(self: Any, part: Any, belief: BoundedBelief, latent: Any, _runs: Any) -> BoundedBelief:
    return _averaged(self, part, belief, latent, np.arange(len(latent)))


def test_averages_over_readings_of_all_categories_are_noticed() -> None:
    with mock.patch.object(ScatterBeliefs, "averaged", _over_all):
        (ledger,) = read_choices.run_scatter(4, 4001, 1, (20,), ("first",))
    assert ledger.violations > 0
