"""Studies whose readings scatter: gaps that hold with a probability, nominal inputs in the log, selective reports."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.cli.output import recommended_lines
from cascada.network.scatter_beliefs import ScatterBeliefs
from cascada.study.catalogue import studies
from cascada.study.state import State
from tests.network.cases import SE, X

SCATTER = cd.SubGaussian(0.01)


def network(first: Any = SCATTER, second: Any = SCATTER, norm: float = 2.0, **options: Any) -> cd.Network:
    """x → f → g, read with scatter."""
    f = cd.Stage("f", controls=X, kernel=SE, norm_bound=norm, error=first)
    return cd.chain(f, cd.Stage("g", kernel=SE, norm_bound=2.0, error=second, **options))


class Plant:
    """A process whose readings have normal scatter; reports of its runs."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def f(self, x: float) -> float:
        return float(np.sin(x) + 0.01 * self._rng.standard_normal())

    def g(self, x: float) -> float:
        return float(0.8 * np.cos(2 * np.sin(x)) + 0.01 * self._rng.standard_normal())

    def run(self, study: cd.Study, n: int) -> None:
        """Run n trials, stage by stage."""
        for _ in range(n):
            trial = study.ask()
            assert trial is not None
            study.tell_stage(trial, "f", self.f(trial.controls["x"]))
            study.tell_stage(trial, "g", self.g(trial.controls["x"]))


@cache
def _three_runs() -> cd.Study:
    study = cd.Study(network(), replayable=True)
    Plant().run(study, 3)
    return study


def three_runs() -> cd.Study:
    """A study of its own with three runs, trials 0 to 2."""
    return _three_runs().branch()


def test_a_gap_from_scatter_is_confident_and_true() -> None:
    study = three_runs()
    found = study.certificate()
    assert (found.kind, found.confidence) == ("confident", 0.95)
    assert found.gap is not None
    assert found.bound is not None
    assert found.recommended is not None
    best = 0.8
    assert found.bound >= best
    assert best - 0.8 * np.cos(2 * np.sin(found.recommended.controls["x"])) <= found.gap
    assert found.best is None
    assert found.best_reading is not None
    text = str(found)
    assert text.startswith("With probability at least 95 %, now and at every later step: no setting in the box")
    assert "f is read with sub-Gaussian scatter of scale 0.01" in text
    assert "every reading is reported as it was read" in text


def test_a_confident_gap_stops_at_the_tolerance() -> None:
    plant = Plant()
    functions: list[Callable[..., float]] = [
        plant.f,
        lambda f: 0.8 * float(np.cos(2 * f)) + 0.01 * plant._rng.standard_normal(),
    ]
    result = cd.maximise(network(), functions, budget=15, tolerance=0.4, confidence=0.9, progress=False)
    assert result.status == "tolerance"
    assert (result.gap_kind, result.certificate.confidence) == ("confident", 0.9)
    assert result.gap is not None
    assert result.gap <= 0.4


def test_the_log_contains_nominal_inputs_that_were_chosen_before_the_reading() -> None:
    study = three_runs()
    told = [event for event in study.events if event.kind in ("observed", "told")]
    assert [sorted(event.data["nominal"]) for event in told] == [["f"], ["g"]] * 3
    trial = study.trials[0]
    assert told[0].data["nominal"]["f"] == [trial.controls["x"]]
    beliefs = study.beliefs
    assert isinstance(beliefs, ScatterBeliefs)
    assert beliefs.latent.nominal["g"].tolist() == [event.data["nominal"]["g"] for event in told[1::2]]


