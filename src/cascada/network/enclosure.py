"""What every value of a process can be over whole cells of controls.

Stages are visited parents first. A stage's input region is (region of its parents) × (cell of its controls); a shared
control is one coordinate, and one cell, for all its stages. With cells of no width these are the bounds of points.

Two forms. `hull` is the paper's (`eq:ucb_chain`, `eq:ucb_net`): each stage maps one box to one box. `union` is tighter
and as valid: it follows how values move together (slopes), and takes a wide input region as the union of parts, each
bounded by itself: a table of many parts for a stage with one input, a few sub-boxes for one with more.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.confidence import BallBelief, Balls, Belief, Boxes
from cascada.confidence.affine import Affine
from cascada.confidence.cells import cut, enclose
from cascada.errors import ArgumentError, RefutedError
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.network.beliefs import Beliefs, StageBelief, logarithmic_inputs
from cascada.network.network import Network
from cascada.network.outputs import StageError, as_outputs_of, failure_text

Form = Literal["union", "hull"]

# So many lengthscales of an input are surely a mistake, and their squares times a variance are still floats.
_WIDEST = 1e50
# Input regions whose half-diagonal is more than this many lengthscales are taken in parts.
_WIDE = 0.05


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Boxes (n, V) that contain every value of the process, and how the values move with the cells' coordinates."""

    boxes: Boxes
    affine: Affine | None

    def columns(self, indices: tuple[int, ...]) -> tuple[Boxes, Affine | None]:
        """Some of the values."""
        index = list(indices)
        boxes = Boxes(self.boxes.lower[:, index], self.boxes.upper[:, index])
        return boxes, None if self.affine is None else self.affine.columns(index)

    def joined(self, boxes: Boxes, affine: Affine | None) -> "Enclosure":
        """These values and some more."""
        both = None if self.affine is None or affine is None else Affine.joined([self.affine, affine])
        return Enclosure(self.boxes.product(boxes), both)


def enclose_network(beliefs: Beliefs, cells: Boxes, form: Form = "union") -> Enclosure:
    """Enclose every value over every cell of controls (coordinates, (n, d))."""
    enclosure = Enclosure(cells, Affine.of_cells(cells) if form == "union" else None)
    for stage in beliefs.stages:
        enclosure = enclosure.joined(*enclose_stage(stage, *enclosure.columns(stage.node.inputs)))
    return enclosure


def prior_beliefs(network: Network, jitter: float = SMALLEST_JITTER, tight: bool = True) -> Beliefs:
    """What is believed before the first run."""
    beliefs = Beliefs.unspanned(network, jitter, tight)
    whole = Boxes(network.domain.lower[None], network.domain.upper[None])
    with np.errstate(over="ignore", invalid="ignore"):  # where ranges are too wide, as `_check_span` says
        spanned = beliefs.spanned(enclose_network(beliefs, whole, form="hull").boxes)
    for stage in spanned.stages:
        _check_span(stage)
    return spanned


def _check_span(stage: StageBelief) -> None:
    """Raise `ArgumentError` where inputs are so many lengthscales wide that squares could leave the range of floats."""
    belief = stage.per_output
    if belief is None or stage.span is None:
        return
    sides = (stage.span.upper - stage.span.lower)[0]
    if belief.lipschitz is not None and not np.log10(belief.lipschitz).max() + np.log10(sides.max()) <= 300:
        raise ArgumentError(
            f"stage {stage.node.stage.name!r}: lipschitz times the range of its inputs is more than 1e300, which "
            f"float64 cannot compute with. Choose other units, or leave lipschitz out."
        )
    wide = sides / belief.kernel.lengthscales(len(stage.node.inputs))
    for name, width in zip(stage.node.input_names, wide, strict=True):
        if not width <= _WIDEST:
            raise ArgumentError(
                f"stage {stage.node.stage.name!r}: its input {name!r} ranges over {width:.3g} lengthscales, more than "
                f"{_WIDEST:g}. Give a longer lengthscale."
            )


def objective_above(network: Network, enclosure: Enclosure) -> Array:
    """Upper bounds (n,) of what is maximised: the objective, or minus it when that is minimised."""
    column = network.objective_column
    if network.sign > 0:
        return enclosure.boxes.upper[:, column]  # eq:ucb_chain, eq:ucb_net
    return -enclosure.boxes.lower[:, column]


