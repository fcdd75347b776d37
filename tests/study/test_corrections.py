"""Corrected and retracted results: a study ends up as if it had been told rightly from the start."""

import math
import re
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cascada.algorithms import GPNUCB, NonAdaptive, RandomSearch, Situation, Suggestion
from cascada.calibration import Calibration
from cascada.errors import ArgumentError, ContradictionError, RefutedError, StoreError
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.process import Process
from cascada.space import Integer, Real
from cascada.store.database import Store
from cascada.store.trial import Trial
from cascada.study import Study
from cascada.study.log_file import exported, import_log
from cascada.study.state import State
from cascada.study.validation import Rules
from tests.network.cases import X, Y, stage, truth
from tests.study.conftest import Clock
from tests.study.test_one_log import WRONG, filled
from tests.waiting import LONG

Open = Callable[..., Study]
CHAIN = chain(stage("f", controls=X), stage("g"))
PROCESS = Process(CHAIN, truth(CHAIN, 1))
POINTS = (-1.5, 0.25, 1.0, 2.0)
RUNS = [{"x": point} for point in POINTS]
TYPO = 28.12  # where the norm bound allows |f| ≤ 2

Tell = Callable[[Study, int, Mapping[str, Any]], Any]


def whole(study: Study, trial: int, outputs: Mapping[str, Any]) -> None:
    study.tell(trial, outputs)


def by_stage(study: Study, trial: int, outputs: Mapping[str, Any]) -> None:
    for name, values in outputs.items():
        study.tell_stage(trial, name, values)


WAYS = pytest.mark.parametrize("tell", [whole, by_stage])


def told(
    study: Study,
    tell: Tell = whole,
    typos: Mapping[tuple[int, str], float] = {},
    process: Process = PROCESS,
    points: Sequence[Mapping[str, float]] = RUNS,
) -> Study:
    """The study after runs at some points, some values of which are told wrongly."""
    for number, controls in enumerate(points):
        study.begin_trial(controls)
        right = {name: list(values) for name, values in process(controls).items()}
        for (trial, name), value in typos.items():
            if trial == number:
                right[name][0] = value
        tell(study, number, right)
    return study


def right(number: int, name: str) -> tuple[float, ...]:
    return PROCESS({"x": POINTS[number]})[name]


def facts(study: Study) -> tuple[Any, ...]:
    """All that a study concludes, and the next point, bit for bit."""
    certificate = study.certificate()
    best = study.best_trial
    found = (
        certificate.kind,
        certificate.bound,
        certificate.gap,
        certificate.best,
        certificate.evidence,
        certificate.assumptions,
        best and best.number,
        study.predict(dict.fromkeys(study.network.domain.names, 0.5)),
    )
    trial = study.ask()
    assert trial is not None
    return (*found, trial.controls)


def named(evidence: Sequence[str]) -> set[int]:
    """The trials that evidence names; "0 to 3" are all of them."""
    found: set[int] = set()
    for first, to, last in re.findall(r"trials? (\d+)(?: (to|and) (\d+))?", " ".join(evidence)):
        found |= {int(first)} | (
            set(range(int(first), int(last) + 1)) if to == "to" else {int(last)} if last else set()
        )
    assert found
    return found


def replayed(study: Study) -> State:
    return State.empty(study.network).replayed(study.events)


# ---- a study that was told wrongly and corrected is one that was told rightly


@WAYS
@pytest.mark.parametrize("name", ["f", "g"])
@pytest.mark.parametrize("looked", [False, True])
def test_a_corrected_typo_leaves_no_trace_in_the_conclusions(opened: Open, tell: Tell, name: str, looked: bool) -> None:
    study = told(opened(CHAIN), tell, {(1, name): TYPO})
    if looked:
        certificate = study.certificate()
        assert (certificate.kind, certificate.gap) == ("refuted", None)
        assert named(certificate.evidence) <= {0, 1, 2, 3}
        with pytest.raises(RefutedError):
            study.ask()
    after = study.correct(1, name, right(1, name), reason="decimal point")
    assert (after.state, after.outputs) == ("complete", PROCESS({"x": POINTS[1]}))
    assert not study.refuted
    assert facts(study) == facts(told(Study(CHAIN), tell))
    assert study.state.notes == {1: (f"{name} was corrected, before: {TYPO!r} (decimal point)",)}


