"""Multi-start gradient ascent on the joint form of the upper bound, or on the composite mean.

It serves boxes of too many dimensions to branch over. A local maximum is a good point to run, but never a bound. With
a penalty of broken limits, starts that still break one are refined again with a sharper penalty (`penalty`).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cascada.arrays import Array
from cascada.network import Beliefs
from cascada.search.joint import Joint
from cascada.search.penalty import WIDTHS, Penalty
from cascada.search.quasi_newton import climb
from cascada.search.starts import best_apart, best_of_others, snapped, starts

_WIDE, _CLOSE, _ACROSS = 192, 96, 480  # starts: see `starts`
_TRIED = 4  # values of η per start
_REFINED = 8  # this many of the best starts are refined,
_OTHERS = 8  # and so many of other combinations of values, the best one of each,
_APART = 0.03  # at least this far from each other, in sides of the box
_STEPS = 60
# Parts of the way from a start to its local maximum. All starts of one basin end in the same point; these differ, and
# expected improvement is often larger there than at both ends.
_BETWEEN = (0.5, 0.75)
_TWICE = (1.0, 1.0)  # for a bound: two starts of η at each of the best points


def ascend(
    beliefs: Beliefs,
    rng: np.random.Generator,
    near: Array,
    widths: Sequence[float] = (1.0,),
    penalty: Penalty | None = None,
) -> list[Array]:
    """Points (d,), coordinates, best first: local maxima of the joint form, their starts, and points between these.

    `near` (k, d) are points for further starts (see `starts`), such as the best run so far. For each of `widths` the
    bounds are those of the beliefs with their radius times this number.
    """
    return _ascended(Joint(beliefs, penalty=penalty), rng, near, widths)


def ascend_mean(beliefs: Beliefs, rng: np.random.Generator, near: Array, penalty: Penalty | None = None) -> list[Array]:
    """The same for the composite mean, without points between."""
    return _ascended(Joint(beliefs, deviations=False, penalty=penalty), rng, near, (1.0,))


def refine_mean(beliefs: Beliefs, begin: Array, penalty: Penalty) -> Array:
    """Local maxima (k, d) of the penalised composite mean from k starts."""
    domain, joint = beliefs.network.domain, Joint(beliefs, deviations=False, penalty=penalty)
    lower, upper = (np.tile(bound, (len(begin), 1)) for bound in (domain.lower, domain.upper))
    return snapped(domain, _climbed(joint, begin, lower, upper, penalty.weight or 1.0)[0])


def _climbed(joint: Joint, begin: Array, lower: Array, upper: Array, scale: float) -> tuple[Array, Joint]:
    """Local maxima (k, size) from k starts, and the joint form with the penalty of the last of them."""
    found = climb(joint, begin, lower, upper, scale, _STEPS)[0]
    for width in WIDTHS[1:]:
        over = joint.exceeds(found)
        if joint.penalty is None or not over.any():
            break
        joint = replace(joint, penalty=joint.penalty.sharper(width))
        found[over] = climb(joint, found[over], lower[over], upper[over], scale, _STEPS)[0]
    return found, joint


def highest(beliefs: Beliefs, rng: np.random.Generator, near: Array) -> tuple[float, Array]:
    """The largest value of the joint form that is found, and its point (d,): an estimate of the bound, no proof."""
    refined, first, joint = _refined(Joint(beliefs), rng, near, _TWICE)
    found = np.concatenate([refined, first])
    found[:, : near.shape[1]] = snapped(beliefs.network.domain, found[:, : near.shape[1]])
    values = joint.values(found)
    top = int(values.argmax())
    return float(values[top]), found[top, : near.shape[1]]


def _ascended(joint: Joint, rng: np.random.Generator, near: Array, widths: Sequence[float]) -> list[Array]:
    """Local maxima of a joint form, their starts, and points between these, best first."""
    domain = joint.beliefs.network.domain
    d = domain.dimension
    refined, first, joint = _refined(joint, rng, near, widths)
    found = np.concatenate([refined, first])
    if joint.deviations:
        found = np.concatenate([found, *(first + part * (refined - first) for part in _BETWEEN)])
    points = snapped(domain, found[:, :d])
    order = np.argsort(-joint.values(np.hstack([points, found[:, d:]])), kind="stable")
    return [points[i] for i in order]


def _refined(
    joint: Joint, rng: np.random.Generator, near: Array, widths: Sequence[float]
) -> tuple[Array, Array, Joint]:
    """Local maxima (k, size) of a joint form, their starts, and the joint form with the penalty of the last of them.

    The starts are screened, the best of each width chosen, and all refined together.
    """
    domain = joint.beliefs.network.domain
    free, tried = joint.size - domain.dimension, _TRIED if joint.deviations else 1
    x = starts(domain, rng, near, _WIDE, _CLOSE, _ACROSS)
    eta = rng.uniform(-1, 1, (len(x), len(widths), tried, free)) * np.array(widths)[:, None, None]
    values = joint.values_of(x, eta.reshape(len(x), len(widths) * tried, free)).reshape(len(x), len(widths), tried)
    begin, limits = [], []
    for i, width in enumerate(widths):  # all of them are refined together
        largest = values[:, i].max(axis=1)
        chosen = best_apart(domain, x, largest, _REFINED, _APART)
        if domain.choices:
            chosen += best_of_others(domain, x, largest, chosen, _OTHERS)
        best = values[chosen, i].argmax(axis=1)
        begin.append(np.hstack([x[chosen], eta[chosen, i, best]]))
        limits += [width] * len(chosen)
    first, limit = np.concatenate(begin), np.array(limits)[:, None] * np.ones(free)
    lower = np.hstack([np.tile(domain.lower, (len(first), 1)), -limit])
    upper = np.hstack([np.tile(domain.upper, (len(first), 1)), limit])
    finite = values[np.isfinite(values)]
    scale = max(float(np.ptp(finite)), np.finfo(np.float64).tiny) if finite.size else 1.0
    refined, joint = _climbed(joint, first, lower, upper, scale)
    return refined, first, joint
