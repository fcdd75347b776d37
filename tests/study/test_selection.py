"""Studies with more runs than a model learns from: which runs are selected, and that all else knows every run."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascada.errors import ContradictionError
from cascada.network import Stage, chain, run_values
from cascada.space import Grid
from cascada.study import Study
from cascada.study.model import Model
from cascada.study.selection import Progress, selected, selection_size
from tests.network.cases import NETWORKS, SE, SEED, X, points, run, truth

MOST = 10


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models learn from at most `MOST` runs."""
    monkeypatch.setattr("cascada.study.selection.MOST_RUNS", MOST)
    monkeypatch.setattr("cascada.study.selection.MOST_ESTIMATED_RUNS", MOST)


def rows_of(name: str, count: int) -> Any:
    network = NETWORKS[name]
    controls = points(network, count, np.random.default_rng(SEED))
    return run_values(network, controls, run(network, truth(network, SEED), controls))


# ---- when a selection is made


@given(st.lists(st.integers(0, 12), max_size=60), st.integers(0, 60), st.integers(2, 9))
def test_progress_does_not_depend_on_how_observations_come_in(trials: list[int], cut: int, most: int) -> None:
    assert Progress().after(trials[:cut], most).after(trials[cut:], most) == Progress().after(trials, most)


@given(st.lists(st.integers(0, 40), max_size=80), st.integers(2, 9))
def test_a_selection_and_the_trials_since_are_never_more_than_the_limit(trials: list[int], most: int) -> None:
    progress = Progress().after(trials, most)
    assert progress.count == len(trials)
    assert progress.trials == set(trials[progress.start :])
    assert len(progress.trials) + (selection_size(most) if progress.start else 0) <= most


# ---- which runs


@pytest.mark.parametrize("name", ["chain", "feed-forward", "passes and integers", "graph"])
def test_a_selection_has_the_best_run_the_latest_runs_and_the_given_size(name: str) -> None:
    network, rows = NETWORKS[name], rows_of(name, 200)
    rows[5::7, network.domain.dimension + 1 :] = np.nan  # partial runs
    chosen = selected(network, rows, 80)
    assert len(set(chosen.tolist())) == 80
    assert np.all(np.diff(chosen) > 0)
    assert int(np.nanargmax(network.sign * rows[:, network.objective_column])) in chosen
    assert {190, 195, 199} <= set(chosen.tolist())
    np.testing.assert_array_equal(selected(network, rows, 80), chosen)


@pytest.mark.parametrize("some", [True, False], ids=["some feasible", "none feasible"])
def test_with_limits_a_selection_has_the_best_feasible_runs(some: bool) -> None:
    """Without any, those that miss the limits by least."""
    free, rows = NETWORKS["chain"], rows_of("chain", 200)
    f, h = rows[:, free.node("f").columns[0]], rows[:, free.node("h").columns[0]]
    limit = float(np.quantile(f, 0.2) if some else f.min() - 0.1)
    limits: Any = {"f": (None, limit)}
    network = chain(replace(free.stages[0], limits=limits), *free.stages[1:])
    best = np.flatnonzero(f <= limit)[np.argsort(-h[f <= limit])] if some else np.argsort(f)
    chosen = selected(network, rows, 40)
    assert len(chosen) == 40
    assert set(best[:5].tolist()) <= set(chosen.tolist())
    assert not set(best[:5].tolist()) <= set(selected(free, rows, 40).tolist())


def test_a_selection_leaves_no_large_hole() -> None:
    network, rows = NETWORKS["chain"], rows_of("chain", 400)
    places = rows[:, :2]
    chosen = places[selected(network, rows, 100)]
    holes = np.linalg.norm(places[:, None] - chosen, axis=2).min(axis=1)
    assert holes.max() < 0.8  # of a box of side 4: 50 points that fill it are about 0.57 apart


def test_runs_that_all_coincide_can_be_selected() -> None:
    network, rows = NETWORKS["chain"], np.repeat(rows_of("chain", 1), 30, axis=0)
    assert len(selected(network, rows, 20)) == 20