@WAYS
def test_corrected_controls_leave_no_trace_in_the_conclusions(opened: Open, tell: Tell) -> None:
    study = opened(CHAIN)
    for number, x in enumerate((POINTS[0], -0.25, *POINTS[2:])):
        study.begin_trial({"x": x})
        tell(study, number, PROCESS({"x": POINTS[number]}))
    study.certificate()
    after = study.correct(1, controls={"x": POINTS[1]}, reason="sign")
    assert (after.controls, after.state) == ({"x": POINTS[1]}, "complete")
    reference = told(Study(CHAIN), tell)
    assert study.state.taken == reference.state.taken  # the wrong point may be asked for
    assert facts(study) == facts(reference)
    assert study.state.notes == {1: ("the controls were corrected, before: x = -0.25 (sign)",)}


def test_a_refutation_that_only_a_bound_showed_ends_with_the_correction(opened: Open) -> None:
    study = filled(opened(WRONG))
    assert not study.refuted
    assert study.certificate().kind == "refuted"
    assert study.events[-1].kind == "note"
    assert study.events[-1].data["assumed"] == 0
    assert study.refuted
    study.correct(0, "g", 0.1)
    assert study.state.refutations == []
    reference = Study(WRONG)
    reference.tell(reference.enqueue_trial({"x": 0.0}), {"g": 0.1})
    for trial in study.trials[1:]:
        reference.tell(reference.enqueue_trial(trial.controls), trial.outputs)
    assert facts(study) == facts(reference)


def test_a_contradiction_that_ended_a_loop_is_resolved_by_a_correction(opened: Open) -> None:
    study = told(opened(CHAIN), typos={(1, "f"): right(1, "f")[0] + 0.01})  # which refutes no assumption
    study.enqueue_trial({"x": POINTS[1]})
    result = study.optimise(PROCESS, budget=6, progress=False)
    assert (result.status, result.gap_kind) == ("contradiction", "refuted")
    assert "for the same inputs in trial 1" in study.certificate().evidence[0]
    assert study.trials[4].state == ("complete" if study.shared else "failed")  # stored stages count one by one
    assert "f" not in study.trials[4].outputs
    study.correct(1, "f", right(1, "f"))
    assert study.state.refutations == []
    assert study.certificate().kind == "proven"
    assert study.tell(4, PROCESS({"x": POINTS[1]})).state == "complete"


def test_a_refutation_that_a_user_stated_stays_after_a_correction(opened: Open) -> None:
    study = told(opened(CHAIN), typos={(1, "f"): TYPO})
    study.refute("the furnace was not calibrated")
    study.correct(1, "f", right(1, "f"))
    assert study.certificate().evidence == ("the furnace was not calibrated",)
    with pytest.raises(RefutedError, match="the furnace was not calibrated"):
        study.ask()


def test_two_typos_need_two_corrections(opened: Open) -> None:
    study = told(opened(CHAIN), typos={(1, "f"): TYPO, (2, "f"): -TYPO})
    study.correct(1, "f", right(1, "f"))
    assert 2 in named(study.certificate().evidence)
    study.correct(2, "f", 0.0, reason="illegible")
    study.correct(2, "f", right(2, "f"))
    assert facts(study) == facts(told(Study(CHAIN)))
    assert study.state.notes[2] == (f"f was corrected, before: {-TYPO!r} (illegible)", "f was corrected, before: 0.0")


def test_evidence_after_a_correction_names_trials_that_exist(opened: Open) -> None:
    study = told(opened(CHAIN), by_stage)
    study.correct(3, "f", TYPO)
    assert named(study.certificate().evidence) <= {0, 1, 2, 3}
    assert 3 in named(study.certificate().evidence)
    study.retract(3, "f")
    study.tell_stage(3, "f", -TYPO)
    assert 3 in named(study.certificate().evidence)


