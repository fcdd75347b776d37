"""Deliberately broken versions of what is learned of choices from readings with errors; see `broken`."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from cascada.arrays import Array, IntArray
from cascada.confidence import Boxes
from cascada.kernels import Coded, Stationary
from cascada.network import Node, StageBelief, read_beliefs, run_anchors
from cascada.network.category_cells import parts_at
from cascada.network.read_beliefs import ReadBeliefs
from tests.soundness import read_choices
from tests.soundness.broken import Broken
from tests.soundness.broken_choices import all_alike, next_category, with_the_next_norm

_slopes, _carried = run_anchors.slopes, run_anchors._carried


def _no_slope_in_choices(beliefs: ReadBeliefs, cells: Boxes) -> Array:
    """The slopes of all values, 0 in choices: as if other values of them changed nothing."""
    found = _slopes(beliefs, cells)
    found[:, :, beliefs.network.domain.choices] = 0.0
    return found


def _finite_slopes(local: Array, before: Array) -> Array:
    """Slopes in choices that are those between neighbouring numbers."""
    return _carried(np.where(np.isinf(local), 0.0, local), np.where(np.isinf(before), 1.0, before))


def _runs_of_all(_runs: Any, count: int) -> Array:
    return np.ones(count, dtype=bool)


def _next_part(stage: StageBelief, inputs: Array) -> Iterator[tuple[StageBelief, IntArray]]:
    if not stage.categories:
        yield from parts_at(stage, inputs)
        return
    for part, rows, _ in next_category(stage, inputs):
        yield part, rows


_first = partial(read_choices.run, 10, 2, 0, ("first",), (1, 25), (False,))
_alike = partial(read_choices.run, 10, 2, 0, ("first", "later"), (1, 25), (True,))

BROKEN_READ_CHOICES: tuple[Broken, ...] = (
    Broken(
        "a reading is learned by all categories",
        "read_choices",
        ((read_beliefs, "_among", _runs_of_all),),
        _first,
    ),
    Broken(
        "a reading is learned by another category",
        "read_choices",
        ((read_beliefs, "parts_at", _next_part),),
        _first,
    ),
    Broken(
        "the norm bound of one value counts for the readings of another",
        "read_choices",
        ((Node, "by_category", property(with_the_next_norm)),),
        partial(read_choices.run, 10, 2, 0, ("later",), (25,), (False,)),
    ),
    Broken(
        "a run says the same of settings with another value",
        "read_choices",
        ((run_anchors, "slopes", _no_slope_in_choices),),
        _first,
    ),
    Broken(
        "between two values of a choice a run is followed with the slope of numbers",
        "read_choices",
        ((run_anchors, "_carried", _finite_slopes),),
        _alike,
    ),
    Broken(
        "the distance to a reading with another value is that within one value",
        "read_choices",
        ((Coded, "distance_of", Stationary.distance_of),),
        _alike,
    ),
    Broken(
        "readings of values with a common part count as those of the same value",
        "read_choices",
        ((Coded, "likeness", all_alike),),
        _alike,
    ),
    Broken(
        "readings of two values refute a Lipschitz constant",
        "read_choices",
        ((Coded, "codes", ()),),
        partial(read_choices.run, 10, 2, 0, ("first",), (25,), (True,)),
    ),
)
