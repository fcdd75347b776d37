"""Beliefs about one batch: stages that are done give what they gave, whatever the controls."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cascada.network.beliefs import Beliefs, StageBelief
from cascada.network.stage import Stage


def given_outputs(beliefs: Beliefs, outputs: Mapping[str, tuple[float, ...]]) -> Beliefs:
    """The beliefs in which stages with observed outputs, by name, are constants.

    Formulas stay as they are: their values follow from their inputs. Limits stay, because a constant can break one.
    """
    network = beliefs.network
    done = {name: values for name, values in outputs.items() if not network.node(name).stage.known}
    batch = network.assuming({name: _constant(network.node(name).stage, values) for name, values in done.items()})
    # In calibrated beliefs a stage may be replaced by parts, one for each output.
    values = {c: value for name in done for c, value in zip(network.node(name).columns, done[name], strict=True)}
    return Beliefs(batch, tuple(_given(stage, values) for stage in beliefs.stages))


def _given(stage: StageBelief, values: Mapping[int, float]) -> StageBelief:
    """A stage, or a part of one, as a constant if its outputs are among the values by column."""
    if stage.node.stage.known or stage.node.columns[0] not in values:
        return stage
    constant = _constant(stage.node.stage, tuple(values[column] for column in stage.node.columns))
    return StageBelief(replace(stage.node, stage=constant), None, stage.span)


def _constant(stage: Stage, values: tuple[float, ...]) -> Stage:
    """A known stage with the same inputs and limits, whose outputs are these values."""

    def function(**_: Any) -> list[float]:
        return list(values)

    def interval(**_: Any) -> list[tuple[float, float]]:
        return [(value, value) for value in values]

    return Stage(
        stage.name.replace(".", " "),  # a part is named stage.output
        controls=stage.controls,
        outputs=stage.outputs,
        parents=stage.parents,
        known=True,
        function=function,
        interval=interval,
        limits=stage.limits,
    )