def test_a_calibrated_study_is_corrected(opened: Open) -> None:
    network = chain(Stage("f", controls=X | Y), Stage("g"))
    process = Process(network, {"f": lambda x, y: 0.5 * x - 0.2 * y * y, "g": lambda f: -((f - 0.3) ** 2)})
    points = [{"x": 0.1 * i * i - 2, "y": 1.9 - 0.55 * i} for i in range(7)]
    options = {"calibration": Calibration(), "algorithm": "gpn_ei"}
    study = told(opened(network, **options), typos={(3, "f"): 3.0}, process=process, points=points)
    study.certificate()
    study.correct(3, "f", process(points[3])["f"])
    reference = told(Study(network, **options), process=process, points=points)  # type: ignore[arg-type]
    assert facts(study) == facts(reference)
    if study.shared:
        assert replayed(study).fits == study.state.fits != {}


def test_a_study_that_enlarges_bounds_takes_back_what_a_typo_enlarged(opened: Open) -> None:
    study = told(opened(CHAIN, on_violation="enlarge"), typos={(1, "f"): TYPO})
    assert study.certificate().kind == "estimated"
    study.correct(1, "f", right(1, "f"))
    assert facts(study) == facts(told(Study(CHAIN, on_violation="enlarge")))


# ---- what is refused


@pytest.mark.parametrize(
    ("number", "name", "outputs", "text"),
    [
        (0, "h", 1.0, "there is no stage 'h'; the stages are 'f', 'g'"),
        (0, 7, 1.0, "name the stage by its name; got 7"),
        (9, "f", 1.0, "there is no trial 9; the last one is 4"),
        ("0", "f", 1.0, "name a trial by itself"),
        (4, "g", 1.0, "trial 4 has no outputs of stage 'g' to correct; its stages with outputs: f"),
        (0, "f", float("nan"), "trial 0: stage 'f' returned nan for 'f', which is not finite"),
        (0, "f", [1.0, 2.0], r"trial 0: stage 'f' must return 1 output \(f\); got 2"),
        (0, "f", "1.0", "trial 0: stage 'f' returned '1.0' for 'f', which is not a number"),
        (0, "f", None, "correct takes a stage and its outputs, or controls"),
        (0, None, 1.0, "correct takes a stage and its outputs, or controls"),
        (0, "f", right(0, "f"), r"trial 0: stage 'f' is .* already: there is nothing to correct"),
    ],
)
def test_a_wrong_correction_is_refused(opened: Open, number: Any, name: Any, outputs: Any, text: str) -> None:
    study = told(opened(CHAIN))
    study.tell_stage(study.begin_trial({"x": 0.5}), "f", 0.5)
    before = study.events
    with pytest.raises(ArgumentError, match=text):
        study.correct(number, name, outputs)
    assert study.events == before


@pytest.mark.parametrize(
    ("controls", "text"),
    [
        ({"x": 7.0}, r"control 'x' must lie in \[-2, 2\]; got 7"),
        ({"y": 0.0}, "unknown: 'y'"),
        ({"x": "0.5"}, "control 'x' must be a number; got '0.5'"),
        ({"x": float("nan")}, "must be finite"),
        ([0.5], "give the controls as a dict"),
        ({"x": POINTS[0]}, "trial 0 has these controls already: there is nothing to correct"),
        ({}, "trial 0 has these controls already"),
    ],
)
def test_wrong_controls_are_not_taken_as_a_correction(opened: Open, controls: Any, text: str) -> None:
    study = told(opened(CHAIN))
    before = study.events
    with pytest.raises(ArgumentError, match=text):
        study.correct(0, controls=controls)
    with pytest.raises(ArgumentError, match="correct takes a stage and its outputs, or controls"):
        study.correct(0, "f", 1.0, controls=controls)
    assert study.events == before


