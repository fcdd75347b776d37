"""Random search: uniform points of the box (in coordinates), or candidates that were not run yet."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cascada.algorithms.algorithm import Context, Suggestion
from cascada.algorithms.scored import best_candidate, random_free_point
from cascada.arrays import Array


@dataclass(frozen=True)
class RandomSearch:
    """The baseline that any other algorithm must beat."""

    adaptive: ClassVar[bool] = False  # what was observed does not matter, so all runs may be under way at once

    def suggest(self, context: Context, rng: np.random.Generator) -> Suggestion:
        """A point drawn uniformly."""
        if context.candidates is not None:
            return Suggestion(best_candidate(context, np.zeros(len(context.candidates)), rng))
        return Suggestion(random_free_point(context, rng))

    def recommend(self, context: Context) -> Array | None:  # noqa: ARG002
        """None: the best run is the answer."""
        return None
