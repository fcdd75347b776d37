"""`maximise` and `minimise`: their results, when they stop, and what they keep after a failure."""

from typing import Any

import numpy as np
import pytest

from cascada.algorithms import GPNUCB
from cascada.errors import ArgumentError
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.problems import certified
from cascada.process import Process
from cascada.space import Grid, Integer, Real
from cascada.study import Result, Study, maximise, minimise
from tests.network.cases import NETWORKS, Functions, X, Y, stage, truth

CHAIN = chain(stage("f", controls=X), stage("g"))
FUNCTIONS = truth(CHAIN, 1)
LINE = np.linspace(-2, 2, 21)[:, None]


def best_of(network: Network, functions: Functions, rows: Any) -> float:
    """Return the largest objective over rows of controls."""
    process = Process(network, functions)
    stage_name, output = network.objective
    position = network.node(stage_name).stage.outputs.index(output)
    return max(process(network.domain.named(row))[stage_name][position] for row in np.array(rows, dtype=float))


def settings(result: Result) -> list[tuple[float | int, ...]]:
    return [tuple(trial.controls.values()) for trial in result.trials]


# ---- candidates


@pytest.mark.parametrize("name", NETWORKS)
def test_the_best_candidate_is_found_and_proven(name: str) -> None:
    network = NETWORKS[name]
    functions = truth(network, 2)
    grid = Grid(dict.fromkeys(network.controls, 3))
    rows = grid.points(network.domain)
    result = maximise(network, functions, budget=len(rows) + 5, candidates=grid, tolerance=1e-6)
    assert result.best is not None
    assert result.best.value == pytest.approx(best_of(network, functions, rows), abs=1e-6)
    assert result.status == "tolerance"
    assert result.gap_kind == "proven"
    assert len(set(settings(result))) == len(result.trials) <= len(rows)


def test_every_candidate_is_run_once_and_then_the_study_is_exhausted() -> None:
    rows = np.concatenate([LINE[::5], LINE[:3]])  # one of them twice
    result = maximise(CHAIN, FUNCTIONS, budget=100, candidates=rows)
    assert result.status == "exhausted"
    assert sorted(settings(result)) == sorted({(float(x),) for x in rows[:, 0]})
    assert result.gap == pytest.approx(0.0, abs=1e-6)


# ---- boxes


def test_a_box_is_searched_until_the_gap_is_proven() -> None:
    result = maximise(CHAIN, FUNCTIONS, budget=40, tolerance=0.01)
    highest = best_of(CHAIN, FUNCTIONS, np.linspace(-2, 2, 1000)[:, None])
    assert result.status == "tolerance"
    assert result.best is not None
    assert result.best.value is not None
    assert result.gap is not None
    assert 0 <= result.gap <= 0.01
    assert highest - result.best.value <= result.gap
    assert len(result.trials) < 40


def test_integer_and_logarithmic_controls_stay_in_their_ranges() -> None:
    network = chain(
        stage("f", controls={"n": Integer(-2, 2), "t": Real(0.2, 5.0, log=True)}),
        stage("g", controls={"n": Integer(-2, 2)}),
    )
    functions = truth(network, 4)
    result = maximise(network, functions, budget=25)
    assert all(type(trial.controls["n"]) is int and -2 <= trial.controls["n"] <= 2 for trial in result.trials)
    assert all(0.2 <= trial.controls["t"] <= 5.0 for trial in result.trials)
    assert len(set(settings(result))) == len(result.trials)
    grid = Grid({"n": 5, "t": 60}).points(network.domain)
    assert result.best is not None
    assert result.best.value is not None
    assert result.gap is not None
    assert best_of(network, functions, grid) <= result.best.value + result.gap
    assert result.gap < 1.0


def test_a_box_of_integers_is_exhausted() -> None:
    network = chain(stage("f", controls={"n": Integer(1, 4), "m": Integer(0, 1)}))
    functions = truth(network, 0)
    result = maximise(network, functions, budget=50)
    assert result.status == "exhausted"
    assert len(set(settings(result))) == len(result.trials) <= 8
    assert result.best is not None
    rows = Grid({"n": 4, "m": 2}).points(network.domain)
    assert result.best.value == pytest.approx(best_of(network, functions, rows), abs=1e-9)


@pytest.mark.parametrize("candidates", [None, LINE], ids=["box", "candidates"])
def test_minimising_is_maximising_the_negated_process(candidates: Any) -> None:
    negated = {**FUNCTIONS, "g": lambda **inputs: [-value for value in FUNCTIONS["g"](**inputs)]}
    highest = maximise(CHAIN, negated, budget=30, tolerance=0.01, candidates=candidates)
    lowest = minimise(CHAIN, FUNCTIONS, budget=30, tolerance=0.01, candidates=candidates)
    assert highest.best is not None
    assert lowest.best is not None
    assert lowest.best.value is not None
    assert highest.best.value == pytest.approx(-lowest.best.value, abs=0.01)
    assert lowest.certificate.bound is not None
    assert lowest.certificate.bound <= lowest.best.value
    rows = LINE if candidates is not None else np.linspace(-2, 2, 500)[:, None]
    truly = best_of(CHAIN, negated, rows)
    assert highest.best.value is not None
    assert highest.gap is not None
    assert lowest.gap is not None
    assert truly - highest.best.value <= highest.gap
    assert truly + lowest.best.value <= lowest.gap
    assert "lower than" in str(lowest)


