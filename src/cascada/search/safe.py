"""Settings that are proven to satisfy the limits: whether one is, and the nearest one to a target.

A proof rests on bounds from observed outputs alone. Imagined outputs of pending runs only tell where something is still
unknown.
"""

from collections.abc import Callable

import numpy as np

from cascada.arrays import Array, BoolArray
from cascada.errors import RefutedError
from cascada.network import Beliefs
from cascada.network.feasibility import enclose_settings
from cascada.search.bounds import control_lengthscales
from cascada.search.feasible import prior_range
from cascada.search.starts import snapped

# An output is unknown at a setting if its bounds there are wider than a part of its range by the assumptions. Where no
# setting is that unknown, a smaller part counts.
_LEVELS = (1e-2, 1e-3, 1e-4)
_POINTS, _CLOSER = 2048, 512  # settings that are tried, and those between the nearest of them and the target
_ROUNDS = 3
_BLOCK = 4096  # settings that are bounded together


def proven_safe(beliefs: Beliefs, points: Array) -> BoolArray:
    """Whether each setting (n, d), coordinates, is proven to satisfy the limits, (n,)."""
    blocks = [enclose_settings(beliefs, points[i : i + _BLOCK]).certain for i in range(0, len(points), _BLOCK)]
    return np.concatenate(blocks) if blocks else np.zeros(0, dtype=bool)


def nearest_safe(
    beliefs: Beliefs,
    imagined: Beliefs,
    target: Array,
    safe: Array,
    taken: Callable[[Array], bool],
    rng: np.random.Generator,
    *,
    candidates: Array | None = None,
    tolerance: float = 0.0,
) -> Array | None:
    """The proven-safe setting nearest to a target (d,) of which something is unknown; None if none was found.

    The target itself, as far as it can be set, needs only the proof. `safe` (k, d) are settings that satisfy the
    limits, around which others are tried; with `candidates` (n, d) all of these are tried, and nothing else. `imagined`
    are the beliefs after the pending runs. An objective that is known to a quarter of the `tolerance` is known well
    enough.
    """
    if candidates is None:  # the centre of a cell need not be a whole number, and the proof must be of what is run
        target = _settings(beliefs, target[None])[0]
    if proven_safe(beliefs, target[None])[0] and not taken(target):
        return target
    scales = control_lengthscales(beliefs)
    columns, levels = _unknowns(beliefs, tolerance)
    points = _around(beliefs, safe, target, rng) if candidates is None else candidates
    found: dict[float, Array] = {}  # the nearest setting so far that is unknown at each level
    for _ in range(_ROUNDS if candidates is None else 1):
        points = points[proven_safe(beliefs, points)]
        unknown = _unknown(imagined, points, columns)
        order = np.argsort(_distances(points, target, scales), kind="stable")
        for level in levels:
            free = (i for i in order if unknown[i] > level and not taken(points[i]))
            nearest = next((points[i] for i in free), None)
            if nearest is not None:
                both = [nearest, found.get(level, nearest)]
                found[level] = both[int(_distances(np.array(both), target, scales).argmin())]
        if not found:
            return None
        points = _closer(beliefs, found[max(found)], target, rng)
    return found[max(found)]


def _unknowns(beliefs: Beliefs, tolerance: float) -> tuple[list[int], list[float]]:
    """The columns that matter (objective and limited outputs), and the levels from which on they are unknown."""
    network = beliefs.network
    columns = list(dict.fromkeys([network.objective_column, *(limit.column for limit in network.limits)]))
    least = tolerance / 4 / prior_range(beliefs, network.objective_column)
    return columns, [level for level in _LEVELS if level > least] + ([least] if least >= _LEVELS[-1] else [])


def _unknown(beliefs: Beliefs, points: Array, columns: list[int]) -> Array:
    """The largest width of the bounds of these columns at settings (n, d), in parts of their ranges, (n,)."""
    ranges = [prior_range(beliefs, column) for column in columns]
    widths = [np.zeros(0)]
    for i in range(0, len(points), _BLOCK):
        try:
            boxes = enclose_settings(beliefs, points[i : i + _BLOCK]).boxes
        except RefutedError:  # imagined outputs may contradict
            return np.full(len(points), np.inf)
        width = (boxes.upper - boxes.lower)[:, columns] / ranges
        widths.append(np.nan_to_num(width, nan=np.inf).max(axis=1))  # imagined outputs may break a limit
    return np.concatenate(widths)


def _distances(points: Array, target: Array, scales: Array) -> Array:
    return np.asarray(np.linalg.norm((points - target) / scales, axis=1))


def _around(beliefs: Beliefs, safe: Array, target: Array, rng: np.random.Generator) -> Array:
    """Settings around safe ones at all scales, and between them and the target."""
    domain = beliefs.network.domain
    start = safe[rng.integers(len(safe), size=2 * _POINTS)]
    scale = 10.0 ** rng.uniform(-2.5, 0.0, (_POINTS, 1)) * (domain.upper - domain.lower)
    near = start[:_POINTS] + scale * rng.standard_normal((_POINTS, domain.dimension))
    between = start[_POINTS:] + rng.uniform(0.0, 1.0, (_POINTS, 1)) * (target - start[_POINTS:])
    return _settings(beliefs, np.concatenate([near, between]))


def _closer(beliefs: Beliefs, point: Array, target: Array, rng: np.random.Generator) -> Array:
    """Settings between a point and the target, and around the way."""
    sides = beliefs.network.domain.sides
    steps = point + rng.uniform(0.0, 1.0, (_CLOSER, 1)) * (target - point)
    width = 10.0 ** rng.uniform(-2.0, 0.0, (_CLOSER, 1)) * np.abs((target - point) / sides).max() * sides
    return _settings(beliefs, np.concatenate([steps, steps + width * rng.standard_normal(steps.shape), point[None]]))


def _settings(beliefs: Beliefs, points: Array) -> Array:
    domain = beliefs.network.domain
    return snapped(domain, np.clip(points, domain.lower, domain.upper))
