"""Bounds over cells that differ in the values of choices: each is bounded by what is known of its own category."""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from cascada.arrays import Array, BoolArray, IntArray
from cascada.confidence import Boxes
from cascada.confidence.affine import Affine
from cascada.network.beliefs import StageBelief

#: Boxes of a stage's outputs over cells of its inputs, and affine forms if those of the inputs are known.
Bounds = Callable[[StageBelief, Boxes, Affine | None], tuple[Boxes, Affine | None] | None]


def several_values(stage: StageBelief, cells: Boxes) -> BoolArray:
    """Which cells (n, d) of a stage's inputs contain more than one value of a choice, (n,)."""
    codes = list(stage.node.choices)
    return np.asarray((cells.lower[:, codes] < cells.upper[:, codes]).any(axis=1))


def over_values(
    stage: StageBelief, cells: Boxes, inputs: Affine | None, several: BoolArray, bounds: Bounds
) -> tuple[Boxes, Affine | None]:
    """Bounds over cells of which `several` (n,) contain more than one value of a choice: the hull of those of each."""
    parts: list[tuple[IntArray, Boxes, Affine | None]] = []
    one = np.flatnonzero(~several)
    if len(one):
        found = bounds(stage, taken(cells, one), None if inputs is None else inputs.take(one))
        assert found is not None, "the stage has outputs"
        parts.append((one, *found))
    for row in np.flatnonzero(several):
        each = _every_value(stage, taken(cells, np.array([row])))
        found = bounds(stage, each, None)
        assert found is not None, "the stage has outputs"
        hull = Boxes(found[0].lower.min(axis=0)[None], found[0].upper.max(axis=0)[None])
        affine = None if inputs is None else Affine.of_boxes(hull, inputs.slope.shape[2])
        parts.append((np.array([row]), hull, affine))
    return gathered(len(cells.lower), parts)


def by_category(
    stage: StageBelief, cells: Boxes, inputs: Affine | None, bounds: Bounds
) -> tuple[Boxes, Affine | None] | None:
    """Bounds over cells with one value of every choice, each by the belief about its category."""
    parts = []
    for part, rows, kept in categories_of(stage, cells.lower):
        some = taken(cells, rows)
        among = None if inputs is None else inputs.take(rows).columns(kept)
        found = bounds(part, Boxes(some.lower[:, kept], some.upper[:, kept]), among)
        if found is None:
            return None
        parts.append((rows, *found))
    if not parts:  # no cells
        first, kept = stage.categories[0], list(range(len(stage.categories[0].node.inputs)))
        none = Boxes(cells.lower[:0, kept], cells.upper[:0, kept])
        return bounds(first, none, None if inputs is None else inputs.columns(kept))
    return gathered(len(cells.lower), parts)


def categories_of(stage: StageBelief, inputs: Array) -> Iterator[tuple[StageBelief, IntArray, list[int]]]:
    """The beliefs about the categories in rows of inputs (n, d), with their rows, and the inputs that they keep."""
    categories = stage.node.categories
    assert categories is not None, "only asked of a stage with categories"
    kept = categories.others
    for number, rows in categories.groups(inputs):
        yield stage.categories[number], rows, kept


def parts_at(stage: StageBelief, inputs: Array) -> Iterator[tuple[StageBelief, IntArray]]:
    """The beliefs about the categories in rows of inputs (n, d), with their rows; without categories, the stage's."""
    if not stage.categories:
        yield stage, np.arange(len(inputs))
        return
    for part, rows, _ in categories_of(stage, inputs):
        yield part, rows


def taken(cells: Boxes, rows: IntArray) -> Boxes:
    """Some of the cells."""
    return Boxes(cells.lower[rows], cells.upper[rows])


def gathered(n: int, parts: list[tuple[IntArray, Boxes, Affine | None]]) -> tuple[Boxes, Affine | None]:
    """Bounds over n cells from those over some rows each, which cover all of them."""
    width = parts[0][1].lower.shape[1]
    boxes = Boxes(np.empty((n, width)), np.empty((n, width)))
    first = parts[0][2]
    whole = None
    if first is not None:
        shape = (n, width, first.slope.shape[2])
        whole = Affine(np.empty((n, width)), np.empty(shape), np.empty((n, width)))
    for rows, some, affine in parts:
        boxes.lower[rows], boxes.upper[rows] = some.lower, some.upper
        if whole is not None and affine is not None:
            whole.centre[rows], whole.slope[rows], whole.error[rows] = affine.centre, affine.slope, affine.error
    return boxes, whole


def _every_value(stage: StageBelief, cell: Boxes) -> Boxes:
    """One cell (1, d) for every combination of the values of choices that it contains, (k, d)."""
    codes = list(stage.node.choices)
    ends = zip(np.rint(cell.lower[0, codes]), np.rint(cell.upper[0, codes]), strict=True)
    combinations = np.array(list(product(*(np.arange(low, high + 1) for low, high in ends))))
    lower, upper = (np.repeat(end, len(combinations), axis=0) for end in (cell.lower, cell.upper))
    lower[:, codes] = upper[:, codes] = combinations
    return Boxes(lower, upper)
