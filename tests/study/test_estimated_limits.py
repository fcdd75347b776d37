"""Studies with limits, failures and ranges whose kernels and norms are estimated."""

import math
from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.algorithms import CUCB, GPNUCB, GPUCB, GPNMixed, NonAdaptive
from cascada.calibration import Calibration
from cascada.errors import ArgumentError
from cascada.network import Network, StageError
from cascada.process import Process
from cascada.study import Study

# One kernel instead of six to choose from.
SIMPLE = Calibration(family="matern")
BOX = {"x": cd.Real(-1.5, 1.5), "y": cd.Real(-1.5, 1.5)}


def disc(x: float, y: float) -> float:
    return x**2 + y**2


def bend(x: float, y: float) -> float:
    return y - x**2


def end(bend: float, x: float) -> float:
    return -10.0 * bend**2 - (1.0 - x) ** 2


def process(end_options: dict[str, Any] | None = None, **options: Any) -> Network:
    """A wide valley of Rosenbrock's kind, and a disc that may have a limit; the free optimum is 0 at (1, 1)."""
    return Network(
        [
            cd.Stage("bend", BOX, function=bend),
            cd.Stage("disc", BOX, function=disc, **options),
            cd.Stage("end", {"x": BOX["x"]}, parents=["bend"], **({"function": end} | (end_options or {}))),
        ],
        objective="end",
    )


# On the circle of radius 1, by a fine grid of angles.
ANGLES = np.linspace(0, 2 * np.pi, 200_001)
BEST = float(end(bend(np.cos(ANGLES), np.sin(ANGLES)), np.cos(ANGLES)).max())  # type: ignore[arg-type, attr-defined]


def asked(network: Network, runs: int, **options: Any) -> list[dict[str, float | int]]:
    """The points of a study."""
    study, run = Study(network, seed=5, calibration=SIMPLE, **options), Process(network)
    for _ in range(runs):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, run(trial.controls))
    return [dict(trial.controls) for trial in study.trials]


@pytest.mark.parametrize("minimised", [False, True])
def test_a_limit_that_always_holds_changes_no_point(minimised: bool) -> None:
    free, held = process(), process(limits={"disc": (-50.0, 50.0)})
    if minimised:
        free, held = free.mirrored(), held.mirrored()
    assert asked(free, 14) == asked(held, 14)


def test_over_candidates_a_limit_that_always_holds_changes_no_point() -> None:
    some = np.random.default_rng(0).uniform(-1.5, 1.5, (60, 2))
    held = process(limits={"disc": (None, 50.0)})
    assert asked(process(), 11, candidates=some) == asked(held, 11, candidates=some)


def test_a_failure_that_never_happens_changes_no_point() -> None:
    assert asked(process(), 11) == asked(process(failure="infeasible"), 11)


@pytest.mark.usefixtures("no_probable_gap")
def test_the_best_setting_on_a_limit_is_found() -> None:
    network = process(limits={"disc": (None, 1.0)})
    result = cd.maximise(network, budget=16, seed=1, calibration=SIMPLE, progress=False)
    assert result.best is not None
    assert result.best.value is not None
    assert disc(**result.best.controls) <= 1.0
    assert BEST - 2e-3 <= result.best.value <= BEST + 1e-9
    certificate = result.certificate
    assert (certificate.kind, certificate.answer, certificate.recommended) == ("estimated", "optimum", None)
    assert certificate.best == result.best.value
    if certificate.bound is not None:
        assert certificate.bound >= result.best.value


def test_the_first_feasible_setting_is_found_in_a_small_region() -> None:
    """A ring that covers 2 % of the box."""
    network = process(limits={"disc": (0.20, 0.26)})
    result = cd.maximise(network, budget=10, seed=3, calibration=SIMPLE, progress=False)
    assert result.best is not None
    assert 0.20 <= result.best.outputs["disc"][0] <= 0.26


