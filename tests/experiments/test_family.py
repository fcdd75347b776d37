"""Tests of the rule that selects g1 and g2 on surfaces with an obvious answer."""

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.experiments.family import Profile, pick, profile
from cascada.experiments.plan import Settings, profiles, work


def surface(*cells: tuple[int, int, float]) -> np.ndarray:
    values = np.zeros((6, 6))
    for i, j, value in cells:
        values[i, j] = value
    return values


@pytest.mark.parametrize(
    ("cells", "near", "share", "lead"),
    [
        ([(1, 1, 1.0)], 1, 1, 1.0),  # every cell of the flat surroundings is a hill of height 0
        ([(1, 1, 1.0), (4, 4, 0.6)], 1, 1, 0.4),
        ([(1, 1, 1.0), (4, 4, 0.95)], 2, 2, 0.05),
        ([(1, 1, 1.0), (4, 4, 1.0)], 2, 2, 0.0),
        ([(1, 1, 1.0), (2, 2, 1.0), (2, 3, 0.95)], 1, 3, 1.0),  # cells that touch at a corner form one region
        ([(0, 0, 1.0), (0, 1, 0.8), (0, 2, 0.95)], 2, 2, 0.05),  # a saddle below the top separates two regions
        ([(0, 0, 1.0), (1, 1, 0.8), (5, 5, 0.5)], 1, 1, 0.5),  # a slope is not a hill
        ([(3, 3, 1.0), (0, 0, -1.0)], 1, 1, 0.5),
    ],
)
def test_profile(cells, near, share, lead):
    found = profile(7, surface(*cells))
    assert (found.seed, found.near, found.share) == (7, near, share / 36)
    assert found.lead == pytest.approx(lead)
    assert (found.maximum, found.minimum) == (1.0, min(value for *_, value in [*cells, (0, 0, 0.0)]))


def of(seed: int, near: int, share: float, lead: float) -> Profile:
    return Profile(seed, 1.0, 0.0, near, share, lead)


def test_g1_has_several_small_regions_and_g2_the_largest_lead():
    family = [of(0, 9, 0.4, 0.0), of(1, 3, 0.02, 0.01), of(2, 1, 0.01, 0.2), of(3, 1, 0.01, 0.3), of(4, 3, 0.02, 0.0)]
    assert pick(family) == (1, 3)
    assert pick(family[::-1]) == (1, 3)


def test_g1_and_g2_differ_in_any_family():
    assert pick([of(0, 2, 0.1, 0.05), of(1, 2, 0.1, 0.05)]) == (1, 0)
    assert pick([of(0, 1, 0.3, 0.2), of(1, 1, 0.1, 0.3), of(2, 1, 0.2, 0.1)]) == (2, 1)
    with pytest.raises(ArgumentError, match="at least 2 chains; got 1"):
        pick([of(0, 1, 0.1, 0.1)])


def test_the_paper_chains_of_this_library():
    """All results depend on these two: several small hills of nearly equal height, and one dominant hill."""
    family = [Profile(**work(Settings(), job)) for job in profiles(Settings())]
    g1, g2 = (family[seed] for seed in pick(family))
    assert (g1.seed, g2.seed) == (17, 13)
    assert g1.near >= 3
    assert g1.lead < 0.01
    assert g2.near == 1
    assert g2.lead > 0.3
    assert max(g1.share, g2.share) < 0.02
