"""The point where the objective may be best, and bounds over many points; for figures only, not for certificates."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.designs import design
from cascada.errors import RefutedError
from cascada.network import enclose_network, objective_above
from cascada.network.feasibility import enclose_feasible
from cascada.network.mean import composite_mean
from cascada.study.reader import Reader

_POINTS = 512


def optimistic(study: Reader, coordinates: Array) -> tuple[Array, Array] | None:
    """Return the mean and the bound of the objective, each (n,), in the user's sign; None if there is no bound.

    There is none if the data refute an assumption, or if some formula has no bounds.

    The bound is NaN where it is proven that a limit is broken.
    """
    network, beliefs, points = study.network, study.beliefs, Boxes(coordinates, coordinates)
    if network.unbounded:
        return None
    mean = composite_mean(beliefs, coordinates)[:, network.objective_column]
    try:
        if network.limits:
            upper = enclose_feasible(beliefs, points, network.limits).above(network.objective_column, network.sign)
            upper = np.where(np.isneginf(upper), np.nan, upper)
        else:
            upper = objective_above(network, enclose_network(beliefs, points))
    except RefutedError:
        return None
    return mean, network.sign * upper


def promising_point(study: Reader) -> Array | None:
    """Return the coordinates (d,), among a few hundred points, with the best bound.

    Return None if the data refute it, or if it is proven that all of these points break a limit.
    """
    domain = study.network.domain
    found = optimistic(study, points := np.vstack([design(domain, _POINTS), *_best(study)]))
    if found is None or np.isnan(found[1]).all():
        return None
    return points[int(np.nanargmax(study.network.sign * found[1]))]


def coordinates_of(study: Reader, controls: Mapping[str, Any]) -> Array:
    """Return the coordinates (1, d) of named controls in user units."""
    domain = study.network.domain
    return domain.encode(domain.row(controls)[None])


def _best(study: Reader) -> list[Array]:
    best = study.best_trial
    return [] if best is None else [coordinates_of(study, best.controls)]
