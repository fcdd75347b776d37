"""GPN-UCB (`algo:ucb`): runs the point whose upper confidence bound through the network is largest.

Over candidates the maximum is exact. Over a box of up to six controls it is found by branch and bound, whose tree is
kept between suggestions and whose bound is the certificate's. With more controls the tree would be too large, and
gradient ascent on the joint (x, η) form finds the point; the study then computes a certificate from cells of its own.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from cascada.algorithms.algorithm import Situation, Suggestion
from cascada.algorithms.feasible_search import suggest_feasible
from cascada.algorithms.read_suggestion import search_readings, suggest_candidate, suggest_from_box
from cascada.arrays import Array
from cascada.errors import ArgumentError, RefutedError
from cascada.network import Beliefs, hallucinated
from cascada.search import Candidates, Leaves, ObjectiveBounds, SearchBudget, ascend, largest, search
from cascada.search.refined_search import candidates_above

_MOST_CONTROLS_TO_BRANCH = 6
_CELLS_WITH_PENDING = 1_000


@dataclass(frozen=True)
class GPNUCB:
    """The paper's algorithm with certified bounds.

    `cells` is the budget of one suggestion by branch and bound: more cells save a few runs and cost seconds.
    """

    search: Literal["auto", "branch_and_bound", "ascent"] = "auto"
    cells: int = 6_000
    certifies: ClassVar[bool] = True  # a bound is returned only if it rests on no imagined outputs

    def __post_init__(self) -> None:
        if self.search not in ("auto", "branch_and_bound", "ascent"):
            raise ArgumentError(f"search must be 'auto', 'branch_and_bound' or 'ascent'; got {self.search!r}.")

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        """argmax UCB_{t−1} over the points that were not run yet."""
        try:
            return self.suggest_from(situation, hallucinated(situation.beliefs, situation.pending), rng)
        except RefutedError:
            if not len(situation.pending):
                raise
            return self.suggest_from(situation, situation.beliefs, rng)  # imagined outputs may contradict

    def suggest_from(self, situation: Situation, beliefs: Beliefs, rng: np.random.Generator) -> Suggestion:
        """The suggestion by these beliefs, which contain imagined outputs of what is pending."""
        if beliefs.network.limits:
            return suggest_feasible(situation, beliefs, self._cells(situation), rng)
        if situation.candidates is not None:
            return self._candidates(situation, beliefs, rng)
        branch = self.search == "branch_and_bound"
        if branch or (self.search == "auto" and situation.domain.dimension <= _MOST_CONTROLS_TO_BRANCH):
            return self._branch_and_bound(situation, beliefs)
        return self._ascent(situation, beliefs, rng)

    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        """None: the best run is the result."""
        return None

    def _cells(self, situation: Situation) -> int:
        """The budget of a search: with pending runs the bound proves nothing, and fewer cells find a good point."""
        return min(self.cells, _CELLS_WITH_PENDING) if len(situation.pending) else self.cells

    def _candidates(self, situation: Situation, beliefs: Beliefs, rng: np.random.Generator) -> Suggestion:
        candidates = situation.candidates
        assert candidates is not None, "only called with candidates"
        if beliefs.network.read_with_errors:
            return suggest_candidate(situation, beliefs, lambda now: candidates_above(now, candidates), rng)
        kept = situation.cache
        if not isinstance(kept, Candidates) or kept.coordinates is not candidates:
            kept = Candidates.of(candidates)
        followed = kept.follow(beliefs)
        upper = followed.upper(beliefs)
        free = np.where(situation.free_candidates(), upper, -np.inf)
        point = candidates[largest(free, rng)] if np.isfinite(free).any() else None
        if len(situation.pending):  # bounds from imagined outputs prove nothing
            return Suggestion(point, None, len(upper), "every candidate", situation.cache)
        return Suggestion(point, float(upper.max()), len(upper), "every candidate", followed)

    def _branch_and_bound(self, situation: Situation, beliefs: Beliefs) -> Suggestion:
        leaves = situation.cache if isinstance(situation.cache, Leaves) else Leaves.root(situation.domain)
        if beliefs.network.read_with_errors:
            found = search_readings(situation, beliefs, ObjectiveBounds, leaves, self._cells(situation))
            return suggest_from_box(situation, found)
        budget = SearchBudget(tolerance=situation.tolerance, cells=self._cells(situation))
        version = situation.version
        bounds = ObjectiveBounds(beliefs, situation.exact_run)  # imagined outputs refute nothing
        outcome = search(bounds, leaves, situation.best, version, budget, taken=situation.is_taken)
        if len(situation.pending):  # bounds from imagined outputs prove nothing: the tree is not kept
            return Suggestion(outcome.point, None, outcome.cells, outcome.stopped, situation.cache)
        return Suggestion(outcome.point, outcome.bound, outcome.cells, outcome.stopped, outcome.leaves)

    def _ascent(self, situation: Situation, beliefs: Beliefs, rng: np.random.Generator) -> Suggestion:
        best = np.empty((0, situation.domain.dimension)) if situation.best_point is None else situation.best_point[None]
        points = ascend(beliefs, rng, best)
        free = [point for point in points if not situation.is_taken(point)]
        point = free[0] if free else situation.domain.uniform(rng, 1)[0]
        return Suggestion(point, None, 0, "ascent")