def test_a_study_that_is_opened_again_has_the_same_certificate_and_the_same_next_point(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'plant.db'}"
    study = cd.Study.open(url, "plant", network(), confidence=0.9)
    Plant().run(study, 2)
    before, point = study.certificate(), study.branch().ask()
    study.close()
    again = cd.Study.open(url, "plant")
    after = again.certificate()
    assert (after.bound, after.gap, after.confidence) == (before.bound, before.gap, 0.9)
    assert point is not None
    found = again.ask()
    assert found is not None
    assert found.controls == point.controls
    again.close()
    (summary,) = studies(url)
    assert summary.gap_kind == "confident"
    with pytest.raises(cd.ArgumentError, match=r"settings.confidence: stored 0.9, given 0.99"):
        cd.Study.open(url, "plant", network(), confidence=0.99, amend=True)


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda study: study.correct(0, "g", study.trials[0].outputs["g"][0] + 0.005), "trial 0 was corrected"),
        (lambda study: study.retract(0, "g"), "a reading of trial 0 was retracted"),
        (lambda study: study.add_trial({"x": 0.5}, {"f": 0.4, "g": 0.5}), "trial 3 was added as a run of the past"),
    ],
)
def test_selective_reports_make_the_gap_estimated_at_once(act: Callable[[cd.Study], Any], reason: str) -> None:
    study = three_runs()
    with pytest.warns(RuntimeWarning, match=f"{reason}, so the gap is estimated from now on"):
        act(study)
    found = study.certificate()
    assert (found.kind, found.confidence) == ("estimated", None)
    assert found.gap is not None
    assert recommended_lines(found)[0].startswith("recommended (estimated to give at least")
    assert str(found).startswith("Estimated: ")
    assert any(reason in line for line in found.assumptions)
    trial = study.begin_trial({"x": 0.3})
    study.tell(trial, {"f": float(np.sin(0.3)), "g": 0.66})
    assert study.certificate().kind == "estimated"


def test_failing_after_a_reading_makes_the_gap_estimated_and_failing_before_does_not() -> None:
    study = three_runs()
    first, second = study.ask(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.fail(first, "no power")
    assert study.certificate().kind == "confident"
    study.tell_stage(second, "f", 0.1)
    with pytest.warns(RuntimeWarning, match="trial 4 failed after a stage was read"):
        study.fail(second, "broke")
    assert study.certificate().kind == "estimated"


def test_abandoning_a_run_before_a_stage_is_read_keeps_the_gap_confident() -> None:
    study = three_runs()
    trial = study.ask()
    assert trial is not None
    study.tell_stage(trial, "f", Plant(1).f(trial.controls["x"]))
    study.abandon(trial, "not worth going on")
    assert study.certificate().kind == "confident"


def test_amending_what_was_fixed_makes_the_gap_estimated_and_limits_do_not(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'plant.db'}"
    study = cd.Study.open(url, "plant", network())
    Plant().run(study, 3)
    study.close()
    limited = cd.Study.open(url, "plant", network(limits={"g": (-1.0, None)}), amend=True)
    assert limited.certificate().kind == "confident"
    limited.close()
    raised = cd.Study.open(url, "plant", network(norm=3.0, limits={"g": (-1.0, None)}), amend=True)
    assert raised.certificate().kind == "estimated"
    assert "kernels, norm bounds, offsets or errors were amended" in str(raised.certificate())
    raised.close()


def test_readings_that_contradict_the_norm_are_refuted_at_the_confidence() -> None:
    study = cd.Study(network())
    for x in np.linspace(-2, 2, 10):
        trial = study.begin_trial({"x": float(x)})
        study.tell(trial, {"f": 1.9 * float(np.sin(7 * x)), "g": 0.0})
    found = study.certificate()
    assert found.kind == "refuted"
    assert "At confidence 95 %" in str(found)


def test_limits_hold_if_they_hold_with_the_probability() -> None:
    study = cd.Study(network(limits={"g": (0.3, None)}))
    Plant().run(study, 3)
    assert all(trial.feasible is None for trial in study.trials)  # a single reading says nothing for sure
    found = study.certificate()
    assert found.kind == "confident"
    assert found.recommended is not None
    assert 0.8 * np.cos(2 * np.sin(found.recommended.controls["x"])) >= 0.3
    assert "With probability at least 95 %" in str(found)


def test_candidates_are_run_again_and_averaged() -> None:
    study = cd.Study(network(), candidates=np.array([[-0.3], [0.1], [1.0]]))
    Plant().run(study, 6)
    assert len({trial.controls["x"] for trial in study.trials}) <= 3
    found = study.certificate()
    assert (found.kind, found.over) == ("confident", "the 3 candidates")
    assert found.recommended is not None
    assert found.recommended.controls["x"] in (-0.3, 0.1, 1.0)


def test_formulas_and_minimising_work_with_scatter() -> None:
    cost = cd.Stage("cost", parents=["g"], known=True, function=lambda g: 2 * g + 1, lipschitz=2.0)
    f, g = network().stages
    study = cd.Study(cd.chain(f, g, cost).mirrored())
    plant = Plant()
    for _ in range(3):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, {"f": plant.f(trial.controls["x"]), "g": plant.g(trial.controls["x"])})
    found = study.certificate()
    assert found.kind == "confident"
    assert found.bound is not None
    assert found.bound <= 1.6 * np.cos(2.0) + 1
    assert found.recommended is not None
    assert found.recommended.at_least >= 1.6 * np.cos(2 * np.sin(found.recommended.controls["x"])) + 1


