"""Studies in a store: everything is stored before it is returned, and reopening a study changes no point."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cascada.algorithms import GPNEI, GPNUCB, NAMES, Algorithm, GPNMixed
from cascada.errors import ArgumentError, ContradictionError, StoreError
from cascada.network import Network, Stage, chain
from cascada.process import Process
from cascada.space import Grid, Integer, Real
from cascada.store.database import Store
from cascada.store.event import Event
from cascada.store.transaction import StoredTransaction
from cascada.study import Study, Trial
from cascada.study.log_file import exported, import_log
from cascada.study.model import Model
from cascada.study.tabular import add_runs
from tests.network.cases import X, Y, stage, truth
from tests.study.test_calibrated import FUNCTIONS, NETWORK
from tests.waiting import wait_until

CHAIN = chain(stage("f", controls=X), stage("g"))
PROCESS = Process(CHAIN, truth(CHAIN, 1))
UNKNOWN = Process(NETWORK, FUNCTIONS)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/studies.db"


def opened(url: str, **options: Any) -> Study:
    return Study.open(url, "alloy", options.pop("network", CHAIN), **options)


def asked(study: Study, **options: Any) -> Trial:
    trial = study.ask(**options)
    assert trial is not None
    return trial


def ran(study: Study, n: int, process: Process = PROCESS) -> Study:
    """Add n runs to a study and return it."""
    for _ in range(n):
        trial = asked(study)
        study.tell(trial, process(trial.controls))
    return study


def copied(url: str, path: Path) -> str:
    """Copy a store and return the URL of the copy."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as old, closing(sqlite3.connect(path)) as new:
        old.backup(new)
    return f"sqlite:///{path}"


# ---- asking and telling


def test_a_trial_is_stored_before_it_is_returned(url: str) -> None:
    study = opened(url)
    trial = asked(study)
    assert (trial.number, trial.state, trial.outputs, trial.value) == (0, "running", {}, None)
    assert opened(url).trials == (trial,) == study.trials
    outputs = PROCESS(trial.controls)
    complete = study.tell(trial, outputs)
    assert (complete.state, complete.outputs, complete.value) == ("complete", outputs, outputs["g"][0])
    assert opened(url).trials == (complete,)
    assert [event.kind for event in study.events] == ["created", "asked", "told"]


def test_telling_the_same_outputs_again_changes_nothing(url: str) -> None:
    study = ran(opened(url), 2)
    events, trials = study.events, study.trials
    for other in (study, opened(url)):
        for trial in trials:
            assert other.tell(trial.number, trial.outputs) == trial
            assert other.tell_stage(trial, "f", trial.outputs["f"]) == trial
    assert study.events == events


@pytest.mark.parametrize("stages", [{"f": 0.75}, {"f": 0.25, "g": 2.0}])
def test_the_error_of_a_contradiction_has_both_values(url: str, stages: dict[str, float]) -> None:
    study = opened(url)
    trial = study.tell(study.enqueue_trial({"x": 0.5}), {"f": 0.25, "g": 1.0})
    events = study.events
    name, value = list(stages.items())[-1]
    before = trial.outputs[name][0]
    for other in (study, opened(url)):
        with pytest.raises(
            ContradictionError,
            match=rf"trial 0: stage '{name}' was told as {before:g} before and now as {value:g}",
        ):
            other.tell(0, stages)
        assert other.trials == (trial,)
    assert study.events == events


def test_outputs_that_contradict_another_trial_raise(url: str) -> None:
    study = opened(url)
    first, second = (study.enqueue_trial({"x": 0.5}) for _ in range(2))
    study.tell(first, {"f": 0.25, "g": 1.0})
    events = study.events
    with pytest.raises(ContradictionError, match=r"'f' was told as 0.75, but as 0.25 .* in trial 0"):
        study.tell(second, {"f": 0.75})
    assert study.events == events
    assert study.tell(second, {"f": 0.25, "g": 1.0}).state == "complete"
    assert opened(url).certificate().kind == "proven"


