"""The proven incumbent: the setting with the largest proven value that a short search finds, whether it was run or not.

Its value is a lower bound that holds at the setting, which must be proven to satisfy all limits. How good the setting
is depends on the search; that its value is reached does not.
"""

from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.network import Beliefs, enclose_network
from cascada.network.slack import around_setting
from cascada.search.starts import snapped, with_other_choices

_STEPS = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4)  # of a side: the scales at which a point is moved
_POINTS = 48  # at each scale
_BLOCK = 4096  # points that are bounded together


@dataclass(frozen=True, eq=False)
class Incumbent:
    """A setting (d,), coordinates, that gives at least `value` of what is maximised and satisfies all limits."""

    point: Array
    value: float


def proven_incumbent(
    beliefs: Beliefs, starts: Array, rng: np.random.Generator, within: Boxes | None = None
) -> Incumbent | None:
    """The best proven setting found from starts (k, d); None if none is proven to satisfy the limits.

    `within` is one box (1, d) that contains the starts; a side without width keeps its value.
    Raises `RefutedError` if the data refute an assumption.
    """
    domain = beliefs.network.domain
    box = Boxes(domain.lower[None], domain.upper[None]) if within is None else within
    free = box.upper[0] > box.lower[0]
    points, found = _settings(beliefs, starts, box), None
    for step in (*_STEPS, 0.0):
        values, margins = _proven(beliefs, points)
        i = int(values.argmax())
        if values[i] > (-np.inf if found is None else found.value):
            found = Incumbent(points[i], float(values[i]))
        # Until a setting is proven to be feasible, the search moves to where the limits hold by most.
        centre = points[int(margins.argmax())] if found is None else found.point
        moves = step * (box.upper[0] - box.lower[0]) * rng.standard_normal((_POINTS, domain.dimension)) * free
        moved = with_other_choices(domain, rng, centre, centre + moves)
        points = _settings(beliefs, np.concatenate([centre[None], moved]), box)
    return found


def best_proven(beliefs: Beliefs, points: Array) -> Incumbent | None:
    """The setting with the largest proven value among points (n, d); None if none is proven to satisfy the limits."""
    values = np.concatenate([_proven(beliefs, points[i : i + _BLOCK])[0] for i in range(0, len(points), _BLOCK)])
    i = int(values.argmax())
    return None if np.isneginf(values[i]) else Incumbent(points[i], float(values[i]))


def _settings(beliefs: Beliefs, points: Array, box: Boxes) -> Array:
    """The nearest settings within the box that a user can set."""
    inside = np.clip(points, box.lower, box.upper)
    free = box.upper[0] > box.lower[0]
    return np.where(free, snapped(beliefs.network.domain, inside), inside)


def _proven(beliefs: Beliefs, points: Array) -> tuple[Array, Array]:
    """Lower bounds (n,) of what is maximised at settings, −∞ if not proven feasible, and of the limits' margin."""
    # A setting of a logarithmic control is known to a rounding error only.
    return proven_values(beliefs, around_setting(beliefs, points))


def proven_values(beliefs: Beliefs, cells: Boxes) -> tuple[Array, Array]:
    """Lower bounds (n,) of what is maximised at every setting of a cell, −∞ if some may break a limit, and of the
    margin by which the limits hold."""
    network = beliefs.network
    boxes = enclose_network(beliefs, cells).boxes
    column = network.objective_column
    values = boxes.lower[:, column] if network.sign > 0 else -boxes.upper[:, column]
    margin = np.full(len(cells.lower), np.inf)
    for limit in network.limits:
        lower, upper = boxes.lower[:, limit.column], boxes.upper[:, limit.column]
        certain = (lower >= limit.low) & (upper <= limit.high)
        values = np.where(certain, values, -np.inf)
        margin = np.minimum(margin, np.minimum(lower - limit.low, limit.high - upper))
    return values, margin
