"""Limits of a network as Optuna's constraints, in Optuna 5 (`set_constraint`) and in Optuna 4 (`constraints_func`)."""

import math
import pickle
from typing import Any

import pytest

from tests.missing import need_module

need_module("optuna", "optuna")  # before anything that imports it
# ruff: noqa: E402

import optuna

from cascada.errors import ArgumentError, ContradictionError
from cascada.integrations.optuna import CascadaSampler
from cascada.integrations.optuna_replay import Replay
from cascada.network import Network, Stage, chain
from cascada.space import Real
from cascada.study import Study
from tests.integrations.optuna_cases import created, own_study, points

BY_NAME = hasattr(optuna.trial.FrozenTrial, "set_constraint")  # Optuna 5


def mix(dose: float) -> float:
    return math.sin(1.3 * dose)


def cure(mix: float, heat: float) -> tuple[float, float]:
    return math.cos(mix - 0.5) * math.exp(-0.3 * (heat - 1.0) ** 2), heat**2 + mix


def limited(**options: Any) -> Network:
    """Dose and heat; mix must be at least 0.1, and the loss between 0.2 and 0.9."""
    return chain(
        Stage("mix", controls={"dose": Real(-2, 2)}, limits={"mix": (0.1, None)}, **options),
        Stage("cure", controls={"heat": Real(0, 2)}, outputs=["strength", "loss"], limits={"loss": (0.2, 0.9)}),
        objective="cure.strength",
    )


def constraints(trial: optuna.trial.FrozenTrial) -> list[float]:
    """The constraints of a trial in any version of Optuna."""
    return list(trial.constraints.values() if BY_NAME else trial.system_attrs.get("constraints", ()))


def known(study: optuna.Study, network: Network) -> Study:
    return Replay({}).snapshot(network, study.get_trials()).study


def test_limits_are_stored_as_constraints_and_decide_which_trial_is_best():
    sampler = CascadaSampler(limited(), seed=1)
    assert sampler.constraints == ("mix ≥ 0.1", "loss ≥ 0.2", "loss ≤ 0.9")
    study = created(sampler)
    study.optimize(sampler.objective([mix, cure]), n_trials=9)
    for trial in study.trials:
        mixed, (_, loss) = trial.user_attrs["cascada:mix"], trial.user_attrs["cascada:cure"]
        assert constraints(trial) == [0.1 - mixed, 0.2 - loss, loss - 0.9]
    ours = own_study(cascada := Study(limited(), seed=1, replayable=True), 9, [mix, cure])
    assert points(study.trials) == points(ours)
    best = cascada.best_trial
    assert best is not None
    assert (study.best_params, study.best_value) == (best.controls, best.value)
    assert max(trial.value for trial in study.trials) > study.best_value  # which breaks a limit
    assert sampler.certificate(study).best == best.value


def by_hand(trial: optuna.Trial) -> float:
    """An objective that stores the outputs of the second stage only: the first follows from a constraint."""
    mixed = mix(trial.suggest_float("dose", -2, 2))
    outputs = cure(mixed, trial.suggest_float("heat", 0, 2))
    trial.set_user_attr("cascada:cure", outputs)
    if BY_NAME:
        trial.set_constraint("mix ≥ 0.1", 0.1 - mixed)
    trial.set_user_attr("mixed", mixed)
    return outputs[0]


def test_an_output_follows_from_its_constraint():
    def listed(trial: optuna.trial.FrozenTrial) -> list[float]:
        mixed, loss = trial.user_attrs["mixed"], trial.user_attrs["cascada:cure"][1]
        return [0.1 - mixed, 0.2 - loss, loss - 0.9]

    sampler = CascadaSampler(limited(), constraints_func=None if BY_NAME else listed)
    study = created(sampler)
    study.optimize(by_hand, n_trials=3)
    for theirs, ours in zip(study.trials, known(study, limited()).trials, strict=True):
        assert ours.state == "complete"
        assert ours.outputs["mix"] == pytest.approx((theirs.user_attrs["mixed"],), abs=1e-12)
        assert len(constraints(theirs)) == 3


