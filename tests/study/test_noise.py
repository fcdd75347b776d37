"""Studies of processes with noise: repeats, stores, certificates, and noise that was left in by mistake."""

import math
import re
import warnings
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.algorithms import NAMES
from cascada.calibration import Calibration
from cascada.errors import ArgumentError, ContradictionError
from cascada.network import Network
from cascada.problems import by_name
from cascada.specs.toml_file import load_toml
from cascada.store.description import describe, network_from
from cascada.study import Study, Trial
from cascada.study.refutation import Refutation

Open = Callable[..., Study]
BOX = {"x": cd.Real(-1, 1), "y": cd.Real(-1, 1)}
SHORT = Calibration(family="matern", initial=4)


def process(**options: Any) -> Network:
    return cd.chain(cd.Stage("f", controls=BOX, **options), cd.Stage("g", **options))


NOISY = process(error="estimate")
EXACT = process()


def outputs(controls: Any, rng: np.random.Generator, level: float = 0.02) -> dict[str, list[float]]:
    """Readings of both stages; the true value of f is passed on."""
    f = math.sin(2 * controls["x"]) + controls["y"]
    g = -((f - 0.5) ** 2) - 0.3 * controls.get("y", 0.0) ** 2
    return {"f": [f + level * rng.standard_normal()], "g": [g + level * rng.standard_normal()]}


def ran(study: Study, runs: int, seed: int = 0, *, stagewise: bool = False) -> Study:
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        trial = study.ask()
        assert trial is not None
        told = outputs(trial.controls, rng)
        if stagewise:
            for stage, values in told.items():
                study.tell_stage(trial, stage, values)
        else:
            study.tell(trial, told)
    return study


def controls(study: Study) -> list[Any]:
    return [dict(trial.controls) for trial in study.trials]


# ---- repeats


def test_a_point_may_be_run_again_with_another_value(opened: Open) -> None:
    study = opened(NOISY, calibration=SHORT)
    for value in (0.1, 0.2, 0.2, 0.3):
        study.add_trial({"x": 0.0, "y": 0.0}, {"f": value, "g": -value})
    assert [trial.value for trial in study.trials] == [-0.1, -0.2, -0.2, -0.3]
    assert not study.refuted
    posterior = study.model.acting.stages[0].belief.posterior  # type: ignore[union-attr]
    assert posterior.count == 4
    assert study.state.scatter is None  # nothing unexpected


def test_a_trial_still_has_one_value_per_stage(opened: Open) -> None:
    study = opened(NOISY, calibration=SHORT)
    trial = study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.1, "g": 0.2})
    with pytest.raises(ContradictionError, match=r"'f' was told as 0.1 before and now as 0.2"):
        study.tell(trial, {"f": 0.2})
    assert study.correct(trial, "f", 0.2).outputs["f"] == (0.2,)


def test_candidates_are_never_used_up() -> None:
    candidates = np.array([[-0.5, 0.0], [0.0, 0.2], [0.5, 0.5]])
    study = ran(Study(NOISY, candidates=candidates, calibration=SHORT), 12)
    assert len(study.trials) == 12
    assert len({tuple(point.values()) for point in controls(study)}) <= 3
    assert study.ask() is not None


@pytest.mark.parametrize("algorithm", [name for name in NAMES if name != "non_adaptive"])
def test_every_algorithm_runs_with_repeats(algorithm: str) -> None:
    candidates = np.array([[-0.5, 0.0], [0.0, 0.2], [0.5, 0.5], [0.9, -0.3]])
    study = ran(Study(NOISY, algorithm=algorithm, candidates=candidates, calibration=SHORT), 9)
    trials = study.ask(2)
    assert len(trials) == 2
    assert not study.refuted


# ---- the same points everywhere


def test_points_are_the_same_in_every_kind_of_study(opened: Open) -> None:
    study = ran(opened(NOISY, calibration=SHORT), 9)
    memory = ran(Study(NOISY, replayable=True, calibration=SHORT), 9)
    assert controls(study) == controls(memory)


