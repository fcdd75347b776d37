"""Branch and bound: its bound is valid whatever stops it, no point is suggested twice, and the tree covers the box."""

import re

import numpy as np
import pytest

from cascada.confidence import Boxes
from cascada.errors import RefutedError
from cascada.kernels import SquaredExponential
from cascada.network import Beliefs, Stage, chain, enclose_network, objective_above, prior_beliefs
from cascada.problems import Problem, certified
from cascada.search import Joint, Leaves, ObjectiveBounds, SearchBudget, search
from cascada.space import Integer, Real
from cascada.study.certificate import beaten


def observed(structure: str, runs: int, seed: int = 0) -> tuple[Problem, Beliefs, np.ndarray]:
    problem = certified(structure, seed)
    domain = problem.network.domain
    X = np.random.default_rng(seed).uniform(domain.lower, domain.upper, (runs, domain.dimension))
    values = problem.values(X)
    return problem, prior_beliefs(problem.network).append(values), values


@pytest.mark.parametrize(
    "budget",
    [SearchBudget(cells=1), SearchBudget(cells=200), SearchBudget(cells=3000), SearchBudget(seconds=0.0)],
    ids=str,
)
@pytest.mark.parametrize("structure", ["chain", "controls", "feed-forward", "join"])
def test_the_bound_holds_whatever_stops_the_search(structure: str, budget: SearchBudget) -> None:
    problem, beliefs, values = observed(structure, 8)
    best = float(values[:, problem.network.objective_column].max())
    leaves = Leaves.root(problem.network.domain)
    outcome = search(ObjectiveBounds(beliefs), leaves, best, 8, budget, prove=True)
    assert outcome.bound >= problem.optimum[1] - 1e-9
    assert outcome.bound >= best


def test_more_cells_never_loosen_the_bound() -> None:
    problem, beliefs, values = observed("controls", 10)
    best = float(values[:, problem.network.objective_column].max())
    bounds = [
        search(
            ObjectiveBounds(beliefs), Leaves.root(problem.network.domain), best, 10, SearchBudget(cells=n), prove=True
        ).bound
        for n in (10, 100, 1000, 5000)
    ]
    assert np.all(np.diff(bounds) <= 1e-12)


def test_leaves_and_dropped_cells_cover_the_box() -> None:
    """Every point is in a leaf, or its own bound is at most the best value."""
    problem, beliefs, values = observed("controls", 25)
    domain = problem.network.domain
    best = float(values[:, problem.network.objective_column].max())
    outcome = search(ObjectiveBounds(beliefs), Leaves.root(domain), best, 25, SearchBudget(cells=1500), prove=True)
    points = np.random.default_rng(1).uniform(domain.lower, domain.upper, (3000, 3))
    inside = np.any(
        np.all((outcome.leaves.lower[:, None] <= points) & (points <= outcome.leaves.upper[:, None]), axis=2), axis=0
    )
    assert np.all(problem.objective(points[~inside]) <= best + 1e-9)
    assert 0 < inside.sum() < 3000


def test_a_taken_point_is_not_suggested() -> None:
    problem, beliefs, values = observed("controls", 5)
    best = float(values[:, problem.network.objective_column].max())
    taken: list[bytes] = []
    for _ in range(5):
        leaves = Leaves.root(problem.network.domain)
        outcome = search(
            ObjectiveBounds(beliefs), leaves, best, 5, SearchBudget(), taken=lambda p: p.tobytes() in taken
        )
        assert outcome.point is not None
        assert outcome.point.tobytes() not in taken
        taken.append(outcome.point.tobytes())


def test_a_proof_stops_if_only_runs_lower_the_bound() -> None:
    """After one run some points attain the bound: cutting more cells does not lower it."""
    problem, beliefs, values = observed("chain", 1)
    best = float(values[0, problem.network.objective_column])
    leaves = Leaves.root(problem.network.domain)
    outcome = search(ObjectiveBounds(beliefs), leaves, best, 1, SearchBudget(cells=50_000), prove=True)
    assert outcome.stopped == "runs"
    assert outcome.cells < 50_000


def test_a_box_of_single_points_is_exhausted() -> None:
    kernel = certified("chain").network.stages[0].kernel
    network = chain(Stage("f", controls={"n": Integer(0, 1)}, kernel=kernel, norm_bound=1.0))
    beliefs = prior_beliefs(network).append(np.array([[0.0, 0.2], [1.0, 0.4]]))
    outcome = search(
        ObjectiveBounds(beliefs), Leaves.root(network.domain), 0.4, 2, SearchBudget(), taken=lambda _: True
    )
    assert outcome.point is None
    assert outcome.bound == pytest.approx(0.4, abs=1e-9)


@pytest.mark.parametrize("structure", ["controls", "feed-forward", "multi-output", "join", "known"])
def test_the_joint_form_never_exceeds_the_bound_and_has_its_gradient(structure: str) -> None:
    problem, beliefs, _ = observed(structure, 7)
    joint = Joint(beliefs)
    rng = np.random.default_rng(2)
    d = problem.network.domain.dimension
    points = np.hstack([rng.uniform(-2, 2, (60, d)), rng.uniform(-1, 1, (60, joint.size - d))])
    values, gradients = joint(points)
    cells = Boxes(points[:, :d], points[:, :d])
    upper = objective_above(problem.network, enclose_network(beliefs, cells))
    assert np.all(values <= upper + 1e-6)
    step = 1e-6
    for j in range(joint.size):
        ahead, behind = points.copy(), points.copy()
        ahead[:, j] += step
        behind[:, j] -= step
        slope = (joint(ahead)[0] - joint(behind)[0]) / (2 * step)
        np.testing.assert_allclose(gradients[:, j], slope, atol=2e-5)


@pytest.mark.parametrize(("sign", "word"), [(1, "exceeds"), (-1, "is below")])
def test_a_run_above_the_bound_is_refuted_by_numbers_in_the_sign_of_the_objective(sign: int, word: str) -> None:
    """The bound is printed with digits that show that the run is beyond it."""
    network = chain(Stage("f", {"x": Real(-2, 2)}, kernel=SquaredExponential(1.0), norm_bound=1e-3, offset=1e6))
    network = network if sign > 0 else network.mirrored()
    beliefs, leaves, best = prior_beliefs(network), Leaves.root(network.domain), sign * 1e6 + 0.25
    run = np.array([0.0, sign * best])
    with pytest.raises(RefutedError) as e:
        search(ObjectiveBounds(beliefs, run), leaves, best, 0, SearchBudget(cells=9), prove=True)
    message = re.match(rf"A run gave (\S+), but by the assumptions nothing there {word} (\S+): ", str(e.value))
    assert message is not None
    value, limit = message.groups()
    assert value == ("1000000.2" if sign > 0 else "999999.8")
    assert sign * 1e6 + 1e-3 <= sign * float(limit) < sign * float(value)


def test_a_contradiction_is_reported_in_the_sign_of_the_objective() -> None:
    assert beaten(1000000.4, 1000000.12, 1) == (
        "a run gave 1000000.4, but by the assumptions no setting gives more than 1000000.2."
    )
    assert beaten(-3.0, -3.5, -1) == "a run gave 3, but by the assumptions no setting gives less than 3.5."
