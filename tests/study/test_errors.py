"""Studies of processes that are read with bounded errors: certificates, repeats, stores, limits, batches."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.confidence import Boxes
from cascada.errors import ArgumentError
from cascada.kernels import SquaredExponential
from cascada.network import Network, enclose_network
from cascada.study import Study, Trial
from cascada.study.batch import Batch

Open = Callable[..., Study]
SE = SquaredExponential(1.0)
BOX = {"x": cd.Real(-2, 2)}
ERROR = 0.02


def process(error: Any = ERROR, second: Any = ERROR, **options: Any) -> Network:
    """x → f = sin x → g = cos f, whose norms are below 3."""
    first = cd.Stage("f", controls=BOX, kernel=SE, norm_bound=3.0, error=error)
    return cd.chain(first, cd.Stage("g", kernel=SE, norm_bound=3.0, error=second, **options))


NETWORK = process()


def readings(controls: Mapping[str, float], error: float = ERROR) -> dict[str, list[float]]:
    """What is read if every reading is too large by the whole error: the true value of f is passed on."""
    value = math.sin(controls["x"])
    return {"f": [value + error], "g": [math.cos(value) + error]}


def ran(study: Study, runs: int, *, stagewise: bool = False) -> Study:
    for _ in range(runs):
        trial = study.ask()
        assert trial is not None
        if stagewise:
            for stage, values in readings(trial.controls).items():
                study.tell_stage(trial, stage, values)
        else:
            study.tell(trial, readings(trial.controls))
    return study


def controls(study: Study) -> list[dict[str, Any]]:
    return [dict(trial.controls) for trial in study.trials]


# ---- the certificate


def test_the_gap_is_that_of_the_recommended_setting_and_not_of_a_reading() -> None:
    study = Study(NETWORK)
    for _ in range(5):
        ran(study, 1)
        found = study.certificate()
        assert found.kind == "proven"
        assert found.best is None
        assert found.recommended is not None
        assert found.bound is not None
        assert found.gap == pytest.approx(found.bound - found.recommended.at_least, abs=1e-12)
        assert found.recommended.at_least <= math.cos(math.sin(found.recommended.controls["x"]))
        assert found.bound >= 1.0
    assert found.best_reading == max(trial.value for trial in study.trials if trial.value is not None)
    assert found.recommended is not None
    assert found.best_reading > found.recommended.at_least
    assert found.floor is not None
    assert found.floor.estimate > 0


def test_the_certificate_says_what_was_read_and_how_exactly() -> None:
    study = ran(Study(NETWORK), 4)
    text = str(study.certificate())
    assert "gives at least" in text
    assert "f is read to ±0.02, g is read to ±0.02" in text
    assert "The errors of the readings allow a gap of about" in text
    assert "no noise" not in text
    best = study.best_trial
    assert best is not None
    run = Study(NETWORK, candidates=np.array([[best.controls["x"]]]))
    run.add_trial(best.controls, best.outputs)
    assert "(its reading was 1.02" in str(run.certificate()) or "± 0.02)" in str(run.certificate())
    exact = Study(process(ERROR, None), candidates=np.array([[0.0]]))
    exact.add_trial({"x": 0.0}, {"f": 0.02, "g": 1.0})
    assert "(its reading was 1), which" in str(exact.certificate())


def test_a_run_proves_at_least_its_reading_minus_the_error() -> None:
    study = Study(NETWORK, candidates=np.array([[0.0], [1.0]]))
    study.add_trial({"x": 0.0}, readings({"x": 0.0}))
    found = study.certificate().recommended
    assert found is not None
    assert found.controls == {"x": 0.0}
    assert found.at_least == pytest.approx(1.0, abs=1e-9)
    assert (found.reading, found.error) == (1.02, 0.02)


def test_maximise_stops_at_the_tolerance_and_minimise_mirrors_it() -> None:
    functions = {"f": lambda x: math.sin(x) + ERROR, "g": lambda f: math.cos(f - ERROR) + ERROR}
    result = cd.maximise(process(), functions, budget=20, tolerance=0.5, progress=False)
    assert result.status == "tolerance"
    assert result.gap is not None
    assert result.gap <= 0.5
    assert result.recommended is not None
    assert "Best reading" in str(result)
    mirrored = cd.minimise(process(), functions, budget=4, progress=False)
    found = mirrored.certificate.recommended
    assert found is not None
    assert found.at_least >= math.cos(math.sin(found.controls["x"]))
    assert mirrored.certificate.bound is not None
    assert mirrored.certificate.bound <= math.cos(1.0)


def test_a_tolerance_below_what_the_errors_allow_is_warned_of() -> None:
    with pytest.warns(RuntimeWarning, match=r"±0.05 on the stage 'f' allows a gap of about 0.4 at best") as found:
        Study(process(0.05, 0.05), tolerance=0.1)
    assert found[0].filename == __file__  # not a line of cascada


def test_the_floor_is_shown_before_the_first_run() -> None:
    study = Study(process(0.05, 0.05))
    for _ in range(2):  # a run that was begun tells nothing
        found = study.certificate()
        assert found.gap is None
        assert found.floor is not None
        assert not found.floor.reached
        sentence = "The errors of the readings allow a gap of about 0.4 at best, mostly because of stage 'f'."
        assert f"So there is no gap. {sentence} It would rest on:" in str(found)
        study.ask()
    assert Study(process(None, None)).certificate().floor is None


def test_a_study_without_errors_is_not_changed_by_an_error_of_zero() -> None:
    def points(network: Network) -> list[Any]:
        study = Study(network, replayable=True)
        for _ in range(6):
            trial = study.ask()
            assert trial is not None
            study.tell(trial, readings(trial.controls, 0.0))
        return [controls(study), study.certificate().bound]

    assert points(process(0.0, cd.Bounded(0.0))) == points(process(None, None))


# ---- the same points everywhere


def test_points_are_the_same_in_every_kind_of_study(opened: Open) -> None:
    study = ran(opened(NETWORK), 3)
    memory = ran(Study(NETWORK, replayable=study.shared), 3)  # else the tree of a search is kept
    stagewise = ran(Study(NETWORK, replayable=study.shared), 3, stagewise=True)
    assert controls(study) == controls(memory) == controls(stagewise)
    assert study.certificate().gap == memory.certificate().gap


def test_reopening_a_study_reproduces_the_next_suggestion(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    study = Study.open(url, "errors", NETWORK)
    for _ in range(3):
        ran(study, 1)
        again = Study.open(url, "errors").branch()
        one, other = again.ask(), study.branch().ask()
        assert isinstance(one, Trial)
        assert isinstance(other, Trial)
        assert one.controls == other.controls
        again.close()
    study.close()


def test_pending_runs_move_the_next_point_and_not_the_certificate() -> None:
    study = ran(Study(NETWORK, replayable=True), 3)
    before = study.certificate()
    pending = study.ask(3)
    assert len({trial.controls["x"] for trial in pending}) == 3
    after = study.certificate()
    assert (after.bound, after.recommended) == (before.bound, before.recommended)
    for trial in pending:
        study.tell(trial, readings(trial.controls))
    assert study.certificate().kind == "proven"


def test_the_error_may_be_amended_and_what_is_forwarded_may_not(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    ran(Study.open(url, "errors", NETWORK), 3).close()
    with pytest.raises(ArgumentError, match=r"stages.f.error.*stored 0.02, given 0.1"):
        Study.open(url, "errors", process(0.1))
    study = Study.open(url, "errors", process(0.1), amend=True)
    assert "f is read to ±0.1" in str(study.certificate())
    study.close()
    other = cd.chain(
        cd.Stage("f", controls=BOX, kernel=SE, norm_bound=3.0, error=0.1, forwards="reading"),
        cd.Stage("g", kernel=SE, norm_bound=3.0, error=ERROR),
    )
    with pytest.raises(ArgumentError, match=r'stages.f.forwards: stored "value", given "reading"'):
        Study.open(url, "errors", other, amend=True)


# ---- repeats, copies and formulas


def test_repeats_are_intersected_and_too_different_ones_are_evidence() -> None:
    study = Study(NETWORK)
    study.add_trial({"x": 0.0}, {"f": 0.02, "g": 1.02})
    study.add_trial({"x": 0.0}, {"f": -0.02, "g": 0.98})
    found = study.certificate().recommended
    assert found is not None
    assert found.at_least == pytest.approx(1.0, abs=1e-9)
    assert study.model.known_of(study.trials[0]).lower[0, 2] == pytest.approx(1.0)  # type: ignore[union-attr]
    study.add_trial({"x": 0.0}, {"f": 0.07, "g": 1.0})
    refuted = study.certificate()
    assert refuted.kind == "refuted"
    assert "error" in refuted.evidence[0]
    assert "trial 1 and trial 2" in refuted.evidence[0] or "trials 1 and 2" in refuted.evidence[0]
    study.correct(2, "f", 0.0)
    assert study.certificate().kind == "proven"


def test_evidence_names_both_ways_out_and_the_trials() -> None:
    study = Study(cd.chain(cd.Stage("f", controls=BOX, kernel=SE, norm_bound=1.0, error=0.01)))
    study.add_trial({"x": 0.0}, {"f": 0.5})
    study.add_trial({"x": 1.0}, {"f": 1.5})
    found = study.certificate()
    assert found.kind == "refuted"
    assert "The norm_bound is given as 1 and the error as 0.01" in found.evidence[0]
    assert "or with errors of more than" in found.evidence[0]
    assert "trials 0 and 1 are possible only with" in found.evidence[0]


def test_noise_in_exact_readings_is_named_as_a_way_out() -> None:
    f = cd.Stage("f", controls=BOX, kernel=SE, norm_bound=3.0)
    study = Study(cd.chain(f))
    for x, error in ((0.0, 0.001), (0.001, -0.001), (0.002, 0.001), (0.003, -0.001)):
        study.add_trial({"x": x}, {"f": math.sin(x) + error})
    (found,) = study.certificate().evidence
    assert "or check those trials. Or the readings are not exact: then say how far they may be off with error=" in found
    with pytest.raises(cd.ContradictionError, match=r"say how far they may be off with error= at the stage"):
        study.add_trial({"x": 0.0}, {"f": 0.002})
    slightly = Study(cd.chain(cd.Stage("f", controls=BOX, kernel=SE, norm_bound=1.0)))
    slightly.add_trial({"x": 0.0}, {"f": 1.1})
    assert "not exact" not in slightly.certificate().evidence[0]


def test_a_formula_of_readings_is_never_taken_as_exact() -> None:
    f = cd.Stage("f", controls=BOX, kernel=SE, norm_bound=3.0, error=0.1)
    revenue = cd.Stage("revenue", known=True, function=lambda f: 10 * f, lipschitz=10.0)
    study = Study(cd.chain(f, revenue))
    trial = study.add_trial({"x": 0.0}, {"f": 0.5})
    assert trial.value == 5.0  # of the reading
    found = study.certificate()
    assert found.recommended is not None
    assert found.recommended.at_least <= 4.0 + 1e-9
    study.add_trial({"x": 1.0}, {"f": 0.5, "revenue": 5.9})  # another reading of f may have been used
    assert study.trials[1].value == 5.0
    with pytest.raises(cd.ContradictionError, match="its formula gives"):
        study.add_trial({"x": -1.0}, {"f": 0.5, "revenue": 9.0})


def test_a_told_copy_is_another_reading_of_the_same_value() -> None:
    f = cd.Stage("f", controls=BOX, outputs=["a"], kernel=SE, norm_bound=3.0, error=0.1)
    g = cd.Stage("g", outputs=["b", "a"], passes=["a"], kernel=SE, norm_bound=3.0, error=0.1)
    study = Study(cd.chain(f, g, cd.Stage("h", kernel=SquaredExponential((1.0, 1.0)), norm_bound=3.0)))
    trial = study.add_trial({"x": 0.0}, {"f": 0.5, "g": [0.1, 0.65], "h": 0.0})
    assert trial.outputs["g"] == (0.1, 0.5)
    with pytest.raises(cd.ContradictionError, match="passes on 'a'"):
        study.add_trial({"x": 1.0}, {"f": 0.5, "g": [0.1, 0.75], "h": 0.0})


# ---- limits, safe runs, ranges


def limited(**options: Any) -> Network:
    """The objective f + 1, with f ≤ 0.5."""
    f = cd.Stage("f", controls=BOX, kernel=SE, norm_bound=3.0, error=0.05, limits={"f": (None, 0.5)}, **options)
    return cd.chain(f, cd.Stage("g", kernel=SE, norm_bound=3.0, error=0.05))


def test_a_run_is_feasible_only_if_its_interval_is() -> None:
    study = Study(limited())
    told = [study.add_trial({"x": x}, {"f": f, "g": 0.0}) for x, f in ((-1.0, 0.44), (0.0, 0.48), (1.0, 0.6))]
    assert [trial.feasible for trial in told] == [True, None, False]
    assert study.best_trial == told[0]


def test_only_what_is_proven_feasible_is_recommended() -> None:
    study = Study(limited())
    for _ in range(4):
        trial = study.ask()
        assert trial is not None
        value = math.sin(trial.controls["x"])
        study.tell(trial, {"f": value - 0.05, "g": math.cos(value) - 0.05})
    found = study.certificate().recommended
    assert found is not None
    assert math.sin(found.controls["x"]) <= 0.5
    assert "satisfies the limits" in str(study.certificate())


def test_safe_runs_satisfy_the_limits_in_spite_of_errors() -> None:
    study = Study(limited(), safe=True)
    study.add_trial({"x": -1.5}, {"f": math.sin(-1.5) - 0.05, "g": math.cos(math.sin(-1.5)) - 0.05})
    for _ in range(3):
        trial = study.ask()
        assert trial is not None
        value = math.sin(trial.controls["x"])
        assert value <= 0.5
        study.tell(trial, {"f": value - 0.05, "g": math.cos(value) - 0.05})


def test_a_reading_outside_its_range_by_more_than_its_error_refutes_it() -> None:
    network = process(ranges={"g": (None, 1.0)})
    study = Study(network)
    study.add_trial({"x": 0.0}, {"f": 0.0, "g": 1.01})
    assert study.certificate().kind == "proven"
    study.add_trial({"x": 1.0}, {"f": 0.8, "g": 1.03})
    found = study.certificate()
    assert found.kind == "refuted"
    said = "trial 1 gave g = 1.03, but its range is g ≤ 1, and the errors of the readings do not explain this"
    assert said in found.evidence[0]


# ---- joint norms, candidates, whole numbers, batches


def test_outputs_with_a_joint_norm_have_errors_of_their_own() -> None:
    joint = cd.Separable(SE, ((1.0, 0.9), (0.9, 1.0)))
    f = cd.Stage("f", controls=BOX, outputs=["u", "v"], kernel=joint, norm_bound=4.0, error=[0.01, 0.1])
    study = Study(cd.chain(f, cd.Stage("g", kernel=SquaredExponential((1.0, 1.0)), norm_bound=3.0)))
    for _ in range(4):
        trial = study.ask()
        assert trial is not None
        u = math.sin(trial.controls["x"])
        study.tell(trial, {"f": [u - 0.01, u + 0.1], "g": math.cos(2 * u)})
        found = study.certificate()
        assert found.kind == "proven"
        assert found.bound is not None
        assert found.bound >= 1.0
        assert found.recommended is not None
        assert found.recommended.at_least <= math.cos(2 * math.sin(found.recommended.controls["x"]))
    assert "f is read to ±(0.01, 0.1), g is read exactly" in str(found)


@pytest.mark.parametrize("algorithm", ["gpn_mixed", "gpn_ucb", "random_search"])
def test_candidates_are_run_again_once_all_were_run(algorithm: str) -> None:
    study = Study(process(0.1, 0.1), candidates=np.array([[-0.5], [0.1], [0.6]]), algorithm=algorithm)
    if algorithm == "random_search":
        ran(study, 3)
    else:
        ran(study, 7)
    found = study.certificate().recommended
    assert found is not None
    assert found.controls["x"] in (-0.5, 0.1, 0.6)


def test_whole_numbers_are_recommended_and_run_again() -> None:
    f = cd.Stage("f", controls={"n": cd.Integer(-2, 2)}, kernel=SE, norm_bound=3.0, error=0.1)
    study = Study(cd.chain(f))
    for _ in range(9):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, {"f": math.sin(trial.controls["n"]) + 0.1})
    found = study.certificate().recommended
    assert found is not None
    assert found.controls["n"] in range(-2, 3)


def test_a_batch_is_judged_by_the_interval_of_what_was_read() -> None:
    f = cd.Stage("f", controls=BOX, kernel=SE, norm_bound=3.0, error=0.05)
    g = cd.Stage("g", controls={"y": cd.Real(-1, 1)}, kernel=SquaredExponential((1.0, 1.0)), norm_bound=3.0, error=0.05)
    study = Study(cd.chain(f, g))
    for x, y in ((-1.0, 0.0), (0.0, 0.5), (1.0, -0.5), (0.3, 0.2)):
        study.add_trial({"x": x, "y": y}, {"f": math.sin(x) + 0.05, "g": math.cos(math.sin(x)) - y**2 + 0.05})
    trial = study.ask()
    assert trial is not None
    true = math.sin(trial.controls["x"])
    study.tell_stage(trial, "f", true + 0.05)
    given = Batch(study.trials[trial.number], study.model, study.state, study._settings).given(study.beliefs)
    enclosed = enclose_network(given, Boxes(np.zeros((1, 2)), np.zeros((1, 2)))).boxes
    assert enclosed.lower[0, 2] <= true <= true + 0.04 <= enclosed.upper[0, 2]  # not the reading alone
    found = study.revise(trial)
    assert found.bound is not None
    assert found.bound >= max(math.cos(true) - y**2 for y in np.linspace(-1, 1, 21))
    if found.least is not None:
        assert found.surest is not None
        assert found.least <= math.cos(true) - found.surest["y"] ** 2


# ---- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "gp_ucb"}, "does not work with the algorithm GPUCB, because it takes readings as exact"),
        ({"on_violation": "enlarge"}, "has error=, which does not work with on_violation='enlarge'"),
    ],
)
def test_options_that_do_not_work_with_errors_are_refused_by_name(options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Study(NETWORK, **options)


@pytest.mark.parametrize("error", [0.1, cd.SubGaussian(0.1)])
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"context": True}, "stage 'f' has error=, which does not work with context=True, which x has"),
        ({"deviation": 0.1}, "deviation=, which x has, does not work with error="),
    ],
)
def test_contexts_and_uncertain_controls_are_refused(error: Any, option: dict[str, Any], message: str) -> None:
    controls = {"x": cd.Real(-2, 2, **option), "y": cd.Real(-2, 2)}
    with pytest.raises(ArgumentError, match=message):
        Study(cd.chain(cd.Stage("f", controls=controls, kernel=SE, norm_bound=3.0, error=error)))


def test_bounded_errors_need_norms_at_every_stage() -> None:
    f = cd.Stage("f", controls=BOX, kernel=SE, norm_bound=3.0, error=0.1)
    with pytest.raises(ArgumentError, match="needs a given kernel and norm_bound at every stage; stage 'g' lacks them"):
        Study(cd.chain(f, cd.Stage("g")))


def test_revising_and_safe_runs_refuse_forwarded_readings() -> None:
    f = cd.Stage("f", controls=BOX, kernel=SE, norm_bound=3.0, error=0.1, forwards="reading")
    g = cd.Stage("g", kernel=SE, norm_bound=3.0, limits={"g": (0.0, None)})
    with pytest.raises(ArgumentError, match="safe=True does not work with forwards='reading'"):
        Study(cd.chain(f, g), safe=True)
    study = Study(cd.chain(f, g))
    trial = study.ask()
    assert trial is not None
    study.tell_stage(trial, "f", 0.1)
    with pytest.raises(ArgumentError, match="revise does not work with forwards='reading'"):
        study.revise(trial)
