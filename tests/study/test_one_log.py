"""Several processes share one log: a result found by one is valid for all, and depends on the log alone."""

import math
from pathlib import Path
from typing import Any

import pytest

from cascada.algorithms import RandomSearch
from cascada.errors import RefutedError, StoreError
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.process import Process
from cascada.space import Grid, Real
from cascada.store.database import Store
from cascada.study import Study
from cascada.study.log_file import exported, import_log
from tests.network.cases import X, stage, truth

CHAIN = chain(stage("f", controls=X), stage("g"))


def network(lengthscale: float, norm_bound: float) -> Network:
    kernel = SquaredExponential(lengthscale)
    return chain(
        Stage("f", controls=X, kernel=kernel, norm_bound=norm_bound),
        Stage("g", kernel=kernel, norm_bound=max(2.0, norm_bound)),
    )


WRONG, RIGHT = network(1.0, 1.0), network(0.2, 20.0)


def filled(study: Any) -> Any:
    """Add runs that refute WRONG, which only the computation of a bound detects: f at 0 is not observed."""
    study.tell(study.enqueue_trial({"x": 0.0}), {"g": 1.9})
    for x in (-2.0, -1.2, -0.8, -0.4, 0.4, 0.8, 1.2, 2.0):
        f = 0.9 * math.sin(x) * math.exp(-x * x / 2)
        study.tell(study.enqueue_trial({"x": x}), {"f": f, "g": 0.1 * math.exp(-0.5 * f * f)})
    return study


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/studies.db"


def opened(url: str, network: Network | None = CHAIN, **options: Any) -> Study:
    return Study.open(url, "alloy", network, **options)


# ---- refuted


@pytest.mark.parametrize(
    "options", [{"algorithm": "random_search", "tolerance": 1e-3}, {"algorithm": "gpn_ucb"}], ids=["tolerance", "ask"]
)
def test_a_refutation_found_by_ask_is_recorded_for_all_processes(url: str, options: dict[str, Any]) -> None:
    study = filled(opened(url, WRONG, **options))
    assert not study.refuted  # not detected before a bound is computed
    with pytest.raises(RefutedError):
        study.ask()
    other = opened(url, WRONG)
    assert other.refuted
    assert other.certificate().kind == study.certificate().kind == "refuted"
    with pytest.raises(RefutedError):
        other.ask()


@pytest.mark.parametrize("looked", [False, True])
def test_an_amendment_resolves_a_refutation_found_by_a_bound(url: str, looked: bool) -> None:
    study = filled(opened(url, WRONG))
    if looked:
        assert study.certificate().kind == "refuted"
    amended = opened(url, RIGHT, amend=True)
    assert amended.certificate().kind == "proven"
    assert amended.gap == filled(Study(RIGHT)).gap
    assert amended.ask() is not None


def test_an_amendment_does_not_remove_a_refutation_recorded_by_the_user(url: str) -> None:
    study = filled(opened(url, WRONG))
    study.refute("the furnace was replaced")
    assert opened(url, RIGHT, amend=True).certificate().evidence == ("the furnace was replaced",)


def test_waiting_trials_are_returned_even_after_a_refutation(url: str) -> None:
    study = opened(url)
    study.enqueue_trial({"x": 0.3})
    study.refute("no reason")
    assert [trial.number for trial in study.ask(2)] == [0]
    with pytest.raises(RefutedError):
        study.ask(2)


def test_a_result_is_recorded_although_the_study_was_amended_meanwhile(url: str) -> None:
    wider = chain(stage("f", controls=X, norm_bound=3.0), stage("g"))
    study = opened(url)

    def amends(x: float) -> float:
        opened(url, wider, amend=True)
        return 0.1 * x

    with pytest.raises(StoreError, match="was amended by another process; open it again"):
        study.optimise([amends, lambda f: 0.2 * f], budget=3, progress=False)
    assert [trial.state for trial in opened(url, wider).trials] == ["complete"]


# ---- the same gap and the same end