@pytest.mark.parametrize("algorithm", ["auto", "cei", "gpn_ucb", "gpn_mixed", "random_search"])
@pytest.mark.parametrize("candidates", [False, True])
def test_estimates_never_say_that_no_setting_satisfies_the_limits(algorithm: str, candidates: bool) -> None:
    some = np.random.default_rng(0).uniform(-1.5, 1.5, (40, 2)) if candidates else None
    network = process(limits={"disc": (None, -5.0)})
    options: dict[str, Any] = {"algorithm": algorithm, "candidates": some, "calibration": SIMPLE, "progress": False}
    result = cd.maximise(network, budget=9, seed=0, **options)
    assert (result.status, result.best, len(result.trials)) == ("budget", None, 9)
    certificate = result.certificate
    assert (certificate.answer, certificate.gap, certificate.margin, certificate.best) == ("optimum", None, None, None)


# ---- failures


def fragile(bend: float, x: float) -> float:
    """The last stage fails where it would be best."""
    if x > 0.5:
        raise RuntimeError("it broke")
    return end(bend, x)


def failures(failure: str, budget: int = 18) -> tuple[int, float]:
    network = process({"failure": failure, "function": fragile})
    result = cd.maximise(network, budget=budget, seed=2, calibration=SIMPLE, progress=False)
    assert result.best is not None
    assert result.best.value is not None
    return sum(trial.state == "failed" for trial in result.trials), result.best.value


@pytest.mark.usefixtures("no_probable_gap")
def test_settings_near_failures_are_avoided() -> None:
    """Without this, every run at the maximum of the mean fails. The best value that does not is −0.25."""
    counted, best = failures("infeasible")
    ignored, worse = failures("fail")
    assert counted < ignored
    assert best >= worse
    assert best > -0.26


def test_failures_that_count_as_infeasible_do_not_end_a_study() -> None:
    def broken(**_: float) -> float:
        raise RuntimeError("always")

    stages = [cd.Stage("a", BOX, function=disc), cd.Stage("b", function=broken, failure="infeasible")]
    result = cd.maximise(cd.chain(*stages), budget=9, progress=False)
    assert (result.status, len(result.trials), result.best) == ("budget", 9, None)
    # A failure of another stage is an ordinary one.
    stages = [cd.Stage("a", BOX, function=broken), cd.Stage("b", function=lambda a: a, failure="infeasible")]
    assert cd.maximise(cd.chain(*stages), budget=9, progress=False).status == "failing"


def test_points_after_failures_follow_from_the_log(tmp_path: Any) -> None:
    network = process({"failure": "infeasible", "function": fragile})
    url, run = f"sqlite:///{tmp_path}/study.db", Process(network)
    again: list[dict[str, float | int]] = []
    for _ in range(9):
        study = Study.open(url, "fragile", network, seed=2, calibration=SIMPLE)  # a new process each time
        trial = study.ask()
        assert trial is not None
        again.append(dict(trial.controls))
        try:
            study.tell(trial, run(trial.controls))
        except StageError as error:
            study.tell(trial, error.outputs)
            study.fail(trial, str(error))
    once = Study(network, seed=2, replayable=True, calibration=SIMPLE)
    for controls in again:
        trial = once.ask()
        assert trial is not None
        assert trial.controls == controls
        try:
            once.tell(trial, run(controls))
        except StageError as error:
            once.tell(trial, error.outputs)
            once.fail(trial, str(error))
    assert any(trial.state == "failed" for trial in once.trials)


def test_over_candidates_the_best_one_that_does_not_fail_is_found() -> None:
    some = np.random.default_rng(0).uniform(-1.5, 1.5, (80, 2))
    network = process({"failure": "infeasible", "function": fragile})
    result = cd.maximise(network, budget=16, seed=2, candidates=some, calibration=SIMPLE, progress=False)
    assert result.best is not None
    assert result.best.value == max(end(bend(x, y), x) for x, y in some.tolist() if x <= 0.5)


