"""Optuna's studies with CascadaSampler: its points are those of a cascada study, and depend on the storage alone."""

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.missing import need_module

need_module("optuna", "optuna")  # before anything that imports it
# ruff: noqa: E402

import optuna

from cascada.algorithms import RandomSearch
from cascada.errors import ArgumentError
from cascada.integrations.optuna import CascadaSampler
from cascada.integrations.optuna_replay import Replay
from cascada.network import Stage, StageError, SubGaussian, chain
from cascada.network.noise import with_noise
from cascada.process import Process
from cascada.space import Integer
from cascada.study import Study
from tests.integrations.optuna_cases import (
    CONTROLS,
    FUNCTIONS,
    created,
    cure,
    finished,
    fragile,
    mix,
    network,
    own_study,
    points,
)
from tests.waiting import LONG

PAGE = Path(__file__).parents[2] / "docs" / "optuna.md"
PROCESS = Process(network(), FUNCTIONS)


@contextmanager
def sqlite(folder: Path) -> Iterator[Any]:
    """Yield a storage in a file, and close it at the end."""
    storage = optuna.storages.RDBStorage(f"sqlite:///{folder}/optuna.db")
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


def known(study: optuna.Study, **options: Any) -> Study:
    """Return the cascada study that a new sampler derives from the trials."""
    return Replay(options).snapshot(network(), study.get_trials()).study


# ---- the points


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("norms", [True, False])
def test_the_points_are_those_of_a_cascada_study(norms, direction):
    sampler = CascadaSampler(network(norms), seed=3)
    theirs = created(sampler, direction=direction)
    theirs.optimize(sampler.objective(FUNCTIONS), n_trials=7)
    sampler.certificate(theirs)  # must not change the points
    theirs.optimize(sampler.objective(FUNCTIONS), n_trials=4)
    directed = network(norms) if direction == "maximize" else network(norms).mirrored()
    ours = Study(directed, seed=3, replayable=True)
    assert points(theirs.trials) == points(own_study(ours, 11))
    assert theirs.best_value == ours.certificate().best
    found, wanted = sampler.certificate(theirs), ours.certificate()
    assert (found.kind, found.gap, found.bound, found.maximised) == (
        *("proven" if norms else "estimated", wanted.gap, wanted.bound),
        direction == "maximize",
    )


@pytest.mark.parametrize("norms", [True, False])
def test_resuming_a_study_reproduces_its_points(tmp_path, norms):
    """Some trials fail; every part of the study has a new sampler and reads the storage."""
    trials = []
    for runs in (3, 1, 6):
        with sqlite(tmp_path) as storage:
            sampler = CascadaSampler(network(norms), seed=3)
            study = created(sampler, study_name="resumed", storage=storage, load_if_exists=True)
            study.optimize(sampler.objective([mix, fragile]), n_trials=runs, catch=StageError)
            trials = study.trials
    ours = own_study(Study(network(norms), seed=3, replayable=True), 10, [mix, fragile])
    assert points(trials) == points(ours)
    states = [trial.state.name for trial in trials]
    assert states == ["COMPLETE" if trial.state == "complete" else "FAIL" for trial in ours]
    assert set(states) == {"COMPLETE", "FAIL"}


def test_random_points_depend_on_the_seed_only():
    def drawn(seed: int) -> list[dict[str, Any]]:
        sampler = CascadaSampler(network(), algorithm=RandomSearch(), seed=seed)
        study = created(sampler)
        for _ in range(4):
            sampler.reseed_rng()
            study.optimize(sampler.objective(FUNCTIONS), n_trials=1)
        return points(study.trials)

    assert drawn(1) == drawn(1) == points(own_study(Study(network(), algorithm=RandomSearch(), seed=1), 4))
    assert drawn(1) != drawn(2)


def test_parameters_are_in_range_and_of_their_type():
    sampler = CascadaSampler(network(), algorithm="random_search")
    assert sampler.distributions == {
        "dose": optuna.distributions.FloatDistribution(-2, 2),
        "heat": optuna.distributions.FloatDistribution(0.1, 3, log=True),
        "turns": optuna.distributions.IntDistribution(1, 4),
    }
    study = created(sampler)
    study.optimize(sampler.objective(FUNCTIONS), n_trials=20)
    for trial in study.trials:
        assert trial.distributions == sampler.distributions
        assert [type(value) for value in trial.params.values()] == [float, float, int]
        assert all(CONTROLS[name].low <= value <= CONTROLS[name].high for name, value in trial.params.items())
    assert {trial.params["turns"] for trial in study.trials} == {1, 2, 3, 4}
    assert min(trial.params["heat"] for trial in study.trials) < 0.2  # uniform in the logarithm
    search_space = sampler.infer_relative_search_space(study, study.trials[0])
    assert search_space == sampler.distributions
    assert sampler.sample_relative(study, study.trials[0], search_space) == {}  # controls are sampled one by one


