"""Conversion of Optuna's trials into runs of a network: controls, stage outputs and errors.

The controls of a trial are in up to three places: the parameters suggested so far, the enqueued ones, and the point
that the sampler stores when the first parameter is suggested. Only the last is complete from the beginning, and other
processes need the whole point while a trial is still at its first stage.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cascada.errors import ArgumentError, CascadaError, ContradictionError
from cascada.integrations.optuna_constraints import add_outputs
from cascada.near_names import did_you_mean
from cascada.network import Network
from cascada.network.outputs import UnusableResult, as_outputs_of
from cascada.space import ControlValue

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

#: Prefix of the user attributes that hold the outputs of a stage: "cascada:mix".
PREFIX = "cascada:"
#: The system attribute that holds the point of a trial.
POINT = "cascada:controls"

# Relative difference allowed between the value of a trial and the same output in its attribute: a loss of digits only.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Run:
    """A trial at a point of the domain, with the outputs of the stages that were observed."""

    number: int  # in Optuna
    controls: Mapping[str, ControlValue]
    outputs: Mapping[str, tuple[float, ...]]
    state: str  # name of the state in Optuna


@dataclass(frozen=True)
class Reading:
    """A run, or None if the trial cannot be used (yet), with errors and remarks about it."""

    run: Run | None
    errors: tuple[CascadaError, ...] = ()  # mistakes in the objective or in an added trial
    remarks: tuple[str, ...] = ()  # shown as warnings


def read(network: Network, trial: "FrozenTrial", state: str | None = None, value: float | None = None) -> Reading:
    """Return a trial of Optuna as a run; `state` and `value` replace those of a trial that is about to end."""
    domain, name = network.domain, f"trial {trial.number}"
    state, value = (trial.state.name, _value(trial)) if state is None else (state, value)
    unknown = [parameter for parameter in trial.params if parameter not in domain.controls]
    if unknown:
        return Reading(None, (ArgumentError(f"{name} has {_not_a_control(network, unknown[0])} It is left out."),))
    try:
        controls = _controls(network, trial, state)
    except ArgumentError as error:
        return Reading(None, remarks=(f"{name} is left out: {error}",))
    if controls is None:
        if state != "COMPLETE":
            return Reading(None)
        text = f"{name} is complete, but not all of {', '.join(domain.names)} were suggested. It is left out."
        return Reading(None, (ArgumentError(text),))
    outputs, errors = _stage_outputs(network, trial)
    errors += add_outputs(network, trial, outputs)
    remarks: list[str] = []
    if state == "COMPLETE":
        errors += _add_objective(network, name, value, outputs)
        missing = [s.name for s in network.stages if s.modelled and s.name not in outputs]
        if missing and not errors:
            remarks.append(
                f"{name} is complete, but has no outputs of {', '.join(map(repr, missing))}, so it is of little use. "
                f"Let sampler.objective(functions) run the stages, or store the outputs of each stage: "
                f"trial.set_user_attr({PREFIX + missing[0]!r}, outputs)."
            )
    return Reading(Run(trial.number, controls, outputs, state), tuple(errors), tuple(remarks))


def is_at(network: Network, trial: "FrozenTrial", point: Mapping[str, ControlValue]) -> bool:
    """Return whether a trial has exactly these controls."""
    run = read(network, trial).run
    return run is not None and run.controls == point


def _not_a_control(network: Network, parameter: str) -> str:
    """Return a message about a parameter that is not a control of the network; it continues "trial 3 has …"."""
    names = ", ".join(network.domain.names)
    return f"the parameter {parameter!r}, which is not a control of the network. Its controls are {names}."


def _value(trial: "FrozenTrial") -> float | None:
    return trial.values[0] if trial.values else None


def _controls(network: Network, trial: "FrozenTrial", state: str) -> dict[str, ControlValue] | None:
    """Return the controls of a trial, validated; None if some are unknown, `ArgumentError` if one is out of range."""
    domain, attributes = network.domain, trial.system_attrs
    known = dict(trial.params)
    if state != "COMPLETE":  # in a complete trial, a control that was not suggested was not used
        known = {**(attributes.get(POINT) or {}), **(attributes.get("fixed_params") or {}), **known}
    if any(name not in known for name in domain.names):
        return None
    return domain.named(domain.row({name: known[name] for name in domain.names}))


def _stage_outputs(network: Network, trial: "FrozenTrial") -> tuple[dict[str, tuple[float, ...]], list[CascadaError]]:
    """Return the stage outputs in the attributes of a trial, and the errors of invalid attributes."""
    outputs: dict[str, tuple[float, ...]] = {}
    errors: list[CascadaError] = []
    stages = {stage.name for stage in network.stages}
    for key, value in trial.user_attrs.items():
        if not key.startswith(PREFIX):
            continue
        stage = key.removeprefix(PREFIX)
        if stage not in stages:
            known = ", ".join(repr(PREFIX + name) for name in stages)
            hint = did_you_mean(key, [PREFIX + name for name in stages])
            errors.append(
                ArgumentError(f"trial {trial.number} has the attribute {key!r}{hint}; there are only {known}.")
            )
            continue
        try:
            outputs[stage] = as_outputs_of(network.node(stage), value)
        except UnusableResult as error:
            text = f"trial {trial.number}: the attribute {key!r} cannot be used, because the stage {error}."
            errors.append(ArgumentError(text))
    return outputs, errors


def _add_objective(
    network: Network, name: str, value: float | None, outputs: dict[str, tuple[float, ...]]
) -> list[CascadaError]:
    """Add the value of a complete trial to `outputs`, as the objective's output; return errors if it is invalid."""
    stage, output = network.objective
    names = network.node(stage).stage.outputs
    if value is None or not math.isfinite(value):
        return [ArgumentError(f"{name} has the value {value}, which is not a finite number.")]
    if stage in outputs:
        stored = outputs[stage][names.index(output)]
        if not math.isclose(stored, value, rel_tol=_TOLERANCE):
            del outputs[stage]
            return [
                ContradictionError(
                    f"{name} has the value {value!r}, but {output!r} in its attribute {PREFIX + stage!r} is "
                    f"{stored!r}. Neither is used: return the output of the last stage from the objective."
                )
            ]
    elif names == (output,):
        outputs[stage] = (float(value),)
    return []
