"""Processes with unknown kernels and norms: their results, and that their gap is never called proven."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest

from cascada.algorithms import GPNEI, GPNUCB, NAMES, GPNMixed
from cascada.calibration import Calibration
from cascada.errors import ArgumentError, ContradictionError
from cascada.kernels import BlockKernel, Separable, SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.space import Grid, Integer, Real
from cascada.study import Result, Study, maximise, minimise
from cascada.study.reader import Reader

SE = SquaredExponential(1.0)
Functions = dict[str, Callable[..., Any]]
NETWORK = chain(Stage("f", controls={"x": Real(-2, 2), "y": Real(-2, 2)}, outputs=["u", "v"]), Stage("g"))
STEEP = chain(Stage("f", controls={"x": Real(-2, 2), "y": Real(-2, 2)}, outputs=["u", "v"], lipschitz=9), Stage("g"))
FUNCTIONS: Functions = {
    "f": lambda x, y: [math.sin(x) + y, x * y],
    "g": lambda u, v: -((u - 0.5) ** 2) - (v - 0.3) ** 2,
}
# One kernel instead of six to choose from, where the choice is not the subject.
SIMPLE = Calibration(family="matern")
TINY = chain(Stage("f", controls={"x": Real(0, 1)}), Stage("g"))
UNIT = {"x": Real(0, 1)}


def _mixed(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    return SE(U, V)[:, :, None, None] * np.array([[1.0, 0.5], [0.5, 1.0]])


def _kinked(x: float) -> float:
    return abs(x - 0.4)


PROCESSES: dict[str, tuple[Network, Functions]] = {
    "analytic": (NETWORK, FUNCTIONS),
    "a line": (TINY, {"f": lambda x: 3 * x + 1, "g": lambda f: -((f - 2) ** 2)}),
    "kinks": (TINY, {"f": _kinked, "g": lambda f: -abs(f - 0.2)}),
    "a constant stage": (
        chain(Stage("f", controls=UNIT), Stage("g", controls={"y": Real(0, 1)})),
        {"f": lambda **_: 2.0, "g": lambda f, y: f + y},
    ),
    "all constant": (TINY, {"f": lambda **_: 0.0, "g": lambda **_: -3.0}),
    "a large offset": (TINY, {"f": lambda x: 1e6 + math.sin(6 * x), "g": lambda f: math.cos(3 * (f - 1e6))}),
    "copies, integers, logarithms": (
        chain(
            Stage("f", controls=UNIT | {"n": Integer(1, 4)}, outputs=["u", "n"], passes=["n"]),
            Stage("g", controls={"t": Real(0.1, 10, log=True)}),
        ),
        {"f": lambda x, n: [x * n, n], "g": lambda u, n, t: -((u - t) ** 2) - n},
    ),
    "a formula": (
        chain(Stage("f", controls=UNIT), Stage("g", known=True, lipschitz=2.0, function=lambda f: 2 * f)),
        {"f": lambda x: math.sin(6 * x)},
    ),
    "a norm that is missing": (chain(Stage("f", controls=UNIT, kernel=SE)), {"f": lambda x: math.sin(6 * x)}),
    "a joint norm that is missing": (
        chain(Stage("f", controls=UNIT, outputs=["u", "v"], kernel=Separable(SE)), Stage("g")),
        {"f": lambda x: [math.sin(6 * x), x], "g": lambda u, v: u * v},
    ),
    "a stage with a kernel and a norm": (
        chain(Stage("f", controls=UNIT), Stage("g", kernel=SE, norm_bound=3.0)),
        {"f": lambda x: 3 * x, "g": lambda f: math.exp(-0.5 * (f - 1) ** 2)},
    ),
    "a Lipschitz constant": (chain(Stage("f", controls=UNIT, lipschitz=6.5)), {"f": lambda x: math.sin(6 * x)}),
}


def run(network: Network, functions: Functions, **options: Any) -> Result:
    """Return a result without the probable gap, which takes as long as several runs."""
    with mock.patch.object(Reader, "probable_gap_if_defined", return_value=None):
        return maximise(network, functions, progress=False, **({"budget": 12} | options))


@cache
def fourteen_runs(name: str) -> Result:
    """Return the result of one of the processes, for all tests that need it; with the probable gap."""
    return maximise(*PROCESSES[name], budget=14, progress=False)


def check_estimated(result: Result) -> None:
    """Check that the result has a gap, which is called estimated."""
    check_not_proven(result)
    assert result.gap_kind == "estimated"
    assert result.gap is not None
    assert result.gap >= 0
    assert str(result.certificate).startswith("Estimated: ")


def check_not_proven(result: Result) -> None:
    """Check that the certificate is called estimated, and has a gap or a reason why there is none."""
    assert result.status in ("budget", "tolerance", "exhausted")
    assert result.certificate.kind == "estimated"
    assert any("estimated" in line for line in result.certificate.assumptions)
    assert result.gap is not None or result.certificate.missing


# ---- the gap is estimated for every process


@pytest.mark.parametrize("name", PROCESSES)
def test_a_gap_is_estimated_for_every_process(name: str) -> None:
    result = fourteen_runs(name)
    if name == "kinks":  # its data contradict the smooth kernels of the first estimates repeatedly
        check_not_proven(result)
    else:
        check_estimated(result)
    assert len(result.trials) == 14


@pytest.mark.parametrize("name", PROCESSES)
def test_the_papers_algorithm_runs_on_every_process(name: str) -> None:
    """Deliberately narrow bounds may contradict each other, but no run is lost."""
    network, functions = PROCESSES[name]
    result = run(network, functions, budget=10, algorithm=GPNUCB(cells=500), calibration=SIMPLE)
    check_not_proven(result)
    assert len(result.trials) == 10


@pytest.mark.parametrize("candidates", [None, Grid({"x": 6, "y": 6})], ids=["box", "candidates"])
@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_runs_different_points_and_proves_nothing(name: str, candidates: Grid | None) -> None:
    result = run(NETWORK, FUNCTIONS, budget=8, algorithm=name, candidates=candidates, calibration=SIMPLE)
    check_not_proven(result)
    assert len({tuple(trial.controls.values()) for trial in result.trials}) == len(result.trials) == 8


def test_every_candidate_is_run_at_most_once() -> None:
    result = run(TINY, PROCESSES["kinks"][1], budget=12, candidates=np.linspace(0, 1, 7)[:, None])
    check_estimated(result)
    assert (result.status, len(result.trials)) == ("exhausted", 7)


def test_minimising_is_maximising_the_negative() -> None:
    low = minimise(NETWORK, FUNCTIONS | {"g": lambda u, v: -FUNCTIONS["g"](u, v)}, budget=14, progress=False)
    high = fourteen_runs("analytic")
    check_estimated(low)
    assert low.best is not None
    assert high.best is not None
    assert low.best.value is not None
    assert high.best.value is not None
    assert -low.best.value == pytest.approx(high.best.value, abs=0.3)
    assert low.certificate.bound is not None
    assert low.certificate.bound <= low.best.value


def test_a_process_runs_in_an_executor() -> None:
    with ThreadPoolExecutor(2) as executor:
        elsewhere = run(TINY, PROCESSES["kinks"][1], executor=executor, jobs=1, calibration=SIMPLE)
    here = run(TINY, PROCESSES["kinks"][1], calibration=SIMPLE)
    check_not_proven(elsewhere)
    assert [trial.controls for trial in elsewhere.trials] == [trial.controls for trial in here.trials]


def test_a_smooth_optimum_is_found() -> None:
    result = run(TINY, {"f": lambda x: math.sin(3 * x), "g": lambda f: -((f - 0.3) ** 2)}, budget=15)
    assert result.best is not None
    assert result.best.value == pytest.approx(0.0, abs=1e-5)


def test_the_unit_of_the_outputs_does_not_change_the_search() -> None:
    """The unit is a power of two, which changes no digit."""
    functions = PROCESSES["kinks"][1]
    small = 2.0**-26
    scaled = {"f": functions["f"], "g": lambda f: small * functions["g"](f)}
    one, other = fourteen_runs("kinks"), run(TINY, scaled, budget=14)
    assert one.best is not None
    assert other.best is not None
    assert other.best.value == pytest.approx(small * one.best.value, abs=1e-3 * small)  # type: ignore[operator]
    xs = [[trial.controls["x"] for trial in result.trials] for result in (one, other)]
    np.testing.assert_allclose(xs[0][:8], xs[1][:8], atol=1e-4)


@pytest.mark.parametrize("name", ["a line", "all constant"])
def test_no_point_is_run_twice(name: str) -> None:
    network, functions = PROCESSES[name]
    xs = [trial.controls["x"] for trial in run(network, functions, budget=25, calibration=SIMPLE).trials]
    assert len(set(xs)) == len(xs) == 25


# ---- stopping


@pytest.mark.parametrize("candidates", [None, Grid({"x": 40})], ids=["box", "candidates"])
def test_an_estimated_gap_stops_a_study_only_on_request(candidates: Grid | None) -> None:
    network, functions = chain(Stage("f", controls=UNIT)), {"f": lambda x: math.sin(3 * x)}
    options: dict[str, Any] = {"tolerance": 0.5, "budget": 9, "candidates": candidates}
    result = run(network, functions, **options)
    assert (result.status, len(result.trials)) == ("budget", 9)
    stopped = run(network, functions, stop_on_estimated=True, **options)
    assert stopped.status == "tolerance"
    assert stopped.gap is not None
    assert stopped.gap <= 0.5
    assert len(stopped.trials) < 9
    check_estimated(stopped)


@pytest.mark.parametrize("algorithm", ["gpn_ucb", "cei"])
def test_enqueued_trials_serve_as_probes_for_algorithms_without_probes(algorithm: str) -> None:
    """These algorithms run promising points only; enqueued trials elsewhere test the estimates there."""
    network = chain(Stage("f", controls=UNIT, function=lambda x: math.sin(3 * x)))
    study = Study(network, algorithm=algorithm)
    study.optimise(budget=9, progress=False)
    assert study.model.probation.agreed >= 2
    assert study.gap is None
    for x in (0.8, 0.9):
        study.enqueue_trial({"x": x})
    study.optimise(budget=11, progress=False)
    assert study.gap is not None


def test_a_refuted_norm_bound_ends_the_study_and_keeps_the_runs() -> None:
    """The same happens if all norms are known."""
    network = chain(Stage("f", controls=UNIT), Stage("g", kernel=SE, norm_bound=0.1))
    result = run(network, {"f": lambda x: 3 * x, "g": lambda f: math.sin(1.0 * f)})
    assert (result.status, result.gap_kind) == ("refuted", "refuted")
    assert any("norm_bound" in line for line in result.certificate.evidence)
    assert result.best is not None


def test_a_norm_bound_without_a_kernel_raises() -> None:
    """Without a kernel, the norm is not defined."""
    with pytest.raises(ArgumentError, match="stage 'f': norm_bound bounds the norm under a kernel: give kernel="):
        Stage("f", controls=UNIT, norm_bound=1.0)


def test_a_network_may_have_a_block_kernel_and_a_stage_without_kernel() -> None:
    block = Stage(
        "f", controls=UNIT, outputs=["u", "v"], kernel=BlockKernel("m", _mixed), lipschitz=20.0, norm_bound=20.0
    )
    result = run(chain(block, Stage("g")), {"f": lambda x: [math.sin(x), 0.5 * x], "g": lambda u, v: u * v}, budget=8)
    check_estimated(result)


# ---- asking and telling


@pytest.mark.parametrize("initial", [None, 3])
def test_the_first_runs_are_a_design(initial: int | None) -> None:
    """They do not depend on any result."""
    calibration = replace(SIMPLE, initial=initial)
    count = 6 if initial is None else initial
    results = [
        run(NETWORK, FUNCTIONS | {"g": last}, budget=count + 1, calibration=calibration)
        for last in (FUNCTIONS["g"], lambda u, v: 10 * math.sin(4 * u) - v)
    ]
    one, other = ([trial.controls for trial in result.trials] for result in results)
    assert one[:count] == other[:count]
    assert one[count] != other[count]


def test_the_same_seed_gives_the_same_trials() -> None:
    one, same, other = (run(NETWORK, FUNCTIONS, budget=9, seed=seed, calibration=SIMPLE).trials for seed in (1, 1, 2))
    assert [trial.controls for trial in one] == [trial.controls for trial in same]
    assert [trial.controls for trial in one] != [trial.controls for trial in other]


def test_the_default_algorithm_depends_on_whether_all_norms_are_known() -> None:
    assert isinstance(Study(NETWORK).algorithm, GPNEI)
    assert isinstance(Study(NETWORK, algorithm="gpn_ucb").algorithm, GPNUCB)
    assert isinstance(Study(chain(Stage("f", controls=UNIT, kernel=SE, norm_bound=1.0))).algorithm, GPNMixed)


def study_with_runs(count: int = 8, network: Network = NETWORK) -> Study:
    study = Study(network, calibration=SIMPLE)
    for x, y in np.random.default_rng(0).uniform(-2, 2, (count, 2)):
        trial = study.enqueue_trial({"x": float(x), "y": float(y)})
        f = FUNCTIONS["f"](x, y)
        study.tell(trial, {"f": f, "g": FUNCTIONS["g"](*f)})
    return study


def test_every_stage_is_predicted_by_its_name() -> None:
    study = study_with_runs()
    for asked in (Study(NETWORK, calibration=SIMPLE), study):
        prediction = asked.predict({"x": 0.3, "y": 0.1})
        assert {name: p.mean.shape for name, p in prediction.items()} == {"f": (2,), "g": (1,)}
        assert all(np.all(p.lower <= p.mean) and np.all(p.mean <= p.upper) for p in prediction.values())
    at = study.trials[3]
    seen = study.predict(at.controls)
    np.testing.assert_allclose(seen["f"].mean, at.outputs["f"], atol=1e-3)
    np.testing.assert_allclose(seen["g"].mean, at.outputs["g"], atol=1e-2)


def test_told_outputs_are_stored_in_the_trials() -> None:
    study = study_with_runs()
    assert [trial.state for trial in study.trials] == ["complete"] * 8
    trial = study.trials[2]
    f = FUNCTIONS["f"](trial.controls["x"], trial.controls["y"])
    assert trial.outputs == {"f": tuple(f), "g": (FUNCTIONS["g"](*f),)}
    best = study.best_trial
    assert best is not None
    assert best.value == max(trial.value for trial in study.trials)  # type: ignore[type-var]


def test_a_contradiction_raises_and_changes_nothing() -> None:
    study = study_with_runs(network=STEEP)  # a given slope: noise cannot be estimated
    first = study.trials[0]
    again = study.begin_trial(first.controls)
    before, asked = study.predict({"x": 0.0, "y": 0.0}), study.certificate()
    with pytest.raises(ContradictionError):
        study.tell(again, {"f": [first.outputs["f"][0] + 1.0, first.outputs["f"][1]], "g": 0.0})
    assert study.trials[again.number].outputs == {}
    assert study.trials[again.number].state == "running"
    after = study.predict({"x": 0.0, "y": 0.0})
    for name, prediction in before.items():
        np.testing.assert_array_equal(prediction.mean, after[name].mean)
        np.testing.assert_array_equal(prediction.upper, after[name].upper)
    assert study.certificate() == asked
    study.tell(again, first.outputs)  # the same outputs do not contradict
    assert study.trials[again.number].state == "complete"


def test_telling_stages_one_by_one_gives_the_same_predictions() -> None:
    whole, parts = study_with_runs(), Study(NETWORK, calibration=SIMPLE)
    for trial in whole.trials:
        begun = parts.enqueue_trial(trial.controls)
        parts.tell_stage(begun, "f", trial.outputs["f"])
        parts.tell_stage(begun, "g", trial.outputs["g"])
    one, other = (study.predict({"x": 0.2, "y": 0.2}) for study in (whole, parts))
    for name, prediction in one.items():
        np.testing.assert_array_equal(prediction.mean, other[name].mean)  # the fits are the same
        np.testing.assert_array_equal(prediction.upper, other[name].upper)


def test_a_failing_stage_fails_only_its_own_run() -> None:
    def fragile(u: float, v: float) -> float:
        if u > 1.5:
            raise RuntimeError("burst")
        return -(u**2) - v

    result = run(NETWORK, FUNCTIONS | {"g": fragile}, budget=14, calibration=SIMPLE)
    assert {trial.state for trial in result.trials} == {"complete", "failed"}
    check_estimated(result)


def test_ask_returns_different_points_while_trials_are_pending() -> None:
    study = study_with_runs()
    asked = [study.ask() for _ in range(4)]
    assert len({tuple(trial.controls.values()) for trial in asked if trial is not None}) == 4


def test_a_raised_norm_estimate_is_listed_among_the_assumptions() -> None:
    """The function is flat at the first points and has a narrow peak elsewhere."""
    study = Study(chain(Stage("f", controls=UNIT)))

    def observe(x: float) -> None:
        peak = 100.0 * math.exp(-(((x - 0.77) / 0.02) ** 2))
        study.tell(study.enqueue_trial({"x": x}), {"f": x + peak})

    for x in np.linspace(0, 0.6, 8):
        observe(float(x))
    assert not any("refuted by a run" in line for line in study.certificate().assumptions)
    observe(0.77)
    certificate = study.certificate()
    assert certificate.kind == "estimated"
    assert any("norm_bound of 'f', estimated as" in line for line in certificate.assumptions)


def test_a_kernel_of_the_user_is_not_called_estimated() -> None:
    study = Study(chain(Stage("f", controls=UNIT, kernel=SE), Stage("g")))
    (first,) = [line for line in study.certificate().assumptions if line.startswith("f:")]
    (second,) = [line for line in study.certificate().assumptions if line.startswith("g:")]
    assert "kernel and B estimated" not in first
    assert "estimated" in first
    assert "kernel and B estimated" in second


def test_there_is_no_gap_before_the_design_and_the_first_agreeing_runs() -> None:
    """From one run the estimated variance, and the gap, would be almost 0. Three runs after the design must agree."""
    network = chain(Stage("f", controls={"x": Real(0, 1), "y": Real(0, 1)}))
    study = Study(network, tolerance=0.5, stop_on_estimated=True)
    for _ in range(9):
        assert study.certificate().gap is None
        assert not study.within_tolerance
        trial = study.ask()
        assert trial is not None
        study.tell(trial, {"f": math.sin(5 * trial.controls["x"]) * trial.controls["y"]})


def test_a_tolerance_does_not_make_the_gap_worse() -> None:
    network = chain(Stage("f", controls=UNIT), Stage("g"))
    functions = {"f": lambda x: math.sin(5 * x), "g": lambda f: f * f + f}
    gaps = [
        run(network, functions, budget=9, tolerance=tolerance, calibration=SIMPLE).gap for tolerance in (None, 1e-12)
    ]
    assert gaps[0] is not None
    assert gaps[1] is not None
    assert gaps[1] <= gaps[0] * (1 + 1e-9)


def test_an_estimate_that_contradicts_the_data_does_not_refute_the_study() -> None:
    """The user assumed nothing, so the study continues; only the gap is missing."""
    network = chain(Stage("f", controls=UNIT))
    study = Study(network, algorithm="non_adaptive", horizon=8)
    for _ in range(8):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, {"f": math.sin(5 * trial.controls["x"])})
    found = study.recommendation(replace(study.certificate(), bound=-10.0))
    assert found is not None
    assert (found.kind, found.gap) == ("estimated", None)
    assert study.certificate().kind == "estimated"