def test_constraints_func_gives_the_values_of_a_list():
    """As for samplers of Optuna 4; newer versions read its list, too."""
    calls = []

    def listed(trial: optuna.trial.FrozenTrial) -> list[float]:
        calls.append(trial.number)
        mixed, loss = mix(trial.params["dose"]), trial.user_attrs["cascada:cure"][1]
        return [0.1 - mixed, 0.2 - loss, loss - 0.9]

    sampler = CascadaSampler(limited(), constraints_func=listed)
    study = created(sampler)
    study.optimize(by_hand, n_trials=2)
    assert calls == [0, 1]
    assert [len(constraints(trial)) for trial in study.trials] == [3, 3]
    assert all(trial.state == "complete" for trial in known(study, limited()).trials)


@pytest.mark.parametrize("returned", [[0.0], None, [0.0, 1.0, math.nan], 3.0])
def test_a_wrong_list_of_constraints_is_refused(returned):
    sampler = CascadaSampler(limited(), constraints_func=lambda trial: returned)
    study = created(sampler)
    with pytest.raises(ArgumentError, match="constraints_func must return a number for each limit"):
        study.optimize(by_hand, n_trials=1)


def test_constraints_that_are_not_limits_are_refused():
    with pytest.raises(ArgumentError, match="constraints_func must be a function"):
        CascadaSampler(limited(), constraints_func=3)  # type: ignore[arg-type]
    sampler = CascadaSampler(chain(Stage("mix", controls={"dose": Real(-2, 2)})))
    study = created(sampler)
    study.add_trial(
        optuna.trial.create_trial(
            params={"dose": 0.5},
            distributions=sampler.distributions,
            value=mix(0.5),
            system_attrs={"constraints:weight": 1.0} if BY_NAME else {"constraints": [1.0]},
        )
    )
    with pytest.warns(UserWarning, match="constraint"):
        study.ask(sampler.distributions)


@pytest.mark.skipif(not BY_NAME, reason="Optuna 4 has no names of constraints")
def test_a_constraint_that_contradicts_its_output_is_an_error():
    def wrong(trial: optuna.Trial) -> float:
        trial.set_constraint("loss ≤ 0.9", -7.0)
        trial.set_user_attr("cascada:mix", 0.5)
        trial.suggest_float("dose", -2, 2)
        trial.set_user_attr("cascada:cure", cure(0.5, trial.suggest_float("heat", 0, 2)))
        return trial.user_attrs["cascada:cure"][0]

    sampler = CascadaSampler(limited())
    study = created(sampler)
    with pytest.raises(ContradictionError, match="the amount by which the output exceeds its limit"):
        study.optimize(wrong, n_trials=1)


@pytest.mark.skipif(not BY_NAME, reason="Optuna 4 has no names of constraints")
def test_other_samplers_use_the_constraints_of_the_objective():
    objective = CascadaSampler(limited()).objective([mix, cure])
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0), direction="maximize")
    study.optimize(objective, n_trials=3)
    assert [set(trial.constraints) for trial in study.trials] == [{"mix ≥ 0.1", "loss ≥ 0.2", "loss ≤ 0.9"}] * 3


def test_limits_of_outputs_with_the_same_name_have_different_constraints():
    first = Stage("a", controls={"x": Real(0, 1)}, outputs=["z"], limits={"z": (None, 1)})
    second = Stage("b", outputs=["z"], parents=["a"], limits={"z": (None, 2)})
    assert CascadaSampler(chain(first, second)).constraints == ("a.z ≤ 1", "b.z ≤ 2")


def test_pickling_keeps_the_function():
    sampler = pickle.loads(pickle.dumps(CascadaSampler(limited(), constraints_func=constraints)))
    assert sampler._constraints_func is constraints


def test_pruned_trials_do_not_count_as_failures_of_a_stage():
    network = chain(Stage("mix", controls={"dose": Real(-2, 2)}, failure="infeasible"))
    sampler = CascadaSampler(network)
    study = created(sampler)
    study.tell(study.ask(sampler.distributions), state=optuna.trial.TrialState.PRUNED)
    study.tell(study.ask(sampler.distributions), state=optuna.trial.TrialState.FAIL)
    assert [trial.state for trial in known(study, network).trials] == ["abandoned", "failed"]
