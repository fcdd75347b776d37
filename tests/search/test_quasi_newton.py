"""The batched quasi-Newton method: local maxima as SciPy finds them, bounds kept, bad values survived."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import Bounds, minimize, rosen, rosen_der

from cascada.arrays import Array
from cascada.search.quasi_newton import Differentiable, climb


class Counted:
    """A function that records how many points each of its calls had."""

    def __init__(self, function: Differentiable) -> None:
        self.function, self.sizes = function, list[int]()

    def __call__(self, points: Array) -> tuple[Array, Array]:
        self.sizes.append(len(points))
        return self.function(points)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def quadratic(seed: int, n: int, condition: float = 100.0) -> tuple[Differentiable, Array, Array]:
    """−(x − c)ᵀH(x − c)/2 with its H and c, which may lie outside of [−1, 1]ⁿ."""
    draw = rng(seed)
    turn = np.linalg.qr(draw.standard_normal((n, n)))[0]
    H = turn @ np.diag(np.geomspace(1.0, condition, n)) @ turn.T
    c = draw.uniform(-2.0, 2.0, n)

    def function(points: Array) -> tuple[Array, Array]:
        away = points - c
        return -0.5 * np.einsum("ki,ij,kj->k", away, H, away), -away @ H

    return function, H, c


def rosenbrock(points: Array) -> tuple[Array, Array]:
    return -np.array([rosen(x) for x in points]), -np.array([rosen_der(x) for x in points])


def by_scipy(function: Differentiable, start: Array, lower: Array, upper: Array) -> tuple[Array, float]:
    """The local maximum that SciPy finds to all its digits."""

    def negated(x: Array) -> tuple[float, Array]:
        value, gradient = function(x[None])
        return -float(value[0]), -gradient[0]

    found = minimize(
        negated,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(lower, upper),
        options={"ftol": 1e-16, "gtol": 1e-12},
    )
    return found.x, -float(found.fun)


def ones(n: int) -> Array:
    return np.ones(n)


@pytest.mark.parametrize("n", [1, 2, 5, 12, 30])
@pytest.mark.parametrize("seed", range(4))
def test_a_quadratic_with_active_bounds_has_the_maximum_of_scipy(n: int, seed: int) -> None:
    function, _, _ = quadratic(seed, n)
    begin = rng(seed + 50).uniform(-1, 1, (6, n))
    points, values = climb(function, begin, -ones(n), ones(n), 1.0, 300)
    best, value = by_scipy(function, begin[0], -ones(n), ones(n))
    np.testing.assert_allclose(values, value, atol=1e-8 * (1 + abs(value)))
    np.testing.assert_allclose(points, np.tile(best, (6, 1)), atol=1e-4)
    if n > 2:
        assert np.any(np.abs(best) == 1.0)  # some bound is active
    np.testing.assert_array_equal(np.abs(points) == 1.0, np.tile(np.abs(best) == 1.0, (6, 1)))


@pytest.mark.parametrize("n", [2, 4, 10])
def test_rosenbrocks_valley_is_followed_to_a_maximum_of_scipy(n: int) -> None:
    begin = rng(n).uniform(-2, 2, (8, n))
    _, values = climb(rosenbrock, begin, -2 * ones(n), 2 * ones(n), 1.0, 500)
    for value in values:  # 0, or the local maximum near (−1, 1, …, 1)
        assert value == pytest.approx(0.0, abs=1e-8) or value == pytest.approx(-3.99, abs=0.4)
    assert np.sum(values > -1e-8) >= 4


def test_a_bound_that_cuts_the_valley_is_active_at_the_maximum() -> None:
    lower, upper = np.array([-2.0, -2.0]), np.array([0.5, 2.0])
    begin = rng(1).uniform(lower, upper, (5, 2))
    points, values = climb(rosenbrock, begin, lower, upper, 1.0, 300)
    best, value = by_scipy(rosenbrock, begin[0], lower, upper)
    np.testing.assert_allclose(points, np.tile(best, (5, 1)), atol=1e-5)
    np.testing.assert_allclose(values, value, atol=1e-9)


def test_starts_in_corners_and_on_faces_leave_them() -> None:
    def hill(points: Array) -> tuple[Array, Array]:
        away = points - [0.3, -0.2, 0.1]
        return -(away**2).sum(axis=1), -2 * away

    corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 0, 1])).reshape(3, -1).T.astype(float)
    points, _ = climb(hill, corners, -ones(3), ones(3), 1.0, 60)
    np.testing.assert_allclose(points, np.tile([0.3, -0.2, 0.1], (len(corners), 1)), atol=1e-5)


def test_a_maximum_in_a_corner_is_met_exactly() -> None:
    lower, upper = np.array([0.1, -0.3]), np.array([0.7, 1e3])
    slope = np.array([1.0, -2.0])
    points, values = climb(lambda p: (p @ slope, np.tile(slope, (len(p), 1))), lower[None], lower, upper, 1.0, 30)
    np.testing.assert_array_equal(points, [[0.7, -0.3]])
    np.testing.assert_allclose(values, 1.3)


def test_every_start_has_its_own_bounds_and_fixed_coordinates_stay() -> None:
    function, _, _ = quadratic(3, 3)
    begin = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    lower, upper = np.array([[-1.0, 0.2, -1.0], [0.4, -1.0, -1.0]]), np.array([[1.0, 0.2, 1.0], [0.4, 1.0, 0.7]])
    points, values = climb(function, begin, lower, upper, 1.0, 100)
    assert (points[0, 1], points[1, 0]) == (0.2, 0.4)
    for i in range(2):
        _, value = by_scipy(function, begin[i], lower[i], upper[i])
        assert values[i] == pytest.approx(value, abs=1e-8)


def test_values_never_get_worse_and_points_stay_inside() -> None:
    def waves(points: Array) -> tuple[Array, Array]:
        return np.sin(7 * points).sum(axis=1), 7 * np.cos(7 * points)

    begin = rng(4).uniform(-1, 1, (20, 4))
    for steps in (0, 1, 2, 5, 50):
        points, values = climb(waves, begin, -ones(4), ones(4), 1.0, steps)
        assert np.all(values >= waves(begin)[0] - 1e-12)
        assert np.all(np.abs(points) <= 1)
        np.testing.assert_allclose(values, waves(points)[0], atol=1e-12)
    slopes = waves(points)[1]  # a local maximum: zero, or outwards on a bound
    assert np.all((np.abs(slopes) < 1e-3) | ((np.abs(points) == 1) & (np.sign(slopes) == np.sign(points))))


def test_one_call_evaluates_all_starts_and_ended_ones_drop_out() -> None:
    function, _, _ = quadratic(5, 4, condition=1e4)
    begin = rng(6).uniform(-1, 1, (7, 4))
    begin[0] = by_scipy(function, begin[0], -ones(4), ones(4))[0]  # has nothing to gain
    counted = Counted(function)
    climb(counted, begin, -ones(4), ones(4), 1.0, 200)
    assert counted.sizes[0] == 7
    assert counted.sizes[1] <= 7
    assert counted.sizes == sorted(counted.sizes, reverse=True)
    assert len(counted.sizes) < 100
    assert counted.sizes[-1] < 7


def test_the_number_of_calls_is_limited() -> None:
    counted = Counted(rosenbrock)
    climb(counted, rng().uniform(-2, 2, (3, 6)), -2 * ones(6), 2 * ones(6), 1.0, 9)
    assert len(counted.sizes) == 10


@pytest.mark.parametrize("bad", [np.nan, -np.inf, np.inf])
def test_bad_values_on_the_way_are_avoided(bad: float) -> None:
    """The function is not finite beyond a wall that the first steps hit."""

    def walled(points: Array) -> tuple[Array, Array]:
        good = points[:, 0] < 0.35
        away = points - [0.3, 0.0]
        values, slopes = -(away**2).sum(axis=1), -2 * away
        return np.where(good, values, bad), np.where(good[:, None], slopes, np.nan)

    begin = np.array([[-1.0, 1.0], [0.2, -1.0], [0.9, 0.0]])
    points, values = climb(walled, begin, -ones(2), ones(2), 1.0, 80)
    np.testing.assert_allclose(points[:2], [[0.3, 0.0], [0.3, 0.0]], atol=1e-4)
    np.testing.assert_array_equal(points[2], begin[2])  # its value is not finite at the start
    assert not np.isfinite(values[2])


def test_a_start_with_a_bad_gradient_is_returned() -> None:
    begin = np.array([[0.2, 0.3]])
    points, _ = climb(lambda p: (np.zeros(len(p)), np.full(p.shape, np.nan)), begin, -ones(2), ones(2), 1.0, 10)
    np.testing.assert_array_equal(points, begin)


@pytest.mark.parametrize("value", [0.0, 5.0, 1e300])
def test_a_constant_function_is_accepted(value: float) -> None:
    begin = rng().uniform(-1, 1, (3, 2))
    points, values = climb(lambda p: (np.full(len(p), value), np.zeros(p.shape)), begin, -ones(2), ones(2), 1.0, 10)
    np.testing.assert_allclose(points, begin, atol=1e-15)
    np.testing.assert_allclose(values, value)


def test_no_starts_give_no_points() -> None:
    points, values = climb(quadratic(0, 2)[0], np.empty((0, 2)), -ones(2), ones(2), 1.0, 10)
    assert points.shape == (0, 2)
    assert values.shape == (0,)


def test_units_of_the_values_and_of_the_controls_do_not_matter() -> None:
    """Powers of 2, so that nothing is rounded and all points agree bit for bit."""
    function, _, _ = quadratic(7, 4)
    begin = rng(8).uniform(-1, 1, (5, 4))
    units = np.array([2.0**-20, 1.0, 2.0**10, 2.0**33])

    def scaled(factor: float) -> Callable[[Array], tuple[Array, Array]]:
        def other(points: Array) -> tuple[Array, Array]:
            values, slopes = function(points / units)
            return factor * values, factor * slopes / units

        return other

    points, values = climb(function, begin, -ones(4), ones(4), 1.0, 100)
    for factor in (2.0**-40, 2.0**40):
        other, scaled_values = climb(scaled(factor), begin * units, -units, units, factor, 100)
        np.testing.assert_array_equal(other / units, points)
        np.testing.assert_array_equal(scaled_values / factor, values)


def test_the_other_starts_do_not_matter() -> None:
    function, _, _ = quadratic(9, 3)
    begin = rng(10).uniform(-1, 1, (6, 3))
    together, _ = climb(function, begin, -ones(3), ones(3), 1.0, 100)
    alone = np.concatenate([climb(function, start[None], -ones(3), ones(3), 1.0, 100)[0] for start in begin])
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_the_method_is_repeatable() -> None:
    begin = rng(11).uniform(-2, 2, (4, 5))
    one, other = (climb(rosenbrock, begin, -2 * ones(5), 2 * ones(5), 1.0, 200) for _ in range(2))
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


def test_the_starts_are_not_changed() -> None:
    begin = rng(12).uniform(-2, 2, (4, 5))
    before = begin.copy()
    climb(rosenbrock, begin, -2 * ones(5), 2 * ones(5), 1.0, 20)
    np.testing.assert_array_equal(begin, before)