# ---- the storage


def test_pending_trials_and_their_stages_are_used():
    sampler = CascadaSampler(network(), seed=3)
    study, ours = created(sampler), Study(network(), seed=3, replayable=True)
    own_study(ours, 2)
    study.optimize(sampler.objective(FUNCTIONS), n_trials=2)
    first = study.ask()
    expected = ours.ask()
    assert expected is not None
    assert first.suggest_float("dose", -2, 2) == expected.controls["dose"]  # the others are not suggested yet
    second, own = study.ask(sampler.distributions), ours.ask()
    assert points([second]) == points([own]) != points([expected])
    first.set_user_attr("cascada:mix", mix(first.params["dose"]))
    ours.tell_stage(2, "mix", mix(expected.controls["dose"]))
    third, last = study.ask(sampler.distributions), ours.ask()
    assert points([third]) == points([last])
    assert [trial.state for trial in known(study, seed=3).trials] == ["complete"] * 2 + ["running"] * 3


def test_trials_are_used_in_the_order_in_which_they_end():
    """A sampler that read the trials one by one agrees with one that reads all of them at once."""
    sampler = CascadaSampler(network(), seed=3)
    study = created(sampler)
    trials = [study.ask(sampler.distributions) for _ in range(4)]
    ended = []
    for number in (2, 0, 3, 1):
        finished(study, PROCESS(trials[number].params), trials[number])
        expected = known(study, seed=3).ask()
        asked = study.ask(sampler.distributions)
        assert points([asked]) == points([expected])
        study.tell(asked, state=optuna.trial.TrialState.FAIL)
        ended += points([trials[number], asked])
    assert points(known(study).trials) == ended


def test_stages_of_failed_and_pruned_trials_are_used():
    def stops(mix: float, heat: float, turns: int) -> float:
        if study.trials[-1].number == 1:
            raise optuna.TrialPruned("not worth it")
        return fragile(mix, heat, turns)

    sampler = CascadaSampler(network(), seed=3)
    study = created(sampler)
    study.optimize(sampler.objective([mix, stops]), n_trials=2, catch=StageError)
    assert [trial.state.name for trial in study.trials] == ["FAIL", "PRUNED"]
    for trial, ours, state in zip(study.trials, known(study).trials, ("failed", "abandoned"), strict=True):
        assert trial.user_attrs == {"cascada:mix": mix(trial.params["dose"])}
        assert (ours.state, ours.controls) == (state, trial.params)
        assert ours.outputs == {"mix": (mix(trial.params["dose"]),)}
    prediction = known(study).predict(study.trials[0].params)["mix"]
    assert prediction.sd[0] == pytest.approx(0, abs=1e-4)


def test_enqueued_and_added_trials_are_used():
    sampler = CascadaSampler(network(), seed=3)
    study, ours = created(sampler), Study(network(), seed=3, replayable=True)
    past = {"dose": 0.5, "heat": 1.0, "turns": 2}
    outputs = PROCESS(past)
    attributes = {f"cascada:{stage}": list(values) for stage, values in outputs.items()}
    made = optuna.trial.create_trial(
        params=past, distributions=sampler.distributions, value=outputs["cure"][0], user_attrs=attributes
    )
    study.add_trial(made)
    ours.add_trial(past, outputs)
    study.enqueue_trial({"dose": 1.0, "heat": 2.0, "turns": 3})
    study.optimize(sampler.objective(FUNCTIONS), n_trials=3)
    ours.enqueue_trial({"dose": 1.0, "heat": 2.0, "turns": 3})
    assert points(study.trials) == points(own_study(ours, 3))
    study.enqueue_trial({"dose": -1.5})  # cascada chooses the other controls
    study.optimize(sampler.objective(FUNCTIONS), n_trials=2)
    assert study.trials[4].params["dose"] == -1.5
    assert [trial.state for trial in known(study).trials] == ["complete"] * 6


