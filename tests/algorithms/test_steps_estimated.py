"""Tests of steps where kernels and norms are estimated."""

import math
from dataclasses import replace

import numpy as np
import pytest

import cascada as cd
from cascada.algorithms import Situation
from cascada.algorithms.step_plans import Plans
from cascada.algorithms.step_promise import Promise
from cascada.algorithms.step_wiring import StepWiring
from cascada.algorithms.steps import suggest_step
from cascada.algorithms.stock import Item, Stock
from cascada.calibration import Calibration, calibrate
from cascada.network import Beliefs, Network, prior_beliefs
from cascada.network.mean import imagined_at, with_mean_of


def mixed(costs: tuple[float, float] = (10.0, 1.0)) -> Network:
    """Two stages without norms; the first has two outputs."""
    return cd.chain(
        cd.Stage("mix", controls={"x": cd.Real(0, 3)}, outputs=["a", "b"], cost=costs[0], portions=math.inf),
        cd.Stage("cure", controls={"y": cd.Real(0, 3)}, cost=costs[1], reachable="stock"),
    )


def runs(count: int) -> np.ndarray:
    points = np.random.default_rng(0).uniform(0, 3, (count, 2))
    a, b = np.sin(points[:, 0]), np.cos(2 * points[:, 0])
    return np.stack([*points.T, a, b, a * np.cos(points[:, 1]) + 0.3 * b], axis=1)


def known(network: Network, data: np.ndarray) -> tuple[Situation, Stock]:
    beliefs = calibrate(network, data, Calibration(), 1e-10).acting
    situation = Situation(beliefs, data, np.empty((0, 5)), None, float(data[:, -1].max()), len(data))
    items = [Item(0, i, np.where([1, 0, 1, 1, 0], row, np.nan), True, {1: math.inf}) for i, row in enumerate(data)]
    return situation, Stock(tuple(items), (), (), 11.0 * len(data), 11.0 * len(data))


def test_a_step_of_an_estimated_process_promises_an_improvement():
    network = mixed()
    situation, stock = known(network, runs(6))
    found, again = (suggest_step(situation, stock, np.random.default_rng(0)) for _ in range(2))
    assert found.step is not None
    assert again.step is not None
    assert found.suggestion.bound is None  # estimates prove nothing
    assert found.step.fall > 0
    assert np.array_equal(found.step.row, again.step.row, equal_nan=True)


def test_a_kept_output_is_preferred_where_the_first_stage_is_expensive():
    network = mixed((1000.0, 1.0))
    situation, stock = known(network, runs(6))
    step = suggest_step(situation, stock, np.random.default_rng(0)).step
    assert step is not None
    assert step.nodes == (1,)
    assert step.closed
    assert step.takes


def test_a_plan_that_completes_a_run_is_credited_with_what_it_is_expected_to_reach():
    network = mixed()
    situation, stock = known(network, runs(6))
    x = np.array([1.4, 0.1])
    plans = Plans(StepWiring.of(network), situation.beliefs, stock.items, x).all(np.random.default_rng(0))
    low = replace(situation, best=-1.0)  # far below the mean at x
    value = Promise.at(low, situation.beliefs, x, np.random.default_rng(0))
    complete = plans[0]
    assert complete.end is not None
    assert value.fall(complete) > value.fall(replace(complete, end=None))


def test_all_parts_of_a_stage_learn_what_is_imagined():
    network = mixed()
    situation, _ = known(network, runs(6))
    beliefs = situation.beliefs
    assert len(beliefs.stages) == 3  # the outputs of the first stage are estimated one by one
    row = np.array([1.1, np.nan, np.nan, np.nan, np.nan])
    after = imagined_at(beliefs, 0, row)
    counts = [[s.belief.posterior.count for s in b.stages if s.belief is not None] for b in (beliefs, after)]
    assert counts == [[6, 6, 6], [7, 7, 6]]
    assert np.isfinite(with_mean_of(beliefs, 0, row)[[2, 3]]).all()


def test_the_parts_of_a_stage_with_given_norms_are_one():
    kernel = cd.SquaredExponential(1.0)
    network = cd.chain(cd.Stage("f", controls={"x": cd.Real(0, 1)}, kernel=kernel, norm_bound=1.0))
    beliefs: Beliefs = prior_beliefs(network)
    assert beliefs.parts(0) == [0]
    with pytest.raises(IndexError):
        beliefs.parts(1)