def test_a_study_told_stage_by_stage_takes_the_same_points() -> None:
    whole = ran(Study(NOISY, replayable=True, calibration=SHORT), 9)
    stagewise = ran(Study(NOISY, replayable=True, calibration=SHORT), 9, stagewise=True)
    assert controls(whole) == controls(stagewise)


@pytest.mark.parametrize("network", [NOISY, EXACT], ids=["declared", "found"])
def test_reopening_a_study_with_repeats_reproduces_the_next_suggestion(network: Network, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"

    def opened() -> Study:
        return Study.open(url, "noise", network, calibration=SHORT)

    study, rng = opened(), np.random.default_rng(0)
    asked = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for i in range(10):
            if i in (2, 6):
                trial = study.begin_trial({"x": 0.1, "y": 0.2})
            else:
                found = study.ask()
                assert found is not None
                trial = found
            study.tell(trial, outputs(trial.controls, rng))
            again = Study.open(url, "noise", worker=f"w{i}", calibration=SHORT).branch()
            asked.append((again.ask(), study.branch().ask()))
            study.close()
            study = opened()
    for one, other in asked:
        assert isinstance(one, Trial)
        assert isinstance(other, Trial)
        assert one.controls == other.controls
    assert study.noisy
    fits = study.state.fits["f.f"]
    assert fits["acting"]["noise"] > 0
    assert fits["judging"]["noise"] > 0


def test_fits_without_noise_are_stored_without_it(tmp_path: Path) -> None:
    study = Study.open(f"sqlite:///{tmp_path}/studies.db", "exact", EXACT, calibration=SHORT)
    for _ in range(6):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, outputs(trial.controls, np.random.default_rng(0), 0.0))
    study.ask()
    assert set(study.state.fits["f.f"]["acting"]) == {"kernel", "offset", "observations"}


def test_an_estimated_error_is_stored_and_may_be_amended(tmp_path: Path) -> None:
    description = describe(NOISY, {})
    assert [stage["error"] for stage in description["stages"]] == ["estimate", "estimate"]
    assert network_from(description).noisy
    url = f"sqlite:///{tmp_path}/studies.db"
    study = Study.open(url, "s", EXACT, calibration=SHORT)
    study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.1, "g": 0.2})
    study.close()
    amended = Study.open(url, "s", NOISY, calibration=SHORT, amend=True)
    amended.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.2, "g": 0.2})
    assert amended.state.scatter is None
    assert amended.noisy


def test_a_file_may_say_that_noise_is_estimated(tmp_path: Path) -> None:
    file = tmp_path / "process.toml"
    text = '[[stage]]\nname = "f"\ncommand = ["f"]\nerror = "estimate"\n[stage.controls]\nx = { low = 0, high = 1 }\n'
    file.write_text(text)
    assert load_toml(file).noisy