def test_trials_that_choose_at_the_same_time_get_different_points():
    """Two processes see the same trials: the second skips the point that the first is about to choose."""
    sampler, ours = CascadaSampler(network(), seed=3), Study(network(), seed=3, replayable=True)
    study = created(sampler)
    dead, second, third = study.ask(), study.ask(), study.ask()
    own = [ours.ask() for _ in range(2)]
    assert second.suggest_float("dose", -2, 2) == own[1].controls["dose"]  # type: ignore[union-attr]
    other = Study(network(), seed=3, replayable=True)
    other.begin_trial(study.trials[1].system_attrs["cascada:controls"])
    expected = other.ask()
    assert expected is not None
    assert third.suggest_float("dose", -2, 2) == expected.controls["dose"]  # the first one is dead or slow
    assert not dead.params


def test_a_point_that_another_process_chose_meanwhile_is_replaced(monkeypatch):
    sampler = CascadaSampler(network(), seed=3)
    study = created(sampler)
    first, second = study.ask(), study.ask()
    write = study._storage.set_trial_system_attr

    def at_the_same_time(trial: int, key: str, value: Any) -> None:
        write(trial, key, value)
        if "cascada:controls" not in study.trials[1].system_attrs:
            write(second._trial_id, key, value)

    monkeypatch.setattr(study._storage, "set_trial_system_attr", at_the_same_time)
    chosen = first.suggest_float("dose", -2, 2)
    held = study.trials[1].system_attrs["cascada:controls"]
    other = Study(network(), seed=3, replayable=True)
    other.begin_trial(held)
    assert [trial.system_attrs["cascada:controls"] for trial in study.trials] == [*points([other.ask()]), held]
    assert chosen != held["dose"]


def test_threads_share_a_sampler():
    sampler = CascadaSampler(network(), seed=3)
    study = created(sampler)
    study.optimize(sampler.objective(FUNCTIONS), n_trials=8, n_jobs=2)
    assert all(trial.state.name == "COMPLETE" for trial in study.trials)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 8


def test_two_processes_share_a_storage(tmp_path):
    with sqlite(tmp_path) as storage:
        study = created(CascadaSampler(network()), study_name="shared", storage=storage)
        command = [sys.executable, "-m", "tests.integrations.optuna_cases", f"sqlite:///{tmp_path}/optuna.db", "4"]
        workers = [subprocess.Popen(command, cwd=Path(__file__).parents[2]) for _ in range(2)]
        assert [worker.wait(LONG) for worker in workers] == [0, 0]
        assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 8
        assert len({tuple(trial.params.values()) for trial in study.trials}) == 8
        assert [trial.state for trial in known(study).trials] == ["complete"] * 8


def test_a_pickled_sampler_suggests_the_same():
    sampler = CascadaSampler(network(), seed=3)
    study = created(sampler)
    study.optimize(sampler.objective(FUNCTIONS), n_trials=2)
    copied = pickle.loads(pickle.dumps(sampler))
    assert repr(copied) == repr(sampler)
    other = created(copied)
    other.add_trials(study.trials)
    assert study.ask(sampler.distributions).params == other.ask(sampler.distributions).params


def test_one_sampler_serves_two_studies():
    sampler = CascadaSampler(network(), seed=3)
    up, down = created(sampler), created(sampler, direction="minimize")
    up.optimize(sampler.objective(FUNCTIONS), n_trials=3)
    down.add_trials(up.trials)
    lower = Replay({"seed": 3}).snapshot(network().mirrored(), down.get_trials()).study
    higher = known(up, seed=3).ask()
    assert points([down.ask(sampler.distributions), up.ask(sampler.distributions)]) == points([lower.ask(), higher])
    assert (sampler.certificate(up).maximised, sampler.certificate(down).maximised) == (True, False)


def test_the_sampler_works_inside_another_sampler_and_with_a_pruner():
    sampler = CascadaSampler(network(), seed=3)
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        fixed = optuna.samplers.PartialFixedSampler({"turns": 2}, sampler)
    study = optuna.create_study(direction="maximize", sampler=fixed, pruner=optuna.pruners.HyperbandPruner())
    study.optimize(sampler.objective(FUNCTIONS), n_trials=3)
    assert [trial.params["turns"] for trial in study.trials] == [2, 2, 2]
    assert len({trial.params["dose"] for trial in study.trials}) > 1


# ---- the end


