"""Tests of the published cascades: outputs scaled onto the next box, and the resulting maximum."""

import numpy as np
import pytest
from scipy.stats import qmc

from cascada.errors import ArgumentError
from cascada.problems import PRACTICE, matyas_cascade, rosenbrock_cascade, sphere_cascade
from cascada.problems.cascades import matyas_function, rosenbrock_function, sphere_function
from tests.problems.search import KERNEL, NORM_BOUND, practice, sobol

NAMES = [name for name in PRACTICE if name.endswith(("cascade-3", "cascade-5")) and not name.startswith("sample")]
HALF = {"rosenbrock": 2.0, "sphere": 5.12, "matyas": 10.0}


@pytest.mark.parametrize("name", NAMES)
def test_each_stage_has_two_controls_and_the_previous_output(name):
    problem = practice(name)
    stages = int(name[-1])
    half = HALF[name.split("-")[0]]
    assert [node.parents for node in problem.network.nodes] == [(), *((f"y{i}",) for i in range(1, stages))]
    assert [len(node.stage.controls) for node in problem.network.nodes] == [2] * stages
    assert all((c.low, c.high) == (-half, half) for c in problem.network.domain.controls.values())
    assert problem.best.value == half


@pytest.mark.parametrize("name", NAMES)
def test_outputs_stay_in_the_next_box(name):
    problem = practice(name)
    half = HALF[name.split("-")[0]]
    outputs = problem.values(sobol(problem, 13))[:, problem.network.domain.dimension :]
    assert np.abs(outputs).max() <= half * (1 + 1e-14)
    assert outputs.max(axis=0).min() > 0.9 * half


@pytest.mark.parametrize(
    ("function", "half", "largest"),
    [
        (rosenbrock_function, 2.0, (3609.0, 7218.0)),
        (sphere_function, 5.12, (2 * 5.12**2, 3 * 5.12**2)),
        (matyas_function, 10.0, (100.0, 100.0)),
    ],
)
def test_stages_are_scaled_by_the_range_over_the_box(function, half, largest):
    """A sample with all corners of the box contains no value above the maximum or below 0."""
    for inputs, most in zip((2, 3), largest, strict=True):
        points = half * (2 * qmc.Sobol(inputs, seed=0).random_base2(14) - 1)
        corners = half * (2.0 * np.indices((2,) * inputs).reshape(inputs, -1).T - 1)
        values = function(list(np.vstack([points, corners]).T))
        assert values.max() == pytest.approx(most, rel=1e-14)
        assert values.min() >= 0
        assert function([1.0 if function is rosenbrock_function else 0.0] * inputs) == 0


def test_the_published_functions():
    u = (0.5, -1.5, 2.0)
    assert rosenbrock_function(u) == 100 * (-1.5 - 0.25) ** 2 + 0.25 + 100 * (2 - 2.25) ** 2 + 6.25
    assert sphere_function(u) == 0.25 + 2.25 + 4
    assert matyas_function(u) == pytest.approx(0.26 * 2.5 + 0.48 * 0.75)


def test_the_second_control_of_later_matyas_stages_has_no_effect():
    problem = practice("matyas-cascade-3")
    points = sobol(problem, 4)
    moved = points.copy()
    moved[:, [3, 5]] = 0.0
    np.testing.assert_array_equal(problem.objective(points), problem.objective(moved))


def test_the_best_input_of_a_stage_is_not_an_extreme_of_the_previous_stage():
    """Maximising one stage after the other does not give the maximum."""
    problem = practice("rosenbrock-cascade-3")
    greedy = np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])  # y1 = 2: the maximum of the first stage
    assert problem.values(greedy)[0, 6] == 2.0
    assert problem.objective(greedy)[0] < 2.0 - 0.05


@pytest.mark.parametrize("make", [rosenbrock_cascade, sphere_cascade, matyas_cascade])
@pytest.mark.parametrize("stages", [3, 4, 6])
def test_cascades_of_any_length_attain_their_best_value(make, stages):
    problem = make(stages, kernel=KERNEL, norm_bound=NORM_BOUND)
    assert problem.name.endswith(f"-cascade-{stages}")
    assert problem.objective(problem.best.points)[0] == pytest.approx(problem.best.value, rel=1e-12)
    problem.network.domain.check(problem.best.points)
    with pytest.raises(ArgumentError, match="a cascade must have at least 3 stages; got 2"):
        make(2)