def test_a_correction_that_contradicts_another_run_is_refused(opened: Open) -> None:
    study = told(opened(CHAIN))
    study.add_trial({"x": POINTS[1]}, PROCESS({"x": POINTS[1]}))
    before = study.events
    with pytest.raises(ContradictionError, match=r"trial 1: stage 'f' .* for the same inputs in trial 4"):
        study.correct(1, "f", 0.5)
    with pytest.raises(ContradictionError, match=r"trial 0: stage 'f' .* for the same inputs in trial 1"):
        study.correct(0, controls={"x": POINTS[1]})
    assert study.events == before
    study.correct(4, controls={"x": 0.5})
    assert study.correct(1, "f", 0.5).outputs["f"] == (0.5,)  # trial 4 says nothing about it any more


def test_the_old_value_may_be_observed_again_after_a_correction(opened: Open) -> None:
    study = told(opened(CHAIN), typos={(1, "f"): 0.125})
    study.correct(1, "f", right(1, "f"))
    again = study.add_trial({"x": POINTS[1]}, PROCESS({"x": POINTS[1]}))
    assert again.state == "complete"
    with pytest.raises(ContradictionError, match="for the same inputs in trial 1"):
        study.add_trial({"x": POINTS[1]}, {"f": 0.125})


def test_a_trial_under_the_lease_of_another_worker_is_left_alone(opened: Open, clock: Clock) -> None:
    study = opened(CHAIN)
    trial = study.ask(lease=60.0)
    assert trial is not None
    study.tell_stage(trial, "f", 0.5)
    study.worker = "command line"
    before = study.events
    text = "trial 0 is being run by the worker 'main'; wait until its run has ended, or stop the worker"
    for call in (
        lambda: study.correct(0, "f", 0.25),
        lambda: study.correct(0, controls={"x": 0.5}),
        lambda: study.retract(0, "f"),
    ):
        with pytest.raises(StoreError, match=text):
            call()
    assert study.events == before
    clock.now += 61.0
    assert study.correct(0, "f", 0.25).outputs == {"f": (0.25,)}


def test_a_worker_corrects_its_own_trial(opened: Open) -> None:
    study = opened(CHAIN)
    trial = study.ask(lease=60.0)
    assert trial is not None
    study.tell_stage(trial, "f", 0.5)
    assert study.correct(0, "f", 0.25).state == "running"
    assert study.beat(0)
    assert study.retract(0, "f").outputs == {}
    assert not study.beat(0)  # the lease ended


# ---- formulas and copies


def test_formulas_follow_a_correction(opened: Open) -> None:
    worth = Stage("worth", known=True, function=lambda g: 3 * g - 1, lipschitz=3.0)
    network = chain(stage("f", controls=X), stage("g"), worth)
    study = opened(network)
    study.add_trial({"x": 0.5}, {"f": 0.25, "g": 0.5})
    study.add_trial({"x": 1.0}, {"f": 0.2, "g": 0.4, "worth": 3 * 0.4 - 1})
    after = study.correct(0, "g", 0.75)
    assert (after.value, after.outputs["worth"]) == (1.25, (1.25,))
    assert study.correct(1, "g", 0.6).value == 3 * 0.6 - 1
    text = "trial 0: stage 'worth' is a formula and follows from its inputs; {} these instead"
    with pytest.raises(ArgumentError, match=text.format("correct")):
        study.correct(0, "worth", 2.0)
    with pytest.raises(ArgumentError, match=text.format("retract")):
        study.retract(0, "worth")
    open_again = study.retract(0, "g")
    assert (open_again.state, open_again.value, open_again.outputs) == ("running", None, {"f": (0.25,)})
    assert study.tell(0, {"g": 0.5}).value == 0.5


