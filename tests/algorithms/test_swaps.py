"""Tests of swaps: the best run with another value of one choice."""

from dataclasses import replace

import numpy as np

from cascada.algorithms import GPNEI
from cascada.algorithms.algorithm import Situation, point_key
from cascada.algorithms.swaps import swaps
from cascada.arrays import Array
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.space import Choice, Real
from tests.algorithms.cases import situation_after

WOOD, GLUE = Choice(["oak", "pine", "elm"]), Choice(["hot", "cold"])
NETWORK = chain(
    Stage("f", {"wood": WOOD, "x": Real(0, 1), "glue": GLUE}, kernel=SquaredExponential(0.5), norm_bound=2.0)
)
RUNS = np.array([[0, 0.5, 0, 1.0], [1, 0.6, 0, 0.2], [2, 0.9, 0, 0.1]])  # wood, x, glue, f: the first is the best


def situation(data: Array = RUNS, network: Network = NETWORK, trial: int = 9) -> Situation:
    """The situation after some runs."""
    taken = frozenset(point_key(network.domain, point) for point in data[:, :3])
    return replace(situation_after(network, data, None), trial=trial, taken=taken)


def test_a_swap_is_the_best_run_with_a_value_that_was_not_tried_near_it() -> None:
    # pine was tried at 0.6, which is near 0.5; elm at 0.9, which is not; cold nowhere.
    assert swaps(situation()).tolist() == [[2, 0.5, 0], [0, 0.5, 1]]


def test_pending_runs_count_as_tried() -> None:
    assert swaps(replace(situation(), pending=np.array([[2.0, 0.4, 0.0]]))).tolist() == [[0, 0.5, 1]]


def test_there_are_no_swaps_without_a_run_without_choices_and_for_values_that_are_fixed() -> None:
    assert swaps(situation(RUNS[:0])).shape == (0, 3)
    plain = chain(Stage("f", {"x": Real(0, 1)}, kernel=SquaredExponential(0.5), norm_bound=2.0))
    assert swaps(situation_after(plain, np.array([[0.5, 1.0]]), None)).shape == (0, 1)
    fixed = NETWORK.within({"wood": WOOD.at("oak")})
    now = situation()
    beliefs = replace(now.beliefs, network=fixed)
    assert swaps(replace(now, beliefs=beliefs)).tolist() == [[0, 0.5, 1]]


def test_the_turn_of_swaps_runs_one_of_them_and_other_turns_do_not() -> None:
    points = {trial: GPNEI().suggest(situation(trial=trial), np.random.default_rng(0)).point for trial in (9, 12)}
    expected = swaps(situation()).tolist()
    assert points[9] is not None
    assert points[12] is not None
    assert points[9].tolist() in expected
    assert points[12].tolist() not in expected


def test_the_next_trial_does_not_depend_on_swaps_without_choices() -> None:
    plain = chain(Stage("f", {"x": Real(0, 1), "y": Real(0, 1)}, kernel=SquaredExponential(0.5), norm_bound=2.0))
    data = np.array([[0.5, 0.1, 1.0], [0.2, 0.7, 0.3]])
    found = [
        GPNEI().suggest(replace(situation_after(plain, data, None), trial=trial), np.random.default_rng(0)).point
        for trial in (9, 12)
    ]
    np.testing.assert_array_equal(found[0], found[1])
