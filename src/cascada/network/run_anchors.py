"""Run anchors: what the value of a run says of the values at other settings.

Bounds stage by stage pay for the uncertain input of a stage twice: once in the rows that it learns from, and once when
the bounds of its parents enter it. A run was read at its end as well: v(x) differs from the value of the run by at most
the slopes of the whole process times the distance. The slopes are products of the stages' slopes over the box that
contains the cell and the run; in a network, those of all paths are added up.
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
from cascada.network.enclosure import Enclosure, enclose_any_inputs
from cascada.network.formula import in_user_units
from cascada.network.latent import of_readings
from cascada.network.outputs import StageError

if TYPE_CHECKING:
    from cascada.network.latent import Latent
    from cascada.network.read_beliefs import ReadBeliefs


def bounds_from_runs(beliefs: "ReadBeliefs", latent: "Latent", cells: Boxes) -> Boxes | None:
    """Boxes (n, V) that contain every value over cells of controls (n, d), from the nearest run to each cell.

    None if a formula is not defined on the way to some run.
    """
    d = beliefs.network.domain.dimension
    runs = Boxes(latent.values.lower[:, :d], latent.values.upper[:, :d])
    sides = beliefs.network.domain.upper - beliefs.network.domain.lower
    apart = np.linalg.norm((cells.centre[:, None] - runs.centre) / np.where(sides > 0, sides, 1.0), axis=2)
    nearest = apart.argmin(axis=1)
    low, high = runs.lower[nearest], runs.upper[nearest]
    hull = Boxes(np.minimum(cells.lower, low), np.maximum(cells.upper, high))
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


def slopes(beliefs: "ReadBeliefs", cells: Boxes) -> Array:
    """The most that every value changes per unit of every control over the cells, (n, V, d); infinite if unknown.

    The cells may contain settings that cannot be run: the way from one run to another leads through them.
    """
    n, d = cells.lower.shape
    total = np.zeros((n, beliefs.network.width, d))
    total[:, np.arange(d), np.arange(d)] = 1.0
    enclosure = Enclosure(cells, Affine.of_cells(cells))
    for stage in beliefs.stages:
        boxes, affine = enclosure.columns(stage.node.inputs)
        total[:, list(stage.node.columns)] = _of_stage(stage, boxes, total[:, list(stage.node.inputs)])
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
    if stage.per_output is not None:
        found[:, node.stage.modelled_positions] = _carried(steepness(stage.per_output, cells), before)
    for output in node.stage.passes:
        j = node.input_names.index(output)
        found[:, node.stage.outputs.index(output)] = before[:, j] * per_unit[:, [j]]
    return found


def _carried(local: Array, before: Array) -> Array:
    """Σ over the inputs of their slopes (n, k, d) times the stage's own (n, p, k), (n, p, d), rounded up; 0·∞ is 0."""
    with np.errstate(invalid="ignore"):
        product = local[:, :, :, None] * before[:, None, :, :]
    return np.nan_to_num(product, nan=0.0, posinf=np.inf).sum(axis=2) * (1 + CARRIED_ROUNDING)
