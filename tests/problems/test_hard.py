"""Tests that hard problems have their stated properties and that every algorithm obeys the lower bounds."""

import pickle

import numpy as np
import pytest

import cascada as cd
from cascada.algorithms import NAMES
from cascada.kernels import Matern
from cascada.problems.hard import hard_problem, hard_problems
from cascada.theory.hard import HardFamily, family_of_cells
from cascada.theory.layers import Structure
from cascada.theory.lower import average_cumulative_regret, average_simple_regret, longest_horizon
from tests.theory.reference import positive_members
from tests.thorough import THOROUGH

STRUCTURES: dict[Structure, tuple[int, ...]] = {"chain": (1, 1, 1), "multi-output": (2, 2), "feed-forward": (2, 2)}
ALGORITHMS = [name for name in NAMES if name != "auto"]


def make(structure: Structure, cells: int, dims: tuple[int, ...] | None = None) -> HardFamily:
    chosen = STRUCTURES[structure] if dims is None else dims
    return family_of_cells(Matern(1.5), 5.0, cells, dims=chosen, u=0.5, u_tilde=0.3, structure=structure)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_optimum_is_attained_and_not_beaten(structure):
    family = make(structure, 4)
    for member, problem in enumerate(hard_problems(family)):
        point, value = problem.optimum
        assert problem.best.how == "analytic"
        assert problem.objective(point[None])[0] == value == family.heights[-1]
        assert value == pytest.approx(2 * family.epsilon, rel=1e-12)
        points = np.random.default_rng(member).uniform(0, 1, (500, family.dimension))
        assert problem.objective(points).max() <= value
        assert set(np.flatnonzero(problem.objective(points))) == set(
            np.flatnonzero(positive_members(family, points) == member)
        )


@pytest.mark.parametrize("structure", STRUCTURES)
def test_pickled_stages_agree_with_the_table_of_values(structure):
    family = make(structure, 4)
    problem = hard_problem(family, 2)
    near = problem.optimum[0] + 0.03
    row = problem.values(near[None])[0]
    columns = dict(zip(problem.network.controls, near, strict=True))
    for node in problem.network.nodes:
        function = pickle.loads(pickle.dumps(node.stage.function))
        outputs = function(**{name: columns[name] for name in node.input_names})
        assert outputs == row[list(node.columns)].tolist()
        columns.update(zip(node.stage.outputs, outputs, strict=True))
    assert all(stage.norm_bound is not None and (stage.norm_bound == 5.0).all() for stage in problem.network.stages)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_stated_properties_of_a_member_are_true(structure):
    """Many observations of every stage do not refute B or L, and every bound is above the best value."""
    family = make(structure, 3)
    problem = hard_problem(family, 1)
    study = cd.Study(problem.network)
    rng = np.random.default_rng(0)
    for point in problem.optimum[0] + family.needle.width * rng.uniform(-1, 1, (25, family.dimension)):
        values = problem.values(point[None])[0]
        outputs = {node.stage.name: values[list(node.columns)] for node in problem.network.nodes}
        study.add_trial(dict(zip(problem.network.controls, point, strict=True)), outputs)
    certificate = study.certificate()
    assert certificate.kind == "proven"
    assert certificate.bound is not None
    assert certificate.bound >= problem.best.value


def simple_and_cumulative(family: HardFamily, member: int, algorithm: str, points: int | None) -> tuple[float, float]:
    """Simple and cumulative regret of one algorithm on one member after the longest horizon."""
    problem = hard_problem(family, member)
    controls = problem.network.controls
    candidates = None if points is None else cd.Grid(dict.fromkeys(controls, points))
    budget = longest_horizon(family)
    result = cd.maximise(
        problem.network, budget=budget, algorithm=algorithm, candidates=candidates, progress=False, seed=3
    )
    assert len(result.trials) == budget
    assert result.best is not None
    assert result.best.value is not None
    answer = result.recommended or result.best.controls
    best = problem.best.value
    simple = best - problem.objective(np.array([[answer[name] for name in controls]]))[0]
    if result.gap is not None:
        assert result.gap_kind == "proven"
        assert result.gap >= best - result.best.value  # the proven gap is correct
    return simple, sum(best - trial.value for trial in result.trials if trial.value is not None)


@pytest.mark.parametrize(
    ("structure", "dims", "cells", "points", "algorithms"),
    [
        ("chain", (1, 1), 12 if THOROUGH else 8, 61, ALGORITHMS),
        ("chain", (1, 1), 8, None, ["gpn_ucb", "non_adaptive", "random_search"]),
        ("chain", (1, 1, 1), 10 if THOROUGH else 8, 61, ["gpn_ucb", "ei"]),
        ("multi-output", (2, 2), 3, 13, ["gpn_ucb", "cucb", "non_adaptive"]),
        ("feed-forward", (2, 2), 3, 13, ["gpn_ucb", "oi", "random_search"]),
    ],
)
def test_every_algorithm_obeys_the_lower_bounds(structure, dims, cells, points, algorithms):
    """thm:lower_sim and thm:lower_cml, by running every member: T ≤ M/2 − 1 ⇒ average simple regret ≥ ε."""
    family = make(structure, cells, dims)
    horizon = longest_horizon(family)
    assert horizon >= 3
    for algorithm in algorithms:
        runs = [simple_and_cumulative(family, member, algorithm, points) for member in range(family.members)]
        simple, cumulative = np.mean(runs, axis=0)
        assert simple >= family.epsilon * (1 - 1e-9), algorithm
        assert simple >= average_simple_regret(family, horizon).value * (1 - 1e-9), algorithm
        assert cumulative >= average_cumulative_regret(family, horizon).value * (1 - 1e-9), algorithm


def test_searching_the_centres_nearly_attains_the_bound():
    """A search over the centres of all needles exceeds the bound by the contribution of one point."""
    family = make("chain", 12, (1, 1))
    horizon = longest_horizon(family)
    centres = np.array([family.centre(member) for member in range(12)])
    regrets = []
    for problem in hard_problems(family):
        result = cd.maximise(
            problem.network, budget=horizon, algorithm="random_search", candidates=centres, progress=False
        )
        assert result.best is not None
        assert result.best.value is not None
        regrets.append(problem.best.value - result.best.value)
    assert np.mean(regrets) == pytest.approx(2 * family.epsilon * (1 - horizon / 12), rel=1e-9)
    assert np.mean(regrets) - average_simple_regret(family, horizon).value == pytest.approx(2 * family.epsilon / 12)
