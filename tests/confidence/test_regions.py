"""Boxes and balls: every operation must preserve containment."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascada.confidence import Balls, Boxes
from cascada.errors import ArgumentError
from tests.soundness.truths import contained

coordinates = st.floats(-1e3, 1e3, allow_nan=False)


def ball_points(balls: Balls, k: int, rng: np.random.Generator) -> np.ndarray:
    """k points of every ball, (n, k, d), many of them on its surface."""
    n, d = balls.centre.shape
    directions = rng.standard_normal((n, k, d))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    reach = np.where(rng.uniform(size=(n, k)) < 0.5, 1.0, rng.uniform(size=(n, k)) ** (1 / d))
    return balls.centre[:, None] + (balls.radius[:, None] * reach)[..., None] * directions


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_lens_ball_contains_every_common_point(d: int) -> None:
    """Nested, overlapping, touching and disjoint pairs."""
    rng = np.random.default_rng(d)
    n = 1500
    first = Balls(rng.standard_normal((n, d)), rng.uniform(0.05, 2, n))
    second = Balls(
        first.centre + rng.standard_normal((n, d)) * 10 ** rng.uniform(-3, 0.3, (n, 1)), rng.uniform(0.05, 2, n)
    )
    lens = first.intersect(second)
    common = 0
    for a, b in ((first, second), (second, first)):
        points = ball_points(a, 200, rng)
        inside = np.linalg.norm(points - b.centre[:, None], axis=2) <= b.radius[:, None]
        inside &= np.linalg.norm(points - a.centre[:, None], axis=2) <= a.radius[:, None]
        distance = np.linalg.norm(points - lens.centre[:, None], axis=2)
        common += int(inside.sum())
        assert np.all(distance[inside] <= np.broadcast_to(lens.radius[:, None], inside.shape)[inside] * (1 + 1e-15))
        assert not np.any(inside & lens.empty[:, None])
    assert common > 10_000
    assert np.all(lens.radius <= np.minimum(first.radius, second.radius))


def test_lens_of_equal_balls_has_the_radius_of_their_common_circle() -> None:
    lens = Balls(np.array([[0.0, 0.0]]), np.ones(1)).intersect(Balls(np.array([[1.2, 0.0]]), np.ones(1)))
    assert lens.radius[0] == pytest.approx(0.8, abs=1e-7)
    np.testing.assert_allclose(lens.centre, [[0.6, 0.0]], atol=1e-12)


def test_lens_behind_the_smaller_centre_is_the_smaller_ball() -> None:
    small = Balls(np.array([[0.9, 0.0]]), np.array([0.3]))
    lens = Balls(np.zeros((1, 2)), np.ones(1)).intersect(small)
    assert lens.radius[0] == 0.3
    np.testing.assert_array_equal(lens.centre, small.centre)


def test_disjoint_balls_have_an_empty_lens() -> None:
    lens = Balls(np.zeros((1, 2)), np.ones(1)).intersect(Balls(np.array([[3.0, 0.0]]), np.ones(1)))
    assert lens.empty.all()
    assert lens.radius[0] < 0


def test_intersecting_balls_does_not_depend_on_their_order() -> None:
    rng = np.random.default_rng(3)
    a = Balls(rng.standard_normal((50, 3)), rng.uniform(0.5, 2, 50))
    b = Balls(rng.standard_normal((50, 3)), rng.uniform(0.5, 2, 50))
    np.testing.assert_allclose(a.intersect(b).radius, b.intersect(a).radius, rtol=1e-12)


def test_product_of_ball_and_box_contains_the_pairs() -> None:
    rng = np.random.default_rng(4)
    balls = Balls(rng.standard_normal((30, 2)), rng.uniform(0, 1, 30))
    boxes = Boxes(rng.uniform(-2, -1, (30, 3)), rng.uniform(1, 2, (30, 3)))
    corners = np.where(rng.uniform(size=(30, 3)) < 0.5, boxes.lower, boxes.upper)
    pairs = np.hstack([ball_points(balls, 1, rng)[:, 0], corners])
    product = balls.product(boxes)
    assert np.all(np.linalg.norm(pairs - product.centre, axis=1) <= product.radius * (1 + 1e-14))


@given(st.lists(st.tuples(coordinates, coordinates, coordinates, coordinates), min_size=1, max_size=8))
def test_box_operations(rows: list[tuple[float, float, float, float]]) -> None:
    values = np.array(rows)
    a = Boxes(np.minimum(values[:, :1], values[:, 1:2]), np.maximum(values[:, :1], values[:, 1:2]))
    b = Boxes(np.minimum(values[:, 2:3], values[:, 3:]), np.maximum(values[:, 2:3], values[:, 3:]))
    common = a.intersect(b)
    for box in (a, b):
        assert np.all(contained(box, common.lower) | common.empty)
    for low, high, centre, half in zip(a.lower.flat, a.upper.flat, a.centre.flat, a.half.flat, strict=True):
        assert Fraction(centre) - Fraction(half) <= Fraction(low)
        assert Fraction(centre) + Fraction(half) >= Fraction(high)
    assert a.product(b).lower.shape == (len(rows), 2)


def test_ball_hull() -> None:
    hull = Balls(np.array([[1.0, -1.0]]), np.array([2.0])).box_hull()
    np.testing.assert_array_equal(hull.lower, [[-1.0, -3.0]])
    np.testing.assert_array_equal(hull.upper, [[3.0, 1.0]])


def test_shapes_are_checked() -> None:
    with pytest.raises(ArgumentError, match=r"\(2, 1\) and \(3, 1\)"):
        Boxes(np.zeros((2, 1)), np.zeros((3, 1)))
    with pytest.raises(ArgumentError, match=r"\(2, 1\) and \(3,\)"):
        Balls(np.zeros((2, 1)), np.zeros(3))