# ---- stopping


def test_without_a_tolerance_the_budget_is_used() -> None:
    result = maximise(CHAIN, FUNCTIONS, budget=6)
    assert (result.status, len(result.trials)) == ("budget", 6)


def test_a_tolerance_that_is_not_proven_does_not_stop() -> None:
    result = maximise(CHAIN, FUNCTIONS, budget=3, tolerance=1e-12)
    assert (result.status, len(result.trials)) == ("budget", 3)
    assert result.gap is not None
    assert result.gap > 1e-12


def test_a_refuted_assumption_stops_with_the_stage_and_the_smallest_bound() -> None:
    functions: Functions = {"f": FUNCTIONS["f"], "g": lambda **_: 9.0}
    result = maximise(CHAIN, functions, budget=10, tolerance=0.1)
    assert (result.status, result.gap, result.gap_kind, len(result.trials)) == ("refuted", None, "refuted", 1)
    assert result.best is not None
    assert result.best.value == 9.0
    assert "Stage 'g'" in result.certificate.evidence[0]
    assert "possible only with more than 8.99999" in str(result)


def test_an_interrupt_returns_the_results_so_far() -> None:
    calls = []

    def interrupted(x: float) -> list[float]:
        calls.append(x)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return FUNCTIONS["f"](x=x)

    result = maximise(CHAIN, {**FUNCTIONS, "f": interrupted}, budget=10)
    assert result.status == "interrupted"
    assert [trial.state for trial in result.trials] == ["complete"] * 3 + ["waiting"]
    assert result.best is not None
    assert result.gap_kind == "proven"


def test_an_interrupt_in_the_first_run_returns_no_best_trial() -> None:
    def interrupted(**_: float) -> float:
        raise KeyboardInterrupt

    result = maximise(CHAIN, {**FUNCTIONS, "f": interrupted}, budget=10)
    assert (result.status, result.best, result.gap) == ("interrupted", None, None)
    assert "No run was completed" in str(result)


@pytest.mark.parametrize(
    "options", [{"budget": 5}, {"budget": 40, "tolerance": 0.05}, {"budget": 9, "candidates": LINE[:3]}], ids=str
)
def test_callbacks_are_called_after_every_run(options: dict[str, Any]) -> None:
    seen: list[int] = []
    result = maximise(CHAIN, FUNCTIONS, callbacks=[lambda study: seen.append(len(study.trials))], **options)
    assert seen == list(range(1, len(result.trials) + 1))


def test_callbacks_are_called_after_a_run_that_refutes_an_assumption() -> None:
    seen: list[int] = []
    maximise(
        CHAIN, {**FUNCTIONS, "g": lambda **_: 9.0}, budget=3, callbacks=[lambda study: seen.append(len(study.trials))]
    )
    assert seen == [1]


def test_any_callback_can_stop_and_all_are_called() -> None:
    seen: list[int] = []

    def stop(study: Study) -> bool:
        return len(study.trials) == 2

    result = maximise(CHAIN, FUNCTIONS, budget=9, callbacks=[stop, lambda study: seen.append(len(study.trials))])
    assert (result.status, len(result.trials), seen) == ("stopped", 2, [1, 2])


# ---- failing stages


def test_a_failing_stage_keeps_earlier_outputs_and_the_search_continues() -> None:
    def sometimes(f: float) -> list[float]:
        if f > 0:
            raise RuntimeError("too hot")
        return FUNCTIONS["g"](f=f)

    counted: list[int] = []

    def count(study: Study) -> None:
        belief = study.beliefs.stages[0].belief
        assert belief is not None
        counted.append(belief.posterior.count)

    result = maximise(CHAIN, {**FUNCTIONS, "g": sometimes}, budget=10, callbacks=[count])
    states = [trial.state for trial in result.trials]
    assert "failed" in states
    assert "complete" in states
    assert len(set(settings(result))) == 10
    assert counted == list(range(1, 11))  # every run added an observation of the first stage
    for trial in result.trials:
        if trial.state == "failed":
            assert trial.outputs["f"][0] > 0
            assert trial.reason is not None
            assert "stage 'g' raised RuntimeError: too hot" in trial.reason


@pytest.mark.parametrize("candidates", [None, LINE[:6]], ids=["box", "candidates"])
def test_a_first_stage_that_always_fails_is_tried_at_different_points(candidates: Any) -> None:
    def broken(**_: float) -> float:
        raise RuntimeError("broken")

    result = maximise(CHAIN, {**FUNCTIONS, "f": broken}, budget=5, candidates=candidates)
    assert (result.status, result.best) == ("budget", None)
    assert len(set(settings(result))) == 5  # no exact duplicate


