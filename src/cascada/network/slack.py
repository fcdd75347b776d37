"""Rounding slack: how far an observed value can lie outside a bound through rounding alone.

One argument covers every comparison of an observed value with a bound or a formula. Bounds are rounded outwards, so in
exact arithmetic every value of the process lies within them. An observed value is rounded: it is the result of a few
floating-point operations, each with an error of at most u times the numbers in it. For a modelled stage those numbers
are at most the value, its offset and B·s, the largest |f − offset|. For a formula they are its value and its inputs;
the effect of rounded inputs is found by moving them: with its Lipschitz constant, or with its interval function. The
numbers inside a formula are not known and may cancel: a part in 10⁹ of its value is allowed for them. (A study keeps
the value that the formula itself returns.) So the slack is in the units of the problem, and a value that is wrong by
more than this is found at every scale.
"""

from contextlib import suppress

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.confidence import Boxes
from cascada.controls import setting_rounding
from cascada.errors import ArgumentError
from cascada.network.beliefs import Beliefs, StageBelief
from cascada.network.enclosure import enclose_network
from cascada.network.formula import in_user_units, known_bounds
from cascada.network.outputs import StageError

# The operations behind an observed value, with a margin: a larger error is not rounding.
_ROUNDINGS = 64 * UNIT_ROUNDOFF
# The largest relative error of a formula's value through rounding inside it.
FORMULA_DIGITS = 1e-9


def output_slack(stage: StageBelief, inputs: Boxes, outputs: Array) -> Array:
    """How far outputs (p,) of a stage, observed or computed, can lie outside their bounds at inputs in a box, (p,)."""
    if stage.node.stage.known:
        return FORMULA_DIGITS * np.abs(outputs) + _formula_slack(stage, inputs)
    scale = np.zeros(len(outputs))
    if stage.belief is not None:
        modelled = stage.node.stage.modelled_positions
        scale[modelled] = stage.belief.largest_values + np.abs(stage.node.stage.offset)
    return _ROUNDINGS * (np.abs(outputs) + scale)


def objective_slack(beliefs: Beliefs, run: Array) -> float:
    """How far the objective of a run (V,) can lie outside its bounds; outputs that were not observed are NaN."""
    network = beliefs.network
    stage = next(stage for stage in beliefs.stages if network.objective_column in stage.node.columns)
    values = run[None]
    boxes = Boxes(values, values)
    if not np.isfinite(values[:, list(stage.node.inputs)]).all():
        point = values[:, : network.domain.dimension]
        enclosed = enclose_network(beliefs, Boxes(point, point)).boxes
        seen = np.isfinite(values)
        boxes = Boxes(np.where(seen, values, enclosed.lower), np.where(seen, values, enclosed.upper))
    inputs = Boxes(boxes.lower[:, list(stage.node.inputs)], boxes.upper[:, list(stage.node.inputs)])
    outputs = np.abs([boxes.lower[0, list(stage.node.columns)], boxes.upper[0, list(stage.node.columns)]]).max(axis=0)
    position = stage.node.columns.index(network.objective_column)
    return float(output_slack(stage, inputs, np.nan_to_num(outputs))[position])


def around_setting(beliefs: Beliefs, points: Array) -> Boxes:
    """Cells (n, d) that contain the exact coordinates of settings whose rounded coordinates are the points.

    A setting may also be the one that `Domain.decode` returns for a point.
    """
    domain = beliefs.network.domain
    pad = np.zeros_like(points)
    pad[:, domain.logarithmic] = setting_rounding(points[:, domain.logarithmic])
    return Boxes(np.maximum(points - pad, domain.lower), np.minimum(points + pad, domain.upper))


def _formula_slack(stage: StageBelief, inputs: Boxes) -> Array:
    """How far the bounds of a formula move if its inputs move by a few roundings, (p,).

    Inputs move within their possible range: a formula need not be defined outside of it.
    """
    if stage.node.stage.unbounded:
        return np.zeros(len(stage.node.columns))
    user = in_user_units(stage, inputs)
    pad = _ROUNDINGS * np.maximum(np.abs(user.lower), np.abs(user.upper))
    lower, upper = user.lower - pad, user.upper + pad
    if stage.span is not None:
        reach = in_user_units(stage, stage.span)
        lower, upper = np.maximum(lower, reach.lower), np.minimum(upper, reach.upper)
    for j, name in enumerate(stage.node.input_names):
        if name in stage.node.stage.controls:
            control = stage.node.stage.controls[name]
            if control.unordered:  # a code is exact
                lower[:, j], upper[:, j] = user.lower[:, j], user.upper[:, j]
                continue
            lower[:, j], upper[:, j] = np.maximum(lower[:, j], control.low), np.minimum(upper[:, j], control.high)
    lower, upper = np.minimum(lower, user.lower), np.maximum(upper, user.upper)
    plain = known_bounds(stage, user)
    slack = _ROUNDINGS * np.maximum(np.abs(plain.lower), np.abs(plain.upper))[0]
    with suppress(ArgumentError, StageError):  # not defined near these inputs: its rounding is unknown
        moved = known_bounds(stage, Boxes(lower, upper))
        slack += np.maximum(np.maximum(moved.upper - plain.upper, plain.lower - moved.lower)[0], 0.0)
    return slack
