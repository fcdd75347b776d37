"""Recorded points of some cases; `python -m tests.points` records and checks all (tests/points.py)."""

import pytest

from tests import points
from tests.environment import environment

RECORDED = points.recorded()
CASES = (
    "certified-chain/gpn_ucb/0",
    "certified-chain/oi/0",
    "certified-chain-3d/gp_ucb/0",
    "certified-feed-forward-3/non_adaptive/0",
    "certified-join/cucb/1",
    "certified-known/auto/0",
    "certified-known/random_search/2",
    "certified-multi-output/gpn_ucb/2",
    "certified-multi-output/ei/0",
    "drop-wave/auto/0",  # calibrated, and chosen by GPN-EI
)


def test_every_case_is_recorded() -> None:
    assert set(CASES) <= set(RECORDED["cases"]) <= set(points.cases())


@pytest.mark.skipif(RECORDED["environment"] != environment(), reason="bits differ between machines")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("case", CASES)
def test_points_are_the_recorded_ones(case: str, kind: str) -> None:
    assert points.checked_case((case, kind), RECORDED["cases"], None)[1] == []


def test_a_difference_is_noticed() -> None:
    expected = RECORDED["cases"][CASES[0]]["memory"]
    assert points.differences(expected, expected) == []
    other = expected | {"points": [["0x1.0p-3", *expected["points"][0][1:]], *expected["points"][1:-1]], "bound": None}
    found = points.differences(expected, other)
    assert [text.partition(":")[0] for text in found] == ["point 0", "point 7", "bound"]
    assert "now [0x1.0p-3 (0.125)" in found[0]
    assert found[1].endswith("now none")