def test_a_rounded_output_of_a_known_stage_is_not_a_contradiction(url: str) -> None:
    """Trials of the same inputs have the value of the formula or a rounded one."""
    double = Stage("g", known=True, lipschitz=3.0, function=lambda f: 3.0 * f)
    study = opened(url, network=chain(stage("f", controls=X), double))
    first, second = (study.enqueue_trial({"x": 0.5}) for _ in range(2))
    study.tell(first, {"f": 0.1, "g": 0.3})  # 3 * 0.1 is the float next to 0.3
    assert study.tell(second, {"f": 0.1}).state == "complete"


def test_stages_may_be_told_one_by_one(url: str) -> None:
    study = opened(url)
    trial = asked(study)
    study.tell_stage(trial, "f", 0.25)
    other = opened(url)
    assert (other.trials[0].state, other.trials[0].outputs) == ("running", {"f": (0.25,)})
    assert other.tell_stage(0, "g", {"g": 1.0}).state == "complete"
    assert study.trials == other.trials
    assert study.predict(trial.controls)["g"].upper == pytest.approx(1.0)
    assert [event.kind for event in study.events] == ["created", "asked", "observed", "told"]


@pytest.mark.parametrize(("end", "state"), [(Study.fail, "failed"), (Study.abandon, "abandoned")])
def test_outputs_of_failed_and_abandoned_trials_are_kept(url: str, end: Callable[..., Trial], state: str) -> None:
    study = opened(url)
    trial = study.enqueue_trial({"x": 0.5})
    study.tell_stage(trial, "f", 0.25)
    ended = end(study, trial, "the furnace broke")
    assert (ended.state, ended.reason, ended.outputs) == (state, "the furnace broke", {"f": (0.25,)})
    events = study.events
    assert end(study, trial, "the furnace broke") == ended  # a second call changes nothing
    assert study.events == events
    again = opened(url)
    assert again.trials == (ended,)
    assert again.predict({"x": 0.5})["f"].upper == pytest.approx(0.25)
    assert again.best_trial is None
    assert asked(again).controls != trial.controls
    assert again.tell(0, {"g": 1.0}).state == "complete"  # a late result completes it
    with pytest.raises(ContradictionError, match="trial 0 is complete"):
        end(again, 0, "too late")


def test_ask_returns_enqueued_trials_first(url: str) -> None:
    study = ran(opened(url), 1)
    chosen = [study.enqueue_trial({"x": x}) for x in (0.5, -0.5)]
    assert [trial.state for trial in chosen] == ["waiting"] * 2
    first, second = asked(opened(url)), asked(study)
    assert [first.number, second.number] == [1, 2]
    assert [first.controls, second.controls] == [{"x": 0.5}, {"x": -0.5}]
    assert first.state == "running"
    assert asked(study).number == 3


def test_an_enqueued_trial_may_be_told_before_it_is_asked_for(url: str) -> None:
    study = opened(url)
    study.tell(study.enqueue_trial({"x": 0.5}), PROCESS({"x": 0.5}))
    assert asked(study).number == 1


def test_past_runs_may_be_complete_or_partial(url: str) -> None:
    study = opened(url)
    whole = study.add_trial({"x": 0.5}, PROCESS({"x": 0.5}))
    part = study.add_trial({"x": -0.5}, {"f": PROCESS({"x": -0.5})["f"]})
    assert (whole.state, part.state, part.value) == ("complete", "abandoned", None)
    assert part.outputs == {"f": PROCESS({"x": -0.5})["f"]}
    assert asked(opened(url)).number == 2
    events = study.events
    with pytest.raises(
        ContradictionError, match=r"trial 3: stage 'f' was told as 9, but as .* for the same inputs in trial 0"
    ):
        study.add_trial({"x": 0.5}, {"f": 9.0})
    with pytest.raises(ArgumentError, match=r"the second: .*Nothing was added"):
        study.add_trials([({"x": 0.0}, {"f": 0.0}, "the first"), ({"x": 7.0}, {}, "the second")])
    assert study.events == events
    assert len(study.trials) == 3


