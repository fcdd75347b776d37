"""Runs that satisfy or break limits: in trials, tables, summaries, stores, and after limits were amended."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cascada.errors import ArgumentError
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.process import Process
from cascada.space import Real
from cascada.store.database import Store
from cascada.study import Study
from cascada.study.catalogue import stored_description, studies
from cascada.study.log_file import exported, import_log
from cascada.study.tabular import add_runs, trials_csv
from tests.missing import need_module
from tests.network.cases import X, Y, stage, truth

CUT: Any = {"f": (None, 0.3)}
UNKNOWN: Any = {"kernel": None, "norm_bound": None}  # failures count as infeasible only where some norm is estimated
Limits = dict[str, tuple[float | None, float | None]] | None


def network(f: Limits = None, g: Limits = None, **options: Any) -> Network:
    return chain(stage("f", controls=X, limits=f, **options), stage("g", controls=Y, limits=g))


def filled(study: Study) -> Study:
    """A study with a feasible run, a better one that breaks a limit of `CUT`, and one under way that does."""
    study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.2, "g": 0.4})
    study.add_trial({"x": 1.0, "y": 0.0}, {"f": 0.5, "g": 0.9})
    study.tell_stage(study.begin_trial({"x": -1.0, "y": 0.0}), "f", 0.35)
    study.begin_trial({"x": -2.0, "y": 0.0})
    return study


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/studies.db"


# ---- trials


def test_trials_say_whether_they_satisfy_the_limits(opened: Callable[..., Study]) -> None:
    study = filled(opened(network(CUT)))
    assert [trial.feasible for trial in study.trials] == [True, False, False, None]
    assert study.best_trial is not None
    assert study.best_trial.number == 0
    study.correct(1, "f", 0.25)
    assert [trial.feasible for trial in study.trials] == [True, True, False, None]
    assert study.best_trial.number == 1
    after = study.retract(1, "f")
    assert (after.feasible, after.state, after.value) == (None, "running", None)
    assert study.best_trial.number == 0


def test_trials_without_limits_are_neither_feasible_nor_infeasible() -> None:
    study = filled(Study(network()))
    assert {trial.feasible for trial in study.trials} == {None}
    assert study.best_trial is not None
    assert study.best_trial.number == 1


def test_a_minimised_study_takes_the_best_run_that_satisfies_the_limits() -> None:
    study = Study(network(CUT).mirrored())
    study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.2, "g": 0.4})
    study.add_trial({"x": 1.0, "y": 0.0}, {"f": 0.5, "g": 0.1})
    assert study.best_trial is not None
    assert study.best_trial.value == 0.4


def test_a_trial_is_complete_with_the_objective_and_all_limited_outputs() -> None:
    study = Study(network(CUT))
    trial = study.tell_stage(study.begin_trial({"x": 0.0, "y": 0.0}), "g", 0.4)
    assert (trial.state, trial.value, trial.feasible) == ("running", None, None)
    trial = study.tell_stage(trial, "f", 0.2)
    assert (trial.state, trial.value, trial.feasible) == ("complete", 0.4, True)


def test_a_failure_that_counts_as_infeasible_is_infeasible() -> None:
    study = Study(network(CUT, failure="infeasible", **UNKNOWN))
    failed, later = study.begin_trial({"x": 0.0, "y": 0.0}), study.begin_trial({"x": 1.0, "y": 0.0})
    assert study.fail(failed, "it burned").feasible is False
    study.tell_stage(later, "f", 0.2)
    assert study.fail(later, "g was not measured").feasible is True  # its only limit is satisfied
    assert study.tell(failed, {"f": 0.2, "g": 0.4}).feasible is True


# ---- tables


def test_csv_has_a_column_that_is_ignored_when_it_is_read() -> None:
    study = filled(Study(network(CUT)))
    text = trials_csv(study.network, study.trials)
    assert [line.split(",")[-1] for line in text.splitlines()] == ["feasible", "yes", "no", "no"]
    other = Study(network(CUT))
    assert add_runs(other, text.splitlines()[:3]) == 2
    assert [trial.feasible for trial in other.trials] == [True, False]
    assert [trial.outputs for trial in other.trials] == [trial.outputs for trial in study.trials[:2]]
    with pytest.raises(ArgumentError, match="unknown column 'feasible'"):
        add_runs(Study(network()), text.splitlines())
    assert "feasible" not in trials_csv(network(), filled(Study(network())).trials)


def test_a_control_named_feasible_keeps_its_column() -> None:
    own = chain(stage("f", controls={"feasible": X["x"]}, limits=CUT))
    study = Study(own)
    study.add_trial({"feasible": 0.5}, {"f": 0.2})
    text = trials_csv(own, study.trials)
    assert text.splitlines()[0] == "feasible,f"
    assert add_runs(Study(own), text.splitlines()) == 1


def test_a_dataframe_has_a_column_feasible_if_there_are_limits() -> None:
    need_module("pandas", "dev")
    table = filled(Study(network(CUT))).trials_dataframe()
    assert list(table["feasible"])[:3] == [True, False, False]
    assert "feasible" not in filled(Study(network())).trials_dataframe()


# ---- summaries


def best_and_feasible(url: str) -> tuple[float | None, int | None]:
    (found,) = studies(url)
    return found.best, found.feasible


def test_a_summary_has_the_best_run_that_satisfies_the_limits(url: str) -> None:
    study = Study.open(url, "alloy", network(CUT))
    assert best_and_feasible(url) == (None, 0)
    filled(study)
    assert best_and_feasible(url) == (0.4, 1)
    study.correct(1, "f", 0.25)
    assert best_and_feasible(url) == (0.9, 2)
    study.retract(1, "f")
    assert best_and_feasible(url) == (0.4, 1)
    (found,) = studies(url)
    assert found.trials["complete"] == sum(trial.state == "complete" for trial in study.trials) == 1
    study.correct(0, "g", 0.1)
    assert best_and_feasible(url) == (0.1, 1)


def test_a_summary_without_limits_counts_no_feasible_runs(url: str) -> None:
    filled(Study.open(url, "alloy", network()))
    assert best_and_feasible(url) == (0.9, None)


def test_a_summary_leaves_out_what_follows_by_a_formula(url: str) -> None:
    worth = Stage("worth", known=True, lipschitz=2.0, function=lambda f: 2 * f, parents=["f"], limits={"worth": (0, 1)})
    known = Network([stage("f", controls=X), worth, stage("g", controls=Y, parents=["f"])], objective="g")
    study = Study.open(url, "alloy", known)
    study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.2, "g": 0.4})
    assert study.trials[0].feasible is True
    assert best_and_feasible(url) == (None, None)


# ---- identity and amendments


def test_limits_are_part_of_a_stored_study_and_defaults_are_not_written(url: str) -> None:
    Study.open(url, "plain", network())
    Study.open(url, "alloy", network(CUT, {"g": (-1, 1)}, ranges={"f": (0, None)}, failure="infeasible", **UNKNOWN))
    store = Store(url, read_only=True)
    raw = {name: store.get(name)[1][0].data["stages"] for name in ("plain", "alloy")}
    assert all(key not in one for one in raw["plain"] for key in ("limits", "ranges", "failure"))
    first, second = raw["alloy"]
    assert (first["limits"], first["ranges"], first["failure"]) == (
        {"f": [None, 0.3]},
        {"f": [0.0, None]},
        "infeasible",
    )
    assert (second["limits"], "ranges" in second, "failure" in second) == ({"g": [-1.0, 1.0]}, False, False)
    described = stored_description(store, "plain")
    assert described is not None
    assert [described["stages"][0][key] for key in ("limits", "ranges", "failure")] == [{}, {}, "fail"]
    again = Study.open(url, "alloy")  # the network from its description
    assert list(map(str, again.network.limits)) == ["f ≤ 0.3", "-1 ≤ g ≤ 1"]
    assert again.network.stages[0].failure == "infeasible"
    assert again.network.stages[0].ranges == {"f": (0.0, float("inf"))}


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (network({"f": (None, 0.4)}), r"stages.f.limits.f: stored \[null, 0.3\], given \[null, 0.4\]"),
        (network(), "limits"),
        (network(CUT, {"g": (0, None)}), "limits"),
        (network(CUT, ranges={"f": (0, 9)}), "ranges"),
    ],
)
def test_other_limits_are_refused_unless_they_are_amended(url: str, other: Network, difference: str) -> None:
    filled(Study.open(url, "alloy", network(CUT)))
    with pytest.raises(ArgumentError, match=difference) as error:
        Study.open(url, "alloy", other)
    assert "open it with amend=True (--amend of `cascada run` and `cascada ask`)" in str(error.value)
    amended = Study.open(url, "alloy", other, amend=True)
    assert amended.network.limits == other.limits
    assert amended.certificate().limits == tuple(map(str, other.limits))
    assert Study.open(url, "alloy").network.limits == other.limits


def test_what_failures_mean_is_not_amendable(url: str) -> None:
    Study.open(url, "alloy", network(CUT, **UNKNOWN))
    with pytest.raises(ArgumentError, match="Open it as it is, or take another name"):
        Study.open(url, "alloy", network(CUT, failure="infeasible", **UNKNOWN), amend=True)


def test_loosening_a_limit_discards_what_was_proven_with_it(url: str) -> None:
    """The bound after an amendment is that of a study that had the limit from the start."""
    tight, loose = network({"f": (None, 0.1)}), network({"f": (None, 0.8)})
    process = Process(tight, truth(tight, 1))
    study = Study.open(url, "alloy", tight, tolerance=0.05)
    before = study.optimise(process, budget=12, progress=False).certificate.bound
    runs = [(trial.controls, trial.outputs, "run") for trial in study.trials if trial.value is not None]
    amended, fresh = Study.open(url, "alloy", loose, amend=True), Study(loose, replayable=True)
    fresh.add_trials(runs)
    found, expected = amended.certificate(), fresh.certificate()
    assert (found.best, found.bound, found.gap) == (expected.best, expected.bound, expected.gap)
    assert found.bound is not None
    assert before is None or found.bound > before


def test_a_proof_that_no_setting_is_feasible_ends_with_the_limit(url: str) -> None:
    study = Study.open(url, "alloy", network({"f": (1.99, None)}))
    result = study.optimise([lambda x: math.exp(-x * x / 2), lambda f, y: f * 0.1 + y * 0.0], budget=20, progress=False)
    assert (result.status, result.certificate.answer, result.best) == ("infeasible", "infeasible", None)
    amended = Study.open(url, "alloy", network({"f": (0.2, None)}), amend=True)
    assert amended.certificate().answer == "optimum"
    assert amended.best_trial is not None


def test_runs_that_lack_an_output_stay_complete_when_it_is_limited(url: str) -> None:
    study = Study.open(url, "alloy", network())
    study.add_trial({"x": 0.0, "y": 0.0}, {"g": 0.9})  # f was not measured
    study.add_trial({"x": 1.0, "y": 0.0}, {"f": 0.2, "g": 0.4})
    amended = Study.open(url, "alloy", network(CUT), amend=True)
    assert [(trial.state, trial.feasible) for trial in amended.trials] == [("complete", None), ("complete", True)]
    assert amended.best_trial is not None
    assert amended.best_trial.number == 1
    again = Study.open(url, "alloy")
    assert again.trials == amended.trials
    again.tell_stage(0, "f", 0.1)
    assert [(trial.value, trial.feasible) for trial in again.trials] == [(0.9, True), (0.4, True)]
    assert Study.open(url, "alloy").trials == again.trials


def test_runs_that_lacked_a_limited_output_stay_open_when_the_limit_goes(url: str) -> None:
    study = Study.open(url, "alloy", network(CUT))
    study.add_trial({"x": 0.0, "y": 0.0}, {"g": 0.9})  # abandoned: f was not measured
    study.tell_stage(study.begin_trial({"x": 1.0, "y": 0.0}), "g", 0.8)
    study.correct(1, "g", 0.7)
    study.fail(1, "the sample was lost")
    amended = Study.open(url, "alloy", network(), amend=True)
    assert [(trial.state, trial.value) for trial in amended.trials] == [("abandoned", None), ("failed", None)]
    assert amended.trials[1].outputs == {"g": (0.7,)}
    assert amended.best_trial is None


def test_limits_survive_an_export(url: str, tmp_path: Path) -> None:
    filled(Study.open(url, "alloy", network(CUT)))
    store = Store(url, read_only=True)
    text = "".join(f"{line}\n" for line in exported(store, "alloy"))
    other = f"sqlite:///{tmp_path}/other.db"
    import_log(Store(other, create=True), "alloy", text.splitlines())
    assert [trial.feasible for trial in Study.open(other, "alloy").trials] == [True, False, False, None]


def test_with_several_limits_the_distance_of_each_is_in_units_of_its_output() -> None:
    kernel = SquaredExponential(0.5)
    both = Network(
        [
            Stage("a", {"x": Real(0, 1)}, kernel=kernel, norm_bound=2.0, limits={"a": (1.9, None)}),
            Stage("b", {"x": Real(0, 1)}, kernel=kernel, norm_bound=2e3, limits={"b": (1.9e3, None)}),
        ],
        objective="b",
    )
    study = Study(both)
    for x in (0.0, 0.5, 1.0):
        study.add_trial({"x": x}, {"a": 0.1, "b": 1e2})
    certificate = study.certificate()
    sentence = r"every setting misses at least one of them: a ≥ 1.9 by at least (\S+), or b ≥ 1900 by at least (\S+)\. "
    found = re.search(sentence, str(certificate))
    assert found is not None
    assert certificate.margin is not None
    assert 0 < float(found[1]) <= -2.0 * certificate.margin < 1.8
    assert float(found[2]) == pytest.approx(1e3 * float(found[1]), rel=1e-2)
