"""One suite for studies in memory, in a SQLite file and in PostgreSQL: the same calls do and say the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cascada as cd
from cascada.algorithms import GPNUCB, Situation
from cascada.errors import ArgumentError, ContradictionError, RefutedError, StoreError
from cascada.network import Network, chain
from cascada.process import Process
from cascada.study import Study, Trial
from cascada.study.state import State
from cascada.study.validation import Rules
from tests.network.cases import X, stage, truth
from tests.study.conftest import Clock

CHAIN = chain(stage("f", controls=X), stage("g"))
PROCESS = Process(CHAIN, truth(CHAIN, 1))
Open = Callable[..., Study]


def ran(study: Study, runs: int) -> Study:
    """The study after so many runs of the process."""
    for _ in range(runs):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, PROCESS(trial.controls))
    return study


def states(study: Study) -> list[str]:
    return [trial.state for trial in study.trials]


# ---- asking


def test_a_study_without_trials_has_no_best_trial_and_no_gap(opened: Open) -> None:
    study = opened(CHAIN)
    assert (study.trials, study.best_trial, study.gap) == ((), None, None)
    assert study.certificate().kind == "proven"
    assert not study.refuted
    assert not study.within_tolerance


def test_points_are_the_same_in_every_kind_of_study(opened: Open) -> None:
    study = ran(opened(CHAIN), 4)
    memory = ran(Study(CHAIN, replayable=True), 4)
    assert [trial.controls for trial in study.trials] == [trial.controls for trial in memory.trials]
    assert study.certificate().bound == memory.certificate().bound


def test_several_trials_are_asked_for_at_once(opened: Open) -> None:
    study = opened(CHAIN)
    trials = study.ask(3)
    assert isinstance(trials, list)
    assert [trial.number for trial in trials] == [0, 1, 2]
    assert len({trial.controls["x"] for trial in trials}) == 3
    assert states(study) == ["running"] * 3
    wrong: Any
    for wrong in (0, -1, 2.0, True, "3"):
        with pytest.raises(ArgumentError, match="n must be a whole number ≥ 1; got"):
            study.ask(wrong)


def test_no_trial_is_asked_for_within_the_tolerance(opened: Open) -> None:
    study = ran(opened(CHAIN, tolerance=100.0), 1)
    assert study.within_tolerance
    assert study.ask() is None
    assert study.ask(2) == []


def test_trials_that_wait_are_asked_for_first(opened: Open) -> None:
    study = opened(CHAIN)
    first, second = study.enqueue_trial({"x": 0.5}), study.enqueue_trial({"x": -0.5})
    assert (first.state, second.state) == ("waiting", "waiting")
    assert study.ask() == Trial(0, {"x": 0.5})
    assert states(study) == ["running", "waiting"]
    assert states(study) == ["running", "waiting"]
    assert study.ask() == Trial(1, {"x": -0.5})


def test_a_trial_at_controls_of_ones_own_runs_at_once(opened: Open) -> None:
    study = opened(CHAIN)
    trial = study.begin_trial({"x": 0.5})
    assert trial == Trial(0, {"x": 0.5})
    assert states(study) == ["running"]
    other = study.ask()
    assert other is not None
    assert other.controls != trial.controls


@pytest.mark.parametrize("method", ["enqueue_trial", "begin_trial"])
@pytest.mark.parametrize(
    ("controls", "text"),
    [
        ({"x": 7.0}, r"control 'x' must lie in \[-2, 2\]; got 7"),
        ({"y": 0.0}, "the controls are x; missing: x, unknown: 'y'"),
        ({"x": "0.5"}, "control 'x' must be a number; got '0.5'"),
        ({"x": float("nan")}, "must be finite"),
    ],
)
def test_wrong_controls_are_refused(opened: Open, method: str, controls: dict[str, Any], text: str) -> None:
    study = opened(CHAIN)
    with pytest.raises(ArgumentError, match=text):
        getattr(study, method)(controls)
    assert study.trials == ()


# ---- telling


def test_a_trial_is_complete_with_its_objective(opened: Open) -> None:
    study = opened(CHAIN)
    trial = study.enqueue_trial({"x": 0.5})
    part = study.tell_stage(trial, "f", 0.25)
    assert (part.state in ("waiting", "running"), part.outputs, part.value) == (True, {"f": (0.25,)}, None)
    whole = study.tell_stage(0, "g", {"g": 1.0})
    assert (whole.state, whole.outputs, whole.value) == ("complete", {"f": (0.25,), "g": (1.0,)}, 1.0)
    assert study.trials == (whole,)
    assert study.trials == (whole,)
    assert study.best_trial == whole


def test_telling_the_same_again_changes_nothing(opened: Open) -> None:
    study = ran(opened(CHAIN), 2)
    before = study.trials
    for trial in before:
        assert study.tell(trial.number, trial.outputs) == trial
        assert study.tell_stage(trial, "f", trial.outputs["f"]) == trial
    assert study.trials == before


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ({"h": 1.0}, "no stage 'h'"),
        ({"f": [1.0, 2.0]}, r"trial 0: stage 'f' must return 1 output \(f\); got 2"),
        ({"f": "1.0"}, "trial 0: stage 'f' returned '1.0' for 'f', which is not a number"),
        ({"f": float("nan")}, "trial 0: stage 'f' returned nan for 'f', which is not finite"),
        ({"f": 1e101}, r"trial 0: stage 'f' returned 1e\+101 for 'f', which is larger than 1e\+100"),
        ([1.0], "tell the outputs as a dict of stages"),
    ],
)
def test_what_are_no_outputs_is_refused(opened: Open, outputs: Any, text: str) -> None:
    study = opened(CHAIN)
    trial = study.enqueue_trial({"x": 0.5})
    with pytest.raises(ArgumentError, match=text):
        study.tell(trial, outputs)
    assert study.trials == (trial,)


@pytest.mark.parametrize("trial", [7, -1, "0", True, None])
def test_a_trial_that_does_not_exist_is_refused(opened: Open, trial: Any) -> None:
    study = ran(opened(CHAIN), 1)
    text = "there is no trial" if isinstance(trial, int) and not isinstance(trial, bool) else "name a trial by itself"
    for call in (
        lambda: study.tell(trial, {"f": 1.0}),
        lambda: study.tell_stage(trial, "f", 1.0),
        lambda: study.fail(trial, "broken"),
        lambda: study.abandon(trial),
    ):
        with pytest.raises(ArgumentError, match=text):
            call()


# ---- contradictions


def test_a_value_told_twice_differently_is_refused_with_both_values(opened: Open) -> None:
    study = opened(CHAIN)
    trial = study.tell(study.enqueue_trial({"x": 0.5}), {"f": 0.25, "g": 1.0})
    with pytest.raises(ContradictionError, match=r"trial 0: stage 'f' was told as 0.25 before and now as 0.75"):
        study.tell(trial, {"f": 0.75})
    assert study.trials == (trial,)


def test_two_trials_that_contradict_each_other_are_refused_by_stage_and_trial(opened: Open) -> None:
    study = opened(CHAIN)
    first, second = study.enqueue_trial({"x": 0.5}), study.enqueue_trial({"x": 0.5})
    told = study.tell(first, {"f": 0.25, "g": 1.0})
    text = r"trial 1: stage 'f' was told as 0.75, but as 0.25 for the same inputs in trial 0"
    with pytest.raises(ContradictionError, match=text):
        study.tell(second, {"f": 0.75, "g": 1.0})
    assert study.trials == (told, second)
    assert study.tell(second, {"f": 0.25, "g": 1.0}).state == "complete"
    assert study.certificate().kind == "proven"


def test_an_output_outside_the_range_of_a_singular_matrix_is_kept_and_refutes(opened: Open) -> None:
    kernel = cd.Separable(cd.SquaredExponential(1.0), [[1.0, 1.0], [1.0, 1.0]])
    pair = cd.Stage("pair", controls={"x": cd.Real(-2, 2)}, outputs=["a", "b"], kernel=kernel, norm_bound=2.0)
    study = opened(Network([pair], objective="pair.b"))
    assert study.add_trial({"x": 0.0}, {"pair": [1.0, 1.001]}).state == "complete"
    assert study.certificate().kind == "refuted"
    with pytest.raises(RefutedError, match="use one of full rank"):
        study.ask()


def test_evidence_names_trials_by_the_numbers_that_users_see(opened: Open) -> None:
    steep = chain(stage("f", controls=X, lipschitz=0.5), stage("g"))
    study = opened(steep)
    for x, value in ((0.0, 0.1), (1.0, 0.2), (2.0, 0.1)):
        trial = study.enqueue_trial({"x": x})
        study.tell_stage(trial, "f", value)
        study.tell_stage(trial, "g", 0.5)  # which teaches the first stage again
    last = study.enqueue_trial({"x": -1.0})
    study.tell_stage(last, "f", 1.5)
    certificate = study.certificate()
    assert certificate.kind == "refuted"
    assert "trials 0 and 3 are possible only with more than" in str(certificate)


# ---- ending


@pytest.mark.parametrize("state", ["failed", "abandoned"])
def test_what_was_observed_of_a_trial_that_ended_is_kept(opened: Open, state: str) -> None:
    study = opened(CHAIN)
    trial = study.enqueue_trial({"x": 0.5})
    study.tell_stage(trial, "f", 0.25)
    end = study.fail if state == "failed" else study.abandon
    ended = end(trial, "the furnace broke")
    assert (ended.state, ended.reason, ended.outputs) == (state, "the furnace broke", {"f": (0.25,)})
    assert study.trials == (ended,)
    assert study.trials == (ended,)
    assert study.predict({"x": 0.5})["f"].upper == pytest.approx(0.25)
    assert study.best_trial is None
    assert study.tell(0, {"g": 1.0}).state == "complete"  # it was not the end after all
    with pytest.raises(ContradictionError, match="trial 0 is complete"):
        end(0, "too late")


def test_the_judge_sees_the_same_states_as_the_user(opened: Open) -> None:
    study = opened(CHAIN)
    trials = [study.begin_trial({"x": x}) for x in (0.0, 0.5, 1.0, 1.5)]
    study.enqueue_trial({"x": 2.0})
    study.tell(trials[0], PROCESS(trials[0].controls))
    study.abandon(trials[1], "no material")
    study.fail(trials[2], "the furnace broke")
    expected = ["complete", "abandoned", "failed", "running", "waiting"]
    assert states(study) == expected
    study.abandon(4)
    assert states(study) == [*expected[:4], "abandoned"]


def test_an_expired_trial_waits_for_the_judge_too(tmp_path: Path) -> None:
    study = Study.open(f"sqlite:///{tmp_path}/studies.db", "alloy", CHAIN)
    study.ask(lease=100.0)
    assert states(study) == ["running"]
    assert study.take_up() == 1  # as after a crash of this worker
    assert states(study) == ["waiting"]
    assert study.ask() is not None
    assert states(study) == ["running"]


# ---- past runs


def test_past_runs_are_added_whole_or_in_part(opened: Open) -> None:
    study = opened(CHAIN)
    whole = study.add_trial({"x": 0.5}, PROCESS({"x": 0.5}))
    part = study.add_trial({"x": -0.5}, {"f": PROCESS({"x": -0.5})["f"]})
    assert (whole.state, part.state, part.value) == ("complete", "abandoned", None)
    assert study.trials == study.trials == (whole, part)
    with pytest.raises(ContradictionError, match="for the same inputs in trial 0"):
        study.add_trial({"x": 0.5}, {"f": 9.0})
    assert len(study.trials) == 2


def test_all_trials_as_a_table(opened: Open) -> None:
    study = ran(opened(CHAIN), 2)
    study.fail(study.enqueue_trial({"x": 2.0}), "broken")
    frame = study.trials_dataframe()
    assert list(frame["state"]) == ["complete", "complete", "failed"]


def test_a_refutation_that_somebody_states_stays(opened: Open) -> None:
    study = ran(opened(CHAIN), 1)
    study.refute("the furnace was not calibrated")
    assert study.refuted
    assert "the furnace was not calibrated" in str(study.certificate())
    with pytest.raises(RefutedError, match="the furnace was not calibrated"):
        study.ask()


def test_a_study_is_optimised_to_its_budget(opened: Open) -> None:
    study = opened(CHAIN)
    result = study.optimise(PROCESS, budget=3, progress=False)
    assert (result.status, len(result.trials)) == ("budget", 3)
    assert result.trials == study.trials
    assert result.best == study.best_trial


# ---- one class


def test_every_kind_of_study_is_a_study(opened: Open) -> None:
    study = opened(CHAIN)
    assert type(study) is Study
    assert study.network is CHAIN
    assert (study.name is None) is not study.shared
    assert repr(study).startswith("Study(" if study.name is None else "Study('alloy', ")
    assert repr(study).endswith("; 0 trials, best None)")


def test_the_settings_of_a_study_can_be_read(opened: Open) -> None:
    study = opened(CHAIN, algorithm="gpn_ucb", horizon=7, tolerance=0.5)
    assert isinstance(study.algorithm, GPNUCB)
    assert (study.adaptive, study.horizon, study.tolerance) == (True, 7, 0.5)
    assert not opened(CHAIN).within_tolerance if study.shared else True


def test_outputs_are_validated_once_per_tell(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    study = ran(opened(CHAIN), 2)
    trial = study.ask()
    assert trial is not None
    calls: list[int] = []
    validate = Rules.with_outputs

    def counted(rules: Rules, before: Trial, outputs: Any) -> Trial:
        calls.append(before.number)
        return validate(rules, before, outputs)

    monkeypatch.setattr(Rules, "with_outputs", counted)
    outputs = PROCESS(trial.controls)
    study.tell_stage(trial, "f", outputs["f"])
    study.tell(trial, outputs)
    study.certificate()
    assert calls == [2, 2]


def test_events_are_numbered_and_lead_to_the_state(opened: Open) -> None:
    study = opened(CHAIN)
    first = study.ask()
    assert first is not None
    study.tell_stage(first, "f", PROCESS(first.controls)["f"])
    study.tell(first, PROCESS(first.controls))
    study.fail(study.enqueue_trial({"x": 0.5}), "broken")
    study.abandon(study.begin_trial({"x": 1.0}))
    study.note("a new furnace")
    kinds = ["created", "asked", "observed", "told", "enqueued", "failed", "asked", "abandoned", "note"]
    assert [event.kind for event in study.events] == kinds
    assert [event.number for event in study.events] == list(range(len(kinds)))
    assert study.events[-1].data == {"text": "a new furnace"}
    replayed = State.empty(CHAIN).replayed(study.events)
    assert (replayed.trials, replayed.lessons, replayed.taken) == (
        study.trials,
        study.state.lessons,
        study.state.taken,
    )


def test_a_note_changes_nothing_else(opened: Open) -> None:
    study = ran(opened(CHAIN), 2)
    before = study.certificate()
    study.note("a new furnace")
    assert (study.certificate().bound, study.refuted) == (before.bound, False)


def test_a_closed_study_keeps_what_was_written(opened: Open) -> None:
    study = ran(opened(CHAIN), 1)
    trials = study.trials
    study.close()
    assert study.trials == trials


def test_a_branch_goes_its_own_way(opened: Open) -> None:
    study = ran(opened(CHAIN), 2)
    leased = study.ask(lease=100.0)
    assert leased is not None
    branch = study.branch()
    assert type(branch) is Study
    assert (branch.trials, branch.events) == (study.trials, study.events)
    other = branch.ask()
    assert other is not None
    assert other.number == 3  # the trial under way is under way in the branch, too
    assert len(study.trials) == 3
    branch.tell(leased, PROCESS(leased.controls))
    assert states(study) == ["complete", "complete", "running"]
    mine = study.ask()
    assert mine == other  # the same point from the same trials


def test_what_is_known_of_a_study_can_be_read(opened: Open) -> None:
    study = ran(opened(CHAIN), 3)
    best = study.best_trial
    assert best is not None
    assert best.value == max(trial.value for trial in study.trials if trial.value is not None)
    situation = study.situation()
    assert isinstance(situation, Situation)
    assert (situation.trial, situation.best, len(situation.data), len(situation.pending)) == (3, best.value, 3, 0)
    assert len(study.situation([Trial(3, {"x": 0.5})]).pending) == 1
    assert len(study.beliefs.stages) == 2
    assert study.model.kind == "proven"
    predicted = study.predict(best.controls)["g"]
    assert predicted.lower <= best.value <= predicted.upper
    assert study.recommended() is None  # the best run is
    assert study.recommendation() is None
    gap = study.gap
    assert gap is not None
    refined = study.certificate(cells=5_000)
    assert refined.gap is not None
    assert 0 <= refined.gap <= gap


def test_a_design_recommends_a_point_of_its_own(opened: Open) -> None:
    study = ran(opened(CHAIN, algorithm="non_adaptive", horizon=4), 4)
    recommended, recommendation = study.recommended(), study.recommendation()
    assert recommended is not None
    assert recommendation is not None
    assert recommendation.controls == recommended
    assert recommendation.kind == "proven"


def test_the_table_has_a_column_for_every_control_and_output(opened: Open) -> None:
    study = ran(opened(CHAIN), 1)
    study.add_trial({"x": 2.0}, {"f": PROCESS({"x": 2.0})["f"]})
    frame = study.trials_dataframe()
    assert list(frame.columns) == ["number", "state", "value", "x", "f.f", "g.g"]
    assert list(frame["number"]) == [0, 1]
    assert frame["value"][0] == study.trials[0].value
    assert frame["value"].isna()[1]


def test_a_contradiction_between_trials_may_be_stated(opened: Open) -> None:
    study = ran(opened(CHAIN), 1)
    study.refute("trials 0 and 1 differ", trials=[0, 1])
    assert study.state.refutations[0].trials == (0, 1)
    assert study.certificate().evidence == ("trials 0 and 1 differ",)
    assert study.gap is None
    with pytest.raises(RefutedError, match="trials 0 and 1 differ"):
        study.ask()


def test_runs_of_the_past_are_added_all_or_none(opened: Open) -> None:
    study = opened(CHAIN)
    runs = [({"x": x}, PROCESS({"x": x}), f"line {i}") for i, x in enumerate((0.0, 0.5))]
    assert [trial.number for trial in study.add_trials(runs)] == [0, 1]
    with pytest.raises(ArgumentError, match=r"line 9: control 'x' must lie in .*Nothing was added"):
        study.add_trials([({"x": 1.0}, {"f": 0.5}, "line 8"), ({"x": 9.0}, {"f": 0.5}, "line 9")])
    with pytest.raises(ContradictionError, match=r"line 7: .*in trial 0.*Nothing was added"):
        study.add_trials([({"x": 0.0}, {"f": 9.0}, "line 7")])
    assert len(study.trials) == 2


# ---- leases


def test_a_trial_whose_lease_ran_out_is_asked_for_again(opened: Open, clock: Clock) -> None:
    study = opened(CHAIN)
    trial = study.ask(lease=60.0)
    assert trial is not None
    clock.now += 40.0
    assert study.beat(trial)
    clock.now += 40.0
    other = study.ask(lease=60.0)
    assert other is not None
    assert other.number == 1
    study.worker = "another"
    assert not study.beat(trial)
    clock.now += 61.0
    again = study.ask(2)
    assert again == [trial, other]
    assert [event.kind for event in study.events][-4:] == ["expired", "expired", "asked", "asked"]
    study.worker = "main"
    assert not study.beat(trial)
    assert study.tell(trial, PROCESS(trial.controls)).state == "complete"  # late results count


def test_a_lease_that_a_clock_far_ahead_wrote_ends_after_its_own_time(opened: Open, clock: Clock) -> None:
    study, month = opened(CHAIN), 30 * 86_400.0
    clock.now += month
    trial = study.ask(lease=60.0)
    assert trial is not None
    clock.now -= month
    assert study.ask() == Trial(1, study.trials[1].controls)  # the worker may be alive
    clock.now += 59.0
    assert study.ask() == Trial(2, study.trials[2].controls)
    clock.now += 2.0
    assert study.ask() == trial


def test_a_clock_that_is_set_back_does_not_end_the_lease_of_a_live_worker(opened: Open, clock: Clock) -> None:
    study = opened(CHAIN)
    trial = study.ask(lease=60.0)
    assert trial is not None
    clock.now -= 86_400.0
    for _ in range(3):
        clock.now += 40.0
        assert study.beat(trial)
        assert study.ask() != trial


def test_a_trial_without_a_lease_may_take_any_time(opened: Open, clock: Clock) -> None:
    study = opened(CHAIN)
    trial = study.ask()
    clock.now += 1e8
    assert study.ask() != trial
    assert states(study) == ["running", "running"]
    assert study.take_up() == 0
    assert not study.beat(0)


def test_trials_are_given_back(opened: Open) -> None:
    study = opened(CHAIN)
    with study.beating(60.0):
        study.ask(3)
        assert sorted(study.state.holders) == [0, 1, 2]
        study.put_back([1, 7])
        assert states(study) == ["running", "waiting", "running"]
        study.put_back([1])
        assert not study.others_at_work()
        study.worker = "another"
        assert study.others_at_work()
        assert study.take_up() == 0
        study.worker = "main"
    study.fail(0, "broken")
    assert study.take_up() == 1
    assert states(study) == ["failed", "waiting", "waiting"]
    assert study.ask() == Trial(1, study.trials[1].controls)
    assert not study.state.holders  # asked for after `beating` ended


def test_a_worker_does_not_take_up_the_trials_of_a_live_namesake(
    opened: Open, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = opened(CHAIN)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("cascada.store.transaction.this_process", lambda: "another machine:1")
        study.ask(lease=60.0)
    if study.shared:  # the only process of a study in memory is this one
        with pytest.raises(StoreError, match="a worker named 'main' is running trial 0 of this study; wait for it"):
            study.take_up()
    clock.now += 61.0
    assert study.take_up() == 1


@pytest.mark.parametrize("lease", [0, -1.0, float("nan"), float("inf"), "60", True])
def test_a_wrong_lease_is_refused(opened: Open, lease: Any) -> None:
    study = opened(CHAIN)
    with pytest.raises(ArgumentError, match="lease must be a number of seconds above 0"):
        study.ask(lease=lease)
    assert study.trials == ()


def test_a_limit_ends_new_trials_only(opened: Open) -> None:
    study = opened(CHAIN)
    study.enqueue_trial({"x": 0.5})
    trials = study.ask(3, limit=2)
    assert [trial.number for trial in trials] == [0, 1]
    assert study.ask(limit=2) is None