def test_copies_follow_a_correction(opened: Open) -> None:
    controls = X | {"n": Integer(1, 4)}
    network = chain(
        stage("f", controls=controls, outputs=["u", "n"], passes=["n"]),
        stage("g", outputs=["v", "u"], passes=["u"]),
        stage("h", controls={"y": Real(-2, 2)}),
    )
    study = opened(network)
    study.add_trial({"x": 0.5, "n": 2, "y": 0.0}, {"f": [0.25, 2], "g": [0.5, 0.25], "h": 1.0})
    after = study.correct(0, controls={"n": 3})
    assert after.outputs == {"f": (0.25, 3.0), "g": (0.5, 0.25), "h": (1.0,)}
    after = study.correct(0, "f", [0.75, 3])
    assert after.outputs == {"f": (0.75, 3.0), "g": (0.5, 0.75), "h": (1.0,)}
    with pytest.raises(ContradictionError, match="stage 'f' passes on 'n', which is 3, but was told as 2"):
        study.correct(0, "f", [0.75, 2])
    with pytest.raises(ContradictionError, match=r"stage 'g' passes on 'u', which is 0\.75, but was told as 0\.25"):
        study.correct(0, "g", [0.5, 0.25])
    assert replayed(study).trials == study.trials


# ---- retracting


@WAYS
def test_a_retracted_objective_reopens_the_trial(opened: Open, tell: Tell) -> None:
    study = told(opened(CHAIN), tell, {(3, "g"): TYPO})
    assert study.refuted
    after = study.retract(3, "g", "the wrong sample")
    assert (after.state, after.value, after.outputs) == ("running", None, {"f": right(3, "f")})
    assert study.state.holders == {}
    assert study.certificate().kind == "proven"
    assert study.state.notes == {3: (f"g = {TYPO!r} was retracted (the wrong sample)",)}
    assert study.take_up() == 0  # without a lease it is not taken over
    assert study.tell_stage(3, "g", right(3, "g")).state == "complete"
    if tell is by_stage:  # told in the same order
        assert facts(study) == facts(told(Study(CHAIN), tell))
    with pytest.raises(ContradictionError, match="trial 3 is complete"):
        study.fail(3, "too late")


def test_a_retracted_intermediate_stage_leaves_the_trial_complete(opened: Open) -> None:
    study = told(opened(CHAIN), typos={(3, "f"): TYPO})
    after = study.retract(3, "f")
    assert (after.state, after.outputs, after.value) == ("complete", {"g": right(3, "g")}, right(3, "g")[0])
    assert study.certificate().kind == "proven"
    with pytest.raises(ArgumentError, match="trial 3 has no outputs of stage 'f' to retract; its stages with outputs"):
        study.retract(3, "f")
    told_again = study.tell_stage(3, "f", right(3, "f"))
    assert (told_again.state, told_again.outputs) == ("complete", PROCESS({"x": POINTS[3]}))
    assert replayed(study).trials == study.trials


@pytest.mark.parametrize("state", ["failed", "abandoned", "waiting", "running"])
def test_a_trial_that_is_not_complete_keeps_its_state(opened: Open, state: str) -> None:
    study = opened(CHAIN)
    trial = study.begin_trial({"x": 0.5}) if state == "running" else study.enqueue_trial({"x": 0.5})
    study.tell_stage(trial, "f", TYPO)
    if state in ("failed", "abandoned"):
        (study.fail if state == "failed" else study.abandon)(trial, "the furnace broke")
    reason = study.trials[0].reason
    after = study.correct(0, "f", 0.25)
    assert (after.state, after.reason, after.outputs) == (state, reason, {"f": (0.25,)})
    after = study.correct(0, controls={"x": 0.75})
    assert (after.state, after.reason) == (state, reason)
    after = study.retract(0, "f")
    assert (after.state, after.reason, after.outputs) == (state, reason, {})
    assert study.certificate().kind == "proven"


@pytest.mark.parametrize("name", ["h", 7])
def test_an_unknown_stage_is_not_retracted(opened: Open, name: Any) -> None:
    study = told(opened(CHAIN))
    with pytest.raises(ArgumentError, match="no stage 'h'" if name == "h" else "name the stage by its name; got 7"):
        study.retract(0, name)


# ---- the log


def test_another_process_sees_a_correction(opened: Open) -> None:
    study = told(opened(CHAIN), typos={(1, "f"): TYPO})
    if not study.shared:
        pytest.skip("other processes need a store")
    other = opened(CHAIN)
    assert other.refuted
    study.correct(1, "f", right(1, "f"), reason="decimal point")
    assert not other.refuted
    assert other.trials == study.trials
    assert opened(CHAIN).trials == study.trials
    assert facts(opened(CHAIN)) == facts(told(Study(CHAIN)))


