"""Swaps: the best run with another value of one choice.

What is best for one material says little about another one where the two differ much: the expected improvement there is
tiny, and an optimiser would stay with the first material that it understands. A run of each other value next to the
best setting is cheap, compared with what it may show.
"""

import numpy as np

from cascada.algorithms.algorithm import Situation
from cascada.arrays import Array
from cascada.search.starts import apart

# A value was tried if a run with it, and with the same values of other choices, is this near, in sides of the box.
_NEAR = 0.25


def swaps(situation: Situation) -> Array:
    """The best run with another value of one choice, for each value that was not tried near it, (n, d)."""
    domain, best = situation.domain, situation.best_point
    if best is None:
        return np.empty((0, domain.dimension))
    d = domain.dimension
    runs = np.concatenate([situation.data[:, :d], situation.pending[:, :d]])
    found = []
    for column in domain.choices:
        if domain.names[column] in domain.idle:
            continue
        for code in np.arange(domain.lower[column], domain.upper[column] + 1):
            if code != best[column]:
                found.append(best.copy())
                found[-1][column] = code
    points = np.array(found).reshape(-1, d)
    return points[apart(domain, points, runs) > _NEAR] if len(points) else points
