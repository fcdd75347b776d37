"""Boxes of what a stage copies or computes exactly: passed outputs and formulas, over boxes of its inputs."""

from contextlib import suppress
from typing import TypeVar

import numpy as np

from cascada.arrays import BoolArray
from cascada.confidence import Boxes
from cascada.errors import ArgumentError
from cascada.network.beliefs import StageBelief
from cascada.network.formula import in_user_units, known_bounds
from cascada.network.latent import Latent
from cascada.network.outputs import StageError

L = TypeVar("L", bound=Latent)


def bounded(boxes: Boxes) -> BoolArray:
    """Which boxes are finite, (n,)."""
    return np.asarray((np.isfinite(boxes.lower) & np.isfinite(boxes.upper)).all(axis=1))


def copied(stage: StageBelief, latent: L, inputs: Boxes) -> L:
    """With the boxes of inputs that a stage passes on."""
    if not stage.node.stage.passes:
        return latent
    user = in_user_units(stage, inputs)
    for output in stage.node.stage.passes:
        j = stage.node.input_names.index(output)
        column = stage.node.columns[stage.node.stage.outputs.index(output)]
        latent = latent.intersected([column], Boxes(user.lower[:, [j]], user.upper[:, [j]]))
    return latent


def computed(stage: StageBelief, latent: L, inputs: Boxes) -> L:
    """With the boxes of a formula over the boxes of its inputs, where it is defined."""
    user, columns = in_user_units(stage, inputs), list(stage.node.columns)
    unknown = np.full((len(user.lower), len(columns)), np.inf)
    found = Boxes(-unknown, unknown)
    for i in np.flatnonzero(bounded(user)):
        with suppress(StageError, ArgumentError):
            bounds = known_bounds(stage, Boxes(user.lower[[i]], user.upper[[i]]))
            found.lower[i], found.upper[i] = bounds.lower[0], bounds.upper[0]
    return latent.intersected(columns, found)
