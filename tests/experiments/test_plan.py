"""Tests of the plan of the reproduction: its runs, and their independence."""

from collections import Counter

import pytest

from cascada.algorithms import CascadedEI, NonAdaptive, OptimisticImprovement
from cascada.errors import ArgumentError
from cascada.experiments.paper_grid import PaperGrid
from cascada.experiments.plan import (
    ALL,
    PROFILE,
    QUICK,
    Job,
    Settings,
    algorithm,
    chosen,
    non_adaptive,
    profiles,
    runs,
    work,
)
from cascada.experiments.statistics import COMPARED, NON_ADAPTIVE


def test_the_paper_settings():
    settings = Settings()
    assert (settings.horizon, settings.trials, settings.samples) == (200, 10, 1000)
    assert (settings.norm_bound, settings.lipschitz, settings.jitter) == (2.0, 2.0, 1e-7)
    assert settings.non_adaptive_runs == (4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196)
    assert QUICK.non_adaptive_runs == (4, 9, 16, 25, 36, 49)
    assert QUICK.family == settings.family, "a quick look is at the same g1 and g2"


def test_every_run_of_the_paper_is_planned_once():
    settings = Settings()
    jobs = [*profiles(settings), *runs(settings, range(20), 17, 13), *non_adaptive(range(20))]
    assert len({job.name for job in jobs}) == len(jobs) == 20 + 2 * 14 * 10 + 18 * 6 + 20
    per_chain = Counter((job.chain, job.label) for job in jobs)
    assert per_chain[17, "OI b=0.0001"] == per_chain[13, "OI b=10000"] == per_chain[13, "cEI"] == 10
    assert per_chain[0, "OI b=1"] == per_chain[5, "GP-UCB"] == per_chain[3, "NonAda"] == 1
    assert per_chain[0, "OI b=10"] == 0


def test_labels():
    assert set(COMPARED) == {"GPN-UCB", "cUCB", "OI b=1", "cEI", "GP-UCB", "EI"}
    weights = ("0.0001", "0.001", "0.01", "0.1", "1", "10", "100", "1000", "10000")
    assert [f"OI b={b}" for b in weights] == sorted(
        (label for label in ALL if label.startswith("OI")), key=lambda label: float(label[5:])
    )


def test_names_are_valid_file_names():
    assert Job(3, "OI b=0.0001", 7).name == "chain-003-OI-b-0.0001-07"


def test_the_longest_jobs_have_the_highest_cost():
    costs = {label: Job(0, label).cost for label in (*ALL, "NonAda", PROFILE)}
    assert max(costs, key=lambda label: costs[label]) == "cEI"


def test_the_first_other_chains_are_run_with_g1_and_g2():
    assert chosen(Settings(), 17, 13) == list(range(20))
    assert chosen(QUICK, 17, 13) == [0, 1, 2, 13, 17]
    assert chosen(QUICK, 1, 13) == [0, 1, 2, 3, 13]


def test_all_algorithms_begin_a_trial_at_the_same_point():
    """Trials are paired."""
    settings = Settings(horizon=4)
    for trial in (0, 1):
        first = {label: work(settings, Job(3, label, trial))[0] for label in ALL}
        assert len(set(first.values())) == 1


def test_a_run_depends_only_on_seed_chain_and_trial():
    settings = Settings(horizon=4)
    once = work(settings, Job(0, "GPN-UCB", 0))
    assert once == work(settings, Job(0, "GPN-UCB", 0))
    assert len(once) == 4
    assert once != work(settings, Job(0, "GPN-UCB", 1))
    assert once != work(Settings(horizon=4, seed=1), Job(0, "GPN-UCB", 0))
    assert once != work(settings, Job(1, "GPN-UCB", 0))


@pytest.mark.parametrize("label", [*ALL, NON_ADAPTIVE])
def test_every_algorithm_runs(label):
    """On a chain with a norm bound that is too small, as in the paper; regrets are those of candidates."""
    settings = Settings(horizon=9, samples=50)
    regrets = work(settings, Job(17, label))
    assert len(regrets) == (2 if label == NON_ADAPTIVE else 9)
    highest = work(settings, Job(17, PROFILE))
    assert all(0 <= regret <= highest["maximum"] - highest["minimum"] for regret in regrets)


def test_each_label_selects_its_algorithm():
    settings = Settings(samples=7)
    assert algorithm(settings, "GPN-UCB") == PaperGrid()
    assert algorithm(settings, "cEI") == CascadedEI(samples=7)
    assert algorithm(settings, "OI b=0.001") == OptimisticImprovement(b=0.001)
    assert algorithm(settings, "NonAda", 49) == NonAdaptive(runs=49)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"horizon": 3}, "horizon must be a whole number ≥ 4; got 3"),
        ({"trials": 0}, "trials must be"),
        ({"seed": -1}, "seed must be a whole number ≥ 0; got -1"),
        ({"samples": 1.5}, "samples must be"),
        ({"family": 4, "chains": 5}, "chains must be at most the size of the family, 4; got 5"),
    ],
)
def test_invalid_settings_raise_an_argument_error(wrong, message):
    with pytest.raises(ArgumentError, match=message):
        Settings(**wrong)