# ---- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": cd.Matern(2.5)}, "got kernel= as well. Leave it out, or give the error as a number"),
        ({"lipschitz": 1.0}, "got lipschitz= as well"),
        ({"known": True, "lipschitz": 1.0, "function": abs}, "for modelled outputs, and this stage has none"),
        ({"outputs": ["x"], "passes": ["x"]}, "for modelled outputs, and this stage has none"),
    ],
)
def test_noise_is_estimated_only_with_its_kernel(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        cd.Stage("f", controls={"x": cd.Real(0, 1)}, error="estimate", **options)


def test_safe_runs_refuse_estimated_noise() -> None:
    limited = cd.chain(cd.Stage("f", controls=BOX, error="estimate", limits={"f": (None, 0.4)}), NOISY.stages[1])
    with pytest.raises(ArgumentError, match=r"safe=True needs a given kernel and norm_bound at every stage"):
        Study(limited, safe=True)


def test_a_proven_stage_behind_noise_is_refused() -> None:
    first = cd.Stage("f", controls=BOX, error="estimate")
    with pytest.raises(ArgumentError, match="stage 'g' has a kernel or a lipschitz, but its inputs are readings"):
        Study(cd.chain(first, cd.Stage("g", kernel=cd.Matern(2.5), norm_bound=2.0)))
    passed_on = cd.Stage("f", controls=BOX, error="estimate", forwards="reading")
    assert Study(cd.chain(passed_on, cd.Stage("g", kernel=cd.Matern(2.5), norm_bound=2.0))).noisy


def test_formulas_and_copies_behind_noise_follow_the_reading() -> None:
    def double(u: float) -> float:
        return 2 * u

    network = cd.chain(
        cd.Stage("f", controls=BOX, outputs=["u"], error="estimate"),
        cd.Stage("g", outputs=["v", "u"], passes=["u"]),
        cd.Stage("h", parents=["g.u"], known=True, lipschitz=2.0, function=double),
        objective="h.h",
    )
    study = Study(network)
    trial = study.add_trial({"x": 0.0, "y": 0.0}, {"f": 1.0, "g": [0.3, 1.01], "h": 2.03})
    assert trial.outputs == {"f": (1.0,), "g": (0.3, 1.0), "h": (2.0,)}


# ---- certificates


def test_the_certificate_is_about_the_run_with_the_best_mean() -> None:
    study = ran(Study(NOISY, seed=1, calibration=SHORT), 24)
    certificate = study.certificate()
    best, recommended = study.best_trial, certificate.recommended
    assert best is not None
    assert certificate.best is None
    assert certificate.best_reading == best.value
    assert certificate.kind == "estimated"
    assert not certificate.evidence
    mean = {tuple(trial.controls.values()): study.beliefs.predict(trial.controls)["g"] for trial in study.trials}
    assert study.recommended() is not None
    if certificate.gap is None:
        assert certificate.missing
    else:
        assert recommended is not None
        assert recommended.controls == study.recommended()
        assert recommended.at_least <= mean[tuple(recommended.controls.values())].mean[0]
        assert certificate.bound is not None
        assert certificate.gap == pytest.approx(certificate.bound - recommended.at_least)
        assert f"The best reading was {best.value:.6g}." in str(certificate)
    assert any("readings have independent noise" in line for line in certificate.assumptions)
    assert "every run is exact: no noise" not in certificate.assumptions


def test_a_lucky_reading_is_not_recommended() -> None:
    study = Study(NOISY, calibration=SHORT)
    rng = np.random.default_rng(0)
    for i in range(30):
        point = {"x": float(rng.uniform(-1, 1)), "y": float(rng.uniform(-1, 1))}
        told = outputs(point, rng, 0.01)
        study.add_trial(point, told | ({"g": [told["g"][0] + 0.1]} if i == 0 else {}))
    for _ in range(4):  # 0 is the optimum
        study.add_trial({"x": 0.2526802551420786, "y": 0.0}, outputs({"x": 0.2526802551420786, "y": 0.0}, rng, 0.01))
    study.add_trial({"x": -0.3, "y": 0.3}, {"f": -0.26, "g": 0.5})  # a wild reading
    assert study.best_trial == study.trials[-1]
    recommended = study.recommended()
    assert recommended is not None
    assert outputs(recommended, rng, 0.0)["g"][0] > -0.02


def test_a_process_is_minimised_like_its_mirror() -> None:
    study = ran(Study(NOISY, seed=2, calibration=SHORT), 8)
    mirror = Study(NOISY.mirrored(), seed=2, calibration=SHORT)
    rng = np.random.default_rng(0)
    for _ in range(8):
        trial = mirror.ask()
        assert trial is not None
        told = outputs(trial.controls, rng)
        mirror.tell(trial, {"f": told["f"], "g": [-told["g"][0]]})
    assert controls(mirror) == controls(study)


def test_a_result_says_reading_and_recommends_a_run() -> None:
    rng = np.random.default_rng(0)
    result = cd.maximise(NOISY, lambda **point: outputs(point, rng), budget=14, progress=False)
    assert result.status == "budget"
    assert "Best reading" in str(result)
    assert result.recommended in [dict(trial.controls) for trial in result.trials]
    assert result.recommendation is not None


# ---- noise that was left in by mistake


def noisy_problem(name: str, level: float) -> tuple[Network, Callable[..., Any]]:
    """A built-in problem and a function that evaluates it; every output has noise of this part of its spread."""
    problem = by_name(name)
    network, domain, rng = problem.network, problem.network.domain, np.random.default_rng(0)
    points = rng.uniform(domain.lower, domain.upper, (2000, domain.dimension))
    sds = level * problem.values(domain.decode(points)).std(axis=0)

    def evaluate(**point: float) -> dict[str, list[float]]:
        values = problem.values(domain.row(point)[None])[0] + sds * rng.standard_normal(len(sds))
        return {node.stage.name: values[list(node.columns)].tolist() for node in network.nodes}

    stages = {stage.name: copy(stage) for stage in network.stages}
    for stage in stages.values():
        object.__setattr__(stage, "function", None)  # `evaluate` replaces them
    return network.assuming(stages), evaluate


def test_a_little_noise_left_in_a_built_in_problem_is_estimated() -> None:
    """At the edge of the box the first stages of alpine2 get the same input in several runs."""
    network, evaluate = noisy_problem("alpine2", 1e-2)
    with pytest.warns(RuntimeWarning, match=r"^Stage 's\d' gave s\d = .* and .* for the same inputs in trial") as seen:
        result = cd.maximise(network, evaluate, budget=18, progress=False)
    assert len(seen) == 1
    assert result.status == "budget"
    assert result.certificate.kind == "estimated"
    assert result.certificate.best is None
    assert not result.certificate.evidence
    assert str(seen[0].message) in result.certificate.assumptions
    numbers = {value for trial in result.trials for values in trial.outputs.values() for value in values}
    said = re.findall(r"= (\S+) and (\S+) for", str(seen[0].message))[0]
    assert set(map(float, said)) <= numbers  # as they were told


def test_a_mistake_that_is_corrected_ends_the_noise(opened: Open) -> None:
    study = opened(EXACT, calibration=SHORT)
    for x in (-0.5, 0.0, 0.5, 0.7):
        study.add_trial({"x": x, "y": 0.0}, outputs({"x": x, "y": 0.0}, np.random.default_rng(0), 0.0))
    before = study.branch()
    with pytest.warns(
        RuntimeWarning, match=r"f = 0.3 and 0.0 for the same inputs in trial 4 and trial 1: runs are not exact"
    ):
        study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.3, "g": -0.25})
    assert isinstance(study.state.scatter, Refutation)
    assert study.state.scatter.trials == (4, 1)
    assert study.noisy
    assert not study.refuted
    assert study.certificate().best is None
    study.correct(4, "f", 0.0)
    assert study.state.scatter is None
    assert not study.noisy
    assert study.certificate().best == before.certificate().best
    assert "every run is exact: no noise" in study.certificate().assumptions


