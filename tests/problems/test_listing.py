"""The list of built-in problems: it agrees with the problems, and nothing slow is loaded or solved for it."""

import pytest

from cascada.problems import PROBLEMS, by_name, certified, sampled_chain
from cascada.problems.listing import listed
from cascada.problems.recorded import recorded_optimum
from tests.test_architecture import loaded_by

LISTED = {problem.name: problem for problem in listed()}
RECORDED = [name for name in PROBLEMS if recorded_optimum(name) is not None]


def test_every_problem_is_listed_in_order() -> None:
    assert list(LISTED) == list(PROBLEMS)
    assert len(RECORDED) == 10


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_list_says_what_the_problem_says(name: str) -> None:
    problem, shown = by_name(name), LISTED[name]
    network = problem.network
    assert (shown.structure, shown.dimension) == (problem.summary, network.domain.dimension)
    assert shown.stages == len(network.stages)
    assert (shown.optimum.value, shown.optimum.how) == (problem.best.value, problem.best.how)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_optimum_is_attained_and_that_of_the_search(name: str) -> None:
    problem = by_name(name)
    assert problem.best.how == "numerical"
    assert problem.objective(problem.best.points)[0] == pytest.approx(problem.best.value, abs=1e-9)
    assert problem._searched().value == pytest.approx(problem.best.value, abs=1e-9)


def test_other_seeds_and_norms_have_no_recorded_optimum() -> None:
    assert certified("chain", seed=1).answer is None
    assert certified("chain", norm=3.0).answer is None
    assert sampled_chain(seed=1).answer is None
    assert recorded_optimum("certified-own") is None


def test_listing_loads_no_solver_and_draws_no_function() -> None:
    loaded = loaded_by("from cascada.problems.listing import listed\nassert len(list(listed())) > 20")
    assert "cascada.problems.sampled_chain" in loaded
    assert not {name for name in loaded if name.partition(".")[0] in ("scipy", "pvlib", "pandas")}
