"""Algorithms that run the point with the largest score, among the candidates or in the box: all but GPN-UCB."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from cascada.algorithms.algorithm import Context, Suggestion
from cascada.arrays import Array
from cascada.search import best_in_box, largest
from cascada.search.box import Score


@dataclass(frozen=True, eq=False)
class Acquisition:
    """What a point is scored by; `cache` is for the next suggestion, `screen` a cheaper score to choose starts by."""

    score: Score
    cache: object = None
    screen: Score | None = None


class Scored(ABC):
    """An algorithm that is its acquisition function."""

    @abstractmethod
    def acquisition(self, context: Context, rng: np.random.Generator) -> Acquisition:
        """The score of points (n, d), coordinates, as (n,): larger is better."""

    def suggest(self, context: Context, rng: np.random.Generator) -> Suggestion:
        """The point with the largest score that was not run yet."""
        acquisition = self.acquisition(context, rng)
        if context.candidates is not None:
            point = best_candidate(context, acquisition.score(context.candidates), rng)
        else:
            found = best_in_box(acquisition.score, context.domain, rng, near_best(context), acquisition.screen)
            free = (point for point in found if not context.is_taken(point))
            point = next(free, None)
            if point is None:
                point = random_free_point(context, rng)
        return Suggestion(point, cache=acquisition.cache)

    def recommend(self, context: Context) -> Array | None:  # noqa: ARG002
        """None: the best run is the answer."""
        return None


def best_candidate(context: Context, values: Array, rng: np.random.Generator) -> Array | None:
    """The free candidate with the largest of these values (n,), ties broken by the generator; None if none is free."""
    assert context.candidates is not None, "only asked when there are candidates"
    free = np.flatnonzero(context.free_candidates())
    return context.candidates[free[largest(values[free], rng)]] if len(free) else None


def random_free_point(context: Context, rng: np.random.Generator) -> Array | None:
    """A point drawn uniformly (in coordinates) that was not run yet; None if none is found."""
    domain = context.domain
    for _ in range(1000):  # a box of few whole numbers may be used up
        point = domain.encode(domain.decode(rng.uniform(domain.lower, domain.upper)[None]))[0]
        if not context.is_taken(point):
            return point
    return None


def near_best(context: Context) -> Array:
    """Points (k, d) around which to search closely: the best run, if there is one."""
    best = context.best_point
    return np.empty((0, context.domain.dimension)) if best is None else best[None]
