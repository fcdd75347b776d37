"""Branch and bound with bounds from readings with errors, which are refined where the search would run.

Bounds from readings depend on the weights of the rows, and the best weights differ from point to point. So before a
point is suggested, weights are chosen along its path, and the search goes on with the narrower bounds. The value that
cells have to beat is the largest proven lower bound of a setting, which may be one that the search comes across.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array, IntArray
from cascada.network import Beliefs, enclose_network, objective_above
from cascada.network.read_beliefs import ReadBeliefs
from cascada.network.slack import around_setting
from cascada.search.bounds import CellBounds
from cascada.search.branch_and_bound import Outcome, SearchBudget, search
from cascada.search.incumbent import Incumbent, best_proven
from cascada.search.leaves import Leaves
from cascada.search.starts import snapped

# The centres of this many of the highest cells may become the incumbent.
_CENTRES = 32
# Points at which weights are chosen in one search.
_REFINED = 2
_BLOCK = 4096  # candidates that are bounded together


@dataclass(frozen=True, eq=False)
class RefinedOutcome:
    """The outcome of the last search, the best setting that was proven on the way, and where the bound is attained."""

    outcome: Outcome
    cells: int
    proven: Incumbent | None
    highest: Array | None  # (d,): about the point with the largest bound; None if no cell is left


def refined_search(
    beliefs: Beliefs,
    bounds_of: Callable[[Beliefs], CellBounds],
    leaves: Leaves,
    best: float,
    version: int,
    budget: SearchBudget,
    taken: Callable[[Array], bool],
    *,
    improve: bool = True,
) -> RefinedOutcome:
    """Search as `search` does, and refine the beliefs at the points that it suggests.

    `version` counts the readings behind the beliefs. Without `improve` no lower bound of a setting is used: the beliefs
    contain imagined readings.
    """
    assert isinstance(beliefs, ReadBeliefs), "only called for networks that are read with errors"
    cells, refined, proven = 0, 0, None
    while True:
        now = SearchBudget(budget.tolerance, max(1, budget.cells - cells), budget.seconds)
        outcome = search(bounds_of(beliefs), leaves, best, version_of(version, refined), now, taken=taken)
        leaves, cells = outcome.leaves, cells + outcome.cells
        order = np.argsort(-leaves.bound, kind="stable")[:_CENTRES]
        centres = leaves.centre[order]
        if improve and len(centres):
            found = best_proven(beliefs, snapped(beliefs.network.domain, centres))
            if found is not None and found.value > best:
                best, proven = found.value, found
                if cells < budget.cells:
                    continue
        if outcome.stopped == "point" and outcome.point is not None and refined < _REFINED:
            beliefs, refined = beliefs.refined(outcome.point), refined + 1
            continue
        bound = max(float(leaves.bound.max(initial=-np.inf)), best)
        last = Outcome(leaves, bound, outcome.point, cells, outcome.stopped)
        return RefinedOutcome(last, cells, proven, centres[0] if len(centres) else None)


def version_of(readings: int, refined: int = _REFINED) -> int:
    """The version of bounds of cells from so many readings, after weights were chosen at some points."""
    return (_REFINED + 1) * readings + refined


def candidates_above(beliefs: Beliefs, candidates: Array) -> Array:
    """Upper bounds (n,) of what is maximised at candidates (n, d), from readings with errors."""
    blocks = [candidates[i : i + _BLOCK] for i in range(0, len(candidates), _BLOCK)]
    return np.concatenate(
        [objective_above(beliefs.network, enclose_network(beliefs, around_setting(beliefs, one))) for one in blocks]
    )


def refined_candidates(beliefs: Beliefs, above: Callable[[Beliefs], Array], candidates: Array) -> Array:
    """Upper bounds (n,) at candidates (n, d), `above` with beliefs that are refined at the highest of them."""
    assert isinstance(beliefs, ReadBeliefs), "only called for networks that are read with errors"
    upper = above(beliefs)
    for _ in range(_REFINED):
        beliefs = beliefs.refined(candidates[int(upper.argmax())])
        upper = np.minimum(upper, above(beliefs))
    return upper


def runs_at(points: Array, runs: Array) -> IntArray:
    """How many of the runs (t, d) are at each of the points (n, d), (n,)."""
    return np.array([(runs == point).all(axis=1).sum() for point in points], dtype=np.int64).reshape(len(points))


def to_repeat(points: Array, upper: Array, best: float, runs: Array) -> Array | None:
    """The point (d,) to run again where all that may be best were run: of those run least, that with the largest bound.

    None if no bound (n,) exceeds the best proven value. Errors differ from run to run, so that another one may help.
    """
    worth = np.flatnonzero(upper > best)
    if not len(worth):
        return None
    order = np.lexsort((-upper[worth], runs_at(points[worth], runs)))
    return np.asarray(points[worth[order[0]]])
