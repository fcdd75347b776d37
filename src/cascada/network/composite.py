"""Bounds from the composite mean: each stage at the means of its parents, errors propagated by L.

With z the means of a stage's inputs and e how far they are off, |f(true inputs) − μ(z)| ≤ Bσ(z) + L‖e‖₂: the proof of
`eq:fd_1`, and the confidence bounds of cUCB and OI (`eq:kusa_sig`). In a feed-forward network the errors of several
parents meet in one ℓ2 norm, which gives the factors √D of `eq:fd_2`, or less; a stage with one joint norm has one error
for all its outputs, which counts once. Controls are exact.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array, IntArray
from cascada.confidence import Boxes
from cascada.errors import ArgumentError
from cascada.gp import OperatorPrediction, Prediction
from cascada.gp.rounding import CARRIED_ROUNDING, OFFSET_ROUNDING
from cascada.network.beliefs import Beliefs, StageBelief
from cascada.network.enclosure import enclose_stage
from cascada.network.formula import in_user_units
from cascada.network.mean import forward
from cascada.network.outputs import StageError


@dataclass(frozen=True, eq=False)
class Composite:
    """Means (n, V) of all values, and for every output the posterior sd of its stage there (n, V); 0 for controls.

    A stage with one joint norm has the sd ‖Γ_t‖₂^{1/2} in each of its outputs.
    """

    mean: Array
    sd: Array


def along_means(beliefs: Beliefs, coordinates: Array, tracked: Mapping[int, Prediction] | None = None) -> Composite:
    """The means at coordinates (n, d), and the sds along them; `tracked` are available predictions, by stage.

    Where many points lie on a line they are interpolated, up to rounding: for choosing points, not for proofs.
    """
    mean, predictions = forward(beliefs, coordinates, tracked=tracked, predict=_quick_prediction)
    sd = np.zeros_like(mean)
    for stage, prediction in zip(beliefs.stages, predictions, strict=True):
        if prediction is not None:
            sd[:, stage.node.modelled_columns] = prediction.sd[:, None]
    return Composite(mean, sd)


def scaled_by_norms(beliefs: Beliefs, sd: Array) -> Array:
    """B·σ for every output, from `Composite.sd` (n, V)."""
    scaled = np.zeros_like(sd)
    for stage in beliefs.stages:
        if stage.belief is not None:
            scaled[:, stage.node.modelled_columns] = sd[:, stage.node.modelled_columns] * stage.belief.norm_bound
    return scaled


def accumulated(beliefs: Beliefs, mean: Array, local: Array) -> Array:
    """Errors e of all values (n, V): e = local + L‖e of the inputs‖₂, with the stage's L or that of its kernel."""
    errors = np.zeros_like(mean)
    for stage in beliefs.stages:
        declared, inputs = stage.node.stage, list(stage.node.inputs)
        columns = dict(zip(declared.outputs, stage.node.columns, strict=True))
        if declared.known:
            errors[:, list(stage.node.columns)] = _formula_error(stage, mean, errors)
            continue
        for output in declared.passes:
            source = inputs[stage.node.input_names.index(output)]
            errors[:, columns[output]] = local[:, columns[output]] + errors[:, source]
        if stage.belief is not None:
            spread = np.linalg.norm(errors[:, _counted_once(beliefs, stage)], axis=1)[:, None]
            carried = _lipschitz(stage) * spread
            errors[:, stage.node.modelled_columns] = (
                local[:, stage.node.modelled_columns] + carried
            )  # eq:kusa_sig, eq:fd_1
    return errors


