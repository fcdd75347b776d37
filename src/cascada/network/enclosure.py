"""Enclosures: boxes that contain every value of a process over whole cells of controls.

Stages are visited parents first. A stage's input region is (region of its parents) × (cell of its controls); a shared
control is one coordinate, and one cell, for all its stages. With cells of no width these are the bounds of points.

There are two forms. `hull` is the paper's (`eq:ucb_chain`, `eq:ucb_net`): each stage maps one box to one box. `union`
is tighter and as valid: it records how values vary jointly (slopes), and bounds a wide input region part by part: with
a table of many parts for a stage with one input, with a few sub-boxes for a stage with more.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cascada.arrays import Array, BoolArray
from cascada.confidence import Balls, Boxes
from cascada.confidence.affine import Affine
from cascada.confidence.cells import enclose
from cascada.errors import RefutedError
from cascada.gp.rounding import NORM_ROUNDING, OFFSET_ROUNDING
from cascada.network.beliefs import Beliefs, StageBelief, logarithmic_inputs
from cascada.network.category_cells import by_category, over_values, several_values
from cascada.network.formula import in_user_units, known_bounds
from cascada.network.limits import in_words
from cascada.network.network import Network

Form = Literal["union", "hull"]

# Input regions whose half-diagonal is more than this many lengthscales are bounded part by part.
_WIDE = 0.05


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Boxes (n, V) that contain every value of the process, and the values as affine forms of the coordinates."""

    boxes: Boxes
    affine: Affine | None

    def columns(self, indices: tuple[int, ...]) -> tuple[Boxes, Affine | None]:
        """The values in these columns."""
        index = list(indices)
        boxes = Boxes(self.boxes.lower[:, index], self.boxes.upper[:, index])
        return boxes, None if self.affine is None else self.affine.columns(index)

    def joined(self, boxes: Boxes, affine: Affine | None) -> "Enclosure":
        """The enclosure extended by more values."""
        both = None if self.affine is None or affine is None else Affine.joined([self.affine, affine])
        return Enclosure(self.boxes.product(boxes), both)

    def take(self, rows: BoolArray) -> "Enclosure":
        """The enclosures of some cells."""
        boxes = Boxes(self.boxes.lower[rows], self.boxes.upper[rows])
        return Enclosure(boxes, None if self.affine is None else self.affine.take(rows))


def enclose_network(beliefs: Beliefs, cells: Boxes, form: Form = "union") -> Enclosure:
    """The enclosure of every value over every cell of controls (coordinates, (n, d))."""
    if beliefs.network.unbounded:
        return Enclosure(_as_far_as_bounded(beliefs, cells), None)
    enclosure = Enclosure(cells, Affine.of_cells(cells) if form == "union" else None)
    near = beliefs.from_runs(cells) if form == "union" else None
    for stage in beliefs.stages:
        boxes, affine = enclose_stage(stage, *enclosure.columns(stage.node.inputs))
        if near is not None:
            columns = list(stage.node.columns)
            boxes = boxes.intersect(Boxes(near.lower[:, columns], near.upper[:, columns]))
            _check_possible(stage, boxes)
        enclosure = enclosure.joined(boxes, affine)
    return enclosure


def _as_far_as_bounded(beliefs: Beliefs, cells: Boxes) -> Boxes:
    """Boxes (n, V) in a network with formulas without bounds: infinite for them and for what follows from them.

    The bounds of such a formula are its value where its inputs are known exactly.
    """
    found = cells
    for stage in beliefs.stages:
        columns = list(stage.node.inputs)
        inputs = Boxes(found.lower[:, columns], found.upper[:, columns])
        unknown = np.full((len(cells.lower), len(stage.node.columns)), np.inf)
        outputs = Boxes(-unknown, unknown)
        rows = np.flatnonzero((np.isfinite(inputs.lower) & np.isfinite(inputs.upper)).all(axis=1))
        if len(rows):
            boxes = enclose_stage(stage, Boxes(inputs.lower[rows], inputs.upper[rows]), None)[0]
            outputs.lower[rows], outputs.upper[rows] = boxes.lower, boxes.upper
        found = found.product(outputs)
    return found


def objective_above(network: Network, enclosure: Enclosure) -> Array:
    """Upper bounds (n,) of what is maximised: the objective, or minus the objective if it is minimised."""
    column = network.objective_column
    if network.sign > 0:
        return enclosure.boxes.upper[:, column]  # eq:ucb_chain, eq:ucb_net
    return -enclosure.boxes.lower[:, column]


def enclose_stage(stage: StageBelief, cells: Boxes, inputs: Affine | None) -> tuple[Boxes, Affine | None]:
    """All outputs of a stage over boxes of its inputs; in the union form if the inputs are known as affine forms.

    Raises `RefutedError` if the data leave no possible value.
    """
    boxes, affine = possible_values(stage, cells, inputs)
    _check_possible(stage, boxes)
    return boxes, affine


def possible_values(stage: StageBelief, cells: Boxes, inputs: Affine | None) -> tuple[Boxes, Affine | None]:
    """The same, with empty boxes where the data, the assumptions and the inputs leave no possible value."""
    boxes, affine = _all_outputs(stage, cells, inputs)
    return within_ranges(stage, boxes), affine


def enclose_any_inputs(stage: StageBelief, cells: Boxes, inputs: Affine | None) -> tuple[Boxes, Affine | None]:
    """Like `enclose_stage`, also for inputs that no setting reaches: ranges say nothing there."""
    boxes, affine = _all_outputs(stage, cells, inputs)
    _check_possible(stage, boxes)
    return boxes, affine


