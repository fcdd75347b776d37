"""Consistency of observed values with the assumptions, and outputs of known stages that follow from observed ones."""

from collections.abc import Sequence

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.confidence.evidence import label_text, lipschitz_evidence
from cascada.network.beliefs import Beliefs, StageBelief
from cascada.network.enclosure import enclose_network
from cascada.network.formula import in_user_units
from cascada.network.limits import in_words
from cascada.network.network import Network
from cascada.network.slack import FORMULA_DIGITS, around_setting, output_slack
from cascada.outwards import as_given, outside


def impossible(beliefs: Beliefs, values: Array) -> tuple[str, ...]:
    """Contradictions between a run (1, V) and the beliefs before it, in words; empty if there are none.

    Every observed output must lie within the bounds at the run's controls, whether or not the stage's inputs were
    observed. If they were, the stage's own evidence shows a contradiction once it has learned from the run. A formula
    learns nothing, so wrong bounds of a formula over a region are found only here.
    """
    if shows_only_own_evidence(beliefs, values):
        return ()
    d = beliefs.network.domain.dimension
    boxes = enclose_network(beliefs, around_setting(beliefs, values[:, :d])).boxes
    found = []
    for stage in beliefs.stages:
        inputs = Boxes(boxes.lower[:, list(stage.node.inputs)], boxes.upper[:, list(stage.node.inputs)])
        slacks = output_slack(stage, inputs, np.nan_to_num(values[0, list(stage.node.columns)]))
        for name, column, slack in zip(stage.node.stage.outputs, stage.node.columns, slacks, strict=True):
            value, low, high = values[0, column], boxes.lower[0, column], boxes.upper[0, column]
            if np.isfinite(value) and not low - slack <= value <= high + slack:
                shown, least, most = outside(value, low, high)
                found.append(
                    f"stage {stage.node.stage.name!r} gave {name} = {shown}, but by the assumptions it lies in "
                    f"[{least}, {most}] there."
                )
    return tuple(found)


def shows_only_own_evidence(beliefs: Beliefs, values: Array) -> bool:
    """Whether `impossible` has nothing to say of runs (n, V), because every contradiction is a stage's own evidence.

    So it is if no stage is a formula, and the outputs of every stage were observed with all its inputs, or not at all.
    """
    seen = np.isfinite(values)
    return all(
        not stage.node.stage.known
        and bool((seen[:, list(stage.node.inputs)].all(axis=1) | ~seen[:, list(stage.node.columns)].any(axis=1)).all())
        for stage in beliefs.stages
    )


def range_evidence(network: Network, data: Array, trials: Sequence[int], boxes: Boxes | None = None) -> tuple[str, ...]:
    """Observed outputs (t, V) that lie outside their ranges, in words; `trials` (t,) are the labels of the trials.

    If they are readings with errors, `boxes` (t, V) contain the true values.
    """
    found: list[str] = []
    lower, upper = (data, data) if boxes is None else (boxes.lower, boxes.upper)
    off = "" if boxes is None else ", and the errors of the readings do not explain this"
    cause = "" if boxes is None else ", raise the error if readings are less exact"
    for node in network.nodes:
        for output, (low, high) in node.stage.ranges.items():
            column = node.columns[node.stage.outputs.index(output)]
            values = data[:, column]
            found += [
                f"Stage {node.stage.name!r}: {label_text(trials[int(row)])} gave {output} = {as_given(values[row])}, "
                f"but its range is {in_words(output, (low, high))}{off}. Correct the run if the value is wrong{cause}, "
                f"or amend the range if the range is."
                for row in np.flatnonzero((upper[:, column] < low) | (lower[:, column] > high))
                if np.isfinite(values[row])
            ]
    return tuple(dict.fromkeys(found))


def formula_evidence(stage: StageBelief, data: Array, trials: Sequence[int]) -> tuple[str, ...]:
    """Pairs of runs (t, V) between which a known stage is steeper than its Lipschitz constant, in words.

    `trials` (t,) are the numbers of the runs' trials.
    """
    declared = stage.node.stage
    if not declared.known or declared.lipschitz is None:
        return ()
    seen = np.flatnonzero(np.isfinite(data[:, [*stage.node.inputs, *stage.node.columns]]).all(axis=1))
    rows, numbers = data[seen], [trials[int(row)] for row in seen]
    user = in_user_units(stage, Boxes(*[rows[:, list(stage.node.inputs)]] * 2))
    inputs, first = np.unique(user.centre, axis=0, return_index=True)
    outputs = rows[first][:, list(stage.node.columns)]
    # The exponential of a rounded logarithm is off by a few roundings, and so is the formula there; its own are added.
    off = declared.lipschitz * np.linalg.norm(user.half, axis=1).max(initial=0.0)
    off = off + FORMULA_DIGITS * np.abs(outputs).max(axis=0, initial=0.0)
    codes = tuple(stage.node.choices)
    found = lipschitz_evidence(inputs, outputs, first.astype(np.int64), declared.lipschitz, off, codes=codes)
    return tuple(f"Stage {declared.name!r}: {one.in_words(one.of_output(declared.outputs), numbers)}" for one in found)
