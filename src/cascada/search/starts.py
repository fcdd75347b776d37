"""Starting points of a search in a box: in the whole box, around good points at several scales, and across them.

The last kind changes one, two or three controls of a good point arbitrarily. Where stages multiply, the path from one
optimum to a better one often changes two controls at once, each of which alone makes the value worse.

With choices, the starts in the whole box are spread over all combinations of values, and a good point is also tried
with each of them. A good setting of one material is seldom found by moves from that of another one.
"""

import numpy as np

from cascada.arrays import Array
from cascada.space import Domain

_MOST_CHANGED = 3
_EACH = 8  # starts of each combination of values,
_MOST_COMBINED = 1024  # and of all combinations together


def starts(domain: Domain, rng: np.random.Generator, near: Array, wide: int, close: int, across: int) -> Array:
    """Points (n, d), coordinates: `wide` in the whole box, and for each row of `near` (k, d) the other two kinds.

    With choices there are more, so that each combination of their values has some.
    """
    d, sides = domain.dimension, domain.upper - domain.lower
    parts = [domain.uniform(rng, wide), near.reshape(-1, d)]
    if len(domain.combinations) > 1:
        parts[0] = _in_every_combination(domain, rng, wide)
    for point in near:
        scale = sides * 10.0 ** rng.uniform(-4, -0.5, (close, 1))
        parts.append(with_other_choices(domain, rng, point, point + scale * rng.standard_normal((close, d))))
        anywhere = domain.uniform(rng, across)
        order = rng.uniform(size=(across, d)).argsort(axis=1)
        changed = order < rng.integers(1, min(_MOST_CHANGED, d) + 1, (across, 1))
        parts.append(np.where(changed, anywhere, point))
        if len(domain.combinations) > 1:
            parts.append(_with(point[None], domain.choices, _some_combinations(domain, rng)))
    return np.clip(np.concatenate(parts), domain.lower, domain.upper)


def _in_every_combination(domain: Domain, rng: np.random.Generator, count: int) -> Array:
    """Random points, at least `count`, in each combination of values of the choices the same number, or one of them."""
    codes = _some_combinations(domain, rng)
    each = max(1, min(max(_EACH, -(-count // len(codes))), _MOST_COMBINED // len(codes)))
    codes = np.repeat(codes, each, axis=0)
    return _with(domain.uniform(rng, len(codes)), domain.choices, codes)


def _some_combinations(domain: Domain, rng: np.random.Generator) -> Array:
    """The codes of all combinations of values of the choices; of some of them if there are very many."""
    every = domain.combinations
    most = _MOST_COMBINED // 2
    return every if len(every) <= most else every[rng.choice(len(every), most, replace=False)]


def _with(points: Array, columns: list[int], codes: Array) -> Array:
    """Points (n, d), or one point (1, d), with codes (n, c) in some columns."""
    found = np.repeat(points, len(codes), axis=0) if len(points) == 1 else points.copy()
    found[:, columns] = codes
    return found


def with_other_choices(domain: Domain, rng: np.random.Generator, point: Array, moved: Array) -> Array:
    """Points (n, d) near a point (d,), with its choices; in every second one, one of them has any value."""
    if not domain.choices:
        return moved
    found = moved.copy()
    found[:, domain.choices] = point[domain.choices]
    rows = np.arange(0, len(found), 2)
    column = rng.choice(domain.choices, len(rows))
    found[rows, column] = domain.uniform(rng, len(rows))[np.arange(len(rows)), column]
    return found


def snapped(domain: Domain, points: Array) -> Array:
    """The nearest points that a user can set: values of discrete controls."""
    return np.clip(domain.encode(domain.decode(points)), domain.lower, domain.upper)


def apart(domain: Domain, points: Array, others: Array) -> Array:
    """The distance (n,) of each point to the nearest of the others: the largest difference of a control, in sides."""
    if not len(others):
        return np.full(len(points), np.inf)
    sides = domain.sides
    return np.abs((points[:, None] - others) / sides).max(axis=2).min(axis=1)


def best_apart(domain: Domain, points: Array, values: Array, count: int, gap: float) -> list[int]:
    """The indices of at most `count` of the best values whose points are more than `gap` apart (see `apart`)."""
    chosen: list[int] = []
    for i in np.argsort(-values, kind="stable"):
        if apart(domain, points[[i]], points[chosen])[0] > gap:
            chosen.append(int(i))
        if len(chosen) == count:
            break
    return chosen


def best_of_others(domain: Domain, points: Array, values: Array, chosen: list[int], count: int) -> list[int]:
    """The indices of at most `count` best values, one for each combination of choices that no chosen point has."""
    seen = {points[i, domain.choices].tobytes() for i in chosen}
    found: list[int] = []
    for i in np.argsort(-values, kind="stable"):
        if len(found) == count:
            break
        key = points[i, domain.choices].tobytes()
        if key not in seen:
            seen.add(key)
            found.append(int(i))
    return found