def test_the_log_keeps_both_values(opened: Open) -> None:
    study = told(opened(CHAIN), typos={(1, "f"): TYPO})
    study.correct(1, "f", right(1, "f"), reason="decimal point")
    study.correct(1, controls={"x": 0.5})
    study.retract(2, "g")
    corrected = [event for event in study.events if event.kind in ("corrected", "retracted")]
    assert [(event.kind, event.trial, event.data) for event in corrected] == [
        ("corrected", 1, {"stage": "f", "outputs": list(right(1, "f")), "reason": "decimal point"}),
        ("corrected", 1, {"controls": {"x": 0.5}}),
        ("retracted", 2, {"stage": "g"}),
    ]
    assert any(event.kind == "told" and event.data["outputs"]["f"] == [TYPO] for event in study.events)
    assert (replayed(study).trials, replayed(study).notes) == (study.trials, study.state.notes)


def test_an_exported_log_with_corrections_is_imported(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/studies.db")
    study = told(Study.open(f"sqlite:///{tmp_path}/studies.db", "alloy", CHAIN), by_stage, {(1, "f"): TYPO})
    study.certificate()
    study.correct(1, "f", right(1, "f"), reason="decimal point")
    study.retract(2, "g")
    study.tell_stage(2, "g", right(2, "g"))
    lines = exported(store, "alloy")
    assert import_log(store, "copy", lines) == len(study.events)
    copy = Study.open(f"sqlite:///{tmp_path}/studies.db", "copy")
    assert copy.events == study.events
    assert (copy.trials, copy.state.notes) == (study.trials, study.state.notes)
    assert facts(copy) == facts(study)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('"stage": "f"', '"stage": "h"', "there is no stage 'h'"),
        ('"stage": "f"', '"stge": "f"', "trial 1 is complete"),
        ('"kind": "corrected"', '"kind": "retracted", "wrong": 1', "an event is an object"),
    ],
)
def test_a_wrong_correction_in_a_log_is_refused(tmp_path: Path, old: str, new: str, text: str) -> None:
    store = Store(f"sqlite:///{tmp_path}/studies.db")
    study = told(Study.open(f"sqlite:///{tmp_path}/studies.db", "alloy", CHAIN))
    study.correct(1, "f", 0.5)
    lines = exported(store, "alloy")
    with pytest.raises(StoreError, match=rf"line {len(lines)}: .*{text}"):
        import_log(store, "copy", [*lines[:-1], lines[-1].replace(old, new)])


def test_a_branch_is_corrected_by_itself(opened: Open) -> None:
    study = told(opened(CHAIN), typos={(1, "f"): TYPO})
    branch = study.branch()
    branch.correct(1, "f", right(1, "f"))
    assert not branch.refuted
    assert study.refuted
    assert study.state.notes == {}
    assert study.trials[1].outputs["f"] == (TYPO,)
    assert facts(branch) == facts(told(Study(CHAIN)))


def test_a_network_may_be_minimised(opened: Open) -> None:
    network: Network = CHAIN.mirrored()
    study = told(opened(network), typos={(1, "g"): -TYPO})
    study.correct(1, "g", right(1, "g"))
    assert facts(study) == facts(told(Study(network)))


# ---- found by an attack: each of these ended in a false statement

SE = SquaredExponential(1.0)
COPIED_FORMULA = Network(
    [
        Stage("f", controls={"x": Real(-1, 1)}, kernel=SE, norm_bound=1.5),
        Stage("s", parents=["f"], known=True, lipschitz=2.0, function=lambda f: 2 * f),
        Stage("g", parents=["s"], outputs=["s", "c"], passes=["s"], kernel=SE, norm_bound=0.1),
        Stage("h", parents=["g.s", "g.c"], kernel=SE, norm_bound=1.6),
    ],
    "h",
)