def enclose_stage(stage: StageBelief, cells: Boxes, inputs: Affine | None) -> tuple[Boxes, Affine | None]:
    """All outputs of a stage over boxes of its inputs; in the union form if it is known how the inputs move."""
    if stage.node.stage.known:
        return _known(stage, cells, inputs)
    boxes: list[Boxes] = []
    affines: list[Affine] = []
    modelled = _modelled(stage, cells, inputs)
    position = 0
    for output in stage.node.stage.outputs:
        if output in stage.node.stage.passes:
            j = stage.node.input_names.index(output)
            user = in_user_units(stage, cells)  # an output is in user units, also a copy of a logarithmic control
            box, affine = Boxes(user.lower[:, [j]], user.upper[:, [j]]), inputs.columns([j]) if inputs else None
            if affine is not None and j in logarithmic_inputs(stage.node):
                affine = Affine.of_boxes(box, affine.slope.shape[2])
        else:
            assert modelled is not None, "an output that is not passed on is modelled"
            box = Boxes(modelled[0].lower[:, [position]], modelled[0].upper[:, [position]])
            affine = modelled[1].columns([position]) if modelled[1] else None
            position += 1
        boxes.append(box)
        affines += [affine] if affine is not None else []
    joined = Boxes(np.hstack([box.lower for box in boxes]), np.hstack([box.upper for box in boxes]))
    if np.any(joined.empty):
        raise RefutedError(
            f"stage {stage.node.stage.name!r}: its data leave no possible value at some inputs, so its norm_bound or "
            f"lipschitz is too small."
        )
    return joined, Affine.joined(affines) if affines else None


def _modelled(stage: StageBelief, cells: Boxes, inputs: Affine | None) -> tuple[Boxes, Affine | None] | None:
    if stage.belief is None:
        return None
    offset = stage.node.stage.offset
    belief = stage.per_output
    if belief is None:  # a general operator-valued kernel: balls
        assert isinstance(stage.belief, BallBelief), "what has no belief per output has a joint one"
        balls = Balls(cells.centre, np.linalg.norm(cells.half, axis=1) * (1 + 1e-14))
        boxes = stage.belief.region(balls).box_hull().widened()
        affine = None if inputs is None else Affine.of_boxes(boxes, inputs.slope.shape[2])
    else:
        boxes, affine = enclose(belief, cells, inputs)
        if inputs is not None:
            boxes = boxes.intersect(_union(stage, belief, cells, boxes))
    if not offset.any():
        return boxes, affine
    shifted = Boxes(boxes.lower + offset, boxes.upper + offset).widened()
    if affine is not None:
        rounding = 4e-16 * (np.abs(affine.centre) + np.abs(offset))
        affine = Affine(affine.centre + offset, affine.slope, affine.error + rounding)
    return shifted, affine


def tabulated(stage: StageBelief, cells: Boxes) -> Boxes:
    """The outputs of a stage with one input, none of them passed on, over intervals: from its tables alone."""
    boxes, offset = _from_tables(stage, cells), stage.node.stage.offset
    return Boxes(boxes.lower + offset, boxes.upper + offset).widened()


def _from_tables(stage: StageBelief, cells: Boxes) -> Boxes:
    parts = [table.over(cells) for table in stage.tables]
    return Boxes(np.hstack([part.lower for part in parts]), np.hstack([part.upper for part in parts]))


def _union(stage: StageBelief, belief: Belief, cells: Boxes, whole: Boxes) -> Boxes:
    """Bounds over the parts of wide input regions; `whole` are the bounds over each region at once."""
    if stage.tables:
        return _from_tables(stage, cells)
    wide = np.flatnonzero(belief.kernel.scaled_norm(cells.half) > _WIDE)
    if not len(wide):
        return whole
    some = Boxes(cells.lower[wide], cells.upper[wide])
    parts = [quarter for half in cut(belief, some, 2) for quarter in cut(belief, half, 2)]
    every = Boxes(np.concatenate([part.lower for part in parts]), np.concatenate([part.upper for part in parts]))
    bounds, _ = enclose(belief, every, None)
    lower, upper = whole.lower.copy(), whole.upper.copy()
    lower[wide] = bounds.lower.reshape(len(parts), len(wide), -1).min(axis=0)
    upper[wide] = bounds.upper.reshape(len(parts), len(wide), -1).max(axis=0)
    return Boxes(lower, upper)