def _all_outputs(stage: StageBelief, cells: Boxes, inputs: Affine | None) -> tuple[Boxes, Affine | None]:
    """All outputs of a stage over boxes of its inputs, whatever their ranges."""
    if stage.node.choices and (several := several_values(stage, cells)).any():
        return over_values(stage, cells, inputs, several, _all_outputs)
    if stage.node.stage.known:
        return _known(stage, cells, inputs)
    modelled = _modelled(stage, cells, inputs)
    if modelled is None or stage.node.stage.passes:
        modelled = _with_passed(stage, cells, inputs, modelled)
    return modelled


def _check_possible(stage: StageBelief, boxes: Boxes) -> None:
    """Raise `RefutedError` if the bounds of a stage are empty somewhere."""
    if (boxes.lower > boxes.upper).any():
        raise nothing_possible(stage)


def within_ranges(stage: StageBelief, boxes: Boxes) -> Boxes:
    """Boxes (n, p) of a stage's outputs, intersected with the ranges of the outputs.

    Only the outputs over cells of controls are intersected. Tables and envelopes also stand for inputs that cannot be
    reached, where a range says nothing.
    """
    ranges = stage.node.ranges
    if ranges is None:
        return boxes
    return Boxes(np.maximum(boxes.lower, ranges[0]), np.minimum(boxes.upper, ranges[1]))


def nothing_possible(stage: StageBelief) -> RefutedError:
    """The error for a stage whose data and assumptions leave no possible value."""
    declared = stage.node.stage
    small = "its norm_bound or lipschitz" if not declared.read_with_errors else "its norm_bound, lipschitz or error"
    if stage.node.ranges is None:
        return RefutedError(
            f"stage {declared.name!r}: its data leave no possible value at some inputs, so {small} is too small."
        )
    ranges = ", ".join(in_words(output, interval) for output, interval in declared.ranges.items())
    return RefutedError(
        f"stage {declared.name!r}: its assumptions and data leave no possible value at some inputs, so its range "
        f"({ranges}) or its offset is wrong, or {small} is too small."
    )


def _with_passed(
    stage: StageBelief, cells: Boxes, inputs: Affine | None, modelled: tuple[Boxes, Affine | None] | None
) -> tuple[Boxes, Affine | None]:
    """All outputs of a stage in their order: the modelled ones, and those that are passed on."""
    boxes: list[Boxes] = []
    affines: list[Affine] = []
    position = 0
    for output in stage.node.stage.outputs:
        if output in stage.node.stage.passes:
            j = stage.node.input_names.index(output)
            user = in_user_units(stage, cells)  # outputs are in user units, even a copy of a logarithmic control
            box, affine = Boxes(user.lower[:, [j]], user.upper[:, [j]]), inputs.columns([j]) if inputs else None
            if affine is not None and j in logarithmic_inputs(stage.node):
                affine = Affine.of_boxes(box, affine.slope.shape[2])
        else:
            assert modelled is not None, "every output is passed on or modelled"
            box = Boxes(modelled[0].lower[:, [position]], modelled[0].upper[:, [position]])
            affine = modelled[1].columns([position]) if modelled[1] else None
            position += 1
        boxes.append(box)
        affines += [affine] if affine is not None else []
    joined = Boxes(np.hstack([box.lower for box in boxes]), np.hstack([box.upper for box in boxes]))
    return joined, Affine.joined(affines) if affines else None


def _modelled(stage: StageBelief, cells: Boxes, inputs: Affine | None) -> tuple[Boxes, Affine | None] | None:
    if stage.belief is None:
        return None
    if stage.categories:
        return by_category(stage, cells, inputs, _modelled)
    offset = stage.node.stage.offset
    belief = stage.per_output
    if belief is None:  # a general operator-valued kernel: balls
        balls = Balls(cells.centre, np.linalg.norm(cells.half, axis=1) * (1 + NORM_ROUNDING))
        boxes = stage.belief.region(balls).box_hull().widened()
        affine = None if inputs is None else Affine.of_boxes(boxes, inputs.slope.shape[2])
    else:
        tables = inputs is not None and bool(stage.tables)
        boxes, affine = enclose(belief, cells, inputs, None if inputs is None or tables else _WIDE)
        if tables:
            boxes = boxes.intersect(_from_tables(stage, cells))
    if not offset.any():
        return boxes, affine
    shifted = Boxes(boxes.lower + offset, boxes.upper + offset).widened()
    if affine is not None:
        rounding = OFFSET_ROUNDING * (np.abs(affine.centre) + np.abs(offset))
        affine = Affine(affine.centre + offset, affine.slope, affine.error + rounding)
    return shifted, affine


def tabulated(stage: StageBelief, cells: Boxes) -> Boxes:
    """The outputs of a stage with one input over intervals, from its tables alone; it must pass on no output."""
    boxes, offset = _from_tables(stage, cells), stage.node.stage.offset
    return within_ranges(stage, Boxes(boxes.lower + offset, boxes.upper + offset).widened())


def _from_tables(stage: StageBelief, cells: Boxes) -> Boxes:
    parts = [table.over(cells) for table in stage.tables]
    return Boxes(np.hstack([part.lower for part in parts]), np.hstack([part.upper for part in parts]))


def _known(stage: StageBelief, cells: Boxes, inputs: Affine | None) -> tuple[Boxes, Affine | None]:
    boxes = known_bounds(stage, in_user_units(stage, cells))
    return boxes, None if inputs is None else Affine.of_boxes(boxes, inputs.slope.shape[2])