def test_the_gap_depends_on_the_log_alone_and_not_on_earlier_computations(url: str) -> None:
    """The algorithm has no search tree of its own, and no search explores a box of three controls completely."""
    hard = chain(stage("f", controls={name: Real(-2, 2) for name in "xyz"}))
    process = Process(hard, truth(hard, 1))
    study = opened(url, hard, algorithm="random_search")
    for _ in range(12):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, process(trial.controls))
        assert study.gap == opened(url, hard).gap


@pytest.mark.parametrize("options", [{"candidates": Grid({"x": 5})}, {"algorithm": "random_search"}])
def test_ask_returns_none_when_the_gap_is_within_the_tolerance(options: dict[str, Any]) -> None:
    study = Study(CHAIN, tolerance=100.0, **options)
    study.add_trial({"x": 0.0}, Process(CHAIN, truth(CHAIN, 1))({"x": 0.0}))
    assert study.within_tolerance
    assert study.ask() is None


def test_no_gap_is_estimated_from_one_or_two_runs(url: str) -> None:
    unknown = chain(Stage("f", controls=X), Stage("g"))
    study = opened(url, unknown, tolerance=1e-3, stop_on_estimated=True)
    trials = study.ask(8)
    for trial in trials[:2]:
        study.tell(trial, {"f": 1.0, "g": 2.0})
        assert study.gap is None
        assert not study.within_tolerance


# ---- atomicity


def test_an_ask_that_fails_begins_no_trial() -> None:
    class Failing(RandomSearch):
        def suggest(self, context: Any, generator: Any) -> Any:
            if context.trial == 2:
                raise RuntimeError("out of ideas")
            return super().suggest(context, generator)

    study = Study(CHAIN, algorithm=Failing())
    waiting = study.enqueue_trial({"x": 0.5})
    with pytest.raises(RuntimeError, match="out of ideas"):
        study.ask(3)
    assert study.trials == (waiting,)
    assert len(study.ask(2)) == 2


# ---- leases


def test_a_lease_belongs_to_one_process_and_not_to_another_of_the_same_name(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = opened(url)
    trial = study.ask(lease=60.0)
    assert trial is not None
    assert study.beat(trial)
    monkeypatch.setattr("cascada.store.transaction.this_process", lambda: "another machine:1")
    assert not study.beat(trial)


# ---- formulas


def test_a_known_output_may_be_told_after_it_was_computed(url: str) -> None:
    priced = chain(stage("f", controls=X), Stage("g", known=True, lipschitz=3.0, function=lambda f: 3 * f))
    for study in (opened(url, priced), Study(priced)):
        trial = study.ask()
        assert trial is not None
        study.tell_stage(trial, "f", 0.1)  # so that g is 0.30000000000000004
        assert study.tell(trial, {"f": 0.1, "g": 0.3}).state == "complete"


# ---- invalid logs


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"kind": "failed"', '"kind": "expired"', None),
        ('"kind": "abandoned"', '"kind": "expired"', "trial 0 is failed"),
        ('"reason": "broken"', '"reason": ["broken"]', "a reason is a text"),
        ('"lease": null', '"lease": "long"', "lease must be a number of seconds"),
        ('{"controls": {"x": 1.0}, "lease"', '{"controls": {"x": 1.5}, "lease"', "waits with other controls"),
        ('"kind": "told"', '"kind": "observed"', "what it says of trial 1 is not all"),
        ('"outputs": {"f": [0.25]}', '"outputs": {}', "what it says of trial 1 is nothing new"),
    ],
)
def test_inconsistent_logs_are_refused(url: str, old: str, new: str, message: str | None) -> None:
    study = opened(url)
    trial = study.ask()
    assert trial is not None
    study.fail(trial, "broken")
    study.abandon(trial)
    study.enqueue_trial({"x": 1.0})
    study.ask()
    study.tell_stage(1, "f", 0.25)
    study.tell_stage(1, "g", 0.5)
    lines = exported(Store(url), "alloy")
    forged = [line.replace(old, new) for line in lines]
    assert forged != lines
    if message is None:
        import_log(Store(url), "bronze", forged)
        return
    with pytest.raises(StoreError, match=rf"line \d+: .*{message}.*Nothing was imported"):
        import_log(Store(url), "bronze", forged)
    assert Store(url).studies() == ["alloy"]