def _known(stage: StageBelief, cells: Boxes, inputs: Affine | None) -> tuple[Boxes, Affine | None]:
    boxes = known_bounds(stage, in_user_units(stage, cells))
    return boxes, None if inputs is None else Affine.of_boxes(boxes, inputs.slope.shape[2])


def known_bounds(stage: StageBelief, cells: Boxes) -> Boxes:
    """A formula over cells in user units: its value at the centre and its Lipschitz constant, or its own intervals."""
    given = stage.node.stage
    if given.interval is not None:
        pairs = [_interval(stage, low, high) for low, high in zip(cells.lower, cells.upper, strict=True)]
        return Boxes(*np.array(pairs).reshape(len(pairs), 2, -1).transpose(1, 0, 2))
    values = np.array([_formula(stage, row) for row in cells.centre]).reshape(len(cells.lower), -1)
    reach = np.linalg.norm(cells.half, axis=1)[:, None] * given.lipschitz * (1 + 1e-14)
    return Boxes(values - reach, values + reach).widened()


def known_values(stage: StageBelief, inputs: Array) -> Array:
    """A known stage's outputs (n, p) at rows of inputs (coordinates)."""
    points = in_user_units(stage, Boxes(inputs, inputs)).centre
    return np.array([_formula(stage, row) for row in points]).reshape(len(points), -1)


def likely_values(stage: StageBelief, inputs: Array) -> Array:
    """The same at inputs that are guesses: NaN where the formula is not defined, which nothing needs to reach."""
    points = in_user_units(stage, Boxes(inputs, inputs)).centre
    values = np.full((len(points), len(stage.node.columns)), np.nan)
    for i, row in enumerate(points):
        with suppress(StageError):
            values[i] = _formula(stage, row)
    return values


def _formula(stage: StageBelief, row: Array) -> tuple[float, ...]:
    """A known stage's outputs at one row of inputs in user units."""
    assert stage.node.stage.function is not None, "a known stage has its formula"
    inputs = dict(zip(stage.node.input_names, row.tolist(), strict=True))
    try:
        return as_outputs_of(stage.node, stage.node.stage.function(**inputs))
    except Exception as error:  # the formula is the user's: it may raise anything
        raise StageError(stage.node.stage.name, inputs, failure_text(error), {}) from error


def _interval(stage: StageBelief, low: Array, high: Array) -> tuple[list[float], list[float]]:
    """What a known stage's interval function says of one box: the low and the high ends of its outputs."""
    assert stage.node.stage.interval is not None, "called only with an interval function"
    pairs = dict(zip(stage.node.input_names, zip(low.tolist(), high.tolist(), strict=True), strict=True))
    try:
        given = stage.node.stage.interval(**pairs)
    except Exception as error:  # the function is the user's: it may raise anything
        raise ArgumentError(
            f"the interval function of stage {stage.node.stage.name!r} failed for {pairs}: {failure_text(error)}. "
            f"It must bound the formula over any such intervals, also where the process itself never goes."
        ) from error
    try:
        result = np.array(given, dtype=np.float64).reshape(-1, 2)
        sound = len(result) == len(stage.node.columns) and np.isfinite(result).all() and np.all(np.diff(result) >= 0)
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise ArgumentError(
            f"the interval function of stage {stage.node.stage.name!r} must return a (low, high) pair for each of its "
            f"{len(stage.node.columns)} output(s), finite and low ≤ high; got {given!r}."
        )
    return result[:, 0].tolist(), result[:, 1].tolist()


def in_user_units(stage: StageBelief, cells: Boxes) -> Boxes:
    """Boxes of inputs with the exponential of logarithmic controls, rounded outwards."""
    columns = logarithmic_inputs(stage.node)
    if not columns:
        return cells
    lower, upper = cells.lower.copy(), cells.upper.copy()
    # ln x is rounded by u·|ln x|, and the exponential makes a relative error of that.
    low, high = lower[:, columns], upper[:, columns]
    lower[:, columns] = np.exp(low) * (1 - UNIT_ROUNDOFF * (8 + 4 * np.abs(low)))
    upper[:, columns] = np.exp(high) * (1 + UNIT_ROUNDOFF * (8 + 4 * np.abs(high)))
    return Boxes(lower, upper)
