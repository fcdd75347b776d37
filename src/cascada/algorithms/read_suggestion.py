"""GPN-UCB's point from readings with errors: the largest bound, with weights chosen where the search would run.

A setting may be run again if every setting that may be best was run: errors differ from run to run.
"""

from collections.abc import Callable

import numpy as np

from cascada.algorithms.algorithm import Situation, Suggestion
from cascada.arrays import Array
from cascada.network import Beliefs
from cascada.search import Leaves, SearchBudget
from cascada.search.bounds import CellBounds
from cascada.search.incumbent import Incumbent, best_proven
from cascada.search.refined_search import RefinedOutcome, refined_candidates, refined_search, to_repeat
from cascada.search.starts import snapped

# Cells of a search, each of which is bounded by many fits: more take longer than a second and save few runs.
_MOST_CELLS = 1_200


def read_version(situation: Situation) -> int:
    """The number of readings so far: bounds of cells from fewer readings are computed again."""
    return int(np.isfinite(situation.data).sum() + np.isfinite(situation.pending).sum()) + situation.alone


def search_readings(
    situation: Situation, beliefs: Beliefs, bounds_of: Callable[[Beliefs], CellBounds], leaves: Leaves, cells: int
) -> RefinedOutcome:
    """The search over the box, whose tree starts from `leaves`."""
    budget, alone = SearchBudget(situation.tolerance, min(cells, _MOST_CELLS)), not len(situation.pending)
    version, taken = read_version(situation), situation.is_taken
    return refined_search(beliefs, bounds_of, leaves, situation.best, version, budget, taken, improve=alone)


def suggest_from_box(situation: Situation, found: RefinedOutcome) -> Suggestion:
    """The suggestion of a search over the box."""
    outcome = found.outcome
    point = outcome.point
    if point is None and outcome.stopped == "exhausted":  # every cell is a point that was run
        centres = snapped(situation.domain, outcome.leaves.centre)
        point = to_repeat(centres, outcome.leaves.bound, situation.best, _runs(situation))
    if len(situation.pending):  # bounds from imagined readings prove nothing: the tree is not kept
        return Suggestion(point, None, found.cells, outcome.stopped, situation.cache)
    return Suggestion(
        point,
        outcome.bound,
        found.cells,
        outcome.stopped,
        outcome.leaves,
        proven=found.proven,
        highest=found.highest,
    )


def suggest_candidate(
    situation: Situation, beliefs: Beliefs, above: Callable[[Beliefs], Array], rng: np.random.Generator
) -> Suggestion:
    """The candidate with the largest bound, computed by `above`, of those that were not run, or one to run again."""
    candidates = situation.candidates
    assert candidates is not None, "only called with candidates"
    upper = refined_candidates(beliefs, above, candidates)
    free = np.where(situation.free_candidates() & (upper > situation.best), upper, -np.inf)
    if np.isfinite(free).any():
        point: Array | None = candidates[int(rng.choice(np.flatnonzero(free == free.max())))]
    else:
        point = to_repeat(candidates, upper, situation.best, _runs(situation))
    if len(situation.pending):  # bounds from imagined readings prove nothing
        return Suggestion(point, None, len(upper), "every candidate")
    bound, highest = float(upper.max()), candidates[int(upper.argmax())]
    proven = _better(best_proven(beliefs, candidates), situation.best)
    return Suggestion(point, bound, len(upper), "every candidate", proven=proven, highest=highest)


def _better(found: Incumbent | None, best: float) -> Incumbent | None:
    return found if found is not None and found.value > best else None


def _runs(situation: Situation) -> Array:
    d = situation.domain.dimension
    return np.concatenate([situation.data[:, :d], situation.pending[:, :d]])
