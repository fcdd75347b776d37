"""Studies in memory: ask, tell whole runs and single stages, predictions and certificates."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from cascada.algorithms import GPNUCB
from cascada.errors import ArgumentError, ContradictionError
from cascada.network import Network, chain
from cascada.process import Process
from cascada.space import Grid, Integer, Real
from cascada.study import Study, Trial
from tests.missing import missing
from tests.network.cases import NETWORKS, X, Y, stage, truth

CHAIN = chain(stage("f", controls=X), stage("g"))
PROCESS = Process(CHAIN, truth(CHAIN, 1))


def ran(n: int, **options: Any) -> Study:
    """Return a study of the chain after n runs."""
    study = Study(CHAIN, **options)
    for _ in range(n):
        trial = asked(study)
        study.tell(trial, PROCESS(trial.controls))
    return study


def asked(study: Study) -> Trial:
    trial = study.ask()
    assert trial is not None
    return trial


# ---- asking and telling


def test_a_trial_is_running_after_ask_and_complete_after_tell() -> None:
    study = Study(CHAIN)
    trial = asked(study)
    assert (trial.number, trial.state, trial.outputs, trial.value) == (0, "running", {}, None)
    assert (study.best_trial, study.gap) == (None, None)
    outputs = PROCESS(trial.controls)
    complete = study.tell(trial, outputs)
    assert (complete.state, complete.outputs, complete.value) == ("complete", outputs, outputs["g"][0])
    assert study.trials == (complete,)
    assert study.best_trial == complete
    assert trial.state == "running"  # a trial is immutable: `tell` returns another one


def test_tell_accepts_trial_numbers_and_outputs_as_lists_or_dicts() -> None:
    study = Study(CHAIN)
    number = asked(study).number
    study.tell(number, {"f": [0.25]})
    assert study.tell(number, {"g": {"g": 0.5}}).outputs == {"f": (0.25,), "g": (0.5,)}


def test_stages_may_be_told_one_by_one() -> None:
    study = Study(CHAIN)
    trial = study.begin_trial({"x": 0.5})
    study.tell_stage(trial, "f", 0.25)
    assert (study.trials[0].state, study.trials[0].outputs) == ("running", {"f": (0.25,)})
    assert study.predict({"x": 0.5})["f"].upper == pytest.approx(0.25)
    assert study.predict({"x": 0.5})["g"].upper == pytest.approx(2.0)
    study.tell_stage(trial, "g", 1.0)
    assert (study.trials[0].state, study.trials[0].value) == ("complete", 1.0)
    assert study.predict({"x": 0.5})["g"].upper == pytest.approx(1.0)


def test_a_stage_told_before_its_parent_is_used_once_the_parent_is_told() -> None:
    study = Study(CHAIN)
    trial = study.enqueue_trial({"x": 0.5})
    assert study.tell_stage(trial, "g", 1.0).value == 1.0  # the objective is known; g's input is not
    assert study.predict({"x": 0.5})["g"].upper == pytest.approx(2.0)
    study.tell_stage(trial, "f", 0.25)
    assert study.predict({"x": 0.5})["g"].upper == pytest.approx(1.0)


def test_partial_runs_lower_the_bound() -> None:
    """Observations of f bound the inputs of g, and so the certificate."""
    study = ran(3)
    before = study.certificate(cells=2000).bound
    for x in np.linspace(-1.93, 1.71, 9):
        study.tell_stage(study.enqueue_trial({"x": x}), "f", PROCESS({"x": x})["f"])
    after = study.certificate(cells=2000).bound
    assert before is not None
    assert after is not None
    assert after <= before
    assert all(believed.belief is not None for believed in study.beliefs.stages)
    first, second = (believed.belief.posterior.count for believed in study.beliefs.stages if believed.belief)
    assert (first, second) == (12, 3)


def test_enqueued_trials_are_validated() -> None:
    network = chain(stage("f", controls=X | {"n": Integer(1, 3)}))
    study = Study(network)
    trial = study.enqueue_trial({"n": 2, "x": 1})
    assert trial.controls == {"x": 1.0, "n": 2}
    assert study.tell(trial, {"f": 0.5}).value == 0.5
    with pytest.raises(ArgumentError, match=r"must be a whole number; got 1.5"):
        study.enqueue_trial({"n": 1.5, "x": 1})
    assert len(study.trials) == 1


@pytest.mark.parametrize("candidates", [None, np.linspace(-2, 2, 9)[:, None]], ids=["box", "candidates"])
@pytest.mark.parametrize("before", [0, 3])
def test_ask_returns_different_points_while_trials_are_pending(before: int, candidates: Any) -> None:
    study = ran(before, candidates=candidates)
    points = {asked(study).controls["x"] for _ in range(5)}
    assert len(points) == 5
    assert points.isdisjoint(trial.controls["x"] for trial in study.trials[:before])


def test_ask_returns_another_point_while_a_trial_is_partly_told() -> None:
    study = ran(2)
    trial = asked(study)
    study.tell_stage(trial, "f", PROCESS(trial.controls)["f"])
    assert asked(study).controls != trial.controls


def test_ask_returns_a_new_point_while_a_pending_trial_shares_a_control() -> None:
    network = NETWORKS["chain with controls"]
    process = Process(network, truth(network, 0))
    study = Study(network, candidates=Grid({"x": 3, "y": 3}))
    for x, y in [(-2.0, -2.0), (0.0, 0.0), (2.0, 2.0)]:
        trial = study.enqueue_trial({"x": x, "y": y})
        study.tell(trial, process(trial.controls))
    study.begin_trial({"x": 0.0, "y": 2.0})
    assert len({tuple(trial.controls.values()) for trial in (*study.trials, asked(study))}) == 5


# ---- telling twice


def test_telling_the_same_outputs_again_changes_nothing() -> None:
    study = ran(2)
    certificate, beliefs = study.certificate(), study.beliefs
    for trial in study.trials:
        study.tell(trial, trial.outputs)
        study.tell_stage(trial, "f", trial.outputs["f"])
    assert study.beliefs is beliefs
    assert study.certificate().gap == certificate.gap


@pytest.mark.parametrize("stages", [{"f": 0.75}, {"f": 0.25, "g": 2.0}])
def test_the_error_of_a_contradiction_has_both_values(stages: dict[str, float]) -> None:
    study = Study(CHAIN)
    trial = study.tell(study.enqueue_trial({"x": 0.5}), {"f": 0.25, "g": 1.0})
    beliefs = study.beliefs
    name, value = list(stages.items())[-1]
    before = trial.outputs[name][0]
    with pytest.raises(
        ContradictionError, match=rf"trial 0: stage '{name}' was told as {before:g} before and now as {value:g}"
    ):
        study.tell(trial, stages)
    assert study.trials == (trial,)
    assert study.beliefs is beliefs


def test_outputs_that_contradict_another_trial_raise() -> None:
    study = Study(CHAIN)
    first, second = study.enqueue_trial({"x": 0.5}), study.enqueue_trial({"x": 0.5})
    complete = study.tell(first, {"f": 0.25, "g": 1.0})
    beliefs = study.beliefs
    with pytest.raises(ContradictionError, match=r"told as 0.75, but as 0.25 for the same inputs in trial 0"):
        study.tell(second, {"f": 0.75, "g": 1.0})
    assert study.trials == (complete, second)
    assert study.beliefs is beliefs
    assert study.tell(second, {"f": 0.25, "g": 1.0}).state == "complete"


def test_a_passed_output_that_differs_from_its_input_raises() -> None:
    network = chain(stage("f", controls=X, outputs=["u", "x"], passes=["x"]), stage("g"))
    study = Study(network)
    trial = study.enqueue_trial({"x": 0.5})
    with pytest.raises(ContradictionError, match="'x'"):
        study.tell(trial, {"f": [0.1, 0.75]})
    assert study.tell(trial, {"f": [0.1, 0.5]}).outputs == {"f": (0.1, 0.5)}


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"z": 1.0}, "there is no stage 'z'; the stages are 'f', 'g'"),
        ({"f": [1.0, 2.0]}, r"trial 0: stage 'f' must return 1 output \(f\); got 2"),
        ({"f": float("nan")}, "trial 0: stage 'f' returned nan for 'f', which is not finite"),
        ({"f": "high"}, "trial 0: stage 'f' returned 'high' for 'f', which is not a number"),
        ({"f": {"u": 1.0}}, "must return the output f; got u"),
        (1.0, "1.0"),
    ],
)
def test_invalid_outputs_raise(outputs: Any, message: str) -> None:
    study = Study(CHAIN)
    trial = asked(study)
    with pytest.raises(ArgumentError, match=message):
        study.tell(trial, outputs)
    assert study.trials == (trial,)


@pytest.mark.parametrize("number", [-1, 1])
def test_unknown_trial_numbers_raise(number: int) -> None:
    study = Study(CHAIN)
    study.ask()
    with pytest.raises(ArgumentError, match=f"there is no trial {number}; the last one is 0"):
        study.tell(number, {})


# ---- failing


def test_a_failed_trial_keeps_its_outputs() -> None:
    study = Study(CHAIN)
    trial = study.enqueue_trial({"x": 0.5})
    study.tell_stage(trial, "f", 0.25)
    failed = study.fail(trial, "the furnace broke")
    assert (failed.state, failed.reason, failed.outputs) == ("failed", "the furnace broke", {"f": (0.25,)})
    assert study.best_trial is None
    assert study.predict({"x": 0.5})["f"].upper == pytest.approx(0.25)
    assert asked(study).controls != trial.controls


@pytest.mark.parametrize("candidates", [None, [[-1.0], [0.0], [1.0]]], ids=["box", "candidates"])
def test_a_failed_point_is_not_suggested_again(candidates: Any) -> None:
    study = Study(CHAIN, candidates=candidates)
    for _ in range(3):
        study.fail(asked(study), "no reason")
    assert len({trial.controls["x"] for trial in study.trials}) == 3


def test_a_complete_trial_cannot_fail() -> None:
    study = ran(1)
    with pytest.raises(ContradictionError, match="trial 0 is complete"):
        study.fail(0, "too late")


# ---- predictions and certificates


def test_the_best_trial_is_the_earliest_with_the_largest_value() -> None:
    values = [0.5, 1.0, -1.0, 1.0]
    for network, best in ((CHAIN, 1), (CHAIN.mirrored(), 2)):
        study = Study(network)
        for x, value in zip((-1.0, 0.0, 1.0, 2.0), values, strict=True):
            study.tell(study.enqueue_trial({"x": x}), {"g": value})
        assert study.best_trial == study.trials[best]


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_certificate_bounds_what_the_process_can_reach(mirrored: bool) -> None:
    network = CHAIN.mirrored() if mirrored else CHAIN
    study = Study(network)
    for _ in range(4):
        trial = asked(study)
        study.tell(trial, PROCESS(trial.controls))
    values = network.sign * np.array([PROCESS({"x": x})["g"][0] for x in np.linspace(-2, 2, 400)])
    loose, tight = study.certificate(cells=50), study.certificate(tolerance=1e-4, cells=2000)
    for certificate in (loose, tight, study.certificate(), study.certificate(seconds=0.0)):
        assert certificate.kind == "proven"
        assert certificate.bound is not None
        assert certificate.best is not None
        assert certificate.gap == pytest.approx(abs(certificate.bound - certificate.best))
        assert network.sign * certificate.bound >= values.max()
        assert certificate.evaluations == 4
        assert certificate.maximised is not mirrored
        assert any("exact" in line for line in certificate.assumptions)
    assert tight.gap is not None
    assert loose.gap is not None
    assert tight.gap <= loose.gap


def test_a_certificate_before_the_first_run_has_no_gap() -> None:
    certificate = Study(CHAIN).certificate()
    assert (certificate.best, certificate.bound, certificate.gap) == (None, None, None)
    assert "No complete run yet" in str(certificate)
    assert "f: norm ≤ 2 under SquaredExponential" in str(certificate)


def test_a_certificate_over_candidates_is_their_largest_bound() -> None:
    study = ran(3, candidates=np.linspace(-2, 2, 9)[:, None])
    certificate = study.certificate()
    uppers = [study.predict({"x": x})["g"].upper.item() for x in np.linspace(-2, 2, 9)]
    assert certificate.bound == pytest.approx(max(uppers), rel=1e-12)
    assert "the 9 candidates" in str(certificate)


def test_data_that_refute_an_assumption_are_kept_and_named_in_the_certificate() -> None:
    study = Study(CHAIN)
    complete = study.tell(study.enqueue_trial({"x": 0.5}), {"f": 7.5, "g": 1.0})
    assert study.trials == (complete,)
    certificate = study.certificate()
    assert (certificate.kind, certificate.gap, certificate.bound, study.gap) == ("refuted", None, None, None)
    assert "Stage 'f'" in str(certificate)
    assert "given as 2, but trial 0 is possible only with more than 7.49999. Raise it" in str(certificate)


def test_reading_certificates_and_predictions_does_not_change_the_points() -> None:
    plain, watched = Study(CHAIN, seed=3), Study(CHAIN, seed=3)
    for _ in range(4):
        for study, read in ((plain, False), (watched, True)):
            trial = asked(study)
            if read:
                results = (study.certificate(), study.certificate(cells=100), study.gap, study.recommended())
                assert results[0].best == results[1].best
                study.predict(trial.controls)
            study.tell(trial, PROCESS(trial.controls))
    assert [trial.controls for trial in plain.trials] == [trial.controls for trial in watched.trials]


def test_ask_returns_none_when_the_gap_is_within_the_tolerance() -> None:
    study = ran(1, tolerance=100.0)
    assert study.ask() is None


def test_a_small_budget_of_cells_still_gives_a_point() -> None:
    study = Study(CHAIN, algorithm=GPNUCB(cells=2))
    for _ in range(3):
        trial = asked(study)
        study.tell(trial, PROCESS(trial.controls))
    assert len({trial.controls["x"] for trial in study.trials}) == 3


def test_candidates_of_a_logarithmic_control_are_run_as_given() -> None:
    values = [0.3, 0.7, 1.1, 7.3, 29.9]
    network = chain(stage("f", controls={"t": Real(0.1, 30, log=True)}))
    study = Study(network, candidates=[[v] for v in values])
    study.tell(study.enqueue_trial({"t": 7.3}), {"f": 0.1})
    while (trial := study.ask()) is not None:
        study.tell(trial, {"f": 0.1})
    assert sorted(trial.controls["t"] for trial in study.trials) == values


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": -1.0}, "tolerance must be a number of at least 0, or None; got -1.0"),
        ({"tolerance": float("nan")}, "tolerance must be a number"),
        ({"tolerance": "small"}, "tolerance must be a number of at least 0, or None; got 'small'"),
        ({"algorithm": "magic"}, "algorithm must be one of auto, .*; got 'magic'"),
        ({"candidates": [[3.0]]}, r"control 'x' must lie in \[-2, 2\]; got 3"),
        ({"candidates": Grid({"z": 3})}, "a grid needs the controls x; got z"),
        ({"candidates": np.empty((0, 1))}, "at least one point"),
        ({"seed": -1}, "seed"),
    ],
)
def test_invalid_options_raise(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Study(CHAIN, **options)


def test_unknown_and_missing_controls_raise() -> None:
    network: Network = chain(stage("f", controls=X | Y))
    with pytest.raises(ArgumentError, match="missing: y, unknown: 'z'"):
        Study(network).enqueue_trial({"x": 0.0, "z": 1.0})


def test_huge_numbers_and_arguments_of_wrong_types_raise() -> None:
    network = chain(stage("f", controls={"x": Real(0.0, 1.0)}))
    with pytest.raises(ArgumentError, match="tolerance"):
        Study(network, tolerance=10**400)
    study = Study(network)
    with pytest.raises(ArgumentError):
        study.enqueue_trial({"x": 10**400})
    trial = study.enqueue_trial({"x": 0.5})
    with pytest.raises(ArgumentError, match="name the stage"):
        study.tell_stage(trial, [1], 1.0)  # type: ignore[call-overload]


def test_past_runs_may_be_complete_or_partial() -> None:
    study = Study(CHAIN)
    whole = study.add_trial({"x": 0.5}, PROCESS({"x": 0.5}))
    part = study.add_trial({"x": 1.0}, {"f": PROCESS({"x": 1.0})["f"]})
    assert (whole.state, part.state) == ("complete", "abandoned")
    assert study.trials == (whole, part)
    prediction = study.predict({"x": 1.0})["f"]
    np.testing.assert_allclose(prediction.mean, part.outputs["f"], atol=1e-6)  # its observed output is used


def test_trials_as_a_data_frame() -> None:
    if find_spec("pandas") is None:
        missing("pandas", "pip install pandas")
    study = Study(CHAIN)
    study.add_trial({"x": 0.5}, PROCESS({"x": 0.5}))
    study.add_trial({"x": 1.0}, {"f": PROCESS({"x": 1.0})["f"]})
    assert len(study.trials_dataframe()) == 2


def test_a_past_run_that_contradicts_another_is_not_added() -> None:
    study = Study(CHAIN)
    study.add_trial({"x": 0.5}, PROCESS({"x": 0.5}))
    before = study.trials, study.certificate()
    with pytest.raises(ContradictionError):
        study.add_trial({"x": 0.5}, {"f": 0.987, "g": 0.1})
    with pytest.raises(ArgumentError):
        study.add_trial({"x": 0.5}, {"f": "much"})
    assert (study.trials, study.certificate()) == before


def test_an_abandoned_trial_is_not_pending() -> None:
    study = Study(CHAIN)
    first = asked(study)
    assert study.abandon(first).state == "abandoned"
    assert asked(study).controls != first.controls
    complete = study.add_trial({"x": 0.25}, PROCESS({"x": 0.25}))
    with pytest.raises(ContradictionError, match="cannot be abandoned"):
        study.abandon(complete)