def composite_bounds(beliefs: Beliefs, coordinates: Array) -> Boxes:
    """Proven bounds (n, 1) of what is maximised at coordinates (n, d): the composite mean ∓ its error (`eq:fd_1`)."""
    beliefs.check()
    mean, predictions = forward(beliefs, coordinates)
    local = np.zeros_like(mean)
    for stage, prediction in zip(beliefs.stages, predictions, strict=True):
        if prediction is not None:
            local[:, stage.node.modelled_columns] = _half_width(stage, prediction)
        for output in stage.node.stage.passes:  # the exponential of a logarithm is rounded
            inputs = mean[:, list(stage.node.inputs)]
            half = in_user_units(stage, Boxes(inputs, inputs)).half
            column = stage.node.columns[stage.node.stage.outputs.index(output)]
            local[:, column] = half[:, stage.node.input_names.index(output)]
    error = accumulated(beliefs, mean, local)  # eq:fd_1, eq:fd_2
    column, sign = beliefs.network.objective_column, beliefs.network.sign
    centre = np.where(np.isnan(mean[:, [column]]), 0.0, sign * mean[:, [column]])
    half = error[:, [column]] * (1 + CARRIED_ROUNDING) + CARRIED_ROUNDING * np.abs(mean[:, [column]])
    half[np.isnan(half) | np.isnan(mean[:, [column]])] = np.inf  # some formula is not defined at the means
    return Boxes(centre - half, centre + half)


def _formula_error(stage: StageBelief, mean: Array, errors: Array) -> Array:
    """How far a known stage can be from its value at the means (n, p); infinite where it is not defined there."""
    inputs, columns = list(stage.node.inputs), list(stage.node.columns)
    lower, upper = mean[:, inputs] - errors[:, inputs], mean[:, inputs] + errors[:, inputs]
    if stage.span is not None:  # only possible inputs count
        lower, upper = np.maximum(lower, stage.span.lower), np.minimum(upper, stage.span.upper)
    result = np.full((len(mean), len(columns)), np.inf)
    defined = np.flatnonzero(np.isfinite(mean[:, inputs + columns]).all(axis=1) & (lower <= upper).all(axis=1))

    def most(rows: IntArray) -> Array:
        over = enclose_stage(stage, Boxes(lower[rows], upper[rows]), None)[0]
        at = mean[rows][:, columns]
        return np.maximum(np.maximum(over.upper - at, at - over.lower), 0.0)

    try:
        result[defined] = most(defined)
    except (StageError, ArgumentError):  # the user's formula or interval function fails for some of the points
        for row in defined[:, None]:
            with suppress(StageError, ArgumentError):
                result[row] = most(row)
    return result


def _quick_prediction(stage: StageBelief, inputs: Array) -> Prediction | OperatorPrediction:
    assert stage.belief is not None, "only asked of stages with a belief"
    prediction: Prediction | OperatorPrediction = stage.belief.predict_quickly(inputs)
    return prediction


def _half_width(stage: StageBelief, prediction: Prediction | OperatorPrediction) -> Array:
    """How far a stage can be from its mean at a known input, rounded up, for its modelled outputs: (n, p) or (n, 1)."""
    assert stage.belief is not None, "only asked of stages with a belief"
    offset = stage.node.stage.offset
    rounding = OFFSET_ROUNDING * (np.abs(prediction.mean) + np.abs(offset))  # of the mean with its offset
    return stage.belief.half_widths(prediction, rounding)


def _lipschitz(stage: StageBelief) -> Array | float:
    """L of a stage: (p,), or one number for a joint norm."""
    assert stage.belief is not None, "only asked of stages with a belief"
    constant = stage.belief.raw_lipschitz
    if constant is None:
        raise ArgumentError(
            f"stage {stage.node.stage.name!r} needs a Lipschitz constant (its kernel implies none): give lipschitz=."
        )
    return constant


def _counted_once(beliefs: Beliefs, stage: StageBelief) -> list[int]:
    """The input columns of a stage; of columns that share the error of one joint norm, only the first."""
    columns, skipped = list(stage.node.inputs), set()
    for parent in beliefs.stages:
        if parent.belief is not None and parent.belief.joint:
            shared = [column for column in columns if column in parent.node.modelled_columns]
            skipped.update(shared[1:])
    return [column for column in columns if column not in skipped]