def test_copies_of_a_formula_follow_a_correction_of_its_input(opened: Open) -> None:
    study = opened(COPIED_FORMULA)
    trial = study.add_trial({"x": 0.5}, {"f": 0.3, "g": (0.6, 0.0), "h": 0.2})
    assert dict(study.correct(trial, "f", 0.25).outputs) == {"f": (0.25,), "s": (0.5,), "g": (0.5, 0.0), "h": (0.2,)}


def test_a_bound_after_correcting_the_input_of_a_copied_formula_holds() -> None:
    """The true maximum is 1.5, at x = 1."""

    def outputs(x: float) -> dict[str, Any]:
        f = math.exp(-((x - 1) ** 2) / 2)
        return {"f": f, "g": (2 * f, 0.0), "h": 1.5 * math.exp(-((2 * f - 2) ** 2) / 2)}

    right, corrected = Study(COPIED_FORMULA), Study(COPIED_FORMULA)
    right.add_trial({"x": 0.1}, outputs(0.1))
    wrong = corrected.add_trial({"x": 0.1}, outputs(0.1) | {"f": 1.0, "g": (2.0, 0.0)})
    for study in (right, corrected):
        for x in (-1.0, -0.6, -0.2, 0.2, 0.6, 0.8, 1.0):
            parts = ("f", "g", "h") if x < -0.5 else ("f", "g")
            study.add_trial({"x": x}, {name: outputs(x)[name] for name in parts})
    corrected.correct(wrong, "f", outputs(0.1)["f"])
    certificate = corrected.certificate(cells=2000)
    assert certificate.kind == "proven"
    assert certificate.bound == right.certificate(cells=2000).bound
    assert certificate.bound is not None
    assert certificate.bound >= 1.5


@pytest.mark.parametrize("tells", [["f", "g"], ["g", "f"], ["both"]])
def test_a_copy_that_differs_from_its_formula_is_a_contradiction(opened: Open, tells: list[str]) -> None:
    study, outputs = opened(COPIED_FORMULA), {"f": 0.3, "g": (0.9, 0.0)}
    trial = study.begin_trial({"x": 0.5})
    *first, last = [outputs] if tells == ["both"] else [{name: outputs[name]} for name in tells]
    for part in first:
        study.tell(trial, part)
    with pytest.raises(ContradictionError, match="passes on 's'"):
        study.tell(trial, last)


def test_a_copy_of_a_formula_may_differ_by_its_last_digits(opened: Open) -> None:
    study = opened(COPIED_FORMULA)
    value = 2 * 0.3
    trial = study.add_trial({"x": 0.5}, {"f": 0.3, "g": (math.nextafter(value, 1), 0.0), "h": 0.2})
    assert trial.outputs["g"] == (value, 0.0)
    assert study.tell(trial, {"h": 0.2}) == trial


def test_another_value_of_a_formula_without_its_inputs_is_refused(opened: Open) -> None:
    study = opened(COPIED_FORMULA)
    trial = study.begin_trial({"x": 0.5})
    study.tell(trial, {"s": 0.8})
    with pytest.raises(ContradictionError, match=r"was told as 0.8 before and now as 0.9"):
        study.tell(trial, {"s": 0.9})


def test_only_correcting_one_of_its_trials_ends_a_contradiction(opened: Open) -> None:
    study = told(opened(CHAIN))
    study.refute("trials 0 and 3 differ", trials=[0, 3])
    study.correct(1, "g", study.trials[1].outputs["g"][0] + 1e-4)
    assert study.certificate().kind == "refuted"
    study.correct(3, "g", study.trials[3].outputs["g"][0] + 1e-4)
    assert study.certificate().kind == "proven"


def test_a_trial_of_another_process_of_the_same_name_cannot_be_corrected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    study = Study.open(url, "alloy", CHAIN)
    monkeypatch.setattr("cascada.store.transaction.this_process", lambda: "another machine:1")
    trial = study.ask(lease=1000.0)
    assert trial is not None
    study.tell_stage(trial, "f", 0.5)
    monkeypatch.undo()
    with pytest.raises(StoreError, match="trial 0 is being run by the worker 'main'"):
        study.correct(0, controls={"x": -1.0})
    assert study.trials[0].controls == trial.controls
    mine = study.ask(lease=1000.0)
    assert mine is not None
    assert study.correct(mine, controls={"x": -1.25}).controls == {"x": -1.25}


