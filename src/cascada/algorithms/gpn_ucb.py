"""GPN-UCB (`algo:ucb`): run the point whose upper confidence bound through the network is largest.

Over candidates the maximum is exact. Over a box of up to six controls it is found by branch and bound, whose tree is
kept between asks and whose bound is the certificate's. With more controls the tree would be too large to be of use, and
gradient ascent on the joint (x, η) form finds the point; a certificate then comes from whatever cells there are.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cascada.algorithms.algorithm import Context, Suggestion
from cascada.arrays import Array
from cascada.errors import ArgumentError, RefutedError
from cascada.network import Beliefs, hallucinated
from cascada.search import Candidates, Leaves, Limits, ascend, largest, search

_MOST_CONTROLS_TO_BRANCH = 6
_CELLS_BESIDE = 1_000


@dataclass(frozen=True)
class GPNUCB:
    """The paper's algorithm with certified bounds.

    `cells` is the budget of one suggestion by branch and bound: more cells save a few runs and cost seconds.
    """

    search: Literal["auto", "branch_and_bound", "ascent"] = "auto"
    cells: int = 6_000

    def __post_init__(self) -> None:
        if self.search not in ("auto", "branch_and_bound", "ascent"):
            raise ArgumentError(f"search must be 'auto', 'branch_and_bound' or 'ascent'; got {self.search!r}.")

    def suggest(self, context: Context, rng: np.random.Generator) -> Suggestion:
        """argmax UCB_{t−1} over the points that were not run yet."""
        try:
            return self._suggest(context, hallucinated(context.beliefs, context.pending), rng)
        except RefutedError:
            if not len(context.pending):
                raise
            return self._suggest(context, context.beliefs, rng)  # made-up data may contradict; taken points stay taken

    def _suggest(self, context: Context, beliefs: Beliefs, rng: np.random.Generator) -> Suggestion:
        if context.candidates is not None:
            return self._candidates(context, beliefs, rng)
        branch = self.search == "branch_and_bound"
        if branch or (self.search == "auto" and context.domain.dimension <= _MOST_CONTROLS_TO_BRANCH):
            return self._branch_and_bound(context, beliefs)
        return self._ascent(context, beliefs, rng)

    def recommend(self, context: Context) -> Array | None:  # noqa: ARG002
        """None: the best run is the answer."""
        return None

    def _candidates(self, context: Context, beliefs: Beliefs, rng: np.random.Generator) -> Suggestion:
        assert context.candidates is not None, "only called with candidates"
        kept = context.cache
        if not isinstance(kept, Candidates) or kept.coordinates is not context.candidates:
            kept = Candidates.of(context.candidates)
        followed = kept.follow(beliefs)
        upper = followed.upper(beliefs)
        free = np.where(context.free_candidates(), upper, -np.inf)
        point = context.candidates[largest(free, rng)] if np.isfinite(free).any() else None
        if len(context.pending):  # bounds from made-up data prove nothing
            return Suggestion(point, None, len(upper), "every candidate", context.cache)
        return Suggestion(point, float(upper.max()), len(upper), "every candidate", followed)

    def _branch_and_bound(self, context: Context, beliefs: Beliefs) -> Suggestion:
        leaves = context.cache if isinstance(context.cache, Leaves) else Leaves.root(context.domain)
        # Beside runs under way the bound is a guess: enough cells for a good point are enough.
        cells = min(self.cells, _CELLS_BESIDE) if len(context.pending) else self.cells
        limits = Limits(tolerance=context.tolerance, cells=cells)
        version = len(context.told) + len(context.pending)
        seen = None if len(context.pending) else context.best_run  # made-up data refute nothing
        outcome = search(beliefs, leaves, context.best, version, limits, taken=context.is_taken, best_run=seen)
        if len(context.pending):  # bounds from made-up data prove nothing: the tree is not kept
            return Suggestion(outcome.point, None, outcome.cells, outcome.stopped, context.cache)
        return Suggestion(outcome.point, outcome.bound, outcome.cells, outcome.stopped, outcome.leaves)

    def _ascent(self, context: Context, beliefs: Beliefs, rng: np.random.Generator) -> Suggestion:
        best = np.empty((0, context.domain.dimension)) if context.best_point is None else context.best_point[None]
        points = ascend(beliefs, rng, best)
        free = [point for point in points if not context.is_taken(point)]
        point = free[0] if free else rng.uniform(context.domain.lower, context.domain.upper)
        return Suggestion(point, None, 0, "ascent")
