"""A run that tests estimated bounds where they rule out a better value.

Runs that are chosen because they promise something say nothing about the rest of the domain, which the bounds dismiss.
A probe is a point of that rest: were the estimate too narrow, its outputs would lie outside the bounds there.
"""

import numpy as np

from cascada.algorithms.algorithm import Context
from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.errors import CascadaError
from cascada.network import Beliefs, enclose_network, objective_above

# Points that are compared: enough for a wide one among those that are ruled out.
_TRIED = 512


def probe(context: Context, rng: np.random.Generator) -> Array | None:
    """The point (d,) with the widest bounds of the objective among those that the bounds rule out; None without any.

    The bounds are those of `Context.untested`. Of the candidates, or of random points, none that was run.
    """
    beliefs = context.untested
    assert beliefs is not None, "only asked when bounds have to be tested"
    points = _tried(context, rng)
    column = beliefs.network.objective_column
    try:
        enclosure = enclose_network(beliefs, Boxes(points, points))
    except CascadaError:  # no value is possible somewhere: the bounds are wrong, and the next runs show it
        return None
    width = enclosure.boxes.upper[:, column] - enclosure.boxes.lower[:, column]
    width = np.where(objective_above(beliefs.network, enclosure) <= context.best, width, -np.inf)
    i = int(width.argmax()) if len(points) else -1
    return points[i] if i >= 0 and np.isfinite(width[i]) else None


def ruled_out(beliefs: Beliefs, points: Array, best: float) -> Array:
    """Whether the bounds say that points (n, d) are no better than the best value, as a mask (n,).

    Raises `RefutedError` or `StageError` where there are no bounds.
    """
    return objective_above(beliefs.network, enclose_network(beliefs, Boxes(points, points))) <= best


def _tried(context: Context, rng: np.random.Generator) -> Array:
    domain = context.domain
    if context.candidates is not None:
        free = context.candidates[context.free_candidates()]
        return free if len(free) <= _TRIED else free[rng.choice(len(free), _TRIED, replace=False)]
    points = rng.uniform(domain.lower, domain.upper, (_TRIED, domain.dimension))
    points = domain.encode(domain.decode(points))  # whole numbers are whole
    return np.array([point for point in points if not context.is_taken(point)]).reshape(-1, domain.dimension)
