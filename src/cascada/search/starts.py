"""Starting points of a search in a box: in the whole box, around good points at several scales, and across them.

The last kind changes one, two or three controls of a good point arbitrarily. Where stages multiply, the path from one
optimum to a better one often changes two controls at once, each of which alone makes the value worse.
"""

import numpy as np

from cascada.arrays import Array
from cascada.space import Domain

_MOST_CHANGED = 3


def starts(domain: Domain, rng: np.random.Generator, near: Array, wide: int, close: int, across: int) -> Array:
    """Points (n, d), coordinates: `wide` in the whole box, and for each row of `near` (k, d) the other two kinds."""
    d, sides = domain.dimension, domain.upper - domain.lower
    parts = [domain.uniform(rng, wide), near.reshape(-1, d)]
    for point in near:
        scale = sides * 10.0 ** rng.uniform(-4, -0.5, (close, 1))
        parts.append(with_other_choices(domain, rng, point, point + scale * rng.standard_normal((close, d))))
        anywhere = domain.uniform(rng, across)
        order = rng.uniform(size=(across, d)).argsort(axis=1)
        changed = order < rng.integers(1, min(_MOST_CHANGED, d) + 1, (across, 1))
        parts.append(np.where(changed, anywhere, point))
    return np.clip(np.concatenate(parts), domain.lower, domain.upper)


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
