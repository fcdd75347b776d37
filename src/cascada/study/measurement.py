"""Measurements: outputs of one stage by itself, told without a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cascada.errors import ArgumentError
from cascada.near_names import did_you_mean
from cascada.network import Network, Node
from cascada.network.outputs import UnusableResult, as_outputs_of
from cascada.space import ControlValue

_LARGEST = 1e100  # of an input, as of an output


@dataclass(frozen=True, eq=False)
class Measurement:
    """Outputs of one stage by itself, at inputs of its own: data of the stage, and no run."""

    number: int
    stage: str
    inputs: Mapping[str, ControlValue]  #: by the names of the stage's inputs, controls in user units
    outputs: tuple[float, ...] | None  #: None after they were withdrawn


def coded(network: Network, measurement: Measurement) -> dict[str, float]:
    """The inputs of a measurement as numbers."""
    controls = network.node(measurement.stage).stage.controls
    return {
        name: controls[name].coded(value, name) if name in controls else float(value)
        for name, value in measurement.inputs.items()
    }


def measured(network: Network, number: int, data: Mapping[str, Any]) -> Measurement:
    """A measurement from the data of an event: a new one of this number, or one that replaces another.

    Raises `ArgumentError` unless its inputs are those of the stage, and its outputs too.
    """
    if not isinstance(data["stage"], str):
        raise ArgumentError(f"name the stage by its name; got {data['stage']!r:.300}.")
    node = network.node(data["stage"])
    stage = node.stage
    if stage.known:
        raise ArgumentError(f"stage {stage.name!r} is a formula: there is nothing to measure; leave it out.")
    inputs, again = data["inputs"], data.get("measurement")
    if not isinstance(inputs, Mapping) or set(inputs) != set(node.input_names):
        raise ArgumentError(
            f"stage {stage.name!r} is measured at values of its inputs {', '.join(node.input_names)}; got "
            f"{inputs!r:.200}{_meant(node, inputs)}."
        )
    for name, value in inputs.items():
        control = stage.controls.get(name)
        if control is not None and control.unordered:
            control.coded(value, name)  # raises if it is no value of the choice
            continue
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not is_number or not abs(value) <= _LARGEST:
            raise ArgumentError(f"stage {stage.name!r}: {name} must be a finite number; got {value!r:.100}.")
        if control is not None and not (control.low <= value <= control.high):
            raise ArgumentError(
                f"stage {stage.name!r}: {name} must lie in its range, from {control.low!r} to {control.high!r}, as "
                f"nothing is assumed outside; got {value!r}."
            )
    if again is not None and not 0 <= again < number:
        raise ArgumentError(f"there is no measurement {again}; {number} were told.")
    choices = [name for name, control in stage.controls.items() if control.unordered]
    given = {name: inputs[name] if name in choices else float(inputs[name]) for name in node.input_names}
    if data["outputs"] is None:
        return Measurement(number if again is None else again, stage.name, given, None)
    try:
        values = as_outputs_of(node, data["outputs"])
    except UnusableResult as error:
        raise ArgumentError(f"the measurement of stage {stage.name!r} {error}.") from None
    for output, value in zip(stage.outputs, values, strict=True):
        if output in stage.passes and given[output] != value:
            raise ArgumentError(
                f"stage {stage.name!r} passes on {output!r}, which is {given[output]!r}; got {value!r}."
            )
    return Measurement(number if again is None else again, stage.name, given, values)


def _meant(node: Node, inputs: Any) -> str:
    """The input that was probably meant by a name that is none of the stage."""
    missing = [name for name in node.input_names if name not in inputs] if isinstance(inputs, Mapping) else []
    unknown = [name for name in inputs if name not in node.input_names] if missing else []
    return next(filter(None, (did_you_mean(name, missing) for name in unknown)), "")
