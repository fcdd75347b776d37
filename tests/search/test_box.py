"""Maximisation of scores over a box: known maxima are found, for all kinds of scores."""

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.search import best_in_box
from cascada.space import Domain, Integer, Real

DOMAIN = Domain({"x": Real(-2, 2), "y": Real(0.1, 10, log=True)})
NOTHING = np.empty((0, 2))
TOP = np.array([0.7, np.log(3.0)])


def hill(points: Array) -> Array:
    return -((points - TOP) ** 2).sum(axis=1)


def found(score, domain: Domain = DOMAIN, near: Array = NOTHING, seed: int = 0, screen=None) -> list[Array]:
    return best_in_box(score, domain, np.random.default_rng(seed), near, screen)


def test_a_smooth_maximum_is_found_to_many_digits() -> None:
    points = found(hill)
    np.testing.assert_allclose(points[0], TOP, atol=1e-5)
    values = hill(np.array(points))
    assert np.all(np.diff(values) <= 0)  # best first
    assert np.all((DOMAIN.lower <= points) & (points <= DOMAIN.upper))


def test_a_maximum_in_a_corner_is_found() -> None:
    np.testing.assert_allclose(found(lambda p: p.sum(axis=1))[0], DOMAIN.upper, atol=1e-12)


def test_a_narrow_maximum_is_found_near_a_point_of_near() -> None:
    """The maximum is far too narrow for random starts in the box."""
    near = TOP + np.array([2e-3, -2e-3])

    def peak(points: Array) -> Array:
        return np.exp(1e4 * hill(points)) + 1e-3 * points[:, 0]

    assert peak(found(peak, near=near[None])[0][None])[0] > 0.99


def test_points_of_integer_controls_are_whole_numbers() -> None:
    domain = Domain({"x": Real(-2, 2), "n": Integer(1, 5)})
    points = found(lambda p: -((p - [0.3, 3.4]) ** 2).sum(axis=1), domain)
    np.testing.assert_allclose(points[0], [0.3, 3.0], atol=1e-5)
    assert all(point[1] == round(point[1]) for point in points)


def test_a_screen_only_chooses_the_starts() -> None:
    np.testing.assert_allclose(found(hill, screen=lambda p: p[:, 0])[0], TOP, atol=1e-5)


def test_the_same_generator_finds_the_same_points() -> None:
    np.testing.assert_array_equal(found(hill, seed=3), found(hill, seed=3))


@pytest.mark.parametrize("value", [0.0, -np.inf, np.inf, 1e300])
def test_a_flat_score_is_accepted(value: float) -> None:
    assert found(lambda p: np.full(len(p), value))[0].shape == (2,)


def test_a_score_that_is_infinite_in_places_is_accepted() -> None:
    """An example is the logarithm of an impossible improvement."""
    points = found(lambda p: np.where(p[:, 0] > 0, hill(p), -np.inf))
    np.testing.assert_allclose(points[0], TOP, atol=1e-5)
    assert found(lambda p: np.where(p[:, 0] > 0, -np.inf, p[:, 0]))[0][0] == pytest.approx(0.0, abs=0.05)
