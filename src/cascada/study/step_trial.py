"""Trials of single steps: what they take from earlier trials, and single-stage rows of what they gave."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cascada.arrays import Array
from cascada.errors import ArgumentError, ContradictionError, StoreError
from cascada.network import Network, Node
from cascada.outwards import all_as_given
from cascada.space import ControlValue
from cascada.store.trial import Trial, trial_at
from cascada.study.measurement import Measurement, coded

if TYPE_CHECKING:
    from cascada.study.validation import Rules


def position(network: Network, stage: str) -> int:
    """The position of a stage in the nodes of a network."""
    return network.nodes.index(network.node(stage))


def upstream(network: Network, stages: Collection[str]) -> list[str]:
    """These stages and all before them, parents first."""
    found = set(stages)
    for node in reversed(network.nodes):  # children first
        if node.stage.name in found:
            found.update(node.parents)
    return [node.stage.name for node in network.nodes if node.stage.name in found]


def controls_set(network: Network, trial: Trial) -> dict[str, ControlValue]:
    """The controls of a trial that are set: of an incomplete step, those of its stage and of the stages before it."""
    if not trial.steps or trial.value is not None:
        return dict(trial.controls)
    names = {name for stage in {*trial.steps, *trial.outputs} for name in network.node(stage).stage.controls}
    return {name: value for name, value in trial.controls.items() if name in names}


def step_trial(rules: "Rules", trials: Sequence[Trial], trial: Trial, data: Mapping[str, Any]) -> Trial:
    """A new trial of the steps that an event `asked` names, with what it takes from other trials.

    Raises `StoreError` if it takes what is not there or, for a step of one run, what differs from its controls.
    """
    network, steps = rules.network, tuple(str(name) for name in data["steps"])
    for name in steps:
        if network.node(name).stage.known:
            raise StoreError(f"stage {name!r} is a formula, which is no step.")
    sources = {str(name): trial_at(trials, int(number)) for name, number in data.get("from", {}).items()}
    run = data.get("run")
    trial = replace(trial, steps=steps, run=None if run is None else int(run), why=str(data.get("reason", "")))
    for name, source in sources.items():
        if name not in source.outputs or name in source.taken:
            raise StoreError(f"trial {source.number} did not run stage {name!r}, or its outputs were withdrawn.")
    if "set" in data:
        values = {str(name): tuple(map(_number, given)) for name, given in data["set"].items()}
        taken = {name: source.number for name, source in sources.items()}
        return replace(trial, set_outputs=values, taken=taken)
    copied: dict[str, tuple[float, ...]] = {}
    origins: dict[str, int] = {}
    for stage, source in sources.items():
        if not source.closed:
            raise StoreError(f"the outputs of stage {stage!r} in trial {source.number} are not of one run.")
        for name in upstream(network, [stage]):
            if network.node(name).stage.known:
                continue  # formulas follow from the others
            _check_controls(network.node(name), source, trial)
            if copied.setdefault(name, source.outputs[name]) != source.outputs[name]:
                raise StoreError(f"the trials that it goes on from differ in the outputs of stage {name!r}.")
            origins.setdefault(name, source.taken.get(name, source.number))
    if set(copied) & set(steps):
        raise StoreError("a stage that is to be run is taken from another trial as well.")
    whole = rules.with_outputs(replace(trial, taken=origins), copied)
    return replace(whole, state="running", value=None)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _check_controls(node: Node, source: Trial, trial: Trial) -> None:
    for name in node.stage.controls:
        if source.controls[name] != trial.controls[name]:
            raise StoreError(
                f"stage {node.stage.name!r} was run at {name} = {source.controls[name]!r} in trial {source.number}, "
                f"not at {trial.controls[name]!r}."
            )


def own_stages(network: Network, trial: Trial) -> list[str]:
    """The stages that are run in a trial: its steps, and what was told besides them; all stages of a run.

    What was taken from other trials is left out, and so are formulas.
    """
    names = [node.stage.name for node in network.nodes if not node.stage.known and node.stage.name not in trial.taken]
    return [name for name in names if not trial.steps or name in trial.steps or name in trial.outputs]


def after_step(trial: Trial) -> Trial:
    """The trial, *partial* if all stages of its step gave their outputs, and running again if they did before."""
    if not trial.steps or trial.state in ("complete", "abandoned"):
        return trial
    if all(name in trial.outputs for name in trial.steps):
        return replace(trial, state="partial", reason=None)
    return replace(trial, state="running") if trial.state == "partial" else trial


def alone(rules: "Rules", before: Trial, outputs: Mapping[str, Any]) -> Trial:
    """The trial of a step at inputs of its own with these outputs too; they belong to no run."""
    known, number = dict(before.outputs), before.number
    for name, result in outputs.items():
        if name not in before.steps:
            raise ArgumentError(
                f"trial {number} is a step of {', '.join(map(repr, before.steps))} at inputs of its own: it takes no "
                f"outputs of stage {name!r}. Tell them under their own trial, or as a measurement (study.measure)."
            )
        values = rules.outputs(number, name, result)
        if known.get(name, values) != values:
            raise ContradictionError(
                f"trial {number}: stage {name!r} was told as {all_as_given(known[name])} before and now as "
                f"{all_as_given(values)}. If the first is wrong, correct it: study.correct, `cascada correct`.",
                trials=(number,),
            )
        known[name] = values
        _check_copies(rules.network.node(name), replace(before, outputs=known), rules.network)
    return replace(before, outputs=known)


def _check_copies(node: Node, trial: Trial, network: Network) -> None:
    given = inputs_of(network, trial, node.stage.name)
    for output, value in zip(node.stage.outputs, trial.outputs[node.stage.name], strict=True):
        if output in node.stage.passes and given[output] != value and not network.read_with_errors:
            raise ContradictionError(
                f"trial {trial.number}: stage {node.stage.name!r} passes on {output!r}, which is {given[output]!r}, "
                f"but was told as {value!r}.",
                trials=(trial.number,),
            )


def inputs_of(network: Network, trial: Trial, stage: str) -> dict[str, float]:
    """What a stage of a trial is run with as numbers, by the names of its inputs; NaN where that is not known yet."""
    columns = dict(enumerate(network.domain.coded(trial.controls)))
    known = {**(trial.set_outputs or {}), **trial.outputs}
    for node in network.nodes:
        columns |= dict(zip(node.columns, known.get(node.stage.name, (math.nan,) * len(node.columns)), strict=True))
    node = network.node(stage)
    return {name: columns[column] for name, column in zip(node.input_names, node.inputs, strict=True)}


def named_inputs(network: Network, trial: Trial, stage: str) -> dict[str, ControlValue]:
    """The same with controls as users give them."""
    controls = network.node(stage).stage.controls
    return {**inputs_of(network, trial, stage), **{name: trial.controls[name] for name in controls}}


def row_of(network: Network, stage: str, inputs: Mapping[str, float], outputs: Sequence[float] | None) -> Array:
    """The row (V,) of one stage by itself: its inputs and outputs, NaN elsewhere."""
    node, d = network.node(stage), network.domain.dimension
    row = np.full(network.width, np.nan)
    for name, column in zip(node.input_names, node.inputs, strict=True):
        row[column] = inputs[name]
    controls = [column for column in node.inputs if column < d]
    middle = network.domain.decode(0.5 * (network.domain.lower + network.domain.upper)[None])[0]  # any setting
    middle[controls] = row[controls]
    row[controls] = network.domain.encode(middle[None])[0, controls]
    if outputs is not None:
        row[list(node.columns)] = outputs
    return row


def _is_read_before(network: Network, stage: str, steps: Collection[str]) -> bool:
    """Whether an input of a stage is only known as a reading with an error of another stage of the same step."""
    names = [node.stage.name for node in network.nodes]
    feeding = [names[i] for i in network.feeders[names.index(stage)]]
    return any(name in steps and network.node(name).stage.read_with_errors for name in feeding)


def single_rows(network: Network, lesson: Trial | Measurement) -> Iterator[tuple[int, Array]]:
    """The observations of single stages in a lesson: the position of the stage, and a row (V,)."""
    if isinstance(lesson, Measurement):
        if lesson.outputs is not None:
            yield position(network, lesson.stage), row_of(network, lesson.stage, coded(network, lesson), lesson.outputs)
        return
    for name in lesson.steps:
        if name in lesson.outputs and not _is_read_before(network, name, lesson.steps):
            inputs = inputs_of(network, lesson, name)
            yield position(network, name), row_of(network, name, inputs, lesson.outputs[name])
