"""Tests of the published function networks: their wiring and the resulting test functions."""

import math

import mpmath
import numpy as np
import pytest

from cascada.problems.function_networks import ALPINE
from tests.problems.search import practice, sobol


def wiring(name: str) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """The parents and controls of each stage."""
    return {node.stage.name: (node.parents, tuple(node.stage.controls)) for node in practice(name).network.nodes}


def test_drop_wave_is_a_chain():
    assert wiring("drop-wave") == {"h": ((), ("x1", "x2")), "wave": (("h",), ())}
    problem = practice("drop-wave")
    points = sobol(problem, 8)
    r2 = (points**2).sum(axis=1)
    np.testing.assert_allclose(
        problem.objective(points), (1 + np.cos(12 * np.sqrt(r2))) / (0.5 * r2 + 2), rtol=1e-12, atol=1e-13
    )


def test_ackley_has_two_parents_of_all_controls():
    controls = tuple(f"x{i}" for i in range(1, 7))
    assert wiring("ackley") == {"a": ((), controls), "b": ((), controls), "ackley": (("a", "b"), ())}
    problem = practice("ackley")
    assert problem.network.domain.dimension == 6
    points = sobol(problem, 8)
    a, b = (points**2).mean(axis=1), np.cos(2 * np.pi * points).mean(axis=1)
    textbook = -20 * np.exp(-0.2 * np.sqrt(a)) - np.exp(b) + 20 + math.e
    np.testing.assert_allclose(problem.objective(points), -textbook, atol=1e-13)


@pytest.mark.parametrize("dimension", [3, 5])
def test_rosenbrock_shares_controls_between_neighbours(dimension):
    name = f"rosenbrock-{dimension}"
    expected = {f"s{k}": ((f"s{k - 1}",) if k > 1 else (), (f"x{k}", f"x{k + 1}")) for k in range(1, dimension)}
    assert wiring(name) == expected
    problem = practice(name)
    assert problem.network.domain.names == tuple(f"x{i}" for i in range(1, dimension + 1))
    points = sobol(problem, 8)
    total = sum(
        100 * (points[:, i + 1] - points[:, i] ** 2) ** 2 + (1 - points[:, i]) ** 2 for i in range(dimension - 1)
    )
    np.testing.assert_allclose(problem.objective(points), -total, rtol=1e-12)


def test_alpine2_is_a_running_product():
    assert wiring("alpine2") == {f"s{k}": ((f"s{k - 1}",) if k > 1 else (), (f"x{k}",)) for k in range(1, 7)}
    problem = practice("alpine2")
    points = sobol(problem, 8)
    np.testing.assert_allclose(problem.objective(points), np.prod(np.sqrt(points) * np.sin(points), axis=1), rtol=1e-12)


def test_the_maximiser_of_alpine2_to_many_digits():
    with mpmath.workdps(40):
        root = mpmath.findroot(lambda x: mpmath.tan(x) + 2 * x, 7.917)
        best = (mpmath.sqrt(root) * mpmath.sin(root)) ** 6
    assert abs(ALPINE - root) < 1e-15
    assert practice("alpine2").best.value == pytest.approx(float(best), rel=1e-14)
    x = np.linspace(0, 10, 200_001)
    assert np.abs(np.sqrt(x) * np.sin(x)).max() <= float(best) ** (1 / 6)


def test_an_output_of_ackley_is_exactly_zero_at_its_best():
    assert practice("ackley").objective(np.zeros((1, 6)))[0] == 0.0