def test_all_runs_are_selected_if_they_are_few() -> None:
    network, rows = NETWORKS["chain"], rows_of("chain", 5)
    np.testing.assert_array_equal(selected(network, rows, 5), np.arange(5))


# ---- the next point follows from the log alone


def same(ours: Model, theirs: Model) -> None:
    """Both models know the same, to the last bit."""
    np.testing.assert_array_equal(ours.data, theirs.data)
    assert ours.evidence() == theirs.evidence()
    assert ours.runs == theirs.runs
    for mine, other in zip(ours.acting.stages, theirs.acting.stages, strict=True):
        if mine.belief is not None and other.belief is not None:
            np.testing.assert_array_equal(mine.belief.posterior.spent, other.belief.posterior.spent)
            np.testing.assert_array_equal(mine.belief.norm_bound, other.belief.norm_bound)
            np.testing.assert_array_equal(mine.belief.output_error, other.belief.output_error)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("on_violation", ["stop", "enlarge"])
@pytest.mark.parametrize("name", ["chain", "feed-forward", "multi-output chain", "graph"])
def test_a_model_that_learns_run_by_run_equals_one_that_learns_all_at_once(name: str, on_violation: Any) -> None:
    network = NETWORKS[name]
    study = Study(network, on_violation=on_violation, replayable=True)
    functions = truth(network, SEED)
    for number, row in enumerate(points(network, 31, np.random.default_rng(1))):
        trial = study.begin_trial(network.domain.named(row))
        for stage, outputs in run(network, functions, row[None])[0].items():
            if not network.node(stage).stage.known:
                study.tell_stage(trial, stage, outputs)
            assert study.model.runs is None or study.model.runs <= MOST
        if number % 4 == 0 or number > 27:
            fresh = Model(network, study._settings)
            fresh.catch_up(study.state)
            same(fresh, study.model)
            best = study.model.best_run
            assert best is not None
            assert network.sign * best[network.objective_column] == study.state.best_value
    assert study.model.runs is not None


@pytest.mark.usefixtures("few")
def test_estimated_kernels_are_those_of_a_model_that_learns_all_at_once() -> None:
    network = chain(Stage("f", controls=X), Stage("g"))
    study = Study(network, replayable=True)
    for x in np.linspace(-2, 2, 15) ** 3 / 4:
        study.add_trial({"x": x}, {"f": math.sin(x), "g": math.sin(x) ** 2})
        assert study.model is not None
    fresh = Model(network, study._settings)
    fresh.catch_up(study.state)
    assert fresh.runs is not None
    same(fresh, study.model)
    assert fresh.probation == study.model.probation


@pytest.mark.usefixtures("few")
def test_memory_and_a_reopened_store_give_the_same_next_point(tmp_path: Path) -> None:
    network, url = NETWORKS["chain"], f"sqlite:///{tmp_path}/studies.db"
    functions = truth(network, SEED)
    memory, stored = Study(network, replayable=True), Study.open(url, "many", network)
    for study in (memory, stored):
        study.add_trials(
            [
                (network.domain.named(row), run(network, functions, row[None])[0], "run")
                for row in points(network, 26, np.random.default_rng(1))
            ]
        )
    for _ in range(4):
        trial = memory.ask()
        assert trial is not None
        again = Study.open(url, "many", network)
        assert again.ask() == trial
        outputs = run(network, functions, network.domain.row(trial.controls)[None])[0]
        memory.tell(trial, outputs)
        again.tell(trial, outputs)
        assert again.certificate().bound == memory.certificate().bound
        again.close()
    stored.close()


# ---- what knows all runs


LINE = chain(Stage("f", controls=X, kernel=SE, norm_bound=50.0), Stage("g", kernel=SE, norm_bound=50.0))


def on_a_line(study: Study, count: int) -> Study:
    xs = np.linspace(-2, 2, count)
    study.add_trials([({"x": x}, {"f": math.sin(x), "g": 0.5 * math.sin(x) ** 2}, "run") for x in xs.tolist()])
    return study


