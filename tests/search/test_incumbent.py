"""The proven incumbent: feasible, with a value that it gives at least, and as good as a short search allows."""

import numpy as np
import pytest

from cascada.confidence import Boxes
from cascada.network import prior_beliefs
from cascada.problems import Problem
from cascada.problems.limited_problem import LimitedProblem, limited
from cascada.search.incumbent import proven_incumbent
from tests.network.test_feasibility import learned, mixed, truth


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seed", range(4))
def test_the_incumbent_is_feasible_and_gives_its_value(seed: int, sign: int) -> None:
    problem = limited("join", seed, "cut")
    if sign < 0:
        one = problem.problem
        problem = LimitedProblem(Problem(one.name, one.summary, one.network.mirrored(), one.values))
    domain, rng = problem.network.domain, np.random.default_rng(seed)
    rows = problem.problem.values(rng.uniform(domain.lower, domain.upper, (40, domain.dimension)))
    found = proven_incumbent(prior_beliefs(problem.network).append(rows), rows[:, : domain.dimension], rng)
    assert found is not None
    assert problem.feasible(domain.decode(found.point[None]))[0]
    true = sign * float(problem.problem.objective(domain.decode(found.point[None]))[0])
    assert found.value <= true
    # It is at least as good as the best feasible run, whose value is known.
    feasible = problem.feasible(rows[:, : domain.dimension])
    assert found.value >= (sign * rows[feasible, problem.network.objective_column]).max() - 1e-6


def test_no_incumbent_without_a_proof() -> None:
    problem = limited("join", 0, "none")
    domain, rng = problem.network.domain, np.random.default_rng(0)
    rows = problem.problem.values(rng.uniform(domain.lower, domain.upper, (20, domain.dimension)))
    assert proven_incumbent(prior_beliefs(problem.network).append(rows), rows[:, : domain.dimension], rng) is None


def test_the_incumbent_is_a_setting_of_integer_and_logarithmic_controls() -> None:
    network = mixed(dry={"moisture": (None, 0.2), "heat": (None, 5.0)})
    beliefs, domain = learned(network, 30), network.domain
    starts = domain.encode(np.array([[1.0, 2, 0.0], [0.3, 3, 0.5]]))
    found = proven_incumbent(beliefs, starts, np.random.default_rng(0))
    assert found is not None
    setting = domain.decode(found.point[None])
    assert setting[0, 1] == round(setting[0, 1])
    values = truth(network, setting)
    assert network.is_feasible({node.stage.name: values[0, list(node.columns)].tolist() for node in network.nodes})
    assert found.value <= values[0, network.objective_column]


def test_fixed_sides_keep_their_values() -> None:
    network = mixed(dry={"moisture": (None, 0.2)})
    beliefs, domain = learned(network, 30), network.domain
    start = domain.encode(np.array([[1.0, 2, 0.0]]))
    within = Boxes(np.array([[start[0, 0], 0.0, -1.0]]), np.array([[start[0, 0], 4.0, 1.0]]))
    found = proven_incumbent(beliefs, start, np.random.default_rng(0), within)
    assert found is not None
    assert found.point[0] == start[0, 0]
