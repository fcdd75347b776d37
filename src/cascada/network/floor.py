"""The floor: how small a gap can be expected to become when stages are read with errors.

A reading teaches nothing for sure about a value that is known to within its error already. If the half-width of a value
is h, that of the next stage is about δ + 2·G·h with G its slope: the uncertain input counts in the rows that the stage
learns from, and again where it is evaluated. Twice the half-width of the objective is about the smallest gap.
"""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.confidence.bounded_belief import BoundedBelief
from cascada.confidence.jet_bounds import jet_bounds
from cascada.errors import ArgumentError
from cascada.network.beliefs import StageBelief
from cascada.network.category_cells import parts_at
from cascada.network.enclosure import enclose_network
from cascada.network.formula import in_user_units, known_bounds
from cascada.network.latent import forwarded_error
from cascada.network.outputs import StageError
from cascada.network.read_beliefs import ReadBeliefs

# The slope of a stage before its first reading, as a part of the steepest one that its norm allows.
_USUAL = 0.5


@dataclass(frozen=True)
class Floor:
    """What errors leave of a gap."""

    #: About the smallest gap: an estimate, not a bound.
    estimate: float
    #: The stage whose error weighs most in it; None if it is 0.
    stage: str | None
    #: Whether a run at the point is not sure to teach anything; a run elsewhere may be.
    reached: bool

    def in_words(self, gap: float | None = None) -> str:
        """What can be expected of the gap, in a sentence or two."""
        most = "" if self.stage is None else f", mostly because of stage {self.stage!r}"
        text = f"The errors of the readings allow a gap of about {self.estimate:.2g} at best{most}."
        if gap is not None and gap <= self.estimate:
            text = f"The gap is about as small as the errors of the readings allow ({self.estimate:.2g}){most}."
        if self.reached:
            text += (
                " Where the bound is attained, all values are known to within their errors: another run there is not "
                "sure to teach anything. A run elsewhere may."
            )
        return text


def floor_at(beliefs: ReadBeliefs, point: Array) -> Floor:
    """The floor with the slopes at a point (d,), coordinates, such as the recommended setting."""
    network, boxes = beliefs.network, enclose_network(beliefs, Boxes(point[None], point[None])).boxes
    sources = [stage.node.stage.name for stage in beliefs.stages]
    parts = np.zeros((network.width, len(sources)))  # of each half-width, by the stage whose error it comes from
    reached = True
    for i, stage in enumerate(beliefs.stages):
        node, inputs = stage.node, boxes.centre[:, list(stage.node.inputs)]
        # A forwarded reading is an exact input of the rows that the next stage learns from.
        twice = [1.0 if forwarded_error(network, column) is not None else 2.0 for column in node.inputs]
        before = parts[list(node.inputs)]
        if node.stage.known:
            parts[list(node.columns)] = _of_formula(stage, inputs, before)
        for output in node.stage.passes:
            parts[node.columns[node.stage.outputs.index(output)]] = before[node.input_names.index(output)]
        if stage.belief is not None:
            columns = node.modelled_columns
            parts[columns] = _slopes(stage, inputs) @ (np.array(twice)[:, None] * before)
            parts[columns, i] += node.stage.error_bound
            known = boxes.upper[0, columns] - boxes.lower[0, columns]
            # Averages over scatter become narrower with every reading.
            reached &= node.stage.sub_gaussian is None and bool(np.all(known <= 2 * node.stage.error_bound))
    half = parts[network.objective_column]
    heaviest = sources[int(half.argmax())] if half.any() else None
    return Floor(2 * float(half.sum()), heaviest, reached)


def _slopes(stage: StageBelief, inputs: Array) -> Array:
    """The likely |∂_j f| of the modelled outputs of a stage at one input (1, d), (p, d); 0 for codes."""
    part, _ = next(parts_at(stage, inputs))
    assert isinstance(part.belief, BoundedBelief), "the stage is read with errors"
    kept = [stage.node.inputs.index(column) for column in part.node.inputs]
    found = np.zeros((len(part.belief.norm_bound), inputs.shape[1]))
    found[:, kept] = _slopes_of(part.belief, inputs[:, kept])
    found[:, list(stage.node.choices)] = 0.0
    return found


def _slopes_of(belief: BoundedBelief, inputs: Array) -> Array:
    """The same from the belief about the stage, or about the category of the input."""
    shape = len(belief.norm_bound), inputs.shape[1]
    if belief.kernel.curvature is None:
        return np.zeros(shape) if belief.lipschitz is None else np.tile(_USUAL * belief.lipschitz[:, None], shape[1])
    if not len(belief.rows):
        return _USUAL * belief.largest_values[:, None] * belief.derivative_scales
    slope = jet_bounds(belief, inputs, slopes=True).slope
    assert slope is not None, "slopes were asked for"
    return np.abs(slope[0])


def _of_formula(stage: StageBelief, inputs: Array, before: Array) -> Array:
    """Half-widths of a formula (p, S) at inputs (1, d) with half-widths (d, S), split as those of its inputs."""
    half = before.sum(axis=1)
    total = np.zeros(len(stage.node.columns))
    with suppress(StageError, ArgumentError):  # not defined everywhere around the inputs
        bounds = known_bounds(stage, in_user_units(stage, Boxes(inputs - half, inputs + half)))
        total = 0.5 * (bounds.upper - bounds.lower)[0]
    share = before.sum(axis=0) / max(float(half.sum()), np.finfo(np.float64).tiny)
    return np.asarray(total[:, None] * share)
