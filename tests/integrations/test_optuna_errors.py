"""The Optuna sampler with readings that have bounded errors."""

import math
from typing import Literal

import pytest

from tests.missing import need_module

need_module("optuna", "optuna")  # before anything that imports it
# ruff: noqa: E402

import optuna

from cascada.integrations.optuna import CascadaSampler
from tests.study.test_errors import NETWORK, readings


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_sampler_learns_from_readings_with_errors(direction: Literal["maximize", "minimize"]) -> None:
    sampler = CascadaSampler(NETWORK)
    study = optuna.create_study(direction=direction, sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        read = readings({"x": trial.suggest_float("x", -2, 2)})
        trial.set_user_attr("cascada:f", read["f"])
        return read["g"][0]

    study.optimize(objective, n_trials=4)
    study.enqueue_trial(dict(study.trials[0].params))  # the same setting again
    study.optimize(objective, n_trials=1)
    found = sampler.certificate(study)
    assert found.kind == "proven"
    assert found.recommended is not None
    assert found.best is None
    value, sign = math.cos(math.sin(found.recommended.controls["x"])), 1 if direction == "maximize" else -1
    assert sign * found.recommended.at_least <= sign * value
