"""Tests of one run of a benchmark: its design, its history, and faulty contestants."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.experiments.bench_run import Course, initial_points, run, simple_regret
from cascada.experiments.contestants import Contestant, contestant
from cascada.network.outputs import Outputs
from cascada.problems import Problem, certified
from cascada.study.certificate import Certificate
from tests.experiments.bench_stubs import PLACE, whole_numbers


class Scripted:
    """A contestant that suggests given points and records what it receives."""

    def __init__(self, points: list[list[float] | None]) -> None:
        self.points, self.received = points, list[tuple[Array, Outputs]]()

    def ask(self) -> Array | None:
        point = self.points.pop(0)
        return None if point is None else np.array(point)

    def tell(self, point: Array, outputs: Outputs) -> None:
        self.received.append((point, outputs))

    def certificate(self) -> Certificate | None:
        return None


@pytest.fixture(scope="module")
def chain() -> Problem:
    return certified("chain")


def course_of(problem: Problem, algorithm: str, budget: int, seed: int = 0, **options: Any) -> Course:
    points = initial_points(problem, 6, seed)
    make = partial(contestant, problem.network, algorithm, seed, 6, budget)
    return run(problem, make, points, budget, seed, **options)


def test_the_design_depends_only_on_problem_and_seed(chain):
    points = initial_points(chain, 5, 3)
    assert points.shape == (5, 2)
    assert (np.abs(points) <= 2).all()
    np.testing.assert_array_equal(points, initial_points(chain, 5, 3))
    assert not np.isin(points, initial_points(chain, 5, 4)).any()
    assert not np.isin(points, initial_points(certified("feed-forward"), 5, 3)).any()


def test_the_points_of_a_design_are_distinct():
    problem = whole_numbers()
    assert sorted(initial_points(problem, 5, 0).ravel().tolist()) == [0, 1, 2, 3, 4]
    with pytest.raises(
        ArgumentError, match=r"'whole numbers' has too few points for an initial design of 6; give a sm"
    ):
        initial_points(problem, 6, 0)


def test_a_run_evaluates_the_design_and_then_the_suggestions(chain):
    initial = initial_points(chain, 3, 0)
    chosen: list[list[float] | None] = [[0.5, 0.25], [-1.0, 2.0]]
    script = Scripted([*chosen])
    course = run(chain, lambda: script, initial, 2, 0)
    points = np.vstack([initial, np.array(chosen)])
    np.testing.assert_array_equal([point for point, _ in script.received], points)
    np.testing.assert_allclose(course.values, chain.objective(points), rtol=1e-12)
    assert set(script.received[0][1]) == {"s1", "s2", "s3"}
    assert (course.status, course.message, course.replaced, course.gaps) == ("budget", None, 0, [])
    assert (len(course.ask), len(course.tell)) == (2, 5)
    assert min(course.ask + course.tell) >= 0


def test_regret_is_of_the_best_so_far(chain):
    optimum = chain.optimum[1]
    values = [optimum - 3, optimum - 1, optimum - 2, optimum]
    np.testing.assert_allclose(simple_regret(chain, values), [3, 1, 1, 0], atol=1e-12)
    mirrored = whole_numbers(mirrored=True)  # the smallest value is f(4) = 1
    assert simple_regret(mirrored, [4.0, 5.0, 1.0]) == [3, 3, 0]
    assert simple_regret(chain, []) == []


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_study_receives_all_stages_and_the_sign(mirrored):
    problem = whole_numbers(high=12, mirrored=mirrored)
    make = partial(contestant, problem.network, "ei", 0, 3, 6)
    course = run(problem, make, initial_points(problem, 3, 0), 6, 0)
    assert course.status == "budget"
    assert simple_regret(problem, course.values)[-1] == 0


def test_the_same_seed_gives_the_same_run(chain):
    once, again, other = (course_of(chain, "cei", 2, seed) for seed in (1, 1, 2))
    assert once.values == again.values != other.values


def test_computing_gaps_does_not_change_the_points(chain):
    plain, looked = course_of(chain, "auto", 3), course_of(chain, "auto", 3, gaps_at=(1, 3))
    assert plain.values == looked.values
    assert plain.gaps == []
    assert [gap.evaluations for gap in looked.gaps] == [1, 3]
    assert {gap.kind for gap in looked.gaps} == {"proven"}
    regret = simple_regret(chain, looked.values)
    for gap in looked.gaps:
        assert gap.gap is not None
        assert gap.gap >= regret[6 + gap.evaluations - 1] - 1e-9


def test_an_exception_ends_the_run_and_keeps_its_values(chain):
    course = course_of(chain, f"{PLACE}:Failing", 4)
    assert (course.status, course.message) == ("failed", "ZeroDivisionError: a fault\nof this algorithm")
    assert len(course.values) == 7
    nothing = course_of(chain, "no-such-algorithm", 4)
    assert nothing.status == "failed"
    assert nothing.values == []


def test_a_repeat_is_replaced_by_a_random_point(chain):
    course = course_of(chain, f"{PLACE}:Repeating", 3)
    assert (course.status, course.replaced) == ("budget", 3)
    assert len(set(course.values)) == 9


def test_a_run_ends_when_no_point_is_suggested_or_left(chain):
    course = course_of(chain, f"{PLACE}:Ending", 5, gaps_at=(5,))
    assert (course.status, len(course.values)) == ("exhausted", 7)
    assert [gap.evaluations for gap in course.gaps] == [1]
    problem = whole_numbers()
    script = Scripted([[2.0]] * 5)
    made: Contestant = script
    course = run(problem, lambda: made, initial_points(problem, 4, 0), 5, 0)
    assert course.status == "exhausted"
    assert sorted(course.values) == [1, 1, 4, 4, 5]


def test_a_point_outside_the_domain_fails_the_run(chain):
    course = run(chain, lambda: Scripted([[2.5, 0.0]]), initial_points(chain, 2, 0), 1, 0)
    assert course.status == "failed"
    assert course.message is not None
    assert "control 'x' must lie in [-2, 2]; got 2.5" in course.message
