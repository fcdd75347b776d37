"""The exact maximum of the upper bound over a list of candidates."""

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.network import Beliefs, enclose_network, objective_above

_BLOCK = 4096


def candidate_bounds(beliefs: Beliefs, coordinates: Array) -> Array:
    """UCB_t of what is maximised at every candidate (n, d), coordinates; shape (n,)."""
    upper = np.empty(len(coordinates))
    for i in range(0, len(coordinates), _BLOCK):
        block = coordinates[i : i + _BLOCK]
        upper[i : i + _BLOCK] = objective_above(beliefs.network, enclose_network(beliefs, Boxes(block, block)))
    return upper


def largest(values: Array, rng: np.random.Generator) -> int:
    """The index of the largest value, one of them at random where several are equal."""
    return int(rng.choice(np.flatnonzero(values == values.max())))