def test_past_runs_are_read_from_csv(url: str) -> None:
    study = opened(url)
    outputs = [PROCESS({"x": x}) for x in (0.5, -0.5)]
    (f, g), (half, _) = ((row["f"][0], row["g"][0]) for row in outputs)
    assert add_runs(study, ["x, f ,g.g", f"0.5,{f!r},{g!r}", "", f"-0.5,{half!r},"]) == 2
    assert [trial.state for trial in study.trials] == ["complete", "abandoned"]
    assert [trial.outputs for trial in study.trials] == [outputs[0], {"f": outputs[1]["f"]}]


@pytest.mark.parametrize(("network", "best"), [(CHAIN, 1), (CHAIN.mirrored(), 2)], ids=["maximised", "minimised"])
def test_the_best_trial_is_the_first_with_the_best_value(url: str, network: Network, best: int) -> None:
    study = opened(url, network=network)
    for x, value in zip((-1.0, 0.0, 1.0, 2.0), [0.5, 1.0, -1.0, 1.0], strict=True):
        study.tell(study.enqueue_trial({"x": x}), {"g": value})
    assert study.best_trial == study.trials[best] == opened(url, network=network).best_trial
    assert repr(study).startswith("Study('alloy'")


@pytest.mark.parametrize("limits", [{}, {"cells": 500}])
@pytest.mark.parametrize(("algorithm", "process"), [("gpn_ucb", PROCESS), ("cei", PROCESS), ("auto", UNKNOWN)])
def test_the_certificate_is_that_of_a_study_in_memory(
    url: str, algorithm: str, process: Process, limits: dict[str, Any]
) -> None:
    runs = 11 if process is UNKNOWN else 7  # an estimated gap has to be tested first
    stored = ran(opened(url, network=process.network, algorithm=algorithm), runs, process)
    memory = Study(process.network, algorithm=algorithm)
    for trial in stored.trials:
        memory.tell(memory.enqueue_trial(trial.controls), trial.outputs)
    again = opened(url, network=process.network)
    expected = memory.certificate(**limits)
    for study in (stored, again):
        found = study.certificate(**limits)
        for field in ("kind", "best", "bound", "gap", "evaluations", "assumptions", "evidence", "stopped", "over"):
            assert getattr(found, field) == getattr(expected, field), field
    assert expected.gap is not None
    one, other = (study.predict(stored.trials[0].controls) for study in (again, memory))
    np.testing.assert_array_equal([one[name].upper for name in "fg"][-1], [other[name].upper for name in "fg"][-1])


def test_a_refutation_is_stored(url: str) -> None:
    study = opened(url)
    study.refute("the furnace is not the same any more")
    again = opened(url)
    assert again.refuted
    assert again.certificate().evidence == ("the furnace is not the same any more",)


def test_ask_returns_none_when_the_gap_is_within_the_tolerance(url: str) -> None:
    study = ran(opened(url), 1)
    assert opened(url, tolerance=100.0).ask() is None
    assert asked(study).number == 1


def test_ask_returns_several_trials_at_once(url: str) -> None:
    study, memory = opened(url), Study(CHAIN, replayable=True)
    trials = study.ask(3)
    assert [trial.number for trial in trials] == [0, 1, 2]
    assert len({trial.controls["x"] for trial in trials}) == 3
    assert [trial.controls for trial in memory.ask(3)] == [trial.controls for trial in trials]
    assert opened(url).trials == tuple(trials)
    listed = Study.open(url, "listed", CHAIN, candidates=Grid({"x": 3}), algorithm="random_search")
    assert [len(listed.ask(2)), len(listed.ask(2)), len(listed.ask(2))] == [2, 1, 0]
    assert len(listed.trials) == 3


@pytest.mark.parametrize("n", [0, -1, 1.0, True, "2"])
def test_the_number_of_trials_must_be_a_whole_number_above_0(url: str, n: Any) -> None:
    for study in (opened(url), Study(CHAIN)):
        with pytest.raises(ArgumentError, match="n must be a whole number ≥ 1; got"):
            study.ask(n)
        assert study.trials == ()


