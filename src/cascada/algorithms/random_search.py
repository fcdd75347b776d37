"""Random search: uniform points of the box (in coordinates), or candidates that were not run yet."""

from dataclasses import dataclass

import numpy as np

from cascada.algorithms.algorithm import Context, Suggestion
from cascada.arrays import Array


@dataclass(frozen=True)
class RandomSearch:
    """The baseline that any other algorithm must beat."""

    def suggest(self, context: Context, rng: np.random.Generator) -> Suggestion:
        """A point drawn uniformly."""
        if context.candidates is not None:
            free = np.flatnonzero(context.free_candidates())
            return Suggestion(context.candidates[rng.choice(free)] if len(free) else None)
        domain = context.domain
        for _ in range(1000):  # a box of few whole numbers may be used up
            point = domain.encode(domain.decode(rng.uniform(domain.lower, domain.upper)[None]))[0]
            if not context.is_taken(point):
                return Suggestion(point)
        return Suggestion(None)

    def recommend(self, context: Context) -> Array | None:  # noqa: ARG002
        """None: the best run is the answer."""
        return None
