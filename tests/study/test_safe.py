"""Safe mode: what it needs, what it refuses, and that its runs satisfy the limits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.problems.limited_problem import limited
from cascada.search.safe import proven_safe
from cascada.space import Real
from cascada.study import Study, maximise
from tests.soundness.safe import outputs, start

PROBLEM = limited("chain", 0, "cut")
START: dict[str, float | int] = start(PROBLEM) or {}


def started(**options: Any) -> Study:
    """A safe study with a feasible run."""
    study = Study(PROBLEM.network, safe=True, **options)
    study.add_trial(START, outputs(PROBLEM, START))
    return study


def unsafe() -> dict[str, float | int]:
    """Controls that break the limit."""
    domain = PROBLEM.network.domain
    points = np.random.default_rng(0).uniform(domain.lower, domain.upper, (100, domain.dimension))
    return domain.named(points[~PROBLEM.feasible(points)][0])


def test_every_run_satisfies_the_limit_until_the_gap_is_proven() -> None:
    result = maximise(PROBLEM.network, budget=40, tolerance=0.02, safe=True, start=START, progress=False)
    assert result.status == "tolerance"
    assert result.trials[0].controls == START
    assert all(PROBLEM.network.is_feasible(trial.outputs) for trial in result.trials)


def test_a_run_that_satisfies_the_limit_is_needed_first() -> None:
    study = Study(PROBLEM.network, safe=True)
    with pytest.raises(ArgumentError, match=r"needs a run that satisfies s1_1.*add_trial"):
        study.ask()
    bad = unsafe()
    study.add_trial(bad, outputs(PROBLEM, bad))
    assert study.ask() is None  # no run satisfies the limits
    assert study.lacks_safe_setting
    assert len(study.trials) == 1
    study.add_trial(START, outputs(PROBLEM, START))
    trial = study.ask()
    assert trial is not None
    assert PROBLEM.network.is_feasible(outputs(PROBLEM, dict(trial.controls)))


def test_settings_that_are_not_proven_safe_are_refused() -> None:
    study, bad = started(), unsafe()
    events = len(study.events)
    for begin in (study.enqueue_trial, study.begin_trial):
        with pytest.raises(ArgumentError, match="not proven to satisfy s1_1"):
            begin(bad)
    assert len(study.events) == events
    near = {name: value + 1e-4 for name, value in START.items()}
    assert study.enqueue_trial(near).state == "waiting"
    asked = study.ask()
    assert asked is not None
    assert asked.controls == near


def test_a_start_that_is_known_to_be_safe_needs_no_proof() -> None:
    study = Study(PROBLEM.network, safe=True)
    assert study.enqueue_trial(START, known_safe=True).state == "waiting"
    trial = study.ask()
    assert trial is not None
    assert trial.controls == START
    assert study.ask() is None  # nothing can be proven before it is told
    study.tell(trial, outputs(PROBLEM, START))
    assert study.ask() is not None


@pytest.mark.parametrize("candidates", [False, True])
def test_pending_runs_prove_nothing(candidates: bool) -> None:
    """Every trial that was asked for at the same time is proven safe by what was observed."""
    domain = PROBLEM.network.domain
    points = np.random.default_rng(1).uniform(domain.lower, domain.upper, (2_000, domain.dimension))
    study = started(candidates=points if candidates else None)
    for _ in range(3):
        beliefs, trials = study.beliefs, study.ask(3)
        assert trials
        rows = domain.encode(np.array([domain.row(trial.controls) for trial in trials]))
        assert proven_safe(beliefs, rows).all()
        assert len({row.tobytes() for row in rows}) == len(rows)
        for trial in trials:
            if candidates:
                assert (points == domain.row(trial.controls)).all(axis=1).any()
            study.tell(trial, outputs(PROBLEM, dict(trial.controls)))


def test_it_ends_when_nothing_is_left_that_is_proven_safe() -> None:
    """Candidates far from the start cannot be proven, and the start itself was run."""
    domain = PROBLEM.network.domain
    far = np.random.default_rng(2).uniform(domain.lower, domain.upper, (50, domain.dimension))
    far = far[np.abs(far - domain.row(START)).max(axis=1) > 1.0]
    listed = np.concatenate([domain.row(START)[None], far[~PROBLEM.feasible(far)]])
    result = maximise(PROBLEM.network, budget=20, safe=True, start=START, candidates=listed, progress=False)
    assert result.status in ("no safe setting", "exhausted")
    assert len(result.trials) == 1
    alone = Study(PROBLEM.network, safe=True, candidates=listed)
    alone.add_trial(START, outputs(PROBLEM, START))
    assert alone.ask() is None
    assert alone.lacks_safe_setting == (result.status == "no safe setting")


def test_a_barrier_ends_with_no_safe_setting() -> None:
    """The better optimum lies behind settings that break the limit, so nothing can be proven there."""
    kernel = SquaredExponential(0.3)

    def load(x: float) -> float:
        return float(np.exp(-0.5 * (x / 0.3) ** 2))

    def value(x: float) -> float:
        return float(np.exp(-0.5 * ((x - 1.5) / 0.3) ** 2))

    network = Network(
        [
            Stage(
                "load",
                controls={"x": Real(-2, 2)},
                kernel=kernel,
                norm_bound=1.2,
                limits={"load": (None, 0.5)},
                function=load,
            ),
            Stage("value", controls={"x": Real(-2, 2)}, kernel=kernel, norm_bound=1.2, function=value),
        ],
        objective="value",
    )
    result = maximise(network, budget=60, tolerance=0.05, safe=True, start={"x": -1.5}, progress=False)
    assert result.status == "no safe setting"
    assert result.gap is not None
    assert result.gap > 0.5
    assert "proven to be safe" in str(result)
    assert all(trial.controls["x"] < 0 for trial in result.trials)


def test_parallel_runs_wait_for_the_start() -> None:
    result = maximise(
        PROBLEM.network, budget=6, safe=True, start=START, progress=False, algorithm="random_search", jobs=2
    )
    assert len(result.trials) == 6
    assert all(PROBLEM.network.is_feasible(trial.outputs) for trial in result.trials)


def test_what_safe_mode_does_not_work_with() -> None:
    free = chain(Stage("a", controls={"x": Real(0, 1)}, kernel=SquaredExponential(1.0), norm_bound=1.0))
    with pytest.raises(ArgumentError, match="the network has none"):
        Study(free, safe=True)
    unknown = chain(Stage("a", controls={"x": Real(0, 1)}, limits={"a": (None, 1.0)}))
    with pytest.raises(ArgumentError, match="estimated ones prove nothing"):
        Study(unknown, safe=True)
    with pytest.raises(ArgumentError, match="enlarge"):
        Study(PROBLEM.network, safe=True, on_violation="enlarge")
    with pytest.raises(ArgumentError, match="safe must be True or False"):
        Study(PROBLEM.network, safe="yes")  # type: ignore[arg-type]
    fallible = chain(
        Stage(
            "a",
            controls={"x": Real(0, 1)},
            kernel=SquaredExponential(1.0),
            norm_bound=1.0,
            limits={"a": (None, 1.0)},
            failure="infeasible",
        )
    )
    with pytest.raises(ArgumentError, match="failure='infeasible' does not work"):
        Study(fallible, safe=True)


def test_a_store_keeps_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'safe.db'}"
    study = Study.open(url, "plain", PROBLEM.network)
    assert "safe" not in study.events[0].data["settings"]
    study.close()
    study = Study.open(url, "safe", PROBLEM.network, safe=True)
    assert study.events[0].data["settings"]["safe"] is True
    study.add_trial(START, outputs(PROBLEM, START))
    first = study.ask()
    assert first is not None
    study.tell(first, outputs(PROBLEM, dict(first.controls)))
    expected = study.branch().ask()
    study.close()
    again = Study.open(url, "safe", PROBLEM.network)
    with pytest.raises(ArgumentError, match="not proven"):
        again.enqueue_trial(unsafe())
    found = again.ask()
    assert found is not None
    assert expected is not None
    assert found.controls == expected.controls  # the same point follows from the log
    again.close()
    with pytest.raises(ArgumentError, match=r"settings\.safe"):
        Study.open(url, "safe", PROBLEM.network, safe=False, amend=True)


def test_a_correction_may_take_the_proof_of_a_waiting_trial() -> None:
    study = started()
    near = {name: value + 1e-4 for name, value in START.items()}
    waiting = study.enqueue_trial(near)
    study.correct(0, controls=dict.fromkeys(START, -2.0))  # the run was made far away from the waiting trial
    asked = study.ask()
    assert study.trials[waiting.number].state == "abandoned"
    assert asked is None or asked.controls != near