def test_proven_bounds_still_refuse_two_values_at_one_point() -> None:
    kernel = cd.Matern(2.5)
    network = cd.chain(cd.Stage("f", controls=BOX, kernel=kernel, norm_bound=3.0), cd.Stage("g"))
    study = Study(network)
    study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.1, "g": 0.2})
    with pytest.raises(ContradictionError, match="Runs have to be free of noise"):
        study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.2, "g": 0.2})


# ---- with limits, and in reports


def test_limits_count_by_the_mean() -> None:
    network = cd.chain(cd.Stage("f", controls=BOX, error="estimate", limits={"f": (None, 0.4)}), NOISY.stages[1])
    study = ran(Study(network, calibration=SHORT), 14)
    assert not study.refuted
    recommended = study.recommended()
    assert recommended is not None
    assert math.sin(2 * recommended["x"]) + recommended["y"] <= 0.45
    assert study.certificate().best is None


@pytest.mark.parametrize("network", [NOISY, EXACT], ids=["declared", "found"])
def test_a_report_says_what_was_read_and_what_is_recommended(network: Network) -> None:
    pytest.importorskip("plotly")
    from cascada.report.payload import payload

    study = Study(network, calibration=SHORT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for value in (0.1, 0.12):
            study.add_trial({"x": 0.0, "y": 0.0}, {"f": value, "g": -value})
    ran(study, 8)
    words = payload(study, "noise")["words"]
    assert words[0].startswith("The best reading in 10 complete runs was g = ")
