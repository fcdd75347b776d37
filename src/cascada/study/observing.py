"""From told outputs to a trial: what is told must be outputs, agree with itself and with what follows from it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cascada.confidence import Boxes
from cascada.errors import ArgumentError, ContradictionError
from cascada.network import Beliefs, Network, run_values
from cascada.network.consistency import formula_outputs
from cascada.network.evaluation import UnusableResult, as_outputs_of
from cascada.network.formula import known_values
from cascada.network.slack import output_slack
from cascada.study.trial import Trial


def observed(beliefs: Beliefs, before: Trial, outputs: Mapping[str, Any]) -> Trial:
    """The trial with these outputs too, and those of known stages that follow; complete once the objective is known.

    A contradiction of what was told before is refused with both values shown.
    """
    network = beliefs.network
    if not isinstance(outputs, Mapping):
        raise ArgumentError(f"tell the outputs as a dict of stages, {{'stage': outputs}}; got {outputs!r}.")
    known = dict(before.outputs)
    for name, result in outputs.items():
        node = network.node(name)
        try:
            values = as_outputs_of(node, result)
        except UnusableResult as error:
            raise ArgumentError(f"trial {before.number}: stage {name!r} {error}.") from None
        if node.stage.known and name in known:  # the formula was quicker; what is told may differ by its last digits
            _formula_values(beliefs, before, {**known, name: values})
            continue
        if known.get(name, values) != values:
            raise ContradictionError(
                f"trial {before.number}: stage {name!r} was told as {known[name]} before and now as {values}."
            )
        known[name] = values
    _check_copies(network, before, known)
    known |= _formula_values(beliefs, before, known)
    known |= formula_outputs(beliefs, network.domain.row(before.controls), known)
    stage, output = network.objective
    value = None
    if stage in known:
        value = known[stage][network.node(stage).stage.outputs.index(output)]
    if value is None:
        return replace(before, outputs=known)
    return replace(before, outputs=known, value=value, state="complete", reason=None)


def stage_name(stage: Any) -> str:
    """The name of a stage that outputs are told of."""
    if not isinstance(stage, str):
        raise ArgumentError(f"name the stage by its name; got {stage!r:.300}.")
    return stage


def _check_copies(network: Network, trial: Trial, outputs: Mapping[str, tuple[float, ...]]) -> None:
    """Refuse a passed-on output that differs from the input that it should be a copy of."""
    known = {("", name): float(value) for name, value in trial.controls.items()}
    for node in network.nodes:
        for output, value in zip(node.stage.outputs, outputs.get(node.stage.name, ()), strict=False):
            known[node.stage.name, output] = value
    for node in network.nodes:
        for output in node.stage.passes:
            owners = [p for p in node.parents if output in network.node(p).stage.outputs] or [""]
            given, copy = known.get((owners[0], output)), known.get((node.stage.name, output))
            if given is not None and copy is not None and given != copy:
                raise ContradictionError(
                    f"trial {trial.number}: stage {node.stage.name!r} passes on {output!r}, which is {given:.17g}, "
                    f"but was told as {copy:.17g}."
                )


def _formula_values(
    beliefs: Beliefs, trial: Trial, outputs: Mapping[str, tuple[float, ...]]
) -> dict[str, tuple[float, ...]]:
    """What the formulas of known stages give that were told, where their inputs are known; they are what is kept.

    Raises `ContradictionError` where something else was told.
    """
    network = beliefs.network
    values = run_values(network, network.domain.row(trial.controls)[None], [outputs])
    found = {}
    for stage in beliefs.stages:
        name = stage.node.stage.name
        inputs = values[:, list(stage.node.inputs)]
        if not stage.node.stage.known or name not in outputs or not np.isfinite(inputs).all():
            continue
        right, told = known_values(stage, inputs)[0], np.array(outputs[name])
        larger = np.maximum(np.abs(right), np.abs(told))
        if np.any(np.abs(right - told) > output_slack(stage, Boxes(inputs, inputs), larger)):
            raise ContradictionError(
                f"trial {trial.number}: the known stage {name!r} was told as {tuple(told.tolist())}, but its formula "
                f"gives {tuple(right.tolist())}. Leave it out: it follows from its inputs."
            )
        found[name] = tuple(right.tolist())
    return found
