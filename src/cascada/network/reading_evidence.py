"""Evidence of readings against the assumptions of a network that is read with errors."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cascada.arrays import Array, IntArray
from cascada.confidence import Boxes, Evidence
from cascada.confidence.bounded_belief import BoundedBelief
from cascada.confidence.read_rows import ReadRows
from cascada.confidence.reading_evidence import Conflict, reading_evidence
from cascada.network.beliefs import Beliefs, StageBelief
from cascada.network.category_cells import parts_at
from cascada.network.latent import Latent
from cascada.network.network import Network
from cascada.network.node import Node
from cascada.network.slack import around_setting
from cascada.network.stage_values import bounded, computed, copied

_NOT_REPEATED = " Or the same settings do not give the same values: then the differences belong to the error."


def boxes_of_readings(beliefs: Beliefs, values: Array) -> Boxes:
    """Boxes (n, V) of the true values of runs (n, V), from their readings alone; infinite where these say nothing."""
    network, around = beliefs.network, around_setting(beliefs, values[:, : beliefs.network.domain.dimension])
    unknown = np.full((len(values), network.width - around.lower.shape[1]), np.inf)
    return raw_latent(Latent(network, values, around.product(Boxes(-unknown, unknown))), beliefs.stages).values


def raw_latent(latent: Latent, stages: Sequence[StageBelief]) -> Latent:
    """What follows from the readings alone: their errors, copies and formulas, and no belief."""
    d = latent.network.domain.dimension
    unknown = np.full((len(latent), latent.network.width - d), np.inf)
    controls = Boxes(latent.values.lower[:, :d], latent.values.upper[:, :d])
    found = replace(latent, values=controls.product(Boxes(-unknown, unknown)))
    for stage in stages:
        inputs = found.inputs(stage.node)
        found = copied(stage, found, inputs)
        if stage.node.stage.known:
            found = computed(stage, found, inputs)
        else:
            found = found.intersected(stage.node.modelled_columns, found.read(stage.node))
    return found


def stage_evidence(stage: StageBelief, raw: Latent, groups: IntArray) -> tuple[Evidence, ...]:
    """Evidence against the assumptions of one stage, with numbers; `groups` (n,) tells repeats of a run."""
    node = stage.node
    if stage.belief is None:
        return ()
    repeats = _contradicting_repeats(node, raw, groups)
    if repeats:
        return repeats
    usable = np.isfinite(raw.readings[:, node.modelled_columns]).all(axis=1) & bounded(raw.inputs(node))
    _, first = np.unique(np.where(usable, groups, -1), return_index=True)
    chosen = np.sort(first[usable[first]])
    shared, found = raw.shared(node, groups), []
    for part, rows in parts_at(stage, raw.inputs(node).lower[chosen]):
        found += [replace(one, category=part.node.category) for one in _of_part(part, shared, chosen[rows])]
    return tuple(found)


def _of_part(part: StageBelief, raw: Latent, chosen: IntArray) -> tuple[Evidence, ...]:
    """Evidence against the assumptions of a stage, or of a category, from the readings in some runs without repeats."""
    node, belief = part.node, part.belief
    if not len(chosen) or not isinstance(belief, BoundedBelief):
        return ()
    inputs, outputs = raw.inputs(node), raw.column(node.modelled_columns)
    box, offset = Boxes(inputs.lower[chosen], inputs.upper[chosen]), node.stage.offset
    values = Boxes(outputs.lower[chosen] - offset, outputs.upper[chosen] - offset).widened()
    rows = ReadRows(box.centre, values, tuple(int(i) for i in chosen))
    return reading_evidence(belief, rows, box.half, np.maximum(node.stage.error_bound, node.stage.error_scale))


def conflict(network: Network, node: Node, confidence: float | None = None) -> Conflict:
    """What a contradiction at a stage refutes: the assumptions of the stage and of all its ancestors together.

    `confidence`: the probability with which true assumptions are not refuted; None if they never are.
    """
    names, assumed = {node.stage.name}, []
    for other in reversed(network.nodes):
        if other.stage.name in names:
            names.update(other.parents)
            assumed.append(_assumptions(other))
    return Conflict.of([text for text in reversed(assumed) if text], confidence)


def _assumptions(node: Node) -> str:
    stage = node.stage
    given = ["norm_bound"] if stage.modelled else []
    given += ["lipschitz"] if stage.lipschitz is not None else []
    given += ["interval"] if stage.interval is not None else []
    given += ["error"] if stage.read_with_errors else []
    given += ["ranges"] if stage.ranges else []
    return f"{' or '.join(given)} of stage {stage.name!r}" if given else ""


def _contradicting_repeats(node: Node, raw: Latent, groups: IntArray) -> tuple[Evidence, ...]:
    """Readings of the same value that differ by more than twice their error."""
    found: list[Evidence] = []
    shared = raw.shared(node, groups).column(node.modelled_columns)
    for j, column in enumerate(node.modelled_columns):
        wrong = np.flatnonzero(shared.lower[:, j] > shared.upper[:, j])
        if not len(wrong):
            continue
        same = np.flatnonzero(groups == groups[wrong[0]])
        readings = raw.readings[same, column]
        rows = (int(same[np.nanargmin(readings)]), int(same[np.nanargmax(readings)]))
        half = float(np.nextafter(0.5 * (np.nanmax(readings) - np.nanmin(readings)), -np.inf))
        given = float(node.stage.error_bound[j])
        needed = max(half, float(np.nextafter(given, np.inf)))
        found.append(Evidence("error", j, tuple(sorted(rows)), given, needed, needed, hint=_NOT_REPEATED))
    return tuple(found)
