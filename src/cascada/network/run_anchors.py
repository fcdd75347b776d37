"""Run anchors: what the value of a run says of the values at other settings.

Bounds stage by stage pay for the uncertain input of a stage twice: once in the rows that it learns from, and once when
the bounds of its parents enter it. A run was read at its end as well: v(x) differs from the value of the run by at most
the slopes of the whole process times the distance. The slopes are products of the stages' slopes over the box that
contains the cell and the run; in a network, those of all paths are added up.

Nothing bounds the change of a value between two values of a choice: there the slope is infinite. So a run says
something of the values that do not depend on the choice, and of settings with the same value of it.
"""

from typing import TYPE_CHECKING

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.confidence.affine import Affine
from cascada.confidence.steepness import steepness
from cascada.errors import ArgumentError
from cascada.gp.rounding import CARRIED_ROUNDING
from cascada.network.beliefs import StageBelief, logarithmic_inputs
from cascada.network.category_cells import parts_at, several_values
from cascada.network.enclosure import Enclosure, enclose_any_inputs
from cascada.network.formula import in_user_units
from cascada.network.latent import of_readings
from cascada.network.outputs import StageError
from cascada.space import Domain

if TYPE_CHECKING:
    from cascada.network.latent import Latent
    from cascada.network.read_beliefs import ReadBeliefs


def bounds_from_runs(beliefs: "ReadBeliefs", latent: "Latent", cells: Boxes) -> Boxes | None:
    """Boxes (n, V) that contain every value over cells of controls (n, d), from the nearest run to each cell.

    None if a formula is not defined on the way to some run.
    """
    d = beliefs.network.domain.dimension
    runs = Boxes(latent.values.lower[:, :d], latent.values.upper[:, :d])
    apart = np.linalg.norm((cells.centre[:, None] - runs.centre) / _sides(beliefs.network.domain), axis=2)
    nearest = apart.argmin(axis=1)
    low, high = runs.lower[nearest], runs.upper[nearest]
    hull = Boxes(np.minimum(cells.lower, low), np.maximum(cells.upper, high))
    # A value that depends on a choice is not followed from one of its values to another; the others do not change.
    codes = beliefs.network.domain.choices
    hull.lower[:, codes], hull.upper[:, codes] = cells.lower[:, codes], cells.upper[:, codes]
    distance = np.maximum(np.maximum(cells.upper - low, high - cells.lower), 0.0)
    try:
        steepest = slopes(beliefs, hull)
    except (StageError, ArgumentError):
        return None
    with np.errstate(invalid="ignore"):  # an infinite slope times no distance
        moved = np.nansum(steepest * distance[:, None, :], axis=2)
    moved[:, of_readings(beliefs.network)] = np.inf
    ends = latent.values.lower[nearest], latent.values.upper[nearest]
    moved = moved * (1 + CARRIED_ROUNDING) + CARRIED_ROUNDING * np.maximum(*map(np.abs, ends))
    return Boxes(ends[0] - moved, ends[1] + moved)


def _sides(domain: Domain) -> Array:
    """Lengths (d,) by which differences are divided to find the nearest run: first of all one with the same choices."""
    sides = domain.upper - domain.lower
    found = np.where(sides > 0, sides, 1.0)
    for j in domain.choices:
        found[j] = np.inf if domain.names[j] in domain.idle else 1.0 / (domain.dimension + 1)
    return found


def slopes(beliefs: "ReadBeliefs", cells: Boxes) -> Array:
    """The most that every value changes per unit of every control over the cells, (n, V, d); infinite if unknown.

    The cells may contain settings that cannot be run: the way from one run to another leads through them. The slope is
    infinite in a choice on which a value depends.
    """
    n, d = cells.lower.shape
    total = np.zeros((n, beliefs.network.width, d))
    total[:, np.arange(d), np.arange(d)] = 1.0
    for j in beliefs.network.domain.choices:
        total[:, j, j] = np.inf
    enclosure = Enclosure(cells, Affine.of_cells(cells))
    last = max(column for stage in beliefs.stages for column in stage.node.inputs)
    for stage in beliefs.stages:
        boxes, affine = enclosure.columns(stage.node.inputs)
        total[:, list(stage.node.columns)] = _of_stage(stage, boxes, total[:, list(stage.node.inputs)])
        # Values of the last stages enter no other one. But where a formula is not defined, nothing follows from a run.
        if stage.node.stage.known or min(stage.node.columns) <= last:
            enclosure = enclosure.joined(*enclose_any_inputs(stage, boxes, affine))
    return total


def _of_stage(stage: StageBelief, cells: Boxes, before: Array) -> Array:
    """Slopes (n, p, d) of all outputs of a stage in the controls, from those of its inputs (n, k, d)."""
    node, (n, _, d) = stage.node, before.shape
    found = np.zeros((n, len(node.columns), d))
    per_unit = np.ones(cells.lower.shape)  # user units per unit of the coordinate
    logarithms = logarithmic_inputs(node)
    per_unit[:, logarithms] = in_user_units(stage, cells).upper[:, logarithms]
    if node.stage.known:
        constant = np.inf if node.stage.lipschitz is None else node.stage.lipschitz
        local = np.tile(per_unit[:, None, :], (1, len(node.columns), 1)) * np.reshape(constant, (-1, 1))
        return _carried(local, before)
    if stage.belief is not None:
        found[:, node.stage.modelled_positions] = _carried(_of_belief(stage, cells), before)
    for output in node.stage.passes:
        j = node.input_names.index(output)
        found[:, node.stage.outputs.index(output)] = before[:, j] * per_unit[:, [j]]
    return found


def _of_belief(stage: StageBelief, cells: Boxes) -> Array:
    """The slopes (n, p, k) of a stage's modelled outputs in its inputs; unknown over several values of a choice."""
    n, k = cells.lower.shape
    found = np.full((n, len(stage.node.modelled_columns), k), np.inf)
    single = np.flatnonzero(~several_values(stage, cells))
    for part, rows in parts_at(stage, cells.lower[single]):
        some, kept = single[rows], [stage.node.inputs.index(column) for column in part.node.inputs]
        assert part.per_output is not None, "a stage that is read with errors"
        slope = steepness(part.per_output, Boxes(cells.lower[some][:, kept], cells.upper[some][:, kept]))
        found[np.ix_(some, np.arange(found.shape[1]), np.array(kept))] = slope
    return found


def _carried(local: Array, before: Array) -> Array:
    """Σ over the inputs of their slopes (n, k, d) times the stage's own (n, p, k), (n, p, d), rounded up; 0·∞ is 0.

    Of an input that changes by any amount, 0 is no slope that holds: the cells need not contain its other values.
    """
    with np.errstate(invalid="ignore"):
        product = local[:, :, :, None] * before[:, None, :, :]
    product = np.where(np.isinf(before)[:, None, :, :], np.inf, product)
    return np.nan_to_num(product, nan=0.0, posinf=np.inf).sum(axis=2) * (1 + CARRIED_ROUNDING)
