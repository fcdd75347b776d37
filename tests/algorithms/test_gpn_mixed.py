"""GPN-UCB mixed with runs at the maximum of the composite mean."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.loose_norms import tile
from cascada.algorithms import GPNUCB, GPNMixed, Situation, point_key
from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.kernels import SquaredExponential
from cascada.network import Stage, chain, composite_mean
from cascada.space import Real
from cascada.study import Study, maximise
from tests.algorithms.cases import situation_after
from tests.network.cases import NETWORKS, points, truth, values

IN_TURN, NOT_IN_TURN = 5, 6  # numbers of trials: one of every four is the turn of the mean


def situation(name: str, trial: int, runs: int = 5, candidates: bool = False) -> Situation:
    network = NETWORKS[name]
    rng = np.random.default_rng(3)
    controls = points(network, runs, rng)
    listed = network.domain.encode(points(network, 30, rng)) if candidates else None
    made = situation_after(network, values(network, truth(network, 5), controls), listed)
    taken = frozenset(point_key(network.domain, point) for point in network.domain.encode(controls))
    return replace(made, trial=trial, taken=taken)


def suggested(algorithm: GPNMixed | GPNUCB, now: Situation) -> Array:
    """The point that an algorithm suggests, which must be there."""
    point = algorithm.suggest(now, np.random.default_rng(0)).point
    assert point is not None
    return point


def mean_at(now: Situation, coordinates: Array) -> Array:
    network = now.beliefs.network
    return network.sign * composite_mean(now.beliefs, coordinates)[:, network.objective_column]


@pytest.mark.parametrize("trial", [IN_TURN, NOT_IN_TURN])
@pytest.mark.parametrize("name", ["chain", "graph", "passes and integers", "multi-output chain"])
def test_the_bound_and_the_tree_are_those_of_gpn_ucb(name: str, trial: int) -> None:
    now = situation(name, trial)
    mixed, alone = (a.suggest(now, np.random.default_rng(0)) for a in (GPNMixed(), GPNUCB()))
    assert mixed.bound == alone.bound
    assert mixed.cells == alone.cells
    assert np.array_equal(mixed.cache.bound, alone.cache.bound)


@pytest.mark.parametrize("name", ["chain", "graph"])
def test_in_its_turn_the_maximum_of_the_mean_is_run(name: str) -> None:
    now = situation(name, IN_TURN)
    point = suggested(GPNMixed(share=1.0), now)
    domain = now.domain
    anywhere = np.random.default_rng(1).uniform(domain.lower, domain.upper, (2_000, domain.dimension))
    assert mean_at(now, point[None])[0] >= mean_at(now, anywhere).max() - 1e-9
    assert mean_at(now, point[None])[0] > now.best


def test_over_candidates_the_one_with_the_largest_mean_is_run() -> None:
    now = situation("chain", IN_TURN, candidates=True)
    assert now.candidates is not None
    listed, means = now.candidates, mean_at(now, now.candidates)
    now = replace(now, best=float(means.max()) - 1.0)  # so that the mean promises something
    assert np.array_equal(suggested(GPNMixed(share=1.0), now), listed[means.argmax()])


def test_out_of_turn_a_small_promise_does_not_suffice() -> None:
    now = situation("chain", NOT_IN_TURN)
    assert np.array_equal(suggested(GPNMixed(share=1.0), now), suggested(GPNUCB(), now))


def test_out_of_turn_a_large_promise_is_run() -> None:
    now = situation("chain", NOT_IN_TURN)
    assert not np.array_equal(suggested(GPNMixed(share=1e-9), now), suggested(GPNUCB(), now))


def test_a_negligible_improvement_is_not_run_in_its_turn() -> None:
    now = situation("chain", IN_TURN)
    point = suggested(GPNMixed(share=1.0), now)
    now = replace(now, best=float(mean_at(now, point[None])[0]) - 1e-9)  # what is left to gain at the mean
    assert np.array_equal(suggested(GPNMixed(share=1.0), now), suggested(GPNUCB(), now))


def test_the_second_run_is_not_next_to_the_first() -> None:
    # With one run the mean is largest at that run or far away, and a rounding error beside it is no improvement.
    study = Study(tile(0, 1.0))
    first, second = (study.ask() for _ in range(2))
    assert first is not None
    assert second is not None
    assert max(abs(first.controls[name] - second.controls[name]) for name in first.controls) > 1.0


@pytest.mark.parametrize("factor", [1, 2, 4, 8])
def test_the_best_setting_is_found_with_loose_norm_bounds(factor: int) -> None:
    best = maximise(tile(0, factor), budget=14, progress=False).best
    assert best is not None
    assert best.value is not None
    assert best.value >= 39.9  # of 40; GPN-UCB alone ends at 28.4 with norm bounds eight times as large


def test_pending_runs_are_imagined_and_no_bound_is_given() -> None:
    now = situation("chain", IN_TURN)
    waiting = points(now.beliefs.network, 2, np.random.default_rng(9))
    found = GPNMixed().suggest(replace(now, pending=waiting), np.random.default_rng(0))
    assert found.bound is None
    assert found.point is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 0.0}, "share must be a number above 0 and at most 1; got 0.0"),
        ({"share": float("nan")}, "share must be a number above 0"),
        ({"share": True}, "share must be a number above 0"),
        ({"share": "much"}, "share must be a number above 0"),
        ({"period": 1}, "period must be a whole number ≥ 2; got 1"),
        ({"period": 2.5}, "period must be a whole number"),
        ({"cells": 0}, "cells must be a whole number ≥ 1"),
    ],
)
def test_invalid_options_raise(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        GPNMixed(**options)


@pytest.mark.parametrize(("lengthscale", "norm_bound"), [(2.0, 100.0), (4.0, 10.0), (4.0, 100.0)])
def test_a_formula_that_is_undefined_at_possible_inputs_does_not_end_a_study(
    lengthscale: float, norm_bound: float
) -> None:
    # With seven controls there is no tree, and the promise of a point comes from its bounds. They reach f > 1; the
    # process does not.
    def corrected(f: float) -> float:
        return f + 1e-3 * math.sqrt(1 - f)

    names = [f"x{i}" for i in range(7)]
    stages = [
        Stage(
            "f",
            controls={name: Real(0, 1) for name in names},
            kernel=SquaredExponential(lengthscale),
            norm_bound=norm_bound,
        ),
        Stage("r", function=corrected, lipschitz=10.0, known=True),
    ]

    def outputs(controls: Mapping[str, float]) -> dict[str, float]:
        mean = sum(controls.values()) / 7
        f = min(2 * mean, 0.9) + 0.09 * mean
        return {"f": f, "r": corrected(f)}

    study = Study(chain(*stages))
    for value in (0.0, 0.2, 0.4):
        controls = dict.fromkeys(names, value)
        study.add_trial(controls, outputs(controls))
    for _ in range(6):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, outputs(trial.controls))
