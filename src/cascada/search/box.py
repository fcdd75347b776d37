"""Maximisation of a score over a box: many starts scored at once, the best of them refined by gradients.

The score is any function of many points at once. Gradients are central differences, those of all starts in one call.
The result is a local maximum: a good point to run, but never a bound.
"""

from collections.abc import Callable

import numpy as np

from cascada.arrays import Array
from cascada.search.quasi_newton import Differentiable, climb
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
    chosen = begin[order[:_REFINED]]
    refined = _refined(score, chosen, domain, _spread(first[order]))
    points = np.concatenate([snapped(domain, refined), begin[order[: 4 * _REFINED]]])
    values = score(points)
    return [points[i] for i in np.argsort(-values, kind="stable")]


def _spread(values: Array) -> float:
    """The range of the best quarter of the values (n,), best first: worse ones may be logarithms of almost 0."""
    best = values[np.isfinite(values)]
    best = best[: max(len(best) // 4, 1)]
    return float(np.ptp(best)) or 1.0 if len(best) else 1.0


def _refined(score: Score, begin: Array, domain: Domain, scale: float) -> Array:
    """Local maxima (k, d) from k starts, discrete controls fixed; a start itself if the score there is infinite."""
    lower, upper = (np.tile(bound, (len(begin), 1)) for bound in (domain.lower, domain.upper))
    lower[:, domain.discrete] = upper[:, domain.discrete] = begin[:, domain.discrete]
    return climb(_differentiated(score, domain), begin, lower, upper, scale, _ITERATIONS)[0]


def _differentiated(score: Score, domain: Domain) -> Differentiable:
    """The score and its gradient at points (n, d), from one call of the score."""
    sides, d = domain.upper - domain.lower, domain.dimension
    steps = _STEP * np.concatenate([np.zeros((1, d)), np.eye(d), -np.eye(d)]) * sides

    def differentiated(points: Array) -> tuple[Array, Array]:
        shifted = np.clip(points[:, None] + steps, domain.lower, domain.upper)  # (n, 1 + 2d, d)
        values = score(shifted.reshape(-1, d)).reshape(len(points), -1)
        ahead, behind = shifted[:, 1 : d + 1], shifted[:, d + 1 :]
        apart = np.einsum("njj->nj", ahead) - np.einsum("njj->nj", behind)
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes = (values[:, 1 : d + 1] - values[:, d + 1 :]) / apart
        return values[:, 0], np.where(apart > 0, slopes, 0.0)  # a fixed control has no slope

    return differentiated
