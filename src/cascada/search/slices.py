"""Slices of the box of controls: some controls are fixed, the others are free."""

from collections.abc import Collection

import numpy as np

from cascada.arrays import Array, BoolArray
from cascada.confidence import Boxes
from cascada.network import Beliefs
from cascada.network.slack import around_setting
from cascada.space import Domain


def free_controls(domain: Domain, fixed: Collection[str]) -> BoolArray:
    """The controls that are not fixed, as a mask (d,)."""
    return np.array([name not in fixed for name in domain.names], dtype=bool)


def slice_of(beliefs: Beliefs, point: Array, fixed: Collection[str]) -> Boxes:
    """One box (1, d) with all settings that have the same fixed controls as a point (d,), coordinates.

    A fixed control is a side without width. If it is logarithmic, its exact coordinate is known to a rounding error
    only, and the side is as wide as this error.
    """
    domain, free = beliefs.network.domain, free_controls(beliefs.network.domain, fixed)
    around = around_setting(beliefs, point[None])
    return Boxes(np.where(free, domain.lower, around.lower), np.where(free, domain.upper, around.upper))


def with_free(point: Array, free: BoolArray, values: Array) -> Array:
    """Points (n, d) that differ from one point (d,) by the values (n, k) of its k free controls."""
    points = np.repeat(point[None], len(values), axis=0)
    points[:, free] = values
    return points
