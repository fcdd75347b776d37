"""Probes: runs away from all others, where estimated bounds rule out a better value."""

from dataclasses import replace

import numpy as np
import pytest

from cascada.algorithms import GPNEI, Situation
from cascada.algorithms.probe import is_probe
from cascada.confidence import Boxes
from cascada.network import Network, Stage, chain, enclose_network
from cascada.process import Process
from cascada.space import Grid, Integer, Real
from cascada.study import Study

BOX = {"x": Real(0, 1), "y": Real(0, 1)}


def _smooth(x: float, y: float) -> float:
    return -((x - 0.3) ** 2) - (y - 0.6) ** 2


def due(network: Network | None = None, grid: Grid | None = None) -> tuple[Study, Situation]:
    """A study whose next run has to be a probe, and the situation of its algorithm."""
    network = network or chain(Stage("f", BOX, function=_smooth))
    study, process = Study(network, candidates=grid), Process(network)
    for _ in range(60):
        situation = study.situation(())
        if situation.untested is not None:
            return study, situation
        trial = study.ask()
        assert trial is not None
        study.tell(trial, process(trial.controls))
    raise AssertionError("no probe was due")


@pytest.mark.parametrize("grid", [None, Grid({"x": 9, "y": 9})], ids=["box", "candidates"])
def test_a_probe_is_away_from_all_runs_where_the_bounds_rule_out_improvement(grid: Grid | None) -> None:
    _, situation = due(grid=grid)
    assert situation.untested is not None
    point = GPNEI().suggest(situation, np.random.default_rng(0)).point
    assert point is not None
    assert enclose_network(situation.untested, Boxes(point[None], point[None])).boxes.upper[0, -1] <= situation.best
    assert not situation.is_taken(point)
    assert np.abs(situation.data[:, :2] - point).max(axis=1).min() > 0.1
    if situation.candidates is not None:
        assert (situation.candidates == point).all(axis=1).any()


def test_a_probe_is_suggested_only_when_it_is_due() -> None:
    _, situation = due()
    usual = GPNEI().suggest(replace(situation, untested=None), np.random.default_rng(0)).point
    probe = GPNEI().suggest(situation, np.random.default_rng(0)).point
    assert usual is not None
    assert probe is not None
    assert not np.array_equal(usual, probe)
    again = GPNEI().suggest(situation, np.random.default_rng(0)).point
    np.testing.assert_array_equal(probe, again)  # `suggest` is a pure function


def test_without_a_ruled_out_point_the_usual_point_is_suggested() -> None:
    _, situation = due()
    hopeless = replace(situation, best=-100.0)
    usual = GPNEI().suggest(replace(hopeless, untested=None), np.random.default_rng(0)).point
    found = GPNEI().suggest(hopeless, np.random.default_rng(0)).point
    assert usual is not None
    assert found is not None
    np.testing.assert_array_equal(usual, found)


def test_only_one_of_several_pending_runs_is_a_probe() -> None:
    study, situation = due()
    assert situation.untested is not None
    trials = study.ask(3)
    rows = np.array([list(trial.controls.values()) for trial in trials])
    probes = is_probe(situation.untested, rows, situation.best, situation.data[:, :2])
    assert probes[0]
    assert study.situation(study.trials[-3:]).untested is None


def test_a_probe_with_an_observed_first_stage_is_still_pending() -> None:
    network = chain(Stage("f", BOX, function=_smooth), Stage("g", function=lambda f: 2 * f))
    study, _ = due(network)
    trial = study.ask()
    assert trial is not None
    study.tell_stage(trial, "f", _smooth(**trial.controls))
    assert study.model.probation.unfinished == {trial.number: True}
    assert study.situation(study.trials[-1:]).untested is None


def test_a_probe_of_integer_controls_is_whole() -> None:
    network = chain(
        Stage("f", {"x": Real(0, 1), "n": Integer(0, 20)}, function=lambda x, n: -((x - 0.3) ** 2) - n / 20)
    )
    study, _ = due(network)
    trial = study.ask()
    assert trial is not None
    assert isinstance(trial.controls["n"], int)


def test_a_point_next_to_a_run_is_not_a_probe() -> None:
    _, situation = due()
    assert situation.untested is not None
    worst = int(situation.data[:, 2].argmin())
    runs = situation.data[:, :2]
    points = runs[[worst]] + np.array([[1e-3, 0.0]]) * np.where(runs[worst, 0] < 0.5, 1, -1)
    assert not is_probe(situation.untested, points, situation.best, runs)[0]
    assert is_probe(situation.untested, points, situation.best, np.delete(runs, worst, axis=0))[0]
