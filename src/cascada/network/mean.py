"""The composite mean: each stage at its parents' means (`eq:mean_chain`, `eq:mean_mul`, `eq:mean_net`)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.confidence import BallBelief, Belief, Boxes
from cascada.network.beliefs import Beliefs, StageBelief, told
from cascada.network.enclosure import enclose_network, in_user_units, known_values


@dataclass(frozen=True)
class StagePrediction:
    """What is believed of a stage's outputs at some controls: mean, posterior sd there, and bounds; each (p,).

    The sd is that of the stage alone, at the mean of its inputs; the bounds hold for all that its inputs can be.
    """

    mean: Array
    sd: Array
    lower: Array
    upper: Array


def composite_mean(beliefs: Beliefs, coordinates: Array) -> Array:
    """Controls and the means of all outputs, (n, V), at coordinates (n, d)."""
    return _forward(beliefs, coordinates)[0]


def predict(beliefs: Beliefs, controls: Mapping[str, Any]) -> dict[str, StagePrediction]:
    """What is believed of every stage at named controls in user units."""
    network = beliefs.network
    point = network.domain.encode(network.domain.row(controls)[None])
    values, sds = _forward(beliefs, point)
    boxes = enclose_network(beliefs, Boxes(point, point)).boxes
    result = {}
    for stage in beliefs.stages:
        columns = list(stage.node.columns)
        result[stage.node.stage.name] = StagePrediction(
            values[0, columns], sds[0, columns], boxes.lower[0, columns], boxes.upper[0, columns]
        )
    return result


def hallucinated(beliefs: Beliefs, pending: Array) -> Beliefs:
    """The beliefs as if the runs `pending` had given their means, one after the other.

    Rows are coordinates (n, d), or all values of the runs (n, V) with NaN where nothing was observed yet. For
    suggesting several points at once; never for a certificate.
    """
    d = beliefs.network.domain.dimension
    for row in pending:
        values = _forward(beliefs, row[None, :d], row[None, d:])[0]
        beliefs = Beliefs(beliefs.network, tuple(_imagined(stage, values) for stage in beliefs.stages))
    return beliefs


def _imagined(stage: StageBelief, values: Array) -> StageBelief:
    """A stage's belief after a made-up row of values (1, V)."""
    if stage.belief is None:
        return stage
    # What a stage has seen, it knows: the mean there is off by the jitter, and would be a contradiction.
    if np.any((stage.belief.posterior.inputs == values[:, list(stage.node.inputs)]).all(axis=1)):
        return stage
    after = told(stage, values)
    assert after.belief is not None, "a belief stays one"
    # The mean can be steeper than L: what is made up must not count as evidence against it.
    steep = {e.output: e.smallest * (1 + 1e-9) for e in after.belief.evidence if e.assumption == "lipschitz"}
    if not steep:
        return after
    if isinstance(after.belief, BallBelief):
        return replace(after, belief=replace(after.belief, lipschitz=steep[None]))
    assert after.belief.lipschitz is not None, "evidence is against a given constant"
    lipschitz = [steep.get(j, given) for j, given in enumerate(after.belief.lipschitz)]
    belief = Belief(after.belief.posterior, after.belief.norm_bound, lipschitz, after.belief.tight)
    return replace(after, belief=belief)


def _forward(beliefs: Beliefs, coordinates: Array, told: Array | None = None) -> tuple[Array, Array]:
    """Means and sds of all values; outputs that were told (n, V − d), where finite, stand for themselves."""
    values = np.full((len(coordinates), beliefs.network.width), np.nan)
    sds = np.zeros_like(values)
    values[:, : coordinates.shape[1]] = coordinates
    for stage in beliefs.stages:
        columns = list(stage.node.columns)
        values[:, columns], sds[:, columns] = _stage_mean(stage, values[:, list(stage.node.inputs)])
        if told is not None and told.shape[1]:
            known = told[:, [column - coordinates.shape[1] for column in columns]]
            values[:, columns] = np.where(np.isfinite(known), known, values[:, columns])
    return values, sds


def _stage_mean(stage: StageBelief, inputs: Array) -> tuple[Array, Array]:
    """Means and sds (n, p) of all outputs of a stage; what is known or passed on has sd 0."""
    given = stage.node.stage
    if given.known:
        values = known_values(stage, inputs)
        return values, np.zeros_like(values)
    mean = np.empty((len(inputs), len(given.outputs)))
    sd = np.zeros_like(mean)
    for j, output in enumerate(given.outputs):
        if output in given.passes:
            source = stage.node.input_names.index(output)
            mean[:, j] = in_user_units(stage, Boxes(inputs, inputs)).centre[:, source]
    modelled = [given.outputs.index(output) for output in given.modelled]
    if isinstance(stage.belief, Belief):
        prediction = stage.belief.posterior.predict(inputs)
        mean[:, modelled] = prediction.mean + given.offset
        sd[:, modelled] = prediction.sd[:, None]
    elif stage.belief is not None:
        joint = stage.belief.posterior.predict(inputs)
        mean[:, modelled] = joint.mean + given.offset
        sd[:, modelled] = np.sqrt(np.maximum(np.diagonal(joint.covariance, axis1=1, axis2=2), 0.0))
    return mean, sd
