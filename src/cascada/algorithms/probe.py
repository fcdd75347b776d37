"""Probes: runs that test estimated bounds where they rule out a better value.

Runs at promising points do not test the bounds in the rest of the domain, which the bounds rule out. A probe is a point
of that rest, away from the runs to which the bounds were fitted: if the estimate is too narrow, its outputs are likely
to lie outside the bounds.
"""

import numpy as np

from cascada.algorithms.algorithm import Situation
from cascada.arrays import Array, BoolArray
from cascada.confidence import Boxes
from cascada.errors import CascadaError
from cascada.network import Beliefs, enclose_network, objective_above
from cascada.network.feasibility import enclose_feasible
from cascada.search.starts import apart

# The number of points among which the farthest from all runs is chosen.
_TRIED = 512
# Within this distance of a run, in sides of the box, bounds are always narrow and need no test.
_AWAY = 0.02
# Where the objective is constant, bounds exceed it by rounding: this part of it is allowed.
_ROUNDING = 1e-9


def probe(situation: Situation, rng: np.random.Generator) -> Array | None:
    """The point (d,) farthest from all runs among those that `Situation.untested` rules out; None if there is none.

    It is a candidate that was not run, or a random point.
    """
    assert situation.untested is not None, "only asked when bounds have to be tested"
    points, d = _tried(situation, rng), situation.domain.dimension
    runs = np.concatenate([situation.data[:, :d], situation.pending[:, :d]])
    try:
        suited = is_probe(situation.untested, points, situation.best, runs)
    except CascadaError:  # some stage has no possible value: the bounds are wrong, as the next runs will show
        return None
    if not suited.any():
        return None
    return points[int(np.where(suited, apart(situation.domain, points, runs), -np.inf).argmax())]


def is_probe(beliefs: Beliefs, points: Array, best: float, runs: Array) -> BoolArray:
    """Which points (n, d) are away from all runs (t, d) and, by the bounds, no better than the best value, (n,).

    With limits, a point that breaks one by the bounds is no better either; without a feasible run no point is a probe.
    Nor is one where some formula has no bounds.
    Raises `RefutedError` or `StageError` if there are no bounds.
    """
    network, cells = beliefs.network, Boxes(points, points)
    if network.unbounded or (network.limits and np.isinf(best)):
        return np.zeros(len(points), dtype=bool)
    if network.limits:
        upper = enclose_feasible(beliefs, cells, network.limits).above(network.objective_column, network.sign)
    else:
        upper = objective_above(network, enclose_network(beliefs, cells))
    return (upper <= best + _ROUNDING * abs(best)) & (apart(beliefs.network.domain, points, runs) > _AWAY)


def _tried(situation: Situation, rng: np.random.Generator) -> Array:
    domain = situation.domain
    if situation.candidates is not None:
        free = situation.candidates[situation.free_candidates()]
        return free if len(free) <= _TRIED else free[rng.choice(len(free), _TRIED, replace=False)]
    points = domain.uniform(rng, _TRIED)
    points = domain.encode(domain.decode(points))  # whole numbers are whole
    return np.array([point for point in points if not situation.is_taken(point)]).reshape(-1, domain.dimension)