@pytest.mark.usefixtures("few")
def test_the_certificate_says_how_many_runs_it_rests_on() -> None:
    study = on_a_line(Study(LINE), 30)
    certificate = study.certificate()
    assert certificate.evaluations == 30
    assert certificate.runs_used is not None
    assert certificate.runs_used <= MOST
    assert certificate.best == max(trial.value for trial in study.trials if trial.value is not None)
    assert f"the bounds rest on {certificate.runs_used} of 30 runs" in str(certificate)
    few_runs = on_a_line(Study(LINE), MOST).certificate()
    assert few_runs.runs_used is None
    assert "the bounds rest on" not in str(few_runs)


@pytest.mark.usefixtures("few")
def test_no_run_is_repeated_and_all_candidates_together_have_no_gap() -> None:
    grid = Grid({"x": 25})
    study = Study(LINE, candidates=grid, algorithm="gpn_ei")
    seen = set()
    while (trial := study.ask()) is not None:
        x = float(trial.controls["x"])
        seen.add(x)
        study.tell(trial, {"f": math.sin(x), "g": 0.5 * math.sin(x) ** 2})
    assert len(seen) == len(study.trials) == 25
    certificate = study.certificate()
    assert certificate.runs_used is not None
    assert certificate.gap == 0.0


@pytest.mark.usefixtures("few")
def test_a_contradiction_with_a_run_that_was_not_selected_is_found() -> None:
    study = on_a_line(Study(LINE), 40)
    learned = set(study.model._trials)
    other = next(trial for trial in study.trials if trial.number not in learned)
    with pytest.raises(ContradictionError, match=rf"for the same inputs in trial {other.number}"):
        study.add_trial(other.controls, {"f": 0.77})


@pytest.mark.usefixtures("few")
def test_a_value_that_no_function_of_the_norm_takes_is_always_selected() -> None:
    study = Study(LINE, algorithm="random_search")
    study.add_trial({"x": 0.3}, {"f": math.sin(0.3), "g": -60.0})  # more than a norm of 50 allows
    on_a_line(study, 41)
    assert study.certificate().kind == "refuted"


@pytest.mark.usefixtures("few")
def test_evidence_is_still_evidence_after_a_selection() -> None:
    study = Study(LINE, algorithm="random_search")
    study.add_trial({"x": 0.3}, {"f": math.sin(0.3)})
    study.add_trial({"x": 0.3001}, {"f": math.sin(0.3) + 0.3})  # steeper than a norm of 50 allows
    on_a_line(study, MOST - 3)
    evidence = study.model.evidence()
    assert evidence
    assert study.model.runs is None
    for number in range(40):
        x = -1.99 + number * 0.099
        study.add_trial({"x": x}, {"f": math.sin(x), "g": 0.5 * math.sin(x) ** 2})
    assert study.certificate().kind == "refuted"
    assert study.model.runs is not None
    assert set(evidence) <= {refutation.reason for refutation in study.state.refutations}


@pytest.mark.usefixtures("few")
def test_a_bound_that_was_refuted_and_enlarged_proves_nothing_after_a_selection(tmp_path: Path) -> None:
    network = chain(Stage("f", controls=X, kernel=SE, norm_bound=5.0))
    url = f"sqlite:///{tmp_path}/studies.db"
    study = Study.open(url, "steep", network, on_violation="enlarge")
    # Two runs that are close to each other refute the bound, and a selection leaves one of them out.
    steep = [({"x": -1.0}, {"f": math.sin(-1.0) + 0.3}, "run"), ({"x": -1.03}, {"f": math.sin(-1.03)}, "run")]
    first, later = (
        [({"x": x}, {"f": math.sin(x)}, "run") for x in np.linspace(low, high, count).tolist()]
        for low, high, count in ((-2, 2, 8), (-1.9, 1.95, 25))
    )
    study.add_trials([*steep, *first])
    assert study.certificate().kind == "estimated"
    study.add_trials(later)
    certificate = study.certificate()
    assert certificate.runs_used is not None
    assert certificate.kind == "estimated"
    study.close()
    again = Study.open(url, "steep", network)
    assert again.certificate().kind == "estimated"
    again.close()
