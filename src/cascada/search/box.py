"""Maximisation of a score over a box: many starts scored at once, the best of them refined by gradients.

The score is any function of many points at once. Gradients are central differences, all of a step in one call. The
result is a local maximum: a good point to run, but never a bound.
"""

from collections.abc import Callable

import numpy as np

from cascada.arrays import Array
from cascada.search.starts import snapped, starts
from cascada.space import Domain

Score = Callable[[Array], Array]

_STARTS = 512
_NEAR = 64  # starts around each point of `near`
_ACROSS = 128  # starts that change some controls of such a point arbitrarily
_REFINED = 4
_STEP = 1e-6  # of a side, for differences: half the digits of a score with twelve exact digits
_ITERATIONS = 40


def best_in_box(
    score: Score, domain: Domain, rng: np.random.Generator, near: Array, screen: Score | None = None
) -> list[Array]:
    """Points (d,), coordinates, best first: local maxima of a score from many starts, and the best starts.

    `near` (k, d) are points whose neighbourhoods are searched at several scales in addition to the whole box, such as
    the best run so far. `screen` is a cheaper score by which the starts are chosen.
    """
    begin = snapped(domain, starts(domain, rng, near, _STARTS, _NEAR, _ACROSS))
    first = (screen or score)(begin)
    order = np.argsort(-first, kind="stable")
    refined = [_refined(score, begin[i], domain) for i in order[:_REFINED]]
    points = np.concatenate([snapped(domain, np.array(refined)), begin[order[: 4 * _REFINED]]])
    values = score(points)
    return [points[i] for i in np.argsort(-values, kind="stable")]


def _refined(score: Score, start: Array, domain: Domain) -> Array:
    """A local maximum from one start, whole numbers fixed; the start itself if the score there is infinite."""
    from scipy.optimize import minimize

    sides, d = domain.upper - domain.lower, domain.dimension

    def negated(unit: Array) -> tuple[float, Array]:
        """The score and its gradient in units of the sides."""
        shifted = np.clip(unit + _STEP * np.concatenate([np.zeros((1, d)), np.eye(d), -np.eye(d)]), 0.0, 1.0)
        values = score(domain.lower + sides * shifted)
        apart = np.diagonal(shifted[1 : d + 1]) - np.diagonal(shifted[d + 1 :])
        with np.errstate(invalid="ignore"):
            slope = (values[1 : d + 1] - values[d + 1 :]) / apart
        if not (np.isfinite(values[0]) and np.isfinite(slope).all()):
            return np.inf, np.zeros(d)
        return -float(values[0]), -slope

    unit = (start - domain.lower) / sides
    if not np.isfinite(negated(unit)[0]):
        return start
    bounds = [(unit[j], unit[j]) if j in domain.whole else (0.0, 1.0) for j in range(d)]
    found = minimize(negated, unit, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _ITERATIONS})
    return domain.lower + sides * found.x
