"""A small slice of the soundness of readings with scatter, and tests that it reports broken versions."""

from typing import Any
from unittest import mock

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.confidence.bounded_belief import BoundedBelief
from cascada.network import scatter_beliefs
from cascada.network.scatter import Scatter
from tests.soundness import scatter
from tests.soundness.scatter_shares import VERSIONS, Version
from tests.thorough import THOROUGH

PROCESSES = 150 if THOROUGH else 12


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_as_many_processes_are_broken_as_must_be(version: Version) -> None:
    """No more than the risk allows, and by a wrong version more: a missing bias, a reading that counts twice, …"""
    assert version.is_right(version.share(PROCESSES // 2 if version.wrong else PROCESSES))


def test_bounds_of_whole_networks_hold_in_almost_all_processes() -> None:
    ledgers = scatter.run(10, 4000, 20) if THOROUGH else scatter.run(6, 4000, 1, (1, 10))
    broken = [ledger for ledger in ledgers if ledger.violations]
    assert len(broken) <= 0.05 * len(ledgers), "\n".join(ledger.failures() for ledger in broken)
    assert sum(ledger.checks for ledger in ledgers) > (500_000 if THOROUGH else 3_000)


def _no_bias(belief: BoundedBelief, places: Array, _inputs: Boxes) -> tuple[Array, Array]:
    nothing = np.zeros((len(places), len(belief.norm_bound)))
    return nothing, nothing


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        (Scatter, "most_sds", lambda _self, turns: np.ones(np.shape(turns))),
        (scatter_beliefs, "_bias", _no_bias),
    ],
    ids=["single readings within one scale", "nominal inputs taken as true ones"],
)
def test_a_broken_version_is_noticed_in_a_network(owner: Any, name: str, wrong: Any) -> None:
    with mock.patch.object(owner, name, wrong):
        (ledger,) = scatter.run(6, 4000, 1, (20,), ("chain",))
    assert ledger.violations > 0
