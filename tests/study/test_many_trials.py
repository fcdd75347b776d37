"""Studies of many trials: learning them all at once, and what needs no model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cascada.errors import RefutedError
from cascada.study import Study
from cascada.study.model import Model
from tests.network.cases import NETWORKS, SEED, points, run, truth


def runs_of(name: str, count: int) -> list[tuple[dict[str, Any], dict[str, Any], str]]:
    """Runs of a network: controls, outputs, and a name."""
    network = NETWORKS[name]
    controls = points(network, count, np.random.default_rng(SEED))
    outputs = run(network, truth(network, SEED), controls)
    return [(dict(network.domain.named(c)), dict(o), str(c)) for c, o in zip(controls, outputs, strict=True)]


def told_one_by_one(study: Study, runs: Sequence[tuple[dict[str, Any], dict[str, Any], str]]) -> Study:
    """Tell runs stage by stage, and learn each report at once."""
    for controls, outputs, _ in runs:
        trial = study.begin_trial(controls)
        for stage, values in outputs.items():
            if not study.network.node(stage).stage.known:
                trial = study.tell_stage(trial, stage, values)
            assert study.model is not None
    return study


# ---- learning all trials at once


@pytest.mark.parametrize("name", NETWORKS)
def test_learning_all_trials_at_once_gives_the_same_bits(name: str) -> None:
    runs = runs_of(name, 24)
    single = told_one_by_one(Study(NETWORKS[name], replayable=True), runs)
    together = single.branch()
    together._model = type(together._model)(together.network, together._settings)  # one that has learned nothing yet
    assert together.model.evidence() == single.model.evidence()
    assert np.array_equal(together.model.data, single.model.data, equal_nan=True)
    for ours, theirs in zip(together.beliefs.stages, single.beliefs.stages, strict=True):
        if ours.belief is not None and theirs.belief is not None:
            np.testing.assert_array_equal(ours.belief.output_error, theirs.belief.output_error)
            np.testing.assert_array_equal(ours.belief.posterior.outputs, theirs.belief.posterior.outputs)
            np.testing.assert_array_equal(ours.belief.posterior.spent, theirs.belief.posterior.spent)
    if name not in ("block kernel", "graph"):  # whose searches take long
        assert together.certificate().bound == single.certificate().bound
        next_point = together.ask()
        assert next_point is not None
        assert next_point == single.ask()


# ---- what needs no model


@pytest.fixture
def no_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be learned from a run."""

    def fail(*_: Any) -> None:
        raise AssertionError("a model learned from the runs")

    monkeypatch.setattr(Model, "catch_up", fail)


@pytest.mark.usefixtures("no_learning")
def test_trials_and_the_best_run_need_no_model() -> None:
    study = Study(NETWORKS["chain"])
    study.add_trials(runs_of("chain", 5))
    assert study.best_trial is not None
    assert len(study.trials) == study.state.complete == 5


@pytest.mark.usefixtures("no_learning")
def test_random_search_asks_without_a_model() -> None:
    study = Study(NETWORKS["chain"], algorithm="random_search")
    study.add_trials(runs_of("chain", 5))
    points = [trial.controls for trial in study.ask(3)]
    assert len({tuple(point.values()) for point in points}) == 3


def test_random_search_asks_for_nothing_once_the_log_refutes_an_assumption() -> None:
    study = Study(NETWORKS["chain"], algorithm="random_search")
    study.refute("the oven was open")
    with pytest.raises(RefutedError, match="the oven was open"):
        study.ask()


def test_random_search_gives_the_same_points_with_a_model_and_without() -> None:
    with_model = Study(NETWORKS["chain"], algorithm="random_search", tolerance=1e-9, replayable=True)
    without = Study(NETWORKS["chain"], algorithm="random_search", replayable=True)
    for study in (with_model, without):
        study.add_trials(runs_of("chain", 5))
    assert [trial.controls for trial in without.ask(3)] == [trial.controls for trial in with_model.ask(3)]
