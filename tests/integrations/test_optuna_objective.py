"""Objectives for Optuna: StagewiseObjective, which runs the stages and stores their outputs, and one of the user."""

import math
from typing import Any

import pytest

from tests.missing import need_module

need_module("optuna", "optuna")  # before anything that imports it
# ruff: noqa: E402

import optuna

from cascada.errors import ArgumentError
from cascada.integrations.optuna import CascadaSampler
from cascada.network import Stage, StageError, chain
from cascada.process import Process
from cascada.space import Real
from cascada.study import Study
from tests.integrations.optuna_cases import FUNCTIONS, created, cure, mix, network, own_study, points

PROCESS = Process(network(), FUNCTIONS)


def test_outputs_are_stored_when_a_stage_ends():
    seen = []

    def watching(mix: float, heat: float, turns: int) -> float:
        seen.append(study.trials[-1].user_attrs)
        return cure(mix, heat, turns)

    sampler = CascadaSampler(network())
    study = created(sampler)
    study.optimize(sampler.objective({"mix": mix, "cure": watching}), n_trials=1)
    trial = study.trials[0]
    assert seen == [{"cascada:mix": mix(trial.params["dose"])}]
    assert trial.user_attrs == {**seen[0], "cascada:cure": trial.value}


def test_one_function_for_all_stages_stores_the_outputs_of_each():
    def evaluate(**controls: float) -> dict[str, Any]:
        outputs = PROCESS(controls)
        return {"mix": {"mix": outputs["mix"][0]}, "cure": math.nan if len(study.trials) > 1 else outputs["cure"]}

    sampler = CascadaSampler(network())
    study = created(sampler)
    study.optimize(sampler.objective(evaluate), n_trials=2, catch=StageError)
    first, second = study.trials
    assert set(first.user_attrs) == {"cascada:mix", "cascada:cure"}
    assert (second.state.name, set(second.user_attrs)) == ("FAIL", {"cascada:mix"})


def test_functions_of_stages_and_a_list_are_combined():
    """Stages with several outputs, an input that is passed on and a formula; one function comes from a list."""
    process = chain(
        Stage("split", controls={"x": Real(0, 1)}, outputs=["a", "b", "x"], passes=["x"]),
        Stage("join", parents=["split"], function=lambda a, b, x: a * b + x),
        Stage("price", known=True, lipschitz=3.0, function=lambda join: 3 * join),
    )
    sampler = CascadaSampler(process)
    study = created(sampler)
    study.optimize(sampler.objective([lambda x: {"b": x**2, "a": math.sin(x), "x": x}]), n_trials=5)
    trial = study.trials[4]
    x = trial.params["x"]
    assert trial.user_attrs["cascada:split"] == [math.sin(x), x**2, x]
    assert trial.value == trial.user_attrs["cascada:price"] == 3 * trial.user_attrs["cascada:join"]
    assert sampler.certificate(study).kind == "estimated"
    with pytest.raises(ArgumentError, match="one function for each of the stages"):
        sampler.objective([math.sin, math.cos])


def test_an_objective_of_the_user_may_return_the_last_output():
    def objective(trial: optuna.Trial) -> float:
        if trial.number == 1:
            return math.nan
        trial.set_user_attr("cascada:mix", mix(trial.suggest_float("dose", -2, 2)))
        inputs = trial.suggest_float("heat", 0.1, 3, log=True), trial.suggest_int("turns", 1, 4)
        return cure(trial.user_attrs["cascada:mix"], *inputs)

    study = created(CascadaSampler(network(), seed=3))
    study.optimize(objective, n_trials=4)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]
    good = [trial for trial in study.trials if trial.params]
    assert points(good) == points(own_study(Study(network(), seed=3, replayable=True), 3))
