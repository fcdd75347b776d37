"""Base class of algorithms that run the point with the largest score, among the candidates or in the box."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from cascada.algorithms.algorithm import Situation, Suggestion
from cascada.arrays import Array
from cascada.search import best_in_box, largest
from cascada.search.box import Score


@dataclass(frozen=True, eq=False)
class Acquisition:
    """A score of points; `cache` is for the next suggestion, `screen` a cheaper score for choosing starts."""

    score: Score
    cache: object = None
    screen: Score | None = None


class Scored(ABC):
    """An algorithm defined by its acquisition function."""

    @abstractmethod
    def acquisition(self, situation: Situation, rng: np.random.Generator) -> Acquisition:
        """The score of points (n, d), coordinates, as (n,): larger is better."""

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        """The point with the largest score that was not run yet."""
        acquisition = self.acquisition(situation, rng)
        if situation.candidates is not None:
            point = best_candidate(situation, acquisition.score(situation.candidates), rng)
        else:
            found = best_in_box(acquisition.score, situation.domain, rng, near_best(situation), acquisition.screen)
            free = (point for point in found if not situation.is_taken(point))
            point = next(free, None)
            if point is None:
                point = random_free_point(situation, rng)
        return Suggestion(point, cache=acquisition.cache)

    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        """None: the best run is the result."""
        return None


def best_candidate(situation: Situation, values: Array, rng: np.random.Generator) -> Array | None:
    """The candidate that is not taken with the largest of these values (n,), ties broken by the generator; or None."""
    assert situation.candidates is not None, "only asked when there are candidates"
    free = np.flatnonzero(situation.free_candidates())
    return situation.candidates[free[largest(values[free], rng)]] if len(free) else None


def random_free_point(situation: Situation, rng: np.random.Generator) -> Array | None:
    """A point drawn uniformly (in coordinates) that was not run yet; None if none is found."""
    domain = situation.domain
    for _ in range(1000):  # a box of few whole numbers may be exhausted
        point = domain.encode(domain.decode(domain.uniform(rng, 1)))[0]
        if not situation.is_taken(point):
            return point
    return None


def near_best(situation: Situation) -> Array:
    """Points (k, d) around which to search closely: the best run, if there is one."""
    best = situation.best_point
    return np.empty((0, situation.domain.dimension)) if best is None else best[None]
