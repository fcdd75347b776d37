"""Conformance tests of the problems with unknown kernels and norms: optimum, values, wiring."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.network import Network
from cascada.problems import PRACTICE, Optimum, Problem, certified
from cascada.problems.value_table import ValueTable
from cascada.process import Process
from tests.problems.search import KERNEL, NORM_BOUND, best_found, practice, sobol
from tests.test_architecture import loaded_by
from tests.thorough import THOROUGH

NAMES = sorted(PRACTICE)
# log₂ of the sample size, number of local searches, evaluations of each. A call of the alloy model takes milliseconds;
# two problems have many local maxima.
EFFORT = {
    "ackmat": (13, 2, 600),
    "ackmat-1-49": (13, 2, 600),
    "ageing": (10, 3, 250) if THOROUGH else (9, 2, 150),
    "alpine2": (13, 40, 1000),
    "epidemic": (9, 2, 1000),
    "manufacturing": (10, 2, 150),
    "sample-path-cascade-5": (13, 16, 1000),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_optimum_is_attained_at_the_stated_points(name):
    problem = practice(name)
    found = problem.objective(problem.best.points)
    rounding = 1e-12 if problem.best.how == "analytic" else 1e-6
    np.testing.assert_allclose(found, problem.best.value, rtol=rounding, atol=rounding)
    problem.network.domain.check(problem.best.points)
    point, value = problem.optimum
    assert value == problem.best.value
    np.testing.assert_array_equal(point, problem.best.points[0])


@pytest.mark.parametrize("name", NAMES)
def test_the_optimum_is_not_beaten(name):
    """The search comes close to the optimum, so it would find a better point if there were one."""
    problem = practice(name)
    exponent, starts, most = EFFORT.get(name, (13, 8, 1000))
    found = best_found(problem, exponent, starts, kinks=name == "pv-plant", most=most)
    size = max(1.0, abs(problem.best.value))
    assert problem.best.value - 1e-4 * size <= found <= problem.best.value + 1e-8 * size


@pytest.mark.parametrize("name", NAMES)
def test_values_of_many_points_equal_single_calls_of_the_stages(name):
    problem = practice(name)
    domain, process = problem.network.domain, Process(problem.network)
    points = sobol(problem, 3, seed=5)
    together = problem.values(points)
    assert together.shape == (8, problem.network.width)
    for point, row in zip(points, together, strict=True):
        outputs = process(domain.named(point))
        flat = [value for node in problem.network.nodes for value in outputs[node.stage.name]]
        np.testing.assert_allclose(row, [*domain.encode(point[None])[0], *flat], rtol=1e-13, atol=1e-13)
    assert problem.values(points[:0]).shape == (0, problem.network.width)


@pytest.mark.parametrize("name", NAMES)
def test_problems_can_be_sent_to_other_processes(name):
    problem = practice(name)
    points = sobol(problem, 2, seed=6)
    sent = pickle.loads(pickle.dumps(problem))
    np.testing.assert_array_equal(sent.values(points), problem.values(points))
    for stage in problem.network.stages:
        assert callable(pickle.loads(pickle.dumps(stage.function)))


@pytest.mark.parametrize("name", NAMES)
def test_kernel_and_norm_bound_are_passed_to_every_modelled_stage(name):
    problem = practice(name)
    assert problem.name == name
    for stage in problem.network.stages:
        assert stage.kernel is (None if stage.known else KERNEL)
        assert stage.known or np.all(stage.norm_bound == NORM_BOUND)
        assert stage.lipschitz is None
        assert problem.network.sign == 1


@pytest.mark.parametrize("name", NAMES)
def test_kernels_and_norm_bounds_are_none_by_default(name):
    for stage in PRACTICE[name]().network.stages:
        assert stage.kernel is None
        assert stage.norm_bound is None


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_gives_the_best_value(name):
    text = (Path(__file__).parents[2] / "docs" / "problems.md").read_text(encoding="utf-8")
    assert f"`{name}`" in text
    assert f"{practice(name).best.value:.6f}".rstrip("0").rstrip(".") in text


def test_listing_problems_loads_neither_pvlib_nor_the_solver():
    loaded = loaded_by("from cascada.problems import PRACTICE\nfor make in PRACTICE.values(): make().best")
    assert "cascada.problems.solar_plant" in loaded
    assert not {"pvlib", "pandas", "scipy.integrate", "scipy.optimize", "scipy.stats"} & loaded


def test_an_optimum_is_given_computed_or_searched_for():
    plain = certified("chain", seed=1)
    assert plain.best.how == "search"
    given = Optimum(np.array([[1.0, 2.0]]), 3.0, "analytic")
    for answer in (given, lambda: given):
        problem = replace(plain, answer=answer)
        assert problem.best is given
        point, value = problem.optimum
        assert (point.tolist(), value) == ([1.0, 2.0], 3.0)


def test_the_points_of_an_optimum_are_read_only():
    points = np.array([[1.0, 2.0]])
    optimum = Optimum(points, 3.0, "analytic")
    points[0, 0] = 9.0
    assert optimum.points[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        optimum.points[0, 0] = 9.0
    with pytest.raises(ArgumentError, match=r"points must have two axes \(n, d\)"):
        Optimum(np.array([1.0, 2.0]), 3.0, "analytic")


def test_values_are_of_the_coordinates_of_logarithmic_controls():
    problem = practice("ageing")
    row = problem.values(np.array([[400.0, 10.0, 450.0, 2.0]]))[0]
    np.testing.assert_allclose(row[:4], [400.0, np.log(10.0), 450.0, np.log(2.0)], rtol=1e-15)


def test_values_computed_one_by_one_equal_those_of_columns():
    problem: Problem = practice("rosenbrock-5")
    network: Network = problem.network
    points = sobol(problem, 4)
    np.testing.assert_allclose(
        ValueTable(network)(points), ValueTable(network, one_by_one=True)(points), rtol=1e-14, atol=1e-14
    )
