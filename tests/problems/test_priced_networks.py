"""Tests of the function networks with costs: wiring, costs, and the formulas against their textbook forms."""

import math

import numpy as np
import pytest

from cascada.problems import PRACTICE, by_name
from cascada.problems.priced_networks import DEFAULT_SCALE
from tests.problems.search import practice, sobol

COSTS = {
    "ackmat": {"ackley": 1, "matyas": 1},
    "ackmat-1-49": {"ackley": 1, "matyas": 49},
    "tablet": {"time": 1, "strength": 49, "score": 0},
    "manufacturing": {"raw": 5, "refined": 10, "additive": 10, "product": 45},
}


@pytest.mark.parametrize("name", COSTS)
def test_every_stage_has_its_published_cost(name: str) -> None:
    assert {stage.name: stage.cost for stage in by_name(name).network.stages} == COSTS[name]


def test_ackmat_is_the_negated_function_of_matyas_of_the_function_of_ackley() -> None:
    problem = practice("ackmat")
    points = sobol(problem, 8)
    x, last = points[:, :6], points[:, 6]
    ackley = (
        -20 * np.exp(-0.2 * np.sqrt((x**2).mean(axis=1))) - np.exp(np.cos(2 * np.pi * x).mean(axis=1)) + 20 + math.e
    )
    values = problem.values(points)
    np.testing.assert_allclose(values[:, 7], ackley, atol=1e-13)
    np.testing.assert_allclose(values[:, 8], 0.48 * ackley * last - 0.26 * (ackley**2 + last**2), atol=1e-12)
    np.testing.assert_array_equal(by_name("ackmat-1-49").values(points), values)


def test_both_tests_of_a_tablet_are_in_the_ranges_of_the_published_figures() -> None:
    """The time lies between 11 and 42 s, the strength between 0.4 and 2.2 MPa."""
    problem = practice("tablet")
    time, strength = problem.values(sobol(problem, 13))[:, 4:6].T
    assert 11 < time.min() < 12 < 40 < time.max() < 42
    assert 0.35 < strength.min() < 0.45 < 2.1 < strength.max() < 2.25
    # By hand, at the centre: every logistic function of its threshold alone.
    centre = problem.values(np.zeros((1, 4))).ravel()
    assert centre[4] == pytest.approx(
        -3.95 + 9.2 * 0.579324 + 9.88 * 0.007926 + 10.84 * 0.999629 + 15.18 * 0.999918, abs=1e-4
    )
    assert centre[6] == pytest.approx((60 - centre[4]) / 60 * centre[5] / 1.5, rel=1e-14)


def test_the_interval_of_scores_contains_every_score() -> None:
    stage = next(stage for stage in practice("tablet").network.stages if stage.known)
    assert stage.function is not None
    assert stage.interval is not None
    rng = np.random.default_rng(0)
    low = np.column_stack([rng.uniform(-10, 80, 200), rng.uniform(-1, 2, 200)])  # also factors below 0
    high = low + rng.uniform(0, 1, (200, 2)) * (30, 1)
    for a, b in zip(low, high, strict=True):
        ends = stage.interval(time=(a[0], b[0]), strength=(a[1], b[1]))
        for point in [a, b, *rng.uniform(a, b, (20, 2))]:
            assert ends[0] <= stage.function(*point) <= ends[1]
        corners = [stage.function(t, s) for t in (a[0], b[0]) for s in (a[1], b[1])]
        np.testing.assert_allclose(ends, (min(corners), max(corners)), rtol=1e-9, atol=1e-9)


def test_steps_of_manufacturing_vary_as_their_kernels_say() -> None:
    """Over many samples of the features, values have the stated variance and the correlation of a Matérn-5/2 kernel."""
    from cascada.kernels import Matern
    from cascada.problems.priced_networks import _matern_path

    rng = np.random.default_rng(5)
    paths = [_matern_path(("a", "b"), 0.7, 2.5, rng) for _ in range(400)]
    here, there = np.array([0.1, -0.2]), np.array([0.5, 0.3])
    values = np.array([[path(a=x[0], b=x[1]) for x in (here, there)] for path in paths], dtype=np.float64)
    expected = float(np.asarray(Matern(2.5, 0.7)(here[None], there[None])).item())
    assert values.var(axis=0) == pytest.approx([2.5, 2.5], rel=0.25)
    correlation = np.asarray(np.corrcoef(values.T)).ravel()[1]
    assert correlation == pytest.approx(expected, abs=0.1)
    assert pytest.approx(0.693147, abs=1e-6) == DEFAULT_SCALE


def test_a_surface_of_settings_makes_the_best_product() -> None:
    """Another setting of the first step with the same intermediate is as good."""
    problem = practice("manufacturing")
    point, value = problem.optimum
    other = np.array([[0.9394123521374071, -0.664111086563155, *point[2:]]])
    assert problem.objective(other)[0] == pytest.approx(value, abs=1e-7)


def test_they_are_among_the_problems_of_practice() -> None:
    assert set(COSTS) <= set(PRACTICE)