def test_a_study_stops_when_no_point_is_left():
    sampler = CascadaSampler(chain(Stage("square", controls={"n": Integer(0, 3)})))
    study = created(sampler)
    study.optimize(sampler.objective([lambda n: (n - 1) ** 2]), n_trials=100)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 4 + ["PRUNED"]
    assert study.best_params == {"n": 3}
    with pytest.raises(optuna.TrialPruned, match="no point is worth a run any more"):
        study.ask(sampler.distributions)


def test_a_study_stops_when_the_gap_is_proven_small():
    sampler = CascadaSampler(network(), seed=3, tolerance=1.2)
    study = created(sampler)
    study.optimize(sampler.objective(FUNCTIONS), n_trials=100)
    assert study.trials[-1].state.name == "PRUNED"
    certificate = sampler.certificate(study)
    assert certificate.kind == "proven"
    assert certificate.gap is not None
    assert certificate.gap <= 1.2
    assert certificate.best == study.best_value
    refined = sampler.certificate(study, cells=5_000)
    assert refined.gap is not None
    assert refined.gap <= certificate.gap


# ---- import and documentation


def test_cascada_can_be_imported_without_optuna():
    code = """
import sys
import cascada
assert "optuna" not in sys.modules
sys.modules["optuna"] = None
from cascada.integrations.optuna import CascadaSampler
try:
    CascadaSampler(None)
except cascada.ArgumentError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "CascadaSampler needs Optuna" in done.stdout
    assert "pip install 'cascada[optuna]'" in done.stdout


def test_the_code_in_the_documentation_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = [part.partition("```")[0] for part in PAGE.read_text().split("```python\n")[1:]]
    assert len(blocks[0].strip().splitlines()) <= 15
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert len(names["study"].trials) >= 20
    names["study"]._storage._backend.engine.dispose()


@pytest.mark.parametrize("declared", [True, False])
def test_a_sampler_estimates_noise(declared):
    process = with_noise(network(norms=False), everywhere=True) if declared else network(norms=False)
    sampler = CascadaSampler(process)
    study = created(sampler)
    study.enqueue_trial({"dose": 0.5, "heat": 1.0, "turns": 2})
    study.enqueue_trial({"dose": 0.5, "heat": 1.0, "turns": 2})
    noise = iter(np.random.default_rng(0).standard_normal(100))

    def scattered(**inputs):
        return (mix if "dose" in inputs else cure)(**inputs) + 0.01 * next(noise)

    objective = sampler.objective([scattered, scattered])
    if declared:
        study.optimize(objective, n_trials=6)
    else:
        with pytest.warns(UserWarning, match="for the same inputs in trial 1 and trial 0: runs are not exact"):
            study.optimize(objective, n_trials=6)
    certificate = sampler.certificate(study)
    assert (certificate.kind, certificate.best) == ("estimated", None)
    assert certificate.best_reading == study.best_value
    assert not certificate.evidence


def test_a_sampler_proves_a_gap_from_readings_with_bounded_errors():
    process = chain(*(with_error(stage, 0.05) for stage in network().stages))
    sampler = CascadaSampler(process, seed=3)
    study = created(sampler)
    readings: list[Callable[..., float]] = [
        lambda dose: mix(dose) + 0.05,
        lambda mix, heat, turns: cure(mix - 0.05, heat, turns) - 0.05,
    ]
    study.optimize(sampler.objective(readings), n_trials=5)
    found = sampler.certificate(study)
    assert (found.kind, found.best) == ("proven", None)
    assert found.best_reading == study.best_value
    assert found.recommended is not None
    controls = dict(found.recommended.controls)
    assert found.recommended.at_least <= cure(mix(controls.pop("dose")), **controls)
    ours = Study(process, seed=3, replayable=True)
    assert points(study.trials) == points(own_study(ours, 5, readings))
    assert ours.certificate().gap == found.gap


def test_a_sampler_refuses_scatter():
    process = chain(*(with_error(stage, SubGaussian(0.05)) for stage in network().stages))
    with pytest.raises(ArgumentError, match=r"CascadaSampler does not support error=SubGaussian\(...\)"):
        CascadaSampler(process)


def with_error(stage: Stage, error: Any) -> Stage:
    """Return a stage of the process that is read with an error."""
    return Stage(stage.name, stage.controls, kernel=stage.kernel, norm_bound=stage.norm_bound, error=error)
