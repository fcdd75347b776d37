"""Tests of one run in the paper's setting with scripted algorithms."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from cascada.algorithms import Algorithm, RandomSearch, Situation, Suggestion
from cascada.arrays import Array
from cascada.confidence import Belief
from cascada.errors import ArgumentError
from cascada.experiments.paper_grid import PaperGrid
from cascada.experiments.run import outcomes, recommended_regret, run
from cascada.problems import PAPER_GRID, Problem, sampled_chain


@dataclass
class Scripted:
    """An algorithm that suggests given candidates by number and records its contexts."""

    numbers: list[int]
    asked: list[Situation] = field(default_factory=list)
    recommends: int | None = None

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:  # noqa: ARG002
        self.asked.append(situation)
        assert situation.candidates is not None
        return Suggestion(situation.candidates[self.numbers[situation.trial]], cache=("kept", situation.trial))

    def recommend(self, situation: Situation) -> Array | None:
        self.asked.append(situation)
        assert situation.candidates is not None
        return None if self.recommends is None else situation.candidates[self.recommends]


@dataclass(frozen=True)
class Fixed:
    """An algorithm that always suggests one given point, or none."""

    point: Array | None

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:  # noqa: ARG002
        return Suggestion(self.point)

    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        return self.point


@pytest.fixture(scope="module")
def problem() -> Problem:
    return sampled_chain(0, norm_bound=2.0, lipschitz=2.0)


@pytest.fixture(scope="module")
def truth(problem: Problem) -> Array:
    return problem.objective(PAPER_GRID.points(problem.network.domain))


def test_regrets_are_those_of_the_points_run(problem, truth):
    numbers = [0, 1300, int(truth.argmax()), 77]
    assert run(problem, Scripted(numbers), 4, seed=0) == (truth.max() - truth[numbers]).tolist()


def test_the_context_holds_all_earlier_runs(problem, truth):
    numbers = [5, 900, 900, 5, 30]
    script = Scripted(numbers)
    run(problem, script, 5, seed=0)
    for trial, situation in enumerate(script.asked):
        assert (situation.trial, situation.horizon) == (trial, 5)
        assert situation.cache == (("kept", trial - 1) if trial else None)
        assert situation.best == (truth[numbers[:trial]].max() if trial else -np.inf)
        assert len(situation.data) == trial
        assert len(situation.pending) == 0
        assert not situation.taken
        belief = situation.beliefs.stages[0].belief
        assert isinstance(belief, Belief)
        assert belief.posterior.jitter == 1e-7
        assert belief.posterior.count == len(set(numbers[:trial]))
        best = numbers[int(truth[numbers[:trial]].argmax())] if trial else None
        assert situation.candidates is not None
        np.testing.assert_equal(situation.best_point, None if best is None else situation.candidates[best])


def test_a_repeated_point_keeps_the_same_beliefs_object(problem):
    script = Scripted([5, 900, 900, 5, 30])
    run(problem, script, 5, seed=0)
    assert script.asked[2].beliefs is script.asked[3].beliefs is script.asked[4].beliefs
    assert script.asked[1].beliefs is not script.asked[2].beliefs


def test_a_refuted_norm_bound_does_not_stop_a_run(problem):
    """B = 2 is refuted within a few runs; the paper's algorithm continues and still finds good points."""
    regrets = run(problem, PaperGrid(), 12, seed=0)
    assert len(regrets) == 12
    assert min(regrets) < 0.5 * regrets[0] or min(regrets) < 0.1


@pytest.mark.parametrize("algorithm", [PaperGrid(), RandomSearch()])
def test_a_run_is_determined_by_its_seed(problem, algorithm: Algorithm):
    once, again, other = (run(problem, algorithm, 3, seed) for seed in ([1, 2], [1, 2], [1, 3]))
    assert once == again != other


def test_recommended_regret(problem, truth):
    assert recommended_regret(problem, Scripted([1, 2], recommends=99), 2, seed=0) == truth.max() - truth[99]
    assert recommended_regret(problem, Scripted([1, 2]), 2, seed=0) == truth.max() - truth[[1, 2]].max()
    script = Scripted([1, 2, 3], recommends=0)
    recommended_regret(problem, script, 3, seed=0)
    assert [(situation.trial, len(situation.data)) for situation in script.asked] == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_a_point_between_candidates_is_evaluated(problem, truth):
    point = np.array([0.01, 0.02])
    regret = truth.max() - problem.objective(point[None])[0]
    assert run(problem, Fixed(point), 2, seed=0) == [regret, regret]
    assert recommended_regret(problem, Fixed(point), 1, seed=0) == regret


def test_an_algorithm_without_a_suggestion_raises_an_argument_error(problem):
    with pytest.raises(ArgumentError, match="suggested none at trial 0 of 2"):
        run(problem, Fixed(None), 2, seed=0)


def test_outcomes_are_cached(problem):
    assert outcomes(problem) is outcomes(problem)
    assert outcomes(problem).candidates.shape == (2500, 2)