def test_ask_stores_all_its_trials_or_none(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = opened(url)
    expected = [trial.controls for trial in Study(CHAIN, replayable=True).ask(2)]
    append, left = StoredTransaction.append, [1]

    def failing(log: StoredTransaction, event: Event) -> None:
        if not left:
            raise StoreError("the disk is full")
        left.pop()
        append(log, event)

    monkeypatch.setattr(StoredTransaction, "append", failing)
    with pytest.raises(StoreError, match="the disk is full"):
        study.ask(2)
    monkeypatch.undo()
    assert study.trials == opened(url).trials == ()
    assert [trial.controls for trial in study.ask(2)] == expected


def test_a_limit_of_trials_counts_new_ones_only(url: str) -> None:
    study = opened(url, algorithm="random_search")
    assert len(study.ask(5, limit=2)) == 2
    assert study.ask(limit=2) is None
    assert study.enqueue_trial({"x": 0.5}).number == 2
    assert asked(study, limit=2).number == 2  # it exists already
    assert asked(study, limit=4).number == 3


def test_the_tolerance_does_not_change_the_points(url: str, tmp_path: Path) -> None:
    ran(opened(url), 3)
    elsewhere = copied(url, tmp_path / "copy.db")
    assert asked(opened(url, tolerance=0.05)) == asked(opened(elsewhere))


def test_fitted_kernels_are_recorded_in_the_log(url: str) -> None:
    study = ran(opened(url, network=UNKNOWN.network), 7, UNKNOWN)
    fits = [event.data for event in study.events if event.kind == "calibrated"]
    assert len(fits) == 6  # before every ask but the first
    last = fits[-1]["g.g"]
    assert last["acting"]["observations"] == 6
    assert set(last) == {"acting", "judging"}
    assert last["acting"]["kernel"]["lengthscale"] != fits[0]["g.g"]["acting"]["kernel"]["lengthscale"]
    events = study.events
    trial = asked(opened(url, network=UNKNOWN.network))  # another process: the same fits, written once
    assert [event.kind for event in study.events[len(events) :]] == ["calibrated", "asked"]
    study.fail(trial, "no reason")
    assert asked(study).number == 8
    assert [event.kind for event in study.events[len(events) :]] == ["calibrated", "asked", "failed", "asked"]


# ---- resuming

CASES = {
    "gpn_ucb": ("gpn_ucb", PROCESS, 4),
    "random_search": ("random_search", PROCESS, 4),
    "cei": ("cei", PROCESS, 4),
    "auto, unknown norms, first runs": ("auto", UNKNOWN, 2),
    "auto, unknown norms": ("auto", UNKNOWN, 7),  # 2(d + 1) = 6 runs are a design
}


@contextmanager
def prepared(url: str, case: str, pending: int) -> Iterator[Study]:
    """Yield a study with some runs, certificates computed in between, and this many pending trials."""
    algorithm, process, n = CASES[case]
    study = opened(url, network=process.network, algorithm=algorithm, seed=3)
    for _ in range(n):
        ran(study, 1, process)
        study.certificate()
    study.fail(asked(study), "no reason")
    for i in range(pending):
        trial = asked(study)
        if i == 0:
            study.tell_stage(trial, "f", process(trial.controls)["f"])
    yield study


@pytest.mark.parametrize("pending", [0, 2])
@pytest.mark.parametrize("case", CASES)
def test_reopening_a_study_reproduces_the_next_suggestions(url: str, tmp_path: Path, case: str, pending: int) -> None:
    with prepared(url, case, pending) as study:
        elsewhere = copied(url, tmp_path / "copy.db")
        process = CASES[case][1]
        again = Study.open(elsewhere, "alloy", process.network)
        assert again.trials == study.trials
        for _ in range(2):
            one, other = asked(study), asked(again)
            assert one == other  # to the last bit of every control
            outputs = process(one.controls)
            assert study.tell(one, outputs) == again.tell(other, outputs)
        again = Study.open(elsewhere, "alloy")
        assert asked(again) == asked(study)


@pytest.mark.parametrize("case", CASES)
def test_an_imported_study_continues_like_the_exported_one(url: str, tmp_path: Path, case: str) -> None:
    with prepared(url, case, 1) as study:
        lines = exported(Store(url), "alloy")
        other = f"sqlite:///{tmp_path}/other.db"
        assert import_log(Store(other), "bronze", lines) == len(lines) == len(study.events)
        again = Study.open(other, "bronze", CASES[case][1].network)
        assert again.trials == study.trials
        assert again.events == study.events
        assert asked(again) == asked(study)
        with pytest.raises(StoreError, match="there is a study 'bronze' in this store already"):
            import_log(Store(other), "bronze", lines)
        with pytest.raises(StoreError, match="there is no study 'bronze'"):
            exported(Store(url), "bronze")


def test_a_study_run_in_several_parts_has_the_same_trials_as_in_one(url: str, tmp_path: Path) -> None:
    whole = opened(url).optimise(truth(CHAIN, 1), budget=6, progress=False)
    pieces = f"sqlite:///{tmp_path}/pieces.db"
    for budget in (2, 3, 6):
        result = opened(pieces).optimise(truth(CHAIN, 1), budget=budget, progress=False)
        assert (len(result.trials), result.status) == (budget, "budget")
    assert result.trials == whole.trials
    assert result.best == whole.best
    assert opened(pieces).optimise(truth(CHAIN, 1), budget=6, progress=False).trials == whole.trials


# ---- opening


def test_opening_a_study_with_another_network_raises(url: str) -> None:
    study = ran(opened(url), 1)
    events = study.events
    others: dict[str, tuple[Network, str]] = {
        "bounds": (chain(stage("f", controls={"x": Real(-2, 3)}), stage("g")), r"stages.f.controls.x.high.*2.*3"),
        "a stage": (chain(stage("f", controls=X), stage("h")), "stages.g: a stored stage that is not given"),
        "a control": (chain(stage("f", controls=X | Y), stage("g")), "stages.f.controls.y: not stored"),
        "the sense": (CHAIN.mirrored(), 'objective.sense: stored "maximise", given "minimise"'),
        "a norm": (chain(stage("f", controls=X, norm_bound=3.0), stage("g")), "norm_bound: stored 2.0, given 3.0"),
    }
    for network, message in others.values():
        with pytest.raises(ArgumentError, match=f"the study 'alloy' is stored otherwise: .*{message}"):
            opened(url, network=network)
    with pytest.raises(ArgumentError, match=r"settings.seed: stored 0, given 1"):
        opened(url, seed=1)
    with pytest.raises(ArgumentError, match=r"settings.algorithm"):
        opened(url, algorithm="cei")
    with pytest.raises(ArgumentError, match=r"stages.f.controls.y"):
        opened(url, network=others["a control"][0], amend=True)
    assert opened(url).events == events


def test_an_amendment_replaces_the_assumptions_of_a_study(url: str) -> None:
    study = ran(opened(url), 2)
    wider = chain(stage("f", controls=X, norm_bound=3.0), stage("g"))
    amended = opened(url, network=wider, amend=True)
    assert amended.trials == opened(url, network=None).trials
    assert [event.kind for event in amended.events].count("amended") == 1
    assert any("norm ≤ 3" in line for line in amended.certificate().assumptions)
    assert opened(url, network=wider).events == amended.events  # it is the stored network now
    with pytest.raises(StoreError, match="was amended by another process; open it again"):
        study.ask()
    assert asked(amended).number == 2
    with pytest.raises(ArgumentError, match=r"stored 3.0, given 2.0"):
        opened(url)


def test_importing_an_amended_study_with_formulas_needs_its_latest_network(url: str) -> None:
    def network(norm_bound: float) -> Network:
        formula = Stage("g", known=True, lipschitz=2.0, function=lambda f: 2 * f)
        return chain(stage("f", controls=X, norm_bound=norm_bound), formula)

    ran(opened(url, network=network(2.0)), 1, Process(network(2.0), [lambda x: 0.1 * x]))
    amended = opened(url, network=network(3.0), amend=True)
    lines = exported(Store(url), "alloy")
    with pytest.raises(StoreError, match=r"line 4: the description is not that of the network.*Nothing was imported"):
        import_log(Store(url), "bronze", lines, network(2.0))
    import_log(Store(url), "bronze", lines, network(3.0))
    assert asked(Study.open(url, "bronze", network(3.0))) == asked(amended)
    moved = [line.replace('"high": 2.0', '"high": 2.5') if '"amended"' in line else line for line in lines]
    assert moved != lines
    with pytest.raises(StoreError, match=r"line 4: a study cannot be amended like this: .*high.*Nothing was imported"):
        import_log(Store(url), "silver", moved, network(3.0))


def test_a_study_can_be_opened_without_its_network(url: str) -> None:
    network = chain(
        stage("f", controls=X | {"n": Integer(1, 3), "t": Real(0.1, 9, log=True)}, outputs=["u", "n"], passes=["n"]),
        stage("g", controls=Y),
    ).mirrored()
    process = Process(network, truth(network, 0))
    study = ran(opened(url, network=network, algorithm="random_search", seed=7), 3, process)
    again = opened(url, network=None)
    assert again.trials == study.trials
    again.tell(asked(again), process(study.trials[-1].controls))
    assert asked(again).number == 4
    with pytest.raises(ArgumentError, match=r"there is no study 'bronze' in this store \(it has alloy\)"):
        Study.open(url, "bronze")


def test_a_study_with_a_formula_cannot_be_opened_without_its_network(url: str) -> None:
    network = chain(stage("f", controls=X), Stage("g", known=True, lipschitz=2.0, function=lambda f: 2 * f))
    study = opened(url, network=network)
    with pytest.raises(ArgumentError, match="stage 'g' is a formula"):
        opened(url, network=None)
    assert study.tell(asked(study), {"f": 0.5}).value == 1.0
    lines = exported(Store(url), "alloy")
    with pytest.raises(StoreError, match=r"line 1: stage 'g' is a formula.*Nothing was imported"):
        import_log(Store(url), "bronze", lines)
    import_log(Store(url), "bronze", lines, network)
    assert Study.open(url, "bronze", network).trials == study.trials


def test_candidates_are_stored(url: str) -> None:
    study = opened(url, candidates=Grid({"x": 3}), algorithm="random_search")
    assert len({asked(opened(url, network=None)).controls["x"] for _ in range(3)}) == 3
    assert study.ask() is None


def test_studies_of_one_store_are_independent(url: str) -> None:
    one, other = opened(url), Study.open(url, "bronze", CHAIN)
    ran(one, 2)
    assert (len(one.trials), len(other.trials)) == (2, 0)
    assert Store(url).studies() == ["alloy", "bronze"]


# ---- leases


class Clock:
    """A clock that changes only when a test changes it."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Replace the clock that leases in SQLite use."""
    made = Clock()
    monkeypatch.setattr(time, "time", made)
    return made


def test_a_trial_with_an_expired_lease_is_returned_again(url: str, clock: Clock) -> None:
    study, other = opened(url, worker="one"), opened(url, worker="two")
    trial = asked(study, lease=60.0)
    clock.now += 61.0
    assert asked(other) == trial
    assert not study.beat(trial)
    complete = study.tell(trial, PROCESS(trial.controls))  # a late result is accepted
    assert other.trials[0] == complete
    assert other.tell(trial, complete.outputs) == complete


def test_heartbeats_extend_a_lease(url: str, clock: Clock) -> None:
    study, other = opened(url, worker="one"), opened(url, worker="two")
    trial = asked(study, lease=60.0)
    for _ in range(4):
        clock.now += 40.0
        assert study.beat(trial)
        assert not other.beat(trial)
    assert asked(other).number == 1


def test_heartbeats_are_sent_in_the_background(url: str, clock: Clock) -> None:
    study, other = opened(url, worker="one"), opened(url, worker="two")

    def until() -> float:
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return float(*connection.execute("SELECT until FROM cascada_leases WHERE trial = 0").fetchone())

    with study.beating(0.3):
        trial = asked(study)
        begun = until()
        for _ in range(3):
            clock.now += 0.2
            wait_until(lambda: until() == clock.now + 0.3, "a heartbeat was sent")
        assert clock.now > begun
        assert asked(other).number == 1
    clock.now += 0.4
    assert asked(other) == trial


def test_a_trial_without_a_lease_never_expires(url: str) -> None:
    study = opened(url)
    trial = asked(study)
    assert asked(opened(url)).number == 1
    assert not study.beat(trial)  # there is no lease to extend


def test_a_restarted_worker_resumes_its_trials(url: str) -> None:
    study = opened(url, worker="one")
    mine = [asked(study, lease=60.0) for _ in range(2)]
    asked(study)  # without a lease, as for a long experiment in a lab
    asked(opened(url, worker="two"), lease=60.0)
    back = opened(url, worker="one")
    assert back.take_up() == 2
    assert [trial.state for trial in back.trials] == ["waiting", "waiting", "running", "running"]
    assert [asked(back), asked(back)] == mine
    assert asked(back).number == 4
    assert opened(url, worker="three").take_up() == 0


def test_imported_trials_with_a_lease_are_returned_again(url: str) -> None:
    study = opened(url, worker="far away")
    trial, other = asked(study, lease=1000.0), asked(study)
    import_log(Store(url), "bronze", exported(Store(url), "alloy"))
    copy = Study.open(url, "bronze", CHAIN)
    assert [t.state for t in copy.trials] == ["running", "running"]
    assert [t.number for t in copy.ask(2)] == [trial.number, other.number + 1]  # the copy gets no heartbeats
    assert asked(study).number == other.number + 1  # the lease of the original is still valid


def test_a_store_is_opened_and_read_while_another_process_writes(url: str) -> None:
    study = ran(opened(url), 1)
    best = study.best_trial

    def look(_: object) -> None:  # while the lock is held, as for a suggestion
        assert Store(url).studies() == ["alloy"]
        assert opened(url).best_trial == best

    study._changed(look)


# ---- several processes


@pytest.mark.parametrize("algorithm", ["random_search", "gpn_ucb"])
def test_two_workers_get_different_points_and_see_results_of_each_other(url: str, algorithm: str) -> None:
    pair = [opened(url, worker=name, algorithm=algorithm) for name in ("one", "two")]
    pending: list[tuple[Study, Trial]] = []
    for _ in range(4):
        pending += [(study, asked(study)) for study in pair]
        for study, trial in pending[-2:]:
            study.tell(trial, PROCESS(trial.controls))
            assert all(seen.trials[trial.number].state == "complete" for seen in pair)
    assert len({trial.controls["x"] for _, trial in pending}) == 8
    assert [trial.number for _, trial in pending] == list(range(8))
    assert pair[0].trials == pair[1].trials == opened(url).trials


# ---- a failed write changes nothing


@pytest.mark.parametrize("error", [StoreError("the disk is full"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize(
    "act",
    [
        lambda study: study.ask(),
        lambda study: study.ask(lease=5.0),
        lambda study: study.tell(2, PROCESS(study.trials[2].controls)),
        lambda study: study.tell_stage(2, "f", PROCESS(study.trials[2].controls)["f"]),
        lambda study: study.enqueue_trial({"x": 0.125}),
        lambda study: study.add_trial({"x": 0.125}, {"f": 0.5}),
        lambda study: study.fail(2, "no reason"),
        lambda study: study.take_up(),
        lambda study: study.refute("no reason"),
    ],
    ids=["ask", "ask under a lease", "tell", "tell_stage", "enqueue", "add", "fail", "take_up", "refute"],
)
def test_a_failed_write_changes_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch, act: Callable[[Study], Any], error: BaseException
) -> None:
    study = ran(opened(url), 2)
    asked(study, lease=600.0)
    study.certificate()
    events, trials = study.events, study.trials
    append = StoredTransaction.append

    def broken(log: StoredTransaction, event: Event) -> None:
        append(log, event)
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(StoredTransaction, "append", broken)
        with pytest.raises(type(error)):
            act(study)
    assert (study.events, study.trials) == (events, trials)
    other = opened(url)
    assert other.trials == trials
    assert study.certificate().gap == other.certificate().gap
    act(study)
    assert other.trials == study.trials
    assert len(study.events) > len(events)


def test_a_point_that_could_not_be_stored_is_suggested_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = ran(opened(url), 2)
    points = []
    for _ in range(2):
        with monkeypatch.context() as patched:

            def refuse(_: StoredTransaction, event: Event) -> None:
                points.append(event.data["controls"])
                raise StoreError("the disk is full")

            patched.setattr(StoredTransaction, "append", refuse)
            with pytest.raises(StoreError, match="the disk is full"):
                study.ask()
    assert [*points, asked(study).controls] == [points[0]] * 3


# ---- interrupts


def test_an_interrupt_during_a_certificate_loses_no_observation(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = ran(opened(url, algorithm="gpn_ucb"), 4)
    trial = asked(study)
    study.tell(trial, PROCESS(trial.controls))

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Model, "_learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            study.certificate()
    assert study.certificate().evaluations == 5
    another = opened(copied(url, Path(url.removeprefix("sqlite:///") + "2")))
    assert asked(study).controls == asked(another).controls


def test_a_result_whose_write_was_interrupted_can_be_told_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = opened(url)
    trial = asked(study)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StoredTransaction, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            study.tell(trial, PROCESS(trial.controls))
    assert study.trials[0].state == "running"
    assert study.tell(trial, PROCESS(trial.controls)).state == "complete"
    assert [event.kind for event in study.events] == ["created", "asked", "told"]


def test_a_study_amended_by_another_process_must_be_opened_again(url: str) -> None:
    study = ran(opened(url), 2)
    other = chain(stage("f", controls=X, norm_bound=50.0), stage("g"))
    opened(url, network=other, amend=True)
    with pytest.raises(StoreError, match="amended"):
        study.ask()
    assert asked(opened(url, network=other)).number == 2


def test_a_result_is_recorded_again_after_a_failed_write(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study, append, failures = opened(url), StoredTransaction.append, iter([True, True])

    def locked(log: StoredTransaction, event: Event) -> None:
        if event.kind == "told" and next(failures, False):
            raise StoreError("cannot write the store: database is locked.")
        append(log, event)

    monkeypatch.setattr(StoredTransaction, "append", locked)
    with pytest.raises(StoreError, match="locked"):
        study.optimise(truth(CHAIN, 1), budget=3, progress=False)
    assert [trial.state for trial in study.trials] == ["complete"]


def stored_algorithm(url: str) -> Any:
    store = Store(url)
    try:
        return store.get("alloy")[1][0].data["settings"]["algorithm"]
    finally:
        store.close()


@pytest.mark.parametrize(
    ("process", "algorithm", "name"),
    [(PROCESS, "auto", "gpn_mixed"), (UNKNOWN, "auto", "gpn_ei"), (PROCESS, "gpn_ucb", "gpn_ucb")],
)
def test_a_new_study_stores_the_algorithm_that_auto_stands_for(
    url: str, process: Process, algorithm: str, name: str
) -> None:
    opened(url, network=process.network, algorithm=algorithm)
    assert stored_algorithm(url) == name
    again = opened(url, network=process.network, algorithm="auto")  # the stored one
    assert type(again.algorithm) is NAMES[name]


def test_auto_does_not_stand_for_another_algorithm(url: str) -> None:
    opened(url, algorithm="cucb")
    with pytest.raises(ArgumentError, match=r"stored otherwise: settings.algorithm"):
        opened(url, algorithm="auto")


@pytest.mark.parametrize("algorithm", [GPNMixed(), GPNUCB(), GPNEI()])
def test_a_study_stored_with_an_algorithm_object_is_opened_with_auto(url: str, algorithm: Algorithm) -> None:
    opened(url, algorithm=algorithm)
    again = opened(url, algorithm="auto")
    assert again.algorithm == algorithm
    assert asked(again).number == 0
