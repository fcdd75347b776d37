"""Steps in studies: stages that are run one at a time, the stock of their outputs, what they cost, and corrections."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.errors import ArgumentError, ContradictionError, StoreError
from cascada.store.database import Store
from cascada.study import Study
from cascada.study.log_file import exported, import_log
from cascada.study.state import State
from cascada.study.stock import portions_left, stock_of
from tests.study.conftest import Clock

Open = Callable[..., Study]
K = cd.SquaredExponential(1.0)
FUNCTIONS: dict[str, Callable[..., float]] = {
    "f": lambda x: 0.6 * math.exp(-((x - 0.5) ** 2) / 2),
    "g": lambda f, y: math.exp(-((f - 0.3) ** 2 + (y + 0.2) ** 2) / 2),
}


def process(f: dict[str, Any] | None = None, g: dict[str, Any] | None = None) -> cd.Network:
    """Two stages, the second of which can be run on outputs that were kept."""
    given: dict[str, Any] = {"kernel": K, "norm_bound": 2.0}
    first = given | {"controls": {"x": cd.Real(-2, 2)}, "cost": 10, "portions": math.inf} | (f or {})
    second = given | {"controls": {"y": cd.Real(-2, 2)}, "cost": 1, "reachable": "stock"} | (g or {})
    return cd.chain(cd.Stage("f", **first), cd.Stage("g", **second))


def stepped(study: Study, steps: int) -> Study:
    """The study after so many steps."""
    for _ in range(steps):
        step = study.ask_step()
        assert step is not None
        study.tell_stage(step, FUNCTIONS[step.stage](**step.inputs))
    return study


def states(study: Study) -> list[str]:
    return [trial.state for trial in study.trials]


# ---- asking and telling


def test_a_run_in_two_steps_is_a_complete_run_of_its_last_trial(opened: Open) -> None:
    study = opened(process())
    first = study.ask_step()
    assert first is not None
    assert (first.stage, first.trial, first.takes, first.cost, first.then) == ("f", 0, {}, 10.0, ())
    assert set(first.inputs) == {"x"}
    assert first.reason
    trial = study.tell_stage(first, FUNCTIONS["f"](**first.inputs))
    assert (trial.state, trial.cost, trial.value) == ("partial", 10.0, None)
    second = study.ask_step()
    assert second is not None
    assert (second.stage, second.trial, second.takes, second.cost) == ("g", 1, {"f": 0}, 1.0)
    assert second.inputs["f"] == trial.outputs["f"][0]
    value = FUNCTIONS["g"](**second.inputs)
    done = study.tell_stage(second, value)
    assert (done.state, done.value, done.cost, done.taken) == ("complete", value, 1.0, {"f": 0})
    assert done.outputs["f"] == trial.outputs["f"]
    assert done.controls["x"] == trial.controls["x"]
    assert study.spent == 11.0
    assert study.best_trial == done


def test_steps_are_the_same_in_every_kind_of_study_and_after_reopening(opened: Open) -> None:
    memory = stepped(Study(process(), replayable=True), 5)
    study = stepped(opened(process()), 3)
    if study.name is not None:
        study = opened(process())
    else:
        study = Study(process(), replayable=True)
        stepped(study, 3)
    stepped(study, 2)
    assert [(t.controls, t.outputs, t.taken, t.why) for t in study.trials] == [
        (t.controls, t.outputs, t.taken, t.why) for t in memory.trials
    ]
    assert study.certificate().bound == memory.certificate().bound
    assert study.ask_step() == memory.ask_step()


def test_the_state_follows_from_the_log(opened: Open) -> None:
    study = stepped(opened(process()), 4)
    study.measure("g", {"f": 0.2, "y": 0.1}, FUNCTIONS["g"](0.2, 0.1))
    again = State.empty(study.network).replayed(study.events)
    assert again.trials == study.trials
    assert again.measurements[0].outputs == study.measurements[0].outputs
    assert again.spent == study.spent


def test_nothing_that_is_proven_in_steps_is_wrong() -> None:
    study = Study(process(), tolerance=0.05)
    truth = max(FUNCTIONS["g"](FUNCTIONS["f"](x), y) for x in np.linspace(-2, 2, 81) for y in np.linspace(-2, 2, 81))
    for _ in range(60):
        step = study.ask_step()
        if step is None:
            break
        study.tell_stage(step, FUNCTIONS[step.stage](**step.inputs))
        certificate = study.certificate()
        if certificate.gap is not None and certificate.bound is not None and certificate.reached is not None:
            assert certificate.bound >= truth
            found = certificate.recommended or study.best_trial
            assert found is not None
            controls = found.controls
            value = FUNCTIONS["g"](FUNCTIONS["f"](controls["x"]), controls["y"])
            assert value >= certificate.reached - 1e-9
    assert study.within_tolerance
    assert study.spent < 11 * sum(trial.state == "complete" for trial in study.trials)


def test_a_step_of_which_a_lease_ran_out_is_handed_out_again(opened: Open, clock: Clock) -> None:
    study = opened(process())
    step = study.ask_step(lease=5.0)
    clock.now += 6.0
    again = study.ask_step()
    assert again == step
    assert states(study) == ["running"]


def test_several_steps_can_be_under_way(opened: Open) -> None:
    study = stepped(opened(process()), 2)
    steps = [study.ask_step() for _ in range(3)]
    assert None not in steps
    assert len({(s.stage, *s.inputs.values()) for s in steps if s is not None}) == 3
    for step in reversed(steps):
        assert step is not None
        study.tell_stage(step, FUNCTIONS[step.stage](**step.inputs))
    assert "running" not in states(study)


def test_a_failed_step_is_charged_and_uses_up_its_material(opened: Open) -> None:
    study = opened(process({"portions": 1}))
    stepped(study, 1)
    step = study.ask_step()
    assert step is not None
    assert step.takes == {"f": 0}
    study.fail(step, "the press broke", tries={"g": 2})
    assert study.trials[1].costs == {"g": 2.0}
    assert study.spent == 12.0
    assert not stock_of(study.network, study.trials, study.state.prices).items


def test_abandoning_a_step_gives_its_material_back(opened: Open) -> None:
    study = stepped(opened(process({"portions": 1})), 1)
    step = study.ask_step()
    assert step is not None
    study.abandon(step)
    assert study.spent == 10.0
    assert portions_left(study.network, study.trials) == {(0, "f"): {"g": 1}}


def test_what_was_thrown_away_is_data_and_not_in_stock(opened: Open) -> None:
    study = stepped(opened(process()), 1)
    assert study.abandon(0, "spilt").state == "abandoned"
    assert not portions_left(study.network, study.trials)
    assert study.beliefs.predict(dict(study.trials[0].controls))["f"].sd[0] < 1e-3
    study.correct(0, "f", 0.3)
    assert study.trials[0].state == "abandoned"
    step = study.ask_step()
    assert step is not None
    assert step.stage == "f"


def test_a_step_on_what_was_withdrawn_is_not_handed_out_again(opened: Open, clock: Clock) -> None:
    study = stepped(opened(process()), 1)
    step = study.ask_step(lease=5.0)
    assert step is not None
    assert step.takes == {"f": 0}
    clock.now += 6.0
    study.retract(0, "f")
    study.tell_stage(0, "f", 0.3)
    waiting = study.ask_step()
    assert waiting is not None
    assert waiting.trial == 2
    assert study.trials[1].state == "abandoned"


def test_portions_are_used_up_by_each_later_run() -> None:
    study = Study(process({"portions": 2}))
    stepped(study, 1)
    left = [portions_left(study.network, study.trials)[0, "f"]["g"]]
    for _ in range(12):
        step = study.ask_step()
        assert step is not None
        study.tell_stage(step, FUNCTIONS[step.stage](**step.inputs))
        left.append(portions_left(study.network, study.trials)[0, "f"]["g"])
    assert left[0] == 2
    assert min(left) >= 0
    taken = [trial.taken.get("f") for trial in study.trials if trial.steps == ("g",)]
    assert max(taken.count(number) for number in taken) <= 2


def test_stages_that_need_their_parents_are_run_in_one_step() -> None:
    network = cd.chain(
        cd.Stage("f", controls={"x": cd.Real(-2, 2)}, kernel=K, norm_bound=2.0, cost=2),
        cd.Stage("g", controls={"y": cd.Real(-2, 2)}, kernel=K, norm_bound=2.0, cost=3, portions=math.inf),
        cd.Stage("h", kernel=K, norm_bound=2.0, reachable="stock"),
    )
    study = Study(network)
    step = study.ask_step()
    assert step is not None
    assert (step.stage, step.then, step.cost) == ("f", ("g",), 5.0)
    assert study.tell_stage(step, 0.1).state == "running"
    assert study.tell_stage(step.trial, "g", 0.2).state == "partial"
    after = study.ask_step()
    assert after is not None
    assert (after.stage, after.takes) == ("h", {"g": 0})


def test_who_goes_on_without_asking_pays_for_it_and_uses_up_material() -> None:
    study = Study(process({"portions": 1}))
    step = study.ask_step()
    assert step is not None
    trial = study.tell(step, {"f": 0.3, "g": 0.5})
    assert (trial.state, trial.costs) == ("complete", {"f": 10.0, "g": 1.0})
    assert portions_left(study.network, study.trials) == {(0, "f"): {"g": 0}}


def test_enqueued_runs_come_first_as_whole_runs(opened: Open) -> None:
    study = opened(process())
    study.enqueue_trial({"x": 0.5, "y": 0.5})
    step = study.ask_step()
    assert step is not None
    assert (step.stage, step.then, step.trial, step.cost) == ("f", ("g",), 0, 11.0)
    assert study.ask() is not None  # a new run: the enqueued one is under way
    study.tell(step, {"f": 0.5, "g": 0.1})
    assert study.trials[0].state == "complete"


# ---- measurements and decoupled steps


def test_a_measurement_is_data_of_its_stage_and_no_run(opened: Open) -> None:
    study = opened(process())
    before = study.beliefs.predict({"x": 0.0, "y": 0.0})["g"].sd[0]
    measured = study.measure("g", {"f": 0.0, "y": 0.0}, 0.3)
    assert (measured.number, measured.stage, measured.outputs) == (0, "g", (0.3,))
    assert study.beliefs.predict({"x": 0.0, "y": 0.0})["g"].sd[0] < 1e-3 < before
    assert (study.trials, study.spent, study.best_trial) == ((), 0.0, None)


def test_a_measurement_of_the_last_stage_proves_a_setting_without_any_run(opened: Open) -> None:
    study = opened(process())
    for f in (0.0, 0.2, 0.4):
        study.measure("g", {"f": f, "y": -0.2}, FUNCTIONS["g"](f, -0.2))
    study.measure("f", {"x": 0.5}, FUNCTIONS["f"](0.5))
    certificate = study.certificate()
    assert certificate.kind == "proven"
    assert certificate.recommended is not None
    assert (certificate.best, certificate.evaluations) == (None, 0)
    assert certificate.gap is not None
    controls = certificate.recommended.controls
    assert FUNCTIONS["g"](FUNCTIONS["f"](controls["x"]), controls["y"]) >= certificate.recommended.at_least


def test_a_stage_does_not_learn_from_values_that_were_set_in_its_place() -> None:
    network = cd.Network(
        [
            cd.Stage("a", controls={"x": cd.Real(-2, 2)}, kernel=K, norm_bound=2.0),
            cd.Stage("b", controls={"x": cd.Real(-2, 2)}, parents=["a"], kernel=K, norm_bound=2.0, reachable="any"),
        ]
    )
    study = Study(network)
    study.measure("b", {"a": 0.7, "x": 0.5}, 0.1)  # a(0.5) is not 0.7
    assert study.beliefs.predict({"x": 0.5})["a"].sd[0] == 1.0


def test_evidence_names_the_measurements(opened: Open) -> None:
    study = opened(process())
    study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.1, "g": 0.5})
    study.measure("f", {"x": 1.0}, 0.2)
    study.measure("f", {"x": 0.01}, 1.9)
    certificate = study.certificate()
    assert certificate.kind == "refuted"
    assert "trial 0 and measurement" in " ".join(certificate.evidence)


def test_a_corrected_measurement_counts_as_it_is_now(opened: Open) -> None:
    study = opened(process())
    study.measure("f", {"x": 0.0}, 1.5)
    study.measure("f", {"x": 0.01}, -1.5)
    assert study.refuted
    study.correct_measurement(1, 1.5, "a sign")
    assert not study.refuted
    assert [m.outputs for m in study.measurements] == [(1.5,), (1.5,)]
    study.correct_measurement(1, None)
    fresh = opened(process(), **({} if study.name is None else {"worker": "other"})) if study.name else Study(process())
    if study.name is None:
        fresh.measure("f", {"x": 0.0}, 1.5)
    assert fresh.beliefs.predict({"x": 0.3, "y": 0.0})["f"].mean[0] == pytest.approx(
        study.beliefs.predict({"x": 0.3, "y": 0.0})["f"].mean[0]
    )


@pytest.mark.parametrize(
    ("stage", "inputs", "outputs", "message"),
    [
        ("h", {"x": 0.0}, 1.0, "there is no stage 'h'"),
        (3, {"x": 0.0}, 1.0, "name the stage by its name; got 3"),
        ("g", {"y": 0.0}, 1.0, "stage 'g' is measured at values of its inputs f, y; got"),
        ("g", {"f": 0.0, "Y": 0.0}, 1.0, r"got {'f': 0.0, 'Y': 0.0} \(did you mean y\?\)"),
        ("g", 0.5, 1.0, "stage 'g' is measured at values of its inputs f, y; got 0.5"),
        ("g", {"f": math.nan, "y": 0.0}, 1.0, "f must be a finite number; got nan"),
        ("g", {"f": "1", "y": 0.0}, 1.0, "f must be a finite number; got '1'"),
        ("g", {"f": 0.1, "y": 3.0}, 1.0, "y must lie in its range, from -2 to 2"),
        ("g", {"f": 0.1, "y": 0.0}, math.inf, "the measurement of stage 'g'"),
    ],
)
def test_an_impossible_measurement_is_refused(stage: Any, inputs: Any, outputs: Any, message: str) -> None:
    study = Study(process())
    with pytest.raises(ArgumentError, match=message):
        study.measure(stage, inputs, outputs)
    assert not study.measurements
    with pytest.raises(ArgumentError, match="there is no measurement 0; 0 were told"):
        study.correct_measurement(0, 1.0)


def decoupled(study: Study) -> cd.Step:
    """A decoupled step that is under way."""
    for _ in range(30):
        step = study.ask_step()
        assert step is not None
        if step.stage == "g" and not step.takes:
            return step
        study.tell_stage(step, FUNCTIONS[step.stage](**step.inputs))
    raise AssertionError("no decoupled step")


def test_a_decoupled_step_is_data_of_its_stage_and_no_run() -> None:
    study = Study(process(g={"reachable": "any"}))
    step = decoupled(study)
    complete = [trial.state for trial in study.trials].count("complete")
    told = study.tell_stage(step, 0.9)
    assert (told.state, told.value, told.closed, told.cost) == ("partial", None, False, 1.0)
    assert states(study).count("complete") == complete
    study.tell_stage(step, 0.9)  # again, which changes nothing
    with pytest.raises(ContradictionError, match="was told as"):
        study.tell_stage(step, 0.8)
    with pytest.raises(ArgumentError, match="takes no outputs of stage 'f'"):
        study.tell(step, {"f": 0.1})
    study.correct(step.trial, "g", 0.8)
    assert study.trials[step.trial].outputs["g"] == (0.8,)
    study.retract(step.trial, "g")
    assert study.trials[step.trial].state == "running"


# ---- corrections of what was taken


def test_a_correction_changes_all_trials_that_took_the_value(opened: Open) -> None:
    study = stepped(opened(process()), 4)
    takers = [trial.number for trial in study.trials if trial.taken.get("f") == 0]
    assert takers
    study.correct(0, "f", 0.25)
    assert all(study.trials[number].outputs["f"] == (0.25,) for number in (0, *takers))
    assert State.empty(study.network).replayed(study.events).trials == study.trials
    right = Study(process(), replayable=True)
    for trial in study.trials:
        if "g" in trial.outputs:
            right.add_trial(trial.controls, trial.outputs)
    mean = study.beliefs.predict({"x": 0.3, "y": 0.1})["g"].mean[0]
    assert mean == pytest.approx(right.beliefs.predict({"x": 0.3, "y": 0.1})["g"].mean[0], abs=1e-6)
    with pytest.raises(
        ArgumentError, match="took the outputs of stage 'f' from trial 0; correct or retract them there"
    ):
        study.correct(takers[0], "f", 0.3)


def test_a_retracted_output_is_unknown_in_all_trials_that_took_it(opened: Open) -> None:
    study = stepped(opened(process()), 2)
    study.retract(0, "f")
    assert [trial.state for trial in study.trials] == ["running", "complete"]
    assert "f" not in study.trials[1].outputs
    assert study.trials[1].value is not None  # the run gave it, whatever its first stage gave
    study.tell_stage(0, "f", 0.3)
    assert study.trials[0].state == "partial"


def test_controls_of_what_was_taken_cannot_be_corrected(opened: Open) -> None:
    study = stepped(opened(process()), 2)
    with pytest.raises(
        ArgumentError, match=r"the controls of stage 'f' in trial 0 cannot be corrected: trials 1 went on"
    ):
        study.correct(0, controls={"x": 0.1})
    with pytest.raises(ArgumentError, match="with them its controls, from trial 0; they cannot be corrected here"):
        study.correct(1, controls={"x": 0.1})
    study.correct(1, controls={"y": 0.1})
    assert study.trials[1].controls["y"] == 0.1


# ---- money


def test_a_budget_in_money_is_never_exceeded() -> None:
    result = cd.maximise(process(), FUNCTIONS, budget=cd.Cost(35), progress=False)
    assert result.status == "budget"
    assert 25 < result.cost <= 35
    assert result.cost == sum(trial.cost for trial in result.trials)


def test_whole_runs_are_counted_in_money_where_no_stage_can_be_run_by_itself() -> None:
    network = process(g={"reachable": "run"})
    result = cd.maximise(network, FUNCTIONS, budget=cd.Cost(35), progress=False)
    assert (result.status, result.cost, len(result.trials)) == ("budget", 33.0, 3)
    assert all(trial.state == "complete" for trial in result.trials)


def test_retries_are_charged() -> None:
    failing = iter([True, False] * 100)

    def g(f: float, y: float) -> float:
        if next(failing):
            raise RuntimeError("now and then")
        return FUNCTIONS["g"](f, y)

    network = process(g={"retries": 1})
    result = cd.maximise(network, {"f": FUNCTIONS["f"], "g": g}, budget=cd.Cost(24), progress=False)
    assert result.trials[1].costs == {"g": 2.0}


def test_the_price_is_that_of_the_time_of_a_step(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = stepped(Study.open(url, "s", process()), 2)
    study.close()
    study = Study.open(url, "s", process({"cost": 20}, {"cost": 2}), amend=True)
    assert study.spent == 11.0
    before = len(study.trials)
    stepped(study, 1)
    assert study.trials[before].cost in (2.0, 20.0)
    study.close()
    assert Study.open(url, "s").spent == study.spent


def test_a_past_run_costs_nothing() -> None:
    study = Study(process())
    study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.1, "g": 0.2})
    assert study.spent == 0.0


@pytest.mark.parametrize("amount", [0, -1, math.inf, math.nan, "5", True, None])
def test_a_cost_must_be_a_finite_number_above_zero(amount: Any) -> None:
    with pytest.raises(ArgumentError, match="Cost takes a finite number above 0; got"):
        cd.Cost(amount)


# ---- executors


@pytest.mark.parametrize("jobs", [1, 2])
def test_steps_run_in_this_thread_and_in_processes(jobs: int, tmp_path: Path) -> None:
    study = Study.open(f"sqlite:///{tmp_path}/s.db", "s", process(g={"reachable": "any"}))
    result = study.optimise(FUNCTIONS, budget=cd.Cost(26), jobs=jobs, progress=False)
    assert result.status == "budget"
    assert {trial.steps for trial in result.trials} == {("f",), ("g",)}
    for trial in result.trials:
        assert trial.state in ("partial", "complete")
        given = {**(trial.set_outputs or {}), **trial.outputs}
        if trial.steps == ("g",):
            assert trial.outputs["g"][0] == FUNCTIONS["g"](given["f"][0], trial.controls["y"])


def test_steps_run_on_an_executor() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as executor:
        result = cd.maximise(process(), FUNCTIONS, budget=cd.Cost(30), executor=executor, progress=False)
    assert result.status == "budget"
    assert sum(trial.state == "complete" for trial in result.trials) >= 1


# ---- refusals


def test_steps_need_a_stage_that_can_be_run_by_itself() -> None:
    with pytest.raises(ArgumentError, match="no stage of this process can be run by itself"):
        Study(process(g={"reachable": "run"})).ask_step()
    with pytest.raises(ArgumentError, match="steps are not chosen by the algorithm RandomSearch"):
        Study(process(), algorithm="random_search").ask_step()


@pytest.mark.parametrize(
    ("f", "g", "options", "word"),
    [
        ({}, {}, {"candidates": cd.Grid({"x": 3, "y": 3})}, "candidates="),
        ({}, {"controls": {"y": cd.Real(-2, 2, deviation=0.1)}}, {}, "deviation=, which y has"),
        ({}, {"controls": {"y": cd.Real(-2, 2, context=True)}}, {}, "context=True, which y has"),
        ({"error": cd.SubGaussian(0.1)}, {}, {}, "error=SubGaussian"),
        ({"error": 0.1, "forwards": "reading"}, {}, {}, "forwards='reading' at stage 'f'"),
        ({"limits": {"f": (None, 1)}}, {}, {"safe": True}, "safe=True"),
    ],
)
def test_what_does_not_work_with_steps_is_refused_by_name(
    f: dict[str, Any], g: dict[str, Any], options: dict[str, Any], word: str
) -> None:
    with pytest.raises(ArgumentError, match=f"reachable='stock', which stage 'g' has, does not work with {word}"):
        Study(process(f, g), **options)


def test_budgets_in_money_that_cannot_be_kept_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"budget=Cost\(...\) does not work with NonAdaptive"):
        cd.maximise(process(), FUNCTIONS, budget=cd.Cost(30), algorithm="non_adaptive", progress=False)
    with pytest.raises(ArgumentError, match="revise=True does not work with budget=Cost"):
        cd.maximise(process(), FUNCTIONS, budget=cd.Cost(30), revise=True, progress=False)
    with pytest.raises(ArgumentError, match=r"got one evaluate\(\)"):
        cd.maximise(process(), lambda **_: {}, budget=cd.Cost(30), progress=False)
    with pytest.raises(ArgumentError, match="limit must be a Cost"):
        Study(process()).ask_step(limit=3)  # type: ignore[arg-type]
    study = Study(process())
    assert study.ask_step() is not None
    with pytest.raises(ArgumentError, match="and revise is for whole runs"):
        study.revise(0)


# ---- logs


def test_a_log_with_steps_is_imported_as_it_was(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = stepped(Study.open(url, "s", process(g={"reachable": "any"})), 8)
    study.measure("g", {"f": 0.2, "y": 0.1}, 0.5)
    store = Store(url)
    lines = exported(store, "s")
    import_log(store, "t", lines)
    again = Study.open(url, "t")
    assert [(t.steps, t.taken, t.outputs, t.costs) for t in again.trials] == [
        (t.steps, t.taken, t.outputs, t.costs) for t in study.trials
    ]
    assert again.ask_step() == study.ask_step()


@pytest.mark.parametrize(
    "data",
    [
        {"steps": ["h"]},
        {"steps": ["g"], "from": {"f": 7}},
        {"steps": ["g"], "from": {"g": 0}},
        {"steps": ["f"], "from": {"f": 0}},
    ],
)
def test_an_impossible_step_in_a_log_is_refused(data: dict[str, Any]) -> None:
    study = stepped(Study(process()), 1)
    with pytest.raises((StoreError, ArgumentError)):
        study._changed(lambda change: change.begin("asked", study.trials[0].controls, **data))
    elsewhere = {**study.trials[0].controls, "x": 1.9}
    with pytest.raises(StoreError, match="was run at x"):
        study._changed(lambda change: change.begin("asked", elsewhere, steps=["g"], **{"from": {"f": 0}}))
    assert len(study.trials) == 1


@pytest.mark.parametrize(
    ("f", "g", "sense"),
    [
        ({"limits": {"f": (None, 0.5)}}, {}, 1),
        ({}, {}, -1),
        ({"norm_bound": None, "kernel": None}, {"norm_bound": None, "kernel": None}, 1),
        ({"error": 0.01}, {"error": 0.02}, 1),
        ({"error": 0.01}, {"error": 0.02, "reachable": "any"}, 1),
    ],
)
def test_steps_work_with_limits_minimisation_unknown_norms_and_bounded_errors(
    f: dict[str, Any], g: dict[str, Any], sense: int
) -> None:
    study = Study(process(f, g) if sense > 0 else process(f, g).mirrored())
    for _ in range(8 if study.network.estimated else 5):
        step = study.ask_step()
        assert step is not None
        for name in (step.stage, *step.then):
            study.tell_stage(step.trial, name, FUNCTIONS[name](**_inputs(study, step, name)))
    assert study.certificate().kind == ("estimated" if study.network.estimated else "proven")
    assert "running" not in states(study)
    assert "complete" in states(study)


def _inputs(study: Study, step: cd.Step, name: str) -> dict[str, Any]:
    if name == step.stage:
        return dict(step.inputs)
    trial = study.trials[step.trial]
    return {"f": trial.outputs["f"][0], "y": trial.controls["y"]}


def test_steps_and_measurements_take_unordered_controls() -> None:
    choice = {"x": cd.Real(-2, 2), "m": cd.Choice(["A", "B"])}
    study = Study(process({"controls": choice}, {"reachable": "any"}))
    values = {"A": 0.5, "B": 0.3}
    for _ in range(5):
        step = study.ask_step()
        assert step is not None
        given = dict(step.inputs)
        study.tell_stage(step, values[given["m"]] if step.stage == "f" else FUNCTIONS["g"](**given))
    measured = study.measure("f", {"x": 0.1, "m": "B"}, 0.3)
    assert measured.inputs == {"x": 0.1, "m": "B"}
    assert study.certificate().kind == "proven"
    with pytest.raises(ArgumentError, match="control 'm' must be one of 'A', 'B'; got 'C'"):
        study.measure("f", {"x": 0.1, "m": "C"}, 0.3)


@pytest.mark.parametrize("tries", [{"f": 0}, {"f": 1.5}, {"f": True}, 3])
def test_tries_are_whole_numbers(tries: Any) -> None:
    study = Study(process())
    step = study.ask_step()
    assert step is not None
    with pytest.raises(ArgumentError, match="tries"):
        study.tell(step, {"f": 0.1}, tries=tries)
    with pytest.raises(ArgumentError, match="tries"):
        study.fail(step, "no", tries=tries)
    assert study.spent == 0.0


def test_optuna_runs_no_steps() -> None:
    pytest.importorskip("optuna")
    from cascada.integrations.optuna import CascadaSampler

    with pytest.raises(ArgumentError, match="do not work with Optuna, whose trials are whole runs"):
        CascadaSampler(process())


def test_measurements_are_kept_where_the_model_learns_a_selection_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cascada.study.selection.MOST_RUNS", 12)
    study = Study(process())
    study.measure("f", {"x": 1.9}, FUNCTIONS["f"](1.9))
    rng = np.random.default_rng(0)
    for x, y in rng.uniform(-2, 0, (30, 2)).tolist():
        study.add_trial({"x": x, "y": y}, {"f": FUNCTIONS["f"](x), "g": FUNCTIONS["g"](FUNCTIONS["f"](x), y)})
    assert study.model.runs is not None
    assert study.beliefs.predict({"x": 1.9, "y": 0.0})["f"].sd[0] < 1e-3
    study.measure("f", {"x": 1.5}, FUNCTIONS["f"](1.5))
    assert study.beliefs.predict({"x": 1.5, "y": 0.0})["f"].sd[0] < 1e-3
    assert study.certificate().kind == "proven"


def test_a_correction_of_what_a_step_of_two_runs_took_changes_its_inputs() -> None:
    formula = cd.Stage("s", parents=["a", "b"], known=True, lipschitz=2.0, function=lambda a, b: a + b)
    given: dict[str, Any] = {"kernel": K, "norm_bound": 2.0, "portions": math.inf}
    a = cd.Stage("a", {"x": cd.Real(-2, 2)}, parents=[], **given)
    b = cd.Stage("b", {"x": cd.Real(-2, 2)}, parents=[], **given)
    c = cd.Stage("c", parents=["s", "b"], kernel=K, norm_bound=2.0, reachable="stock")
    study = Study(cd.Network([a, b, formula, c], objective="c.c"))

    def asked(controls: float, **data: Any) -> int:
        return study._changed(lambda change: change.begin("asked", {"x": controls}, **data)).number

    study.tell(asked(0.0, steps=["a"]), {"a": 0.1})
    study.tell(asked(1.0, steps=["b"]), {"b": 0.2})
    mixed = asked(0.0, steps=["c"], **{"from": {"a": 0, "b": 1}, "set": {"s": [0.1 + 0.2], "b": [0.2]}})
    study.tell(mixed, {"c": 0.5})
    assert study.trials[mixed].value is None
    assert len(study.model.singles) == 1
    study.correct(1, "b", 0.3)  # from which s was computed as well
    after = study.trials[mixed].set_outputs
    assert after is not None
    assert after["b"] == (0.3,)
    assert math.isnan(after["s"][0])
    assert State.empty(study.network).replayed(study.events).trials[mixed].outputs == {"c": (0.5,)}
    assert study.beliefs.predict({"x": 0.0})["c"].sd[0] == 1.0  # its input is not known any more


# ---- branches that meet in a formula, or in a limit


def meeting(limited: bool, **given: Any) -> cd.Network:
    """Two stages of the same control, as the two branches of a formula, or the first one as a limit of the second."""
    control, given = {"x": cd.Real(-2, 2)}, {**given, "reachable": "stock"}
    first = cd.Stage("a", control, **given, cost=1, limits={"a": (None, 10.0)} if limited else None)
    second = cd.Stage("b", control, **given, cost=4, parents=[])
    if limited:
        return cd.Network([first, second], objective="b")
    added = cd.Stage("sum", parents=["a", "b"], known=True, function=lambda a, b: a + b, lipschitz=1.5)
    return cd.Network([first, second, added])


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("norms", [{"kernel": K, "norm_bound": 2.0}, {}])
def test_steps_of_branches_become_complete_runs(limited: bool, norms: dict[str, Any]) -> None:
    functions = {"a": lambda x: math.exp(-((x - 0.5) ** 2)), "b": lambda x: math.exp(-((x + 0.3) ** 2))}
    study = Study(meeting(limited, **norms))
    while study.spent < 30 and (step := study.ask_step()) is not None:
        study.tell_stage(step, functions[step.stage](**step.inputs))
    steps = [trial for trial in study.trials if trial.steps]
    joined = [trial for trial in steps if trial.state == "complete"]
    assert joined
    assert all(set(trial.outputs) >= {"a", "b"} and len(trial.taken) == 1 for trial in joined)
    begun = [trial.run for trial in steps if trial.run is not None]
    assert len({trial.run for trial in joined} & set(begun)) >= len(set(begun)) - 1  # the last may be under way
