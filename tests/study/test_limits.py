"""Studies with limits: certificates, incumbents, and what a limit must not change."""

from collections.abc import Mapping
from unittest import mock

import numpy as np
import pytest

from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage
from cascada.network.limits import Interval
from cascada.problems import certified
from cascada.problems.limited_problem import LimitedProblem, limited, with_limits
from cascada.search.incumbent import Incumbent
from cascada.space import Real
from cascada.study import Study, incumbent, maximise, minimise
from tests.soundness.harness import Ledger
from tests.soundness.limits import check_certificate
from tests.soundness.safe import outputs


def with_limit(structure: str, seed: int, limits: Mapping[str, Mapping[str, Interval]]) -> LimitedProblem:
    return with_limits(certified(structure, seed), limits)


def runs(study: Study, problem: LimitedProblem, count: int) -> None:
    """Run up to so many trials."""
    for _ in range(count):
        trial = study.ask()
        if trial is None:
            return
        study.tell(trial, outputs(problem, dict(trial.controls)))


def test_a_limit_that_always_holds_changes_the_gap_by_search_noise_only() -> None:
    plain = certified("controls", 3)
    problem = with_limit("controls", 3, {"s1": {"s1_1": (-50.0, 50.0)}})
    free, bound = (maximise(n, budget=25, tolerance=0.02, progress=False) for n in (plain.network, problem.network))
    assert free.status == bound.status == "tolerance"
    assert abs(len(free.trials) - len(bound.trials)) <= 3
    assert free.certificate.bound == pytest.approx(bound.certificate.bound, abs=0.04)


def test_minimising_is_the_mirror_of_maximising() -> None:
    """The objective of the mirrored process is minus that of the first, with a limit on an inner stage."""
    kernel = SquaredExponential(1.0)

    def inner(x: float) -> float:
        return float(np.exp(-0.5 * (x - 0.5) ** 2))

    def process(sign: int) -> Network:
        limited_stage = Stage(
            "a", controls={"x": Real(-2, 2)}, kernel=kernel, norm_bound=1.5, function=inner, limits={"a": (None, 0.7)}
        )
        last = Stage(
            "b",
            parents=["a"],
            kernel=kernel,
            norm_bound=1.5,
            function=lambda a: sign * float(np.exp(-0.5 * (a - 1.5) ** 2)),
        )
        return Network([limited_stage, last])

    most = maximise(process(1), budget=30, tolerance=0.01, progress=False)
    least = minimise(process(-1), budget=30, tolerance=0.01, progress=False)
    assert [trial.controls for trial in most.trials] == [trial.controls for trial in least.trials]
    assert most.certificate.bound == -(least.certificate.bound or 0.0)
    assert most.gap == least.gap
    true = np.exp(-0.5 * (0.7 - 1.5) ** 2)
    assert most.certificate.reached is not None
    assert true - 0.01 <= most.certificate.reached <= true + 1e-9


def test_a_limit_that_cannot_be_met_ends_the_study() -> None:
    result = maximise(limited("chain", 0, "none").network, budget=30, progress=False)
    assert result.status == "infeasible"
    assert result.best is None
    assert "no setting in the box of controls satisfies" in str(result)


@pytest.mark.parametrize("structure", ["controls", "join"])
def test_a_recommended_setting_is_feasible_and_gives_its_value(structure: str) -> None:
    name = {"controls": "chain"}.get(structure, structure)
    problem, ledger = limited(name, 4, "band"), Ledger()
    study = Study(problem.network, tolerance=0.02)
    recommended = 0
    for step in range(10):
        runs(study, problem, 1)
        certificate = study.certificate()
        recommended += certificate.recommended is not None
        check_certificate(ledger, problem, certificate, f"run {step}")
    assert ledger.violations == 0, ledger.failures()
    assert recommended


def test_the_incumbent_is_never_lost() -> None:
    """A tree that was pruned by a proven value must not be compared with a lower one later."""
    problem = limited("chain", 1, "cut")
    study = Study(problem.network)
    runs(study, problem, 8)
    before = study.certificate()
    assert before.reached is not None
    found = study.model.incumbent
    assert found is not None
    worse = Incumbent(found.point, found.value - 0.5)
    with mock.patch.object(incumbent, "proven_incumbent", return_value=worse):
        runs(study, problem, 1)
        after = study.certificate()
    assert after.reached is not None
    assert after.reached >= before.reached
    truth = problem.best_feasible
    assert truth is not None
    assert after.gap is not None
    assert after.gap >= truth[1] - after.reached


def test_the_incumbent_is_searched_for_once_per_run() -> None:
    problem = limited("chain", 0, "none")
    study = Study(problem.network)
    runs(study, problem, 2)
    with mock.patch.object(incumbent, "proven_incumbent", return_value=None) as search:
        runs(study, problem, 1)
        study.certificate()
        study.certificate()
    assert search.call_count <= 2  # once before the run, once after it


def test_more_than_six_controls() -> None:
    kernel = SquaredExponential(2.0)
    first = Stage(
        "load",
        controls={f"x{i}": Real(-1, 1) for i in range(7)},
        kernel=kernel,
        norm_bound=2.0,
        limits={"load": (None, 0.3)},
        function=lambda **x: float(np.exp(-sum((v - 0.3) ** 2 for v in x.values()) / 8)),
    )
    last = Stage("value", parents=["load"], kernel=kernel, norm_bound=2.0, function=lambda load: load)
    result = maximise(Network([first, last]), budget=12, progress=False)
    assert result.certificate.bound is None or result.certificate.bound >= 0.3
    assert all(trial.value is not None for trial in result.trials)


def test_a_run_without_its_objective_shows_that_the_limits_can_be_met() -> None:
    """Its limited output was observed and satisfies the limit, so "no setting" is never said."""
    problem = limited("chain", 0, "band")
    domain = problem.network.domain
    assert problem.best_feasible is not None
    controls = domain.named(problem.best_feasible[0])
    study = Study(problem.network)
    study.add_trial(controls, {"s1": outputs(problem, controls)["s1"]})
    runs(study, problem, 3)
    assert study.certificate().answer == "optimum"
