"""Revisions of a run in progress: what is proposed, what is written down, and what is refused."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cascada.errors import ArgumentError, RefutedError, StoreError
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.problems import certified
from cascada.process import Process
from cascada.space import Real
from cascada.store.database import Store
from cascada.study import Revision, Study, maximise, minimise
from cascada.study.decision import _Cost, _Judge
from cascada.study.log_file import exported, import_log
from cascada.study.state import State
from tests.network.cases import X, Y, stage, truth
from tests.study.batches import revisions

Open = Callable[..., Study]
CHAIN = chain(stage("f", controls=X), stage("g", controls=Y))
PROCESS = Process(CHAIN, truth(CHAIN, 1))


def begun(study: Study, runs: int = 3) -> int:
    """A study after some complete runs and one of which only the first stage was reported; the number of the last."""
    for _ in range(runs):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, PROCESS(trial.controls))
    trial = study.ask()
    assert trial is not None
    study.tell_stage(trial, "f", PROCESS(trial.controls)["f"])
    return trial.number


# ---- what it says


def test_the_controls_of_stages_that_were_run_stay(opened: Open) -> None:
    study = opened(CHAIN, algorithm="gpn_ucb")
    number = begun(study)
    planned = study.trials[number].controls
    revision = study.revise(number)
    assert revision.planned == planned
    assert revision.controls["x"] == planned["x"]
    assert revision.surest is not None
    assert revision.surest["x"] == planned["x"]
    assert (revision.kind, revision.maximised, revision.decision) == ("proven", True, "continue")
    assert revision.bound is not None
    assert revision.least is not None
    bound = study.certificate().bound
    assert bound is not None
    assert revision.least <= revision.bound <= bound
    assert study.trials[number].controls == planned  # nothing was written


def test_before_any_stage_is_reported_everything_is_open() -> None:
    study = Study(CHAIN)
    begun(study)
    trial = study.begin_trial({"x": 0.5, "y": 0.5})
    revision = study.revise(trial)
    assert revision.bound == study.certificate().bound
    assert revision.reason.startswith("It can gain at most")
    assert "for 2 stages, a new run" in revision.reason


def test_before_the_first_complete_run_the_plan_stays() -> None:
    study = Study(CHAIN)
    number = begun(study, runs=0)
    revision = study.revise(number)
    assert revision.controls == study.trials[number].controls
    assert revision.reason == "No value is known yet that this batch could be compared with."
    assert revision.bound is not None
    assert revision.bound <= 2.7 + 1e-9  # B + offset


def test_stages_before_a_reported_one_were_run_as_well() -> None:
    """The moisture was not measured, but the tile was pressed: the dryer was run at its temperature."""
    network = chain(stage("f", controls=X), stage("g", controls=Y), stage("h", controls={"z": Real(-2, 2)}))
    study = Study(network)
    study.add_trial({"x": 0.0, "y": 0.0, "z": 0.0}, {"f": 0.5, "g": 0.5, "h": 0.5})
    trial = study.begin_trial({"x": 1.0, "y": 1.0, "z": 1.0})
    study.tell_stage(trial, "g", 0.25)
    revision = study.revise(trial, apply=True)
    assert (revision.controls["x"], revision.controls["y"]) == (1.0, 1.0)


def test_a_formula_of_an_open_control_follows_the_revision() -> None:
    price = Stage("price", controls=Y, known=True, function=lambda y: 0.1 * y, lipschitz=0.1)
    profit = Stage("profit", parents=["g", "price"], known=True, function=lambda g, price: g - price, lipschitz=2.0)
    network = Network(
        [stage("f", controls=X), stage("g", parents=["f"], controls=Y), price, profit], objective="profit"
    )
    process = Process(network, truth(network, 1))
    study = Study(network, algorithm="gpn_ucb")
    for x, y in ((0.0, 0.0), (1.0, -1.0)):
        study.add_trial({"x": x, "y": y}, process({"x": x, "y": y}))
    first = study.begin_trial({"x": -1.0, "y": 0.0})
    study.tell_stage(first, "f", process(first.controls)["f"])
    ways = [{"x": -1.0, "y": y} for y in (-2.0, -1.0, 1.0, 2.0)]
    poor = min(ways, key=lambda way: study.predict(way)["profit"].upper[0])
    trial = study.begin_trial(poor)
    trial = study.tell_stage(trial, "f", process(trial.controls)["f"])
    assert trial.outputs["price"] == (0.1 * poor["y"],)
    revision = study.revise(trial, apply=True)
    after = study.trials[trial.number]
    assert after.controls["y"] == revision.controls["y"] != poor["y"]
    assert after.outputs["price"] == (0.1 * after.controls["y"],)
    assert study.tell(after, {"g": process(after.controls)["g"]}).state == "complete"


def test_a_minimised_process_is_revised_as_its_mirror_image() -> None:
    mirrored = {"f": PROCESS._functions["f"], "g": lambda **inputs: [-v for v in PROCESS._functions["g"](**inputs)]}
    negated = chain(stage("f", controls=X), stage("g", controls=Y))
    plain, other = Study(negated, algorithm="gpn_ucb"), Study(CHAIN.mirrored(), algorithm="gpn_ucb")
    negative = Process(negated, mirrored)
    for controls in ({"x": 0.0, "y": 0.0}, {"x": 1.0, "y": -1.0}):
        plain.add_trial(controls, {**negative(controls), "g": [v[0] for v in [negative(controls)["g"]]]})
        other.add_trial(controls, PROCESS(controls))
    found = []
    for study in (plain, other):
        trial = study.begin_trial({"x": -1.0, "y": 0.5})
        study.tell_stage(trial, "f", PROCESS(trial.controls)["f"])
        found.append(study.revise(trial))
    # The offset of g differs, so only the form is compared.
    assert [revision.maximised for revision in found] == [True, False]
    assert found[1].bound is not None
    assert found[1].least is not None
    assert found[1].bound <= found[1].least
    assert "at least" in str(found[1])


def test_a_broken_limit_means_that_nothing_counts() -> None:
    network = chain(stage("f", controls=X, limits={"f": (None, 0.0)}), stage("g", controls=Y))
    study = Study(network)
    trial = study.begin_trial({"x": 0.0, "y": 0.0})
    study.tell_stage(trial, "f", 0.5)
    revision = study.revise(trial, apply=True)
    assert (revision.decision, revision.bound, revision.surest) == ("discard", -math.inf, None)
    assert revision.reason == (
        "f = 0.5 breaks the limit f ≤ 0, so nothing that can still be done with this batch satisfies the limits."
    )
    assert study.trials[0].state == "abandoned"
    assert study.trials[0].reason == revision.reason
    assert study.model.data[0, 2] == 0.5  # it is learned from


def test_a_batch_that_cannot_satisfy_the_limits_is_discarded_by_proof() -> None:
    network = chain(stage("f", controls=X), stage("g", controls=Y, limits={"g": (1.9999, None)}))
    study = Study(network)
    study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.0, "g": 1.0})
    trial = study.begin_trial({"x": 0.1, "y": 0.0})
    for y in (-2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0):  # the same batch as trial 0, at other y
        study.add_trial({"x": 0.0, "y": y}, {"f": 0.0, "g": math.exp(-0.5 * y * y)})
    study.tell_stage(trial, "f", 0.0)
    revision = study.revise(trial)
    assert (revision.decision, revision.bound) == ("discard", -math.inf)
    assert revision.reason == "Proven: nothing that can still be done with this batch satisfies the limits."


def known_batch(tolerance: float | None = None) -> tuple[Study, int]:
    """A study in which everything is known of the batch that is running: f = 0, and g is small there."""
    study = Study(chain(stage("f", controls=X), stage("g", controls=Y)), tolerance=tolerance)
    study.add_trial({"x": 1.0, "y": 1.0}, {"f": 1.0, "g": 1.5})
    for y in (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0):
        study.add_trial({"x": 0.0, "y": y}, {"f": 0.0, "g": 0.5 * math.exp(-0.5 * y * y)})
    trial = study.begin_trial({"x": -2.0, "y": 0.0})
    study.tell_stage(trial, "f", 0.0)
    return study, trial.number


def test_a_batch_is_discarded_by_a_theorem_which_is_named() -> None:
    study, number = known_batch()
    assert study.revise(number).reason == "Proven: nothing from this batch beats the best, 1.5."
    study, number = known_batch(tolerance=0.02)
    revision = study.revise(number)
    assert revision.decision == "discard"
    assert revision.reason == (
        "Proven: nothing from this batch beats the best, 1.5, by more than 0.005, a quarter of the tolerance."
    )
    assert "rule" not in revision.reason


def test_a_batch_is_discarded_by_a_rule_which_is_named() -> None:
    study, number = known_batch()
    study.correct(0, "g", 0.45)  # the best is now less than what the batch may give
    revision = study.revise(number)
    assert revision.decision == "discard"
    assert revision.reason.startswith("By a rule, not a proof: It can gain at most ")
    assert revision.reason.endswith(" for 2 stages. Per cost, that is less than half as much.")
    assert "Proven" not in revision.reason
    cheap = study.revise(number, costs={"f": 1e9, "g": 1.0})  # what is left costs next to nothing
    assert cheap.decision == "continue"
    assert "for a cost of 1, a new run up to" in cheap.reason


def test_an_estimated_bound_is_called_so_and_ends_no_run_by_itself() -> None:
    for may_stop in (False, True):
        study = Study(chain(Stage("f", controls=X), Stage("g", controls=Y)), stop_on_estimated=may_stop)
        number = begun(study, runs=14)
        revision = study.revise(number)
        assert revision.kind == "estimated"
        assert revision.controls["x"] == study.trials[number].controls["x"]
        if revision.bound is None:
            assert revision.reason.startswith("Too few runs yet to trust an estimated bound")
        else:
            assert "Proven" not in revision.reason
        assert may_stop or revision.decision == "continue"


# ---- writing it down


def test_a_revision_is_an_event(opened: Open) -> None:
    study = opened(CHAIN, algorithm="gpn_ucb")
    number = begun(study)
    planned = dict(study.trials[number].controls)
    poor = min((-1.9375, -1.0, 0.0, 1.0, 1.9375), key=lambda y: study.predict(planned | {"y": y})["g"].upper[0])
    study.correct(number, controls={"y": poor})
    revision = study.revise(number, apply=True)
    after = study.trials[number]
    assert after.controls == revision.controls
    assert after.state == "running"
    assert after.outputs == {"f": PROCESS(planned)["f"]}
    event = study.events[-1]
    assert (event.kind, event.trial, event.data) == ("revised", number, {"controls": dict(revision.controls)})
    assert study.state.notes[number][-1] == f"the controls were revised, before: y = {poor!r}"
    again = study.revise(number, apply=True)  # nothing new is known
    assert again.controls == revision.controls
    assert len(study.events) == event.number + 1
    done = study.tell(number, {"g": PROCESS(after.controls)["g"]})
    assert done.value == PROCESS(after.controls)["g"][0]
    assert State.empty(CHAIN).replayed(study.events).trials == study.trials
    assert State.empty(CHAIN).replayed(study.events).taken == study.state.taken


def test_the_point_of_the_old_plan_is_free_again() -> None:
    study = Study(CHAIN, candidates=[[0.0, y] for y in (-1.0, 0.0, 1.0)], algorithm="gpn_ucb")
    study.add_trial({"x": 0.0, "y": 0.0}, PROCESS({"x": 0.0, "y": 0.0}))
    best = max((-1.0, 1.0), key=lambda y: study.predict({"x": 0.0, "y": y})["g"].upper[0])
    trial = study.begin_trial({"x": 0.0, "y": -best})
    study.tell_stage(trial, "f", PROCESS({"x": 0.0, "y": 0.0})["f"])
    study.revise(trial, apply=True)
    moved = study.trials[trial.number].controls["y"] != -best
    following = study.ask()
    assert following is not None
    assert following.controls["y"] == (-best if moved else best)


def test_a_stored_study_continues_from_the_log(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    study = Study.open(url, "alloy", CHAIN)
    for _ in revisions(study, PROCESS, 5):
        pass
    again = Study.open(url, "alloy")
    assert again.trials == study.trials
    following = again.ask()
    here = study.branch().ask() if following is None else following
    assert here == following
    store = Store(url)
    lines = exported(store, "alloy")
    assert any('"revised"' in line for line in lines)
    import_log(store, "copy", lines)
    assert Study.open(url, "copy").trials == again.trials


@pytest.mark.parametrize(
    ("controls", "message"),
    [
        ({"x": 0.5}, "control 'x' cannot be revised from .* because stage 'f' was run with it"),
        ({"y": 5.0}, r"must lie in \[-2, 2\]"),
        ({"t": 1.0}, "unknown: 't'"),
        ({}, "nothing to revise"),
    ],
)
def test_a_log_that_revises_what_was_run_is_refused(tmp_path: Path, controls: dict[str, float], message: str) -> None:
    study = Study.open(f"sqlite:///{tmp_path}/studies.db", "alloy", CHAIN)
    number = begun(study, runs=1)
    with pytest.raises(ArgumentError, match=message):
        study._changed(lambda change: change.append("revised", number, {"controls": controls}))
    with pytest.raises(ArgumentError, match="trial 0 is complete: only a running trial can be revised"):
        study._changed(lambda change: change.append("revised", 0, {"controls": controls}))


def test_what_cannot_be_revised_is_refused() -> None:
    study = Study(CHAIN)
    begun(study, runs=1)
    with pytest.raises(ArgumentError, match="there is no trial 7; the last one is 1"):
        study.revise(7)
    with pytest.raises(ArgumentError, match="trial 0 is complete: only a running trial"):
        study.revise(0)
    with pytest.raises(ArgumentError, match=r"trial 2 is waiting: .* can be revised; ask for it first"):
        study.revise(study.enqueue_trial({"x": 0.0, "y": 0.0}))
    study.fail(1, "broken")
    with pytest.raises(ArgumentError, match="trial 1 is failed"):
        study.revise(1)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([1.0], "costs must be a dict"),
        ({"h": 1.0}, "costs must name stages that have to be run, which are 'f', 'g'; got 'h'"),
        ({"f": 0.0}, "the cost of stage 'f' must be a finite number above 0; got 0.0"),
        ({"g": math.nan}, "the cost of stage 'g' must be a finite number above 0"),
        ({"g": "dear"}, "the cost of stage 'g' must be a number above 0"),
    ],
)
def test_costs_are_positive_and_of_stages(costs: Any, message: str) -> None:
    study = Study(CHAIN)
    number = begun(study, runs=1)
    with pytest.raises(ArgumentError, match=message):
        study.revise(number, costs=costs)


def test_a_plan_that_is_no_candidate_is_not_bounded_by_the_candidates() -> None:
    near: Any = {"kernel": SquaredExponential(1.0), "norm_bound": 1.0}
    network = chain(
        Stage("a", {"x": Real(0, 1)}, **near),
        Stage("b", {"z": Real(0, 1)}, kernel=SquaredExponential((1.0, 0.2)), norm_bound=1.5),
    )
    study = Study(network, candidates=[[0.0, 0.0], [0.0, 0.1]], tolerance=0.01)
    for z, b in ((0.0, 0.0), (0.1, 0.01)):
        study.add_trial({"x": 0.0, "z": z}, {"a": 0.1, "b": b})
    assert study.certificate().bound == pytest.approx(0.01)
    study.enqueue_trial({"x": 0.5, "z": 0.9})
    trial = study.ask()
    assert trial is not None
    study.tell_stage(trial, "a", 0.2)
    revision = study.revise(trial)
    assert revision.decision == "continue"
    assert revision.bound is not None
    assert revision.bound > 1.0  # the plan may give it


def test_the_best_value_in_a_theorem_is_not_rounded() -> None:
    study = Study(CHAIN)
    number = begun(study, runs=1)
    judge = study._judged(lambda _model, state: _Judge(state.network, study.certificate(), 1.23456789, 0.0, True))
    assert judge.decision(1.23456789, None, _Cost(1.0, ""), _Cost(2.0, ""))[1].endswith("the best, 1.23456789.")
    assert study.trials[number].state == "running"


def test_a_trial_whose_stages_were_all_run_is_refused() -> None:
    network = chain(stage("f", controls=X, limits={"f": (None, 1.0)}), stage("g", controls=Y))
    study = Study(network)
    trial = study.begin_trial({"x": 0.0, "y": 0.0})
    assert study.tell_stage(trial, "g", 0.5).state == "running"  # whether the limit holds is not known
    with pytest.raises(ArgumentError, match=r"every stage of trial 0 was run, .* tell the outputs of 'f'"):
        study.revise(trial)


def test_a_refuted_study_revises_nothing() -> None:
    study = Study(CHAIN)
    number = begun(study, runs=2)
    study.refute("the press was replaced")
    with pytest.raises(RefutedError, match="the press was replaced"):
        study.revise(number)


def test_a_trial_of_another_worker_is_not_revised(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    first, second = (Study.open(url, "alloy", CHAIN, worker=name) for name in ("first", "second"))
    first.add_trial({"x": 0.0, "y": 0.0}, PROCESS({"x": 0.0, "y": 0.0}))
    trial = first.ask(lease=60.0)
    assert trial is not None
    first.tell_stage(trial, "f", PROCESS(trial.controls)["f"])
    assert second.revise(trial).bound is not None  # without writing anything
    with pytest.raises(StoreError, match=r"is being run by the worker 'first'; .* and (revise|discard) it then"):
        second.revise(trial, apply=True)
    first.revise(trial, apply=True)


# ---- runs that are revised


@pytest.mark.parametrize("jobs", [None, 2])
@pytest.mark.parametrize("stored", [False, True])
def test_runs_are_revised_after_every_stage(tmp_path: Path, jobs: int | None, stored: bool) -> None:
    network = certified("join", 0).network
    study = Study.open(f"sqlite:///{tmp_path}/studies.db", "join", network) if stored else Study(network)
    result = study.optimise(budget=6, jobs=jobs, revise=True, progress=False)
    assert len(result.trials) == 6
    kinds = [event.kind for event in study.events]
    assert kinds.count("revised") + kinds.count("abandoned") > 0
    for trial in result.trials:
        right = Process(network)(trial.controls)
        assert all(trial.outputs[name] == right[name] for name in trial.outputs)
        assert trial.state == ("complete" if len(trial.outputs) == 3 else "abandoned")
        assert (trial.reason is None) == (trial.state == "complete")
    assert result.certificate.kind == "proven"


def test_revised_runs_end_in_a_proof() -> None:
    problem = certified("join", 1)
    result = maximise(problem.network, budget=40, tolerance=0.05, revise=True, progress=False)
    assert result.status == "tolerance"
    assert result.gap is not None
    assert result.best is not None
    assert result.best.value is not None
    assert 0 <= problem.optimum[1] - result.best.value <= result.gap
    assert any(trial.state == "abandoned" for trial in result.trials)


def test_a_minimised_process_is_revised() -> None:
    result = minimise(CHAIN, truth(CHAIN, 1), budget=6, revise=True, progress=False)
    assert len(result.trials) == 6


def test_a_stage_that_fails_after_a_revision_names_the_controls_that_were_set() -> None:
    network = certified("controls", 0).network

    def broken(s2_1: float, z: float) -> float:  # noqa: ARG001
        raise RuntimeError("broken")

    functions: dict[str, Any] = {stage.name: stage.function for stage in network.stages[:2]}
    bare = chain(*(_without_function(stage) for stage in network.stages))
    result = maximise(bare, {**functions, "s3": broken}, budget=2, revise=True, progress=False)
    assert [trial.state for trial in result.trials] == ["failed", "failed"]


def _without_function(given: Stage) -> Stage:
    return Stage(
        given.name, controls=given.controls, outputs=given.outputs, kernel=SquaredExponential(1.0), norm_bound=2.0
    )


def test_revise_does_not_work_with_what_reports_only_whole_runs() -> None:
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(ArgumentError, match="revise=True does not work with an executor"),
    ):
        maximise(CHAIN, truth(CHAIN, 1), budget=2, executor=pool, revise=True)
    with pytest.raises(ArgumentError, match=r"revise=True needs a function for every stage; got one evaluate\(\)"):
        maximise(CHAIN, lambda **controls: PROCESS(controls), budget=2, revise=True)
    with pytest.raises(ArgumentError, match="revise must be True or False; got 1"):
        maximise(CHAIN, truth(CHAIN, 1), budget=2, revise=1)  # type: ignore[arg-type]


def test_a_run_whose_trial_was_revised_elsewhere_is_told_as_a_run_of_its_own() -> None:
    """The lease ran out: another worker took the trial over and revised it, while this one went on with the plan."""
    study = Study(CHAIN, algorithm="gpn_ucb")
    study.add_trial({"x": 0.0, "y": 0.0}, PROCESS({"x": 0.0, "y": 0.0}))

    def slow(f: float, y: float) -> list[float]:
        if len(study.trials) == 2:
            study._changed(lambda change: change.revise(1, study.worker, {"y": 1.9}))
        return PROCESS._functions["g"](f=f, y=y)

    result = study.optimise({"f": PROCESS._functions["f"], "g": slow}, budget=4, progress=False)
    for trial in result.trials:
        assert all(PROCESS(trial.controls)[name] == values for name, values in trial.outputs.items())


def test_a_revision_in_words() -> None:
    revision = Revision(
        {"x": 1.0, "force": 28.5},
        44.125,
        {"x": 1.0, "force": 30.0},
        31.0,
        "continue",
        "Why.",
        planned={"x": 1.0, "force": 35.0},
    )
    assert str(revision) == "Set force 28.5 instead of 35.0 (at most 44.125; at least 31 with force 30.0).\nWhy."
    discarded = Revision({"x": 1.0}, -math.inf, None, None, "discard", "Why.", planned={"x": 1.0})
    assert str(discarded) == "Discard this batch. Why.\nTo go on with it nevertheless: Go on as planned."


def test_a_safe_study_revises_to_settings_that_are_proven_to_be_safe() -> None:
    network = chain(stage("f", controls=X), stage("g", controls=Y, limits={"g": (0.0, None)}))
    process = Process(network, truth(network, 1))
    grid = [{"x": x, "y": y} for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)]
    start = max(grid, key=lambda controls: process(controls)["g"][0])
    study = Study(network, safe=True)
    study.add_trial(start, process(start))
    found = list(revisions(study, process, 8))
    assert found
    for revised in found:
        if revised.revision.decision == "continue":
            assert process(revised.revision.controls)["g"][0] >= 0.0
    assert all(trial.outputs["g"][0] >= 0.0 for trial in study.trials if "g" in trial.outputs)


def test_a_revision_uses_the_costs_that_the_stages_declare() -> None:
    found = []
    for costs in (None, {"f": 1e9, "g": 1.0}):
        k = SquaredExponential(1.0)
        network = chain(
            Stage("f", controls={"x": Real(-2, 2)}, kernel=k, norm_bound=2.0, cost=1e9 if costs is None else 1.0),
            Stage("g", controls={"y": Real(-2, 2)}, kernel=k, norm_bound=2.0),
        )
        study = Study(network, tolerance=0.1)
        for x in (-1.0, 1.0):
            study.add_trial({"x": x, "y": 0.0}, {"f": 0.5 * x, "g": 0.2 * x})
        trial = study.begin_trial({"x": 0.0, "y": 1.0})
        study.tell_stage(trial, "f", 0.0)
        found.append(study.revise(trial, costs=costs).reason)
    assert found[0] == found[1]
    assert "for a cost of" in found[0]
