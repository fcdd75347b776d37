"""Tests of the problems with choices: optimum, values, and the published formulas."""

import itertools
from typing import Any

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.kernels import Matern
from cascada.problems import MIXED, Problem, by_name
from cascada.process import Process
from tests.problems.search import polished

NAMES = sorted(MIXED)


def sample(problem: Problem, count: int, seed: int = 0) -> Array:
    """Random points (n, d) in user units."""
    domain = problem.network.domain
    return domain.decode(domain.uniform(np.random.default_rng(seed), count))


@pytest.mark.parametrize("name", NAMES)
def test_the_optimum_is_attained_at_the_stated_points(name: str) -> None:
    problem = by_name(name)
    problem.network.domain.check(problem.best.points)
    np.testing.assert_allclose(problem.objective(problem.best.points), problem.best.value, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_optimum_is_not_beaten_in_any_combination(name: str) -> None:
    problem = by_name(name)
    domain = problem.network.domain
    best = -np.inf
    for codes in domain.combinations:
        points = sample(problem, 300)
        points[:, domain.choices] = codes
        values = problem.objective(points)
        best = max(best, float(values.max()))
        if values.max() > 0.8 * problem.best.value:
            best = max(best, polished(problem, points[values.argmax()])[1])
    size = max(1.0, problem.best.value)
    assert problem.best.value - 1e-3 * size <= best <= problem.best.value + 1e-8 * size


@pytest.mark.parametrize("name", NAMES)
def test_values_of_many_points_equal_single_calls_of_the_stages(name: str) -> None:
    problem = by_name(name)
    domain, process = problem.network.domain, Process(problem.network)
    points = sample(problem, 20, seed=1)
    for point, row in zip(points, problem.values(points), strict=True):
        outputs = process(domain.named(point))
        flat = [value for node in problem.network.nodes for value in outputs[node.stage.name]]
        np.testing.assert_allclose(row[domain.dimension :], flat, rtol=1e-12)


def test_kernels_and_norms_may_be_given() -> None:
    for name in NAMES:
        network = MIXED[name](kernel=Matern(2.5), norm_bound=10.0).network
        assert not network.estimated
        assert by_name(name).network.estimated


def test_the_published_functions_are_sums_of_three_test_functions() -> None:
    """By hand, at x = (1, −0.5) in the units of the test functions."""
    rosenbrock = (100 * 1.5**2 + 0) / 300
    camel = (4 - 2.1 + 1 / 3 - 0.5 + (-4 + 4 * 0.25) * 0.25) / 10
    beale = ((1.5 - 1 - 0.5) ** 2 + (2.25 - 1 + 0.25) ** 2 + (2.625 - 1 - 0.125) ** 2) / 50
    parts = {"rosenbrock": rosenbrock, "camel": camel, "beale": beale, "beale 2": beale, "beale 3": beale}
    thirds = {"5 camel": 5 * camel, "2 rosenbrock": 2 * rosenbrock, "2 beale": 2 * beale, "3 beale": 3 * beale}
    firsts = list(parts)[:3]
    at: dict[str, Any] = {"x1": 0.5, "x2": -0.25}
    for name, levels in (("func2c", (firsts, parts)), ("func3c", (firsts, parts, thirds))):
        (stage,) = by_name(name).network.stages
        assert stage.function is not None
        for values in itertools.product(*levels):
            chosen = {f"h{i + 1}": value for i, value in enumerate(values)}
            expected = sum(table[value] for table, value in zip((parts, parts, thirds), values, strict=False))
            assert stage.function(**chosen, **at) == pytest.approx(-expected, rel=1e-12)


def test_the_interval_of_the_value_contains_every_value() -> None:
    stage = by_name("fermenter").network.stages[-1]
    assert stage.function is not None
    assert stage.interval is not None
    rng = np.random.default_rng(0)
    low = rng.uniform(-1, 2, (200, 2))
    high = low + rng.uniform(0, 1, (200, 2))
    for a, b in zip(low, high, strict=True):
        ends = stage.interval(**{"yield": (a[0], b[0]), "purity": (a[1], b[1])})
        inside = rng.uniform(a, b, (50, 2))
        values = stage.function(**{"yield": inside[:, 0], "purity": inside[:, 1]})
        assert ends[0] - 1e-9 <= values.min()
        assert values.max() <= ends[1] + 1e-9
