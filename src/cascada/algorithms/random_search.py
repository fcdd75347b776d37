"""Random search: uniform points of the box (in coordinates), or candidates that were not run yet."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cascada.algorithms.acquisition import best_candidate, random_free_point
from cascada.algorithms.algorithm import Situation, Suggestion
from cascada.arrays import Array


@dataclass(frozen=True)
class RandomSearch:
    """The baseline that every other algorithm must beat."""

    adaptive: ClassVar[bool] = False  # observed outputs do not matter, so all runs may be under way at once
    uses_beliefs: ClassVar[bool] = False  # nor does what is believed: a suggestion needs no posterior

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        """A point drawn uniformly."""
        if situation.candidates is not None:
            return Suggestion(best_candidate(situation, np.zeros(len(situation.candidates)), rng))
        return Suggestion(random_free_point(situation, rng))

    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        """None: the best run is the result."""
        return None
