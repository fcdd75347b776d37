"""Tests that the regret of GPN-UCB never exceeds the bounds of the theorems if all assumptions are true.

Σ_T is taken over all inputs of a layer that the candidates lead to, computed from the true functions.
"""

from itertools import pairwise

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.kernels import Matern, SquaredExponential, Stationary
from cascada.network import Beliefs, ball_regions, enclose_network, prior_beliefs
from cascada.problems import Problem, certified
from cascada.problems.certified_problem import StagePlan, Wiring
from cascada.space import Grid
from cascada.theory.measurement import measure
from cascada.theory.promises import layers_of
from cascada.theory.regret import enclosing_ball_weights, per_step_bound, regret_bounds, step_weights
from cascada.theory.sums import sd_sum

ROUNDS = 25
KERNELS = (SquaredExponential(1.0), Matern(1.5), Matern(2.5, 1.5))
BALLS = Wiring("2 → 2 → 2 → 1, joint norms throughout", (
    StagePlan(("x", "y"), (), 2, joint=True), StagePlan((), (0,), 2, joint=True), StagePlan((), (1,), 1, joint=True),
))  # fmt: skip
SLACK = 1e-5  # regions are rounded outwards; at λ = 1e-10 sds are exact to 1e-6


def truth(problem: Problem, side: int = 15) -> Array:
    """All values of the process at a grid of candidates."""
    network = problem.network
    count = side if network.domain.dimension == 2 else 6
    return problem.values(Grid(dict.fromkeys(network.controls, count)).points(network.domain))


@pytest.mark.parametrize("structure", ["chain", "controls", "feed-forward", "multi-output"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", range(3))
def test_regret_is_at_most_the_per_step_bound_which_is_at_most_the_theorem_bound(structure, kernel, seed):
    problem = certified(structure, seed, kernel)
    values, layers = truth(problem), layers_of(problem.network)
    run = measure(problem.network, values, ROUNDS, balls=structure == "multi-output")
    sums = []
    for node, sds in zip(problem.network.nodes, run.sds.T, strict=True):
        inputs = np.unique(values[:, list(node.inputs)], axis=0)
        assert node.stage.kernel is not None
        sums.append(sd_sum(node.stage.kernel, inputs, ROUNDS).upper)
        assert sds.sum() <= sums[-1]
    steps = per_step_bound(layers, run.sds)
    assert np.all(run.regrets <= run.sds @ np.array(step_weights(layers)) + SLACK)  # eq:sim_6, eq:rt_ucb_3
    chain = [run.cumulative, steps.value, *(bound.value for bound in regret_bounds(layers, sums))]
    assert all(a <= b * (1 + 1e-9) + SLACK for a, b in pairwise(chain))


def beliefs_after(problem: Problem, values: Array, count: int, seed: int) -> Beliefs:
    chosen = np.random.default_rng(seed).choice(len(values), count, replace=False)
    return prior_beliefs(problem.network).append(values[chosen])


def sds_at(beliefs: Beliefs, values: Array) -> Array:
    """σ⁽ⁱ⁾ at the true inputs of every candidate, (n, m)."""
    columns = []
    for stage in beliefs.stages:
        assert stage.belief is not None
        columns.append(stage.belief.posterior.predict(values[:, list(stage.node.inputs)]).sd)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("structure", ["chain", "controls", "feed-forward", "feed-forward-3"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("count", [0, 3, 12, 40])
def test_no_interval_is_wider_than_the_weighted_sum_of_sds(structure, kernel, count):
    # Stronger than the regret: UCB − LCB at every candidate, with the true inputs of all layers (eq:sim_1 to eq:sim_6).
    problem = certified(structure, count, kernel)
    values = truth(problem)
    beliefs = beliefs_after(problem, values, count, seed=count)
    points = values[:, : problem.network.domain.dimension]
    boxes = enclose_network(beliefs, Boxes(points, points), form="hull").boxes
    column = problem.network.objective_column
    width = boxes.upper[:, column] - boxes.lower[:, column]
    bound = sds_at(beliefs, values) @ np.array(step_weights(layers_of(problem.network)))
    assert np.all(width <= bound + SLACK)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("count", [0, 3, 12, 40])
def test_balls_around_regions_are_as_narrow_as_the_intervals_of_a_chain(kernel: Stationary, count: int):
    problem = certified(BALLS, count, kernel)
    values = truth(problem)
    beliefs = beliefs_after(problem, values, count, seed=count)
    points = values[:, :2]
    width = 2 * ball_regions(beliefs, Boxes(points, points))[-1].radius
    layers = layers_of(problem.network)
    sds = sds_at(beliefs, values)
    assert np.all(width <= sds @ np.array(enclosing_ball_weights(layers)) + SLACK)
    assert np.all(width <= sds @ np.array(step_weights(layers)) + SLACK)


def test_points_may_repeat_and_regret_is_relative_to_the_best_candidate():
    problem = certified("chain", 0)
    values = truth(problem)
    run = measure(problem.network, values, 40)
    assert len(set(run.chosen)) < 40
    assert run.regrets.min() >= 0
    assert run.cumulative == pytest.approx(run.regrets.sum())
    assert run.sds.shape == (40, 3)
    assert np.allclose(run.sds[0], 1)
