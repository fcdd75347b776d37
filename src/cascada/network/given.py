"""Beliefs about one batch: stages that are done give what they gave, whatever the controls."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cascada.confidence import Boxes
from cascada.network.beliefs import Beliefs, StageBelief
from cascada.network.stage import Stage

#: The lowest and the highest possible value of an output.
Interval = tuple[float, float]


def given_outputs(beliefs: Beliefs, outputs: Mapping[str, tuple[float, ...]], boxes: Boxes | None = None) -> Beliefs:
    """The beliefs in which stages with observed outputs, by name, give these outputs whatever their inputs.

    If the outputs are readings with errors, one box (1, V) contains the true values, which the next stages are set to.
    Formulas stay as they are: their values follow from their inputs. Limits stay, because a constant can break one.
    """
    network = beliefs.network
    done = {name: values for name, values in outputs.items() if not network.node(name).stage.known}
    # In calibrated beliefs a stage may be replaced by parts, one for each output.
    read = {c: value for name in done for c, value in zip(network.node(name).columns, done[name], strict=True)}
    values: dict[int, Interval] = {c: (value, value) for c, value in read.items()}
    if boxes is not None:
        values = {c: (float(boxes.lower[0, c]), float(boxes.upper[0, c])) for c in read}
    batch = {
        name: _constant(network.node(name).stage, tuple(values[c] for c in network.node(name).columns)) for name in done
    }
    return Beliefs(network.assuming(batch), tuple(_given(stage, values) for stage in beliefs.stages))


def _given(stage: StageBelief, values: Mapping[int, Interval]) -> StageBelief:
    """A stage, or a part of one, as a constant if its outputs are among the values by column."""
    if stage.node.stage.known or stage.node.columns[0] not in values:
        return stage
    outputs = tuple(values[column] for column in stage.node.columns)
    node = replace(stage.node, stage=_constant(stage.node.stage, outputs))
    exact = tuple(low for low, high in outputs if low == high)
    return StageBelief(node, None, stage.span, exact if len(exact) == len(outputs) else None)


def _constant(stage: Stage, values: tuple[Interval, ...]) -> Stage:
    """A known stage with the same inputs and limits, whose outputs lie in these intervals."""

    def function(**_: Any) -> list[float]:
        return [low if low == high else 0.5 * (low + high) for low, high in values]

    def interval(**_: Any) -> list[Interval]:
        return list(values)

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