def test_a_batch_is_revised_with_the_probability() -> None:
    f = cd.Stage("f", controls=X, kernel=SE, norm_bound=2.0, error=SCATTER)
    g = cd.Stage("g", controls={"y": cd.Real(-1, 1)}, kernel=cd.SquaredExponential(1.0), norm_bound=2.0, error=SCATTER)
    study, rng = cd.Study(cd.chain(f, g)), np.random.default_rng(0)

    def value(controls: Any) -> float:
        return float(0.8 * np.cos(2 * np.sin(controls["x"])) * np.exp(-0.5 * controls["y"] ** 2))

    for _ in range(3):
        trial = study.ask()
        assert trial is not None
        study.tell_stage(trial, "f", float(np.sin(trial.controls["x"])) + 0.01 * rng.standard_normal())
        found = study.revise(trial, apply=True)
        assert found.kind == "confident"
        if study.trials[trial.number].state == "running":
            controls = study.trials[trial.number].controls
            study.tell_stage(trial, "g", value(controls) + 0.01 * rng.standard_normal())
    trial = study.ask()
    assert trial is not None
    study.tell_stage(trial, "f", float(np.sin(trial.controls["x"])) + 0.01 * rng.standard_normal())
    found = study.revise(trial)
    assert found.bound is not None
    assert found.bound >= max(value({"x": trial.controls["x"], "y": y}) for y in np.linspace(-1, 1, 21))
    assert study.certificate().kind == "confident"  # discarding a run after a reading keeps the reading


def test_the_recommended_setting_is_not_called_proven() -> None:
    lines = recommended_lines(three_runs().certificate())
    assert lines[0].startswith("recommended (with probability 95 % sure to give at least ")
    recommendation = three_runs().recommendation()
    assert recommendation is not None
    assert "\nWith probability at least 95 %, now and at every later step: it gives" in recommendation.summary


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.2}, "confidence must be a number above 0 and below 1"),
        ({"safe": True}, r"safe=True does not work with error=SubGaussian\(...\) at stage 'f'"),
        ({"on_violation": "enlarge"}, "has error=, which does not work with on_violation='enlarge'"),
        ({"algorithm": "ei"}, "has error=, which does not work with the algorithm"),
    ],
)
def test_combinations_that_do_not_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cd.ArgumentError, match=message):
        cd.Study(network(limits={"g": (0.3, None)}) if "safe" in options else network(), **options)


def test_a_confidence_without_scatter_is_refused() -> None:
    with pytest.raises(cd.ArgumentError, match="no stage has error=SubGaussian"):
        cd.Study(network(0.01, 0.01), confidence=0.9)


def test_an_invalid_nominal_input_in_a_log_is_named() -> None:
    study = three_runs()
    first = next(event for event in study.events if event.kind == "observed")
    wrong = replace(first, data={**first.data, "nominal": {"f": [0.1, 0.2]}})
    events = [wrong if event.number == first.number else event for event in study.events]
    with pytest.raises(cd.StoreError, match="the nominal inputs of trial 0 are invalid"):
        State.empty(study.network).replayed(events)
