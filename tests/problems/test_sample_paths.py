"""Tests of cascades of sample paths: covariance of the samples, and the optimum found stage by stage."""

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.kernels import SquaredExponential
from cascada.problems import sample_path_cascade
from cascada.problems.sample_paths import DEVIATION, SamplePath, sample_path, stagewise_optimum
from tests.problems.search import KERNEL, NORM_BOUND, practice, sobol


def test_samples_have_the_kernel_as_their_covariance():
    """A covariance over n draws has variance at most 2s⁴/n; the tolerance is five standard deviations."""
    n = 400
    points = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, -1.0], [9.0, 0.0, 3.0], [9.5, -3.0, 3.0]])
    inputs = ("a", "b", "c")
    columns = dict(zip(inputs, points.T, strict=True))
    values = np.array([sample_path(inputs, np.random.default_rng([3, i]))(**columns) for i in range(n)]) / DEVIATION
    assert np.abs(values.mean(axis=0)).max() < 5 / np.sqrt(n)
    expected = SquaredExponential(3.0)(points, points)
    assert np.abs(values.T @ values / n - expected).max() < 5 * np.sqrt(2 / n)


def test_the_same_seed_gives_the_same_cascade():
    points = sobol(practice("sample-path-cascade-3"), 4)
    once, again, other = (sample_path_cascade(3, seed, KERNEL, NORM_BOUND).values(points) for seed in (0, 0, 1))
    np.testing.assert_array_equal(once, again)
    assert np.abs(once[:, 6:] - other[:, 6:]).min() > 0
    np.testing.assert_array_equal(once, practice("sample-path-cascade-3").values(points))


def test_gradients_are_those_of_the_values():
    path = sample_path(("a", "b", "c"), np.random.default_rng(1))
    point = np.array([1.0, -2.0, 7.0])
    value, gradient = path.value_and_gradient(point)
    assert value == pytest.approx(float(path(a=1.0, b=-2.0, c=7.0)))
    for j, step in enumerate(1e-5 * np.eye(3)):
        slope = (path.value_and_gradient(point + step)[0] - path.value_and_gradient(point - step)[0]) / 2e-5
        assert gradient[j] == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_values_of_many_points_do_not_depend_on_blocks():
    problem = practice("sample-path-cascade-3")
    points = sobol(problem, 11)
    np.testing.assert_allclose(problem.values(points)[700:702], problem.values(points[700:702]), rtol=1e-12)


@pytest.mark.parametrize("stages", [3, 5])
def test_the_recorded_optimum_is_found_again_stage_by_stage(stages):
    problem = practice(f"sample-path-cascade-{stages}")
    paths = [stage.function for stage in problem.network.stages if isinstance(stage.function, SamplePath)]
    assert len(paths) == stages
    found = stagewise_optimum(paths)
    assert found.value == pytest.approx(problem.best.value, rel=1e-9)
    assert problem.objective(found.points)[0] == pytest.approx(found.value, rel=1e-9)


def test_the_optimum_of_other_seeds_is_computed():
    problem = sample_path_cascade(3, 4, KERNEL, NORM_BOUND)
    assert problem.best.how == "numerical"
    assert problem.objective(problem.best.points)[0] == pytest.approx(problem.best.value, rel=1e-9)
    problem.network.domain.check(problem.best.points)
    assert problem.objective(sobol(problem, 13)).max() <= problem.best.value


def test_too_few_stages_raise_an_argument_error():
    with pytest.raises(ArgumentError, match="a cascade must have at least 2 stages; got 1"):
        sample_path_cascade(1)
