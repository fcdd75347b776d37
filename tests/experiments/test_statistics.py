"""Tests of measures and intervals, compared with hand computation and SciPy, and of incomplete results."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, ttest_1samp

from cascada.errors import ArgumentError
from cascada.experiments.statistics import (
    COMPARED,
    OURS,
    mean_interval,
    ratio_interval,
    read,
    share_interval,
    simple_regret,
    squares,
)
from tests.experiments.synthetic import synthetic


def test_the_squares_are_those_of_the_paper() -> None:
    assert squares(200) == (4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196)
    assert squares(60) == (4, 9, 16, 25, 36, 49)
    assert squares(3) == ()
    assert max(squares(10_000)) == 196


def test_simple_regret_is_the_running_minimum() -> None:
    assert simple_regret(np.array([[3.0, 1.0, 2.0, 0.5]])).tolist() == [[3.0, 1.0, 1.0, 0.5]]


def test_measures_of_a_small_example() -> None:
    """Two trials of GPN-UCB on a chain of range 3, computed by hand."""

    def regret(_seed: int, label: str, trial: int) -> list[float]:
        if label != OURS:
            return [6.0] * 9
        return [3.0, 2.0, 1.0, 3.0, 0.5, 3.0, 3.0, 3.0, 0.0] if trial else [3.0] * 9

    chain = read(synthetic(regret=regret, horizon=9, trials=2)).g1
    assert chain.spread == 3.0
    assert chain.cumulative(OURS) == pytest.approx((27 + 18.5) / 2 / 3)
    assert chain.regret_ratio("EI") == pytest.approx(54 / 22.75)
    assert chain.simple(OURS, 4) == pytest.approx((3 + 1) / 2 / 3)
    assert chain.simple(OURS, 9) == pytest.approx((3 + 0) / 2 / 3)
    assert chain.performance(OURS) == pytest.approx((4 / 6 + 3 / 6) / 2)
    assert chain.simple("NonAda", 8) == pytest.approx(0.025)


def test_the_family_has_one_trial_of_the_compared_algorithms() -> None:
    sample = read(synthetic(trials=3, family=5))
    assert [chain.seed for chain in sample.family] == [0, 1, 2, 3, 4]
    for chain in sample.family:
        assert set(chain.regret) == set(COMPARED)
        assert all(len(regret) == 1 for regret in chain.regret.values())
    assert len(sample.g1.regret[OURS]) == 3


@pytest.mark.parametrize("values", [[0.3, 0.1, 0.4, 0.1, 0.5], [1.0, 1.5], [-1e-3, 2e3, 5.0, 7.0]])
def test_the_interval_of_a_mean_agrees_with_scipy(values: list[float]) -> None:
    found = mean_interval(values)
    wanted = ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert found.mean == pytest.approx(sum(values) / len(values))
    assert found.low == pytest.approx(wanted.low)
    assert found.high == pytest.approx(wanted.high)


def test_inverting_ratios_inverts_their_interval() -> None:
    """The inverse ratio has the reciprocal interval."""
    ratios = [1.2, 3.0, 0.7, 2.2]
    there, back = ratio_interval(ratios), ratio_interval([1 / r for r in ratios])
    assert there.mean == pytest.approx(math.prod(ratios) ** 0.25)
    assert there.low is not None
    assert there.high is not None
    assert back.low == pytest.approx(1 / there.high)
    assert back.high == pytest.approx(1 / there.low)


def test_a_single_chain_has_no_interval() -> None:
    assert mean_interval([2.0]).low is None
    assert ratio_interval([2.0]).high is None


def test_the_interval_of_a_share_is_exact() -> None:
    """At each end of the interval, a result at least as extreme as the observed one has probability 2.5 %."""
    found = share_interval(3, 20)
    assert found.mean == 0.15
    assert found.low is not None
    assert found.high is not None
    assert 1 - binom.cdf(2, 20, found.low) == pytest.approx(0.025)
    assert binom.cdf(3, 20, found.high) == pytest.approx(0.025)
    assert share_interval(0, 20).low == 0.0
    assert share_interval(1, 1).high == 1.0


def without(**fields: object) -> Callable[[dict[str, Any]], None]:
    """Remove the records of runs that have these fields."""

    def change(results: dict[str, Any]) -> None:
        key = "non_adaptive" if "runs" in fields else "runs"
        results[key] = [r for r in results[key] if any(r[name] != value for name, value in fields.items())]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without(chain=2, algorithm="cEI"), r"chain 2 lacks a run of cEI\. Run it before"),
        (without(chain=0, algorithm="OI b=0.001"), r"chain 0 lacks a run of OI b=0\.001"),
        (without(chain=3), r"chain 3 lacks a run of GPN-UCB, cUCB, OI b=1, cEI, GP-UCB, EI"),
        (without(chain=3, runs=25), r"chain 3 lacks NonAda with T = 25"),
        (lambda r: r.update(g2=17), r"the family lacks chain 17"),
        (lambda r: r["runs"][0]["regret"].pop(), r"trial 0 of GPN-UCB on chain 0 must have 60 finite regrets"),
        (lambda r: r["runs"][0]["regret"].__setitem__(3, math.nan), r"must have 60 finite regrets"),
        (lambda r: r["chains"][1].update(minimum=3.0), r"chain 1 is constant"),
        (lambda r: r["settings"].update(horizon=3), r"at least 4 steps"),
    ],
)
def test_the_error_names_missing_results(change: Callable[[dict[str, Any]], None], message: str) -> None:
    results = synthetic()
    change(results)
    with pytest.raises(ArgumentError, match=message):
        read(results)