@pytest.mark.parametrize("algorithm", [GPNUCB(), GPNMixed(), GPUCB(), CUCB(), NonAdaptive(runs=5)])
def test_algorithms_that_ignore_failures_are_refused(algorithm: Any) -> None:
    network = process(failure="infeasible")
    with pytest.raises(ArgumentError, match=r"failure='infeasible' does not work with the algorithm"):
        Study(network, algorithm=algorithm)


def test_failures_with_given_norms_are_refused() -> None:
    options: dict[str, Any] = {"kernel": cd.SquaredExponential(1.0), "norm_bound": 2.0}
    network = cd.chain(cd.Stage("a", BOX, **options), cd.Stage("b", failure="infeasible", **options))
    with pytest.raises(ArgumentError, match=r"stage 'b': failure='infeasible' does not work with a norm_bound"):
        Study(network)
    Study(cd.chain(cd.Stage("a", BOX, **options), cd.Stage("b", failure="infeasible")))  # b is estimated


# ---- ranges


def test_estimates_stay_within_ranges() -> None:
    """Conversion in percent: predictions and the bound respect the ceiling of what is possible."""

    def conversion(x: float, y: float) -> float:
        return 100.0 / (1.0 + math.exp(-3.0 * (x + y)))

    network = cd.chain(
        cd.Stage("conversion", BOX, function=conversion, ranges={"conversion": (0, 100)}),
        cd.Stage("profit", known=True, lipschitz=1.4, function=lambda conversion: 1.4 * conversion),
    )
    study, run = Study(network, seed=0), Process(network)
    for _ in range(14):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, run(trial.controls))
    for x, y in np.random.default_rng(0).uniform(-1.5, 1.5, (30, 2)):
        found = study.predict({"x": x, "y": y})
        assert 0.0 <= found["conversion"].mean[0] <= 100.0
        assert found["profit"].mean[0] <= 140.0 + 1e-9
    bound = study.certificate().bound
    assert bound is None or bound <= 140.0 * (1 + 1e-9)


def test_enlarged_norms_never_say_that_no_setting_satisfies_the_limits() -> None:
    def output(x: float) -> float:
        return -1.2 * math.exp(-((x - 0.2) ** 2)) - 1.6 * math.exp(-(((x - 0.85) / 0.08) ** 2))

    first = cd.Stage(
        "a",
        {"x": cd.Real(0, 1)},
        kernel=cd.SquaredExponential(0.7),
        norm_bound=1.0,
        limits={"a": (None, -2.3)},
        function=output,
    )
    last = cd.Stage("b", kernel=cd.SquaredExponential(1.0), norm_bound=2.0, function=lambda a: math.sin(a) / 2)
    network = cd.chain(first, last)
    study, run = Study(network, on_violation="enlarge", tolerance=0.1), Process(network)
    assert output(0.85) < -2.3  # the limit can be satisfied
    for x in (0.2, 0.25):
        study.add_trial({"x": x}, run({"x": x}))
    certificate = study.certificate()
    assert certificate.kind == "estimated"  # trial 0 refutes the norm bound, which is enlarged by far too little
    assert (certificate.answer, certificate.margin) == ("optimum", None)
    assert study.ask() is not None
    assert study.ask() is not None  # with a pending run, too


def test_enlarged_norms_recommend_no_setting_that_was_not_run() -> None:
    first = cd.Stage(
        "a", {"x": cd.Real(0, 1)}, kernel=cd.SquaredExponential(0.7), norm_bound=1.0, limits={"a": (None, 0.0)}
    )
    network = cd.chain(first, cd.Stage("b", kernel=cd.SquaredExponential(1.0), norm_bound=2.0))
    study = Study(network, on_violation="enlarge")
    for x, a, b in ((0.2, -1.2, 0.5), (0.6, -0.4, 0.8), (0.8, 0.02, 1.0)):
        study.add_trial({"x": x}, {"a": a, "b": b})
    assert study.certificate().kind == "estimated"
    assert study.certificate().recommended is None