def test_a_recommendation_does_not_use_a_bound_from_before_a_correction() -> None:
    study = Study(CHAIN, algorithm=NonAdaptive(runs=4))
    told(study)
    before = study.certificate(cells=500)
    study.correct(0, "f", study.trials[0].outputs["f"][0] + 1e-4)
    recommendation = study.recommendation(before)
    assert recommendation is not None
    assert recommendation.bound == study.certificate().bound
    assert study.certificate().kind == "proven"


def test_a_refutation_that_a_correction_overtook_is_not_recorded(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    study = filled(Study.open(url, "alloy", WRONG))
    revision = study.state.revision
    Study.open(url, "alloy", WRONG).correct(0, "g", 0.1)
    study._record(["a run gave 1.9, which no setting gives"], revision)
    assert study.state.refutations == []


def test_a_branch_of_an_amended_study_judges_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    study = told(Study.open(url, "alloy", CHAIN))
    Study.open(url, "alloy", chain(stage("f", controls=X, norm_bound=3.0), stage("g")), amend=True)
    study.refresh()
    for either in (study, study.branch()):
        with pytest.raises(StoreError, match="was amended by another process"):
            either.certificate()


def test_a_log_that_was_replaced_is_not_written_to(tmp_path: Path) -> None:
    url, backup = f"sqlite:///{tmp_path}/studies.db", tmp_path / "backup.db"
    Study.open(url, "alloy", CHAIN).close()
    shutil.copy(tmp_path / "studies.db", backup)
    study = told(Study.open(url, "alloy", CHAIN))
    study.close()
    for file in tmp_path.glob("studies.db*"):
        file.unlink()
    shutil.copy(backup, tmp_path / "studies.db")
    with pytest.raises(StoreError, match="was deleted, or its log was replaced"):
        study.enqueue_trial({"x": 0.0})
    assert Study.open(url, "alloy").trials == ()


def test_a_result_told_by_another_thread_during_an_ask_is_kept() -> None:
    class Slow(RandomSearch):
        def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
            if situation.trial == 1:
                teller.start()
                begun.wait(LONG)  # the other thread is about to tell
            return super().suggest(situation, rng)

    study, begun = Study(CHAIN, algorithm=Slow()), threading.Event()
    trial = study.ask()
    assert trial is not None

    def tell() -> None:
        begun.set()
        study.tell(trial, PROCESS(trial.controls))

    teller = threading.Thread(target=tell)
    study.ask()
    teller.join(LONG)
    assert [trial.state for trial in study.trials] == ["complete", "running"]
    assert [event.kind for event in study.events].count("told") == 1


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ({"algorithm": "gpn_ucb"}, {"algorithm": GPNUCB()}),
        ({"algorithm": GPNUCB()}, {"algorithm": "auto"}),
        ({}, {"calibration": Calibration()}),
        ({"calibration": Calibration()}, {"calibration": Calibration()}),
    ],
)
def test_defaults_may_be_given_by_name_or_as_objects(tmp_path: Path, first: Any, again: Any) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    Study.open(url, "alloy", CHAIN, **first)
    assert Study.open(url, "alloy", CHAIN, **again).trials == ()


def test_what_was_observed_of_a_trial_is_not_mixed_up_with_a_trial_of_another_thread() -> None:
    class Shared(Rules):
        """The rules of a study and of its branch; a thread of the branch is always the last that used them."""

        @property
        def _last(self) -> Any:
            return Trial(7, {"x": 0.0}), []

        @_last.setter
        def _last(self, value: Any) -> None: ...

    rules, old = Shared(CHAIN), Trial(0, {"x": 1.0}, {"f": (0.5,)})
    rules.remember(old)
    with pytest.raises(ContradictionError, match="for the same inputs in trial 0"):
        rules.check_repeats(Trial(1, {"x": 1.0}, {"f": (0.6,)}), [old])
