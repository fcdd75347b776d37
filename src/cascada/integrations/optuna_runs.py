"""Optuna's trials as runs of a network: where they were, what their stages gave, and what is wrong with them.

A trial says where it is in up to three places: the parameters that were suggested, one after the other; what was
enqueued; and the point that the sampler wrote down when it was asked for the first of them. Only the last is whole from
the beginning, and others have to know of the whole point while a trial is still at its first stage.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cascada.errors import ArgumentError, CascadaError, ContradictionError
from cascada.network import Network
from cascada.network.outputs import UnusableResult, as_outputs_of

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

#: Begins the user attributes that hold the outputs of a stage: "cascada:mix".
PREFIX = "cascada:"
#: The system attribute that holds the point of a trial.
POINT = "cascada:controls"

# How far the value of a trial may be from the output that it is: digits lost on the way, and no more.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Run:
    """A trial at a point of the domain, as far as its stages were observed."""

    number: int  # Optuna's
    controls: Mapping[str, float | int]
    outputs: Mapping[str, tuple[float, ...]]
    state: str  # Optuna's name of it


@dataclass(frozen=True)
class Reading:
    """A run, or None where a trial is of no use (yet), and what there is to say about it."""

    run: Run | None
    errors: tuple[CascadaError, ...] = ()  # whoever wrote this did something wrong
    remarks: tuple[str, ...] = ()  # worth a warning


def read(network: Network, trial: "FrozenTrial", state: str | None = None, value: float | None = None) -> Reading:
    """A trial of Optuna's; `state` and `value` are those that it is about to get, if it has not got them yet."""
    domain, name = network.domain, f"trial {trial.number}"
    state, value = (trial.state.name, _value(trial)) if state is None else (state, value)
    strange = [parameter for parameter in trial.params if parameter not in domain.controls]
    if strange:
        return Reading(None, (ArgumentError(f"{name} has {_not_a_control(network, strange[0])} It is left out."),))
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
    remarks: list[str] = []
    if state == "COMPLETE":
        errors += _add_objective(network, name, value, outputs)
        missing = [s.name for s in network.stages if s.modelled and s.name not in outputs]
        if missing and not errors:
            remarks.append(
                f"{name} is complete, but nothing says what {', '.join(map(repr, missing))} gave: little is learned "
                f"from it. Let sampler.objective(functions) run the stages, or store what each of them gives: "
                f"trial.set_user_attr({PREFIX + missing[0]!r}, outputs)."
            )
    return Reading(Run(trial.number, controls, outputs, state), tuple(errors), tuple(remarks))


def is_at(network: Network, trial: "FrozenTrial", point: Mapping[str, float | int]) -> bool:
    """Whether a trial is at this very point."""
    run = read(network, trial).run
    return run is not None and run.controls == point


def _not_a_control(network: Network, parameter: str) -> str:
    """What to say of a parameter that the network does not have; continues "trial 3 has …"."""
    names = ", ".join(network.domain.names)
    return f"the parameter {parameter!r}, which is no control of the network. Its controls are {names}."


def _value(trial: "FrozenTrial") -> float | None:
    return trial.values[0] if trial.values else None


def _controls(network: Network, trial: "FrozenTrial", state: str) -> dict[str, float | int] | None:
    """The point of a trial, checked; None where it is not known in full."""
    domain, attributes = network.domain, trial.system_attrs
    known = dict(trial.params)
    if state != "COMPLETE":  # else what was not suggested was not what the process was run with
        known = {**(attributes.get(POINT) or {}), **(attributes.get("fixed_params") or {}), **known}
    if any(name not in known for name in domain.names):
        return None
    return domain.named(domain.row({name: known[name] for name in domain.names}))


def _stage_outputs(network: Network, trial: "FrozenTrial") -> tuple[dict[str, tuple[float, ...]], list[CascadaError]]:
    """What the attributes of a trial say, and which of them say nothing that can be used."""
    outputs: dict[str, tuple[float, ...]] = {}
    errors: list[CascadaError] = []
    stages = {stage.name for stage in network.stages}
    for key, given in trial.user_attrs.items():
        if not key.startswith(PREFIX):
            continue
        stage = key.removeprefix(PREFIX)
        if stage not in stages:
            known = ", ".join(repr(PREFIX + name) for name in stages)
            errors.append(ArgumentError(f"trial {trial.number} has the attribute {key!r}; there are only {known}."))
            continue
        try:
            outputs[stage] = as_outputs_of(network.node(stage), given)
        except UnusableResult as error:
            text = f"trial {trial.number}: the attribute {key!r} cannot be used, because the stage {error}."
            errors.append(ArgumentError(text))
    return outputs, errors


def _add_objective(
    network: Network, name: str, value: float | None, outputs: dict[str, tuple[float, ...]]
) -> list[CascadaError]:
    """Let the value of a complete trial stand for the output that it is, or say why it cannot."""
    stage, output = network.objective
    names = network.node(stage).stage.outputs
    if value is None or not math.isfinite(value):
        return [ArgumentError(f"{name} has the value {value}, which is no finite number.")]
    if stage in outputs:
        told = outputs[stage][names.index(output)]
        if not math.isclose(told, value, rel_tol=_TOLERANCE):
            del outputs[stage]
            return [
                ContradictionError(
                    f"{name} has the value {value!r}, but {output!r} in its attribute {PREFIX + stage!r} is {told!r}. "
                    f"Neither is used: return from the objective what the last stage gave."
                )
            ]
    elif names == (output,):
        outputs[stage] = (float(value),)
    return []