def test_a_stage_that_fails_after_the_objective_keeps_its_value() -> None:
    def broken(**_: float) -> float:
        raise RuntimeError("broken")

    network = chain(stage("f", controls=X), stage("g"), objective="f")
    result = maximise(network, {**FUNCTIONS, "g": broken}, budget=4)
    assert result.status == "budget"
    assert [trial.value is not None for trial in result.trials] == [True] * 4


# ---- seeds, known stages, options and texts


@pytest.mark.parametrize("algorithm", ["auto", "random_search"])
@pytest.mark.parametrize("candidates", [None, LINE], ids=["box", "candidates"])
def test_the_same_seed_gives_the_same_trials(algorithm: str, candidates: Any) -> None:
    runs = [
        maximise(CHAIN, FUNCTIONS, budget=5, seed=seed, algorithm=algorithm, candidates=candidates)
        for seed in (7, 7, 8)
    ]
    assert settings(runs[0]) == settings(runs[1])
    if algorithm == "random_search":
        assert settings(runs[0]) != settings(runs[2])


def test_known_stages_and_stages_with_their_own_functions_are_optimised() -> None:
    network = chain(
        stage("f", controls=X, function=FUNCTIONS["f"]),
        stage("g", controls=Y, function=lambda f, y: 0.5 * np.exp(-0.5 * (f**2 + y**2))),
        Stage("sum", parents=["g"], known=True, lipschitz=3.0, function=lambda g: 3 * g),
    )
    result = maximise(network, budget=15, tolerance=0.2)
    assert result.best is not None
    assert result.best.value is not None
    assert result.best.value == pytest.approx(3 * result.best.outputs["g"][0])
    assert result.gap is not None
    assert result.best.value + result.gap >= 1.5 * (1 - 1e-3)  # f = 0 is within its range


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget must be a whole number ≥ 1; got 0"),
        ({"budget": -3}, "budget must be a whole number"),
        ({"budget": 2.5}, "budget must be a whole number ≥ 1; got 2.5"),
        ({"budget": True}, "budget must be a whole number ≥ 1; got True"),
        ({"budget": "many"}, "budget must be a whole number ≥ 1; got 'many'"),
        ({"budget": 5, "tolerance": -1.0}, "tolerance must be a number of at least 0"),
        ({"budget": 5, "algorithm": "magic"}, "algorithm must be one of auto, gpn_mixed.*; got 'magic'"),
        ({"budget": 5, "algorithm": 3}, "must have the methods suggest and recommend; got 3"),
        ({"budget": 5, "algorithm": GPNUCB}, "algorithm"),
        ({"budget": 5, "candidates": [[5.0]]}, "must lie in"),
    ],
)
@pytest.mark.parametrize("optimise", [maximise, minimise])
def test_invalid_options_raise(optimise: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        optimise(CHAIN, FUNCTIONS, **options)


def test_a_printed_result_has_value_controls_and_gap() -> None:
    result = maximise(CHAIN, FUNCTIONS, budget=30, tolerance=0.05)
    assert result.best is not None
    text, shown = str(result), result.certificate.shown
    assert shown is not None
    assert text.startswith("The gap is within the tolerance.")
    assert f"Best value {shown.best} at x = {result.best.controls['x']:.6g}" in text
    assert f"Proven: no setting in the box of controls gives a value higher than {shown.bound}.\n" in text
    assert f"So the best of {len(result.trials)} runs, {shown.best}, is within {shown.gap} of the best possible" in text
    assert result.recommended is None


def test_a_refuted_bound_is_enlarged_and_the_gap_estimated() -> None:
    """Every stage has norm 2 but a norm bound of 0.3: the bounds are raised, and the assumptions list that."""
    problem = certified("controls", 3)
    small = {stage.name: stage.assuming(np.array([0.3]), None) for stage in problem.network.stages}
    network = problem.network.assuming(small)
    result = maximise(network, budget=25, tolerance=0.05, on_violation="enlarge", stop_on_estimated=True)
    assert result.gap_kind == "estimated"
    assert any("norm_bound of stage" in line and "raised from 0.3" in line for line in result.certificate.assumptions)
    assert result.gap is not None
    assert result.best is not None
    assert result.best.value is not None
    stopped = maximise(network, budget=25)
    assert stopped.status == "refuted"
    assert stopped.gap is None
    never = maximise(network, budget=8, tolerance=10.0, on_violation="enlarge")
    assert never.status == "budget"  # an estimated gap does not stop


def test_a_process_that_is_not_deterministic_ends_as_refuted() -> None:
    """The second stage has the same input twice, by a candidate grid, and returns different outputs."""
    kernel = SquaredExponential(1.0)
    answers = iter(np.linspace(0.1, 0.9, 50))
    network = chain(
        Stage("f", controls={"x": Real(0, 1)}, kernel=kernel, norm_bound=2.0, function=lambda **_: 0.5),
        Stage("g", kernel=kernel, norm_bound=2.0, function=lambda **_: next(answers)),
    )
    result = maximise(network, candidates=[[0.0], [0.5], [1.0]], budget=3)
    assert result.status == "contradiction"
    assert result.gap_kind == "refuted"
    assert result.gap is None
    assert result.best is not None
