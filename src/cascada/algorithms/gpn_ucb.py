"""GPN-UCB (`algo:ucb`): run the point whose upper confidence bound through the network is largest.

Over candidates the maximum is exact. Over a box it is found by branch and bound, whose tree is kept between asks; the
bound it leaves is the certificate's.
"""

from dataclasses import dataclass

import numpy as np

from cascada.algorithms.algorithm import Context, Suggestion
from cascada.arrays import Array
from cascada.network import hallucinated
from cascada.search import Leaves, Limits, candidate_bounds, largest, search


@dataclass(frozen=True)
class GPNUCB:
    """The paper's algorithm with certified bounds; `cells` is the budget of one suggestion over a box."""

    cells: int = 20_000

    def suggest(self, context: Context, rng: np.random.Generator) -> Suggestion:
        """argmax UCB_{t−1} over the points that were not run yet."""
        beliefs = hallucinated(context.beliefs, context.pending)
        if context.candidates is not None:
            upper = candidate_bounds(beliefs, context.candidates)
            free = np.where(context.free_candidates(), upper, -np.inf)
            point = context.candidates[largest(free, rng)] if np.isfinite(free).any() else None
            bound = None if len(context.pending) else float(upper.max())
            return Suggestion(point, bound, len(upper), "candidates")
        leaves = context.cache if isinstance(context.cache, Leaves) else Leaves.root(context.domain)
        limits = Limits(tolerance=context.tolerance, cells=self.cells)
        version = len(context.told) + len(context.pending)
        outcome = search(beliefs, leaves, context.best, version, limits, taken=context.is_taken)
        if len(context.pending):  # bounds from made-up data prove nothing: the tree is not kept
            return Suggestion(outcome.point, None, outcome.cells, outcome.stopped, context.cache)
        return Suggestion(outcome.point, outcome.bound, outcome.cells, outcome.stopped, outcome.leaves)

    def recommend(self, context: Context) -> Array | None:  # noqa: ARG002
        """None: the best run is the answer."""
        return None
