"""The composite mean: each stage at its parents' means (`eq:mean_chain`, `eq:mean_mul`, `eq:mean_net`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.gp import OperatorPrediction, Prediction
from cascada.network.beliefs import Beliefs, StageBelief
from cascada.network.enclosure import enclose_network
from cascada.network.formula import in_user_units, likely_values
from cascada.network.read_beliefs import ReadBeliefs


@dataclass(frozen=True)
class StagePrediction:
    """Prediction of a stage's outputs at some controls: mean, posterior sd and bounds; each (p,).

    The sd is that of the stage alone, at the mean of its inputs; the bounds hold for all its possible inputs.
    """

    mean: Array
    sd: Array
    lower: Array
    upper: Array


def composite_mean(
    beliefs: Beliefs, coordinates: Array, within: Boxes | None = None, *, clip_objective: bool = True
) -> Array:
    """Controls and the means of all outputs, (n, V), at coordinates (n, d); outputs with ranges are clipped to them.

    `within` is one box (1, V) in which every value is known to lie, infinite where nothing is known. Each stage's mean
    is projected onto it before it enters the next stage (the paper's Case 2). Without `clip_objective` the objective
    itself is not clipped to its range: for a search, which could not move on a plateau.
    """
    return forward(beliefs, coordinates, within=within, clip_objective=clip_objective)[0]


def predict(beliefs: Beliefs, controls: Mapping[str, Any]) -> dict[str, StagePrediction]:
    """The predictions of every stage at named controls in user units, by name."""
    network = beliefs.network
    point = network.domain.encode(network.domain.row(controls)[None])
    values, predictions = forward(beliefs, point)
    boxes = enclose_network(beliefs, Boxes(point, point)).boxes
    result = {}
    for stage, prediction in zip(beliefs.stages, predictions, strict=True):
        columns = list(stage.node.columns)
        sd = np.zeros(len(columns))
        if prediction is not None:
            assert stage.belief is not None, "a prediction is a belief's"
            sd[stage.node.stage.modelled_positions] = stage.belief.output_sds(prediction)[0]
        result[stage.node.stage.name] = StagePrediction(
            values[0, columns], sd, boxes.lower[0, columns], boxes.upper[0, columns]
        )
    return result


def hallucinated(beliefs: Beliefs, pending: Array) -> Beliefs:
    """The beliefs after the runs `pending`, one after the other, as if each had returned its mean.

    Rows are coordinates (n, d), or all values of the runs (n, V) with NaN where nothing was observed yet. For
    suggesting several points at once; never for a certificate.
    """
    d = beliefs.network.domain.dimension
    if beliefs.network.read_with_errors and len(pending):
        # Imagined readings have errors, too. Those of all pending runs are learned at once.
        after = beliefs.append(forward(beliefs, pending[:, :d], observed=pending[:, d:])[0])
        return beliefs if after.evidence else after
    for row in pending:
        values = forward(beliefs, row[None, :d], observed=row[None, d:])[0]
        beliefs = Beliefs(beliefs.network, tuple(_imagined(stage, values) for stage in beliefs.stages))
    return beliefs


def with_mean_of(beliefs: Beliefs, position: int, row: Array) -> Array:
    """A row (V,) with the inputs of a node, completed by the mean of its outputs; NaN where it is not defined."""
    values = row.copy()
    for stage in (beliefs.stages[i] for i in beliefs.parts(position)):
        inputs = row[None, list(stage.node.inputs)]
        prediction = None if stage.belief is None else _predict(stage, inputs)
        values[list(stage.node.columns)] = within_ranges_of(stage, _stage_mean(stage, inputs, prediction))[0]
    return values


def imagined_at(beliefs: Beliefs, position: int, row: Array) -> Beliefs:
    """The beliefs as if one node by itself had returned its mean at the inputs in a row (V,); for choosing a step."""
    values = with_mean_of(beliefs, position, row)
    if not np.isfinite(values[list(beliefs.network.nodes[position].columns)]).all():
        return beliefs
    if isinstance(beliefs, ReadBeliefs):
        return beliefs.imagined_at(position, values[None])
    stages = list(beliefs.stages)
    for i in beliefs.parts(position):
        stages[i] = _imagined(stages[i], values[None])
    return replace(beliefs, stages=tuple(stages))


def _imagined(stage: StageBelief, values: Array) -> StageBelief:
    """A stage's belief after an imagined row of values (1, V)."""
    if stage.belief is None:
        return stage
    # At an input that was observed already, the mean differs from the output by the jitter: a contradiction. With
    # noise, another observation there tells more.
    if not stage.node.stage.noisy and np.any(
        (stage.belief.posterior.inputs == values[:, list(stage.node.inputs)]).all(axis=1)
    ):
        return stage
    after = stage.append(values)
    assert after.belief is not None, "the stage had a belief"
    # A mean that is clipped to a range need not agree with other imagined outputs.
    if stage.node.ranges is not None and any(e.assumption != "lipschitz" for e in after.belief.evidence):
        return stage
    # The mean can be steeper than L: imagined outputs must not count as evidence against L.
    steep = {e.output: e.smallest * (1 + 1e-9) for e in after.belief.evidence if e.assumption == "lipschitz"}
    if not steep:
        return after
    return replace(after, belief=after.belief.with_lipschitz(steep))


AnyPrediction = Prediction | OperatorPrediction


def forward(
    beliefs: Beliefs,
    coordinates: Array,
    *,
    observed: Array | None = None,
    tracked: Mapping[int, Prediction] | None = None,
    predict: Callable[[StageBelief, Array], AnyPrediction] | None = None,
    within: Boxes | None = None,
    clip_objective: bool = True,
) -> tuple[Array, list[AnyPrediction | None]]:
    """Means of all values (n, V) and the stages' predictions there; None for a stage without a belief.

    Means are NaN from the first formula on that is not defined at the means of its inputs.
    `observed` are outputs (n, V − d) that replace the means where they are finite. `tracked` are predictions that are
    available already, by the position of the stage; `predict` makes the others. `within` and `clip_objective`: see
    `composite_mean`.
    """
    objective, unclipped = beliefs.network.objective_column, None
    values = np.full((len(coordinates), beliefs.network.width), np.nan)
    values[:, : coordinates.shape[1]] = coordinates
    predictions: list[AnyPrediction | None] = []
    undefined_from = np.full(len(coordinates), beliefs.network.width)  # the first column without a value
    for i, stage in enumerate(beliefs.stages):
        columns, inputs = list(stage.node.columns), values[:, list(stage.node.inputs)]
        prediction: AnyPrediction | None = None
        if stage.belief is not None:
            at_hand = None if tracked is None else tracked.get(i)
            prediction = at_hand or (predict or _predict)(stage, inputs)
        predictions.append(prediction)
        values[:, columns] = _stage_mean(stage, inputs, prediction)
        undefined = np.isnan(values[:, columns]).any(axis=1)
        undefined_from[undefined] = np.minimum(undefined_from[undefined], columns[0])
        values[undefined[:, None] & np.isin(np.arange(values.shape[1]), columns)] = 0.0  # a number for the later stages
        if stage.node.ranges is not None:
            if objective in columns and not clip_objective:
                unclipped = values[:, objective].copy()
            values[:, columns] = within_ranges_of(stage, values[:, columns])
        if within is not None:  # eq:mutil: the nearest point of a box, coordinate by coordinate
            values[:, columns] = np.clip(values[:, columns], within.lower[:, columns], within.upper[:, columns])
        if observed is not None and observed.shape[1]:
            known = observed[:, [column - coordinates.shape[1] for column in columns]]
            values[:, columns] = np.where(np.isfinite(known), known, values[:, columns])
    if unclipped is not None:
        values[:, objective] = unclipped
    values[np.arange(values.shape[1]) >= undefined_from[:, None]] = np.nan
    return values, predictions


def _predict(stage: StageBelief, inputs: Array) -> AnyPrediction:
    assert stage.belief is not None, "only asked of stages with a belief"
    return stage.belief.posterior.predict(inputs)


def _stage_mean(stage: StageBelief, inputs: Array, prediction: AnyPrediction | None) -> Array:
    """Means (n, p) of all outputs of a stage."""
    if stage.node.stage.known:
        return likely_values(stage, inputs)
    return all_outputs(stage, inputs, None if prediction is None else prediction.mean)


def within_ranges_of(stage: StageBelief, values: Array) -> Array:
    """Estimates (..., p) of a stage's outputs, clipped to the ranges of the outputs."""
    ranges = stage.node.ranges
    return values if ranges is None else np.clip(values, *ranges)


def all_outputs(stage: StageBelief, inputs: Array, modelled: Array | None) -> Array:
    """All outputs (n, p) of a stage that is not known: those passed on, and `modelled`, to which offsets are added."""
    declared = stage.node.stage
    found = np.empty((len(inputs), len(declared.outputs)))
    for output, values in passed_on(stage, inputs).items():
        found[:, declared.outputs.index(output)] = values
    if modelled is not None:
        found[:, declared.modelled_positions] = modelled + declared.offset
    return found


def passed_on(stage: StageBelief, inputs: Array) -> dict[str, Array]:
    """The outputs (n,) that are copies of inputs (n, d), in user units, by name."""
    passes = stage.node.stage.passes
    if not passes:
        return {}
    values = in_user_units(stage, Boxes(inputs, inputs)).centre
    return {output: values[:, stage.node.input_names.index(output)] for output in passes}
