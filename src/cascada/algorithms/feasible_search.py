"""GPN-UCB among settings that satisfy limits: the point with the largest bound over what may still be feasible.

As long as no feasible setting is known, the point with the largest bound of the margin is run: where the limits may
hold by most. The same numbers end in a feasible run or in the proof that no setting satisfies the limits.

An optimum on a limit can be missed by runs on the wrong side of it for ever. So the run after one that broke a limit
maximises the bound for tightened limits. If infinitely many runs break a limit, there are infinitely many such runs,
and each tightening leads to feasible values as close to its own optimum as wanted; if only finitely many do, the runs
from then on are feasible, and the argument for GPN-UCB without limits applies.
"""

from dataclasses import dataclass, replace

import numpy as np

from cascada.algorithms.algorithm import Situation, Suggestion
from cascada.algorithms.read_suggestion import (
    read_version,
    search_readings,
    suggest_candidate,
    suggest_from_box,
)
from cascada.arrays import Array
from cascada.network import Beliefs
from cascada.network.feasibility import enclose_feasible
from cascada.network.limits import closest_margin, margins, proven, satisfied
from cascada.network.read_beliefs import ReadBeliefs
from cascada.network.slack import around_setting
from cascada.search import Leaves, SearchBudget, largest, search
from cascada.search.feasible import FeasibleBounds, MarginBounds, margin_scales, tightened
from cascada.search.refined_search import to_repeat

_BLOCK = 4096  # candidates that are bounded together
_CELLS_TIGHTENED = 1_000  # of a search for a point alone
# Limits are tightened by this part of the spread of the observed outputs, halved again and again in each cycle.
_TIGHTEST, _CYCLE = 1 / 8, 6


@dataclass(frozen=True, eq=False)
class FeasibleTrees:
    """The trees of a study with limits, kept between suggestions: of the objective and of the margin."""

    objective: Leaves
    margin: Leaves


def suggest_feasible(situation: Situation, beliefs: Beliefs, cells: int, rng: np.random.Generator) -> Suggestion:
    """The next point of a process with limits, over the candidates or over the box with at most `cells` cells."""
    scales = margin_scales(beliefs)
    if situation.candidates is not None:
        return _among_candidates(situation, beliefs, scales, rng)
    root = Leaves.root(situation.domain)
    kept = situation.cache if isinstance(situation.cache, FeasibleTrees) else FeasibleTrees(root, root)
    version = situation.version
    if beliefs.network.read_with_errors:
        version = read_version(situation)
    if np.isfinite(situation.best):
        if beliefs.network.read_with_errors:
            refined = search_readings(situation, beliefs, FeasibleBounds, kept.objective, cells)
            found = suggest_from_box(situation, refined)
        else:
            bounds = FeasibleBounds(beliefs, situation.exact_run)  # imagined outputs refute nothing
            budget = SearchBudget(tolerance=situation.tolerance, cells=cells)
            outcome = search(bounds, kept.objective, situation.best, version, budget, taken=situation.is_taken)
            found = Suggestion(outcome.point, outcome.bound, outcome.cells, outcome.stopped, outcome.leaves)
        point = _inside(situation, beliefs, scales) if found.point is not None else None
        point = found.point if point is None else point
        if len(situation.pending):
            return Suggestion(point, None, found.cells, found.stopped, situation.cache)
        return replace(found, point=point, cache=replace(kept, objective=found.cache))
    closest = nearest_margin(situation.beliefs, situation.data, scales)
    # The search ends as soon as every cell breaks a limit.
    enough = np.nextafter(-closest, 0.0) if np.isfinite(closest) else 0.0
    margin, budget = MarginBounds(beliefs, scales), SearchBudget(tolerance=enough, cells=cells)
    outcome = search(margin, kept.margin, closest, version, budget, taken=situation.is_taken)
    if len(situation.pending):
        return Suggestion(outcome.point, None, outcome.cells, outcome.stopped, situation.cache)
    trees = replace(kept, margin=outcome.leaves)
    point = None if outcome.bound < 0 else outcome.point
    return Suggestion(point, None, outcome.cells, outcome.stopped, trees, margin=outcome.bound)


def _inside(situation: Situation, beliefs: Beliefs, scales: Array) -> Array | None:
    """A point that maximises the bound for tightened limits, if the last run broke a limit; else None."""
    limits = situation.beliefs.network.limits
    columns = [limit.column for limit in limits]
    runs = situation.data[np.isfinite(situation.data[:, columns]).all(axis=1)]
    broken = ~satisfied(limits, runs)
    if isinstance(situation.beliefs, ReadBeliefs):  # what counts is a proof
        known = situation.beliefs.latent.values
        broken = ~proven(limits, known.lower, known.upper)[np.isfinite(situation.data[:, columns]).all(axis=1)]
    if not len(runs) or not broken[-1]:
        return None
    count = int(broken.sum()) - 1
    spread = np.ptp(runs[:, columns], axis=0)
    amounts = _TIGHTEST * 0.5 ** (count % _CYCLE) * np.where(spread > 0, spread, scales)
    bounds = FeasibleBounds(beliefs, limits=tightened(limits, amounts))
    budget = SearchBudget(tolerance=situation.tolerance, cells=_CELLS_TIGHTENED)
    root = Leaves.root(situation.domain)
    return search(bounds, root, situation.best, 0, budget, taken=situation.is_taken).point


def _among_candidates(situation: Situation, beliefs: Beliefs, scales: Array, rng: np.random.Generator) -> Suggestion:
    assert situation.candidates is not None, "only called with candidates"
    beliefs.check()
    upper, margin = candidate_bounds(beliefs, situation.candidates, scales)
    known = np.isfinite(situation.best)
    if known and beliefs.network.read_with_errors:
        candidates = situation.candidates
        return suggest_candidate(situation, beliefs, lambda now: candidate_bounds(now, candidates, scales)[0], rng)
    worth = upper if known else np.where(np.isfinite(upper), margin, -np.inf)
    free = np.where(situation.free_candidates(), worth, -np.inf)
    point = situation.candidates[largest(free, rng)] if np.isfinite(free).any() else None
    if point is None and beliefs.network.read_with_errors:
        point = to_repeat(situation.candidates, worth, -np.inf, situation.data[:, : situation.domain.dimension])
    if len(situation.pending):  # bounds from imagined outputs prove nothing
        return Suggestion(point, None, len(upper), "every candidate")
    if known:
        return Suggestion(point, float(upper.max()), len(upper), "every candidate")
    most = float(margin.max())
    return Suggestion(None if most < 0 else point, None, len(upper), "every candidate", margin=most)


def nearest_margin(beliefs: Beliefs, data: Array, scales: Array) -> float:
    """The largest margin by which a run of `data` (t, V) is known to satisfy the limits; −∞ if no run has it."""
    limits = beliefs.network.limits
    if not isinstance(beliefs, ReadBeliefs):
        return closest_margin(limits, data, scales)
    known, seen = beliefs.latent.values, np.isfinite(data[:, [limit.column for limit in limits]]).all(axis=1)
    worst = np.minimum(margins(limits, known.lower), margins(limits, known.upper))[seen]
    return float((worst / scales).min(axis=1).max(initial=-np.inf))


def candidate_bounds(beliefs: Beliefs, candidates: Array, scales: Array) -> tuple[Array, Array]:
    """Upper bounds (n,) of what is maximised at candidates (n, d), −∞ where infeasible, and of the margin."""
    network = beliefs.network
    upper, margin = [], []
    for i in range(0, len(candidates), _BLOCK):
        points = around_setting(beliefs, candidates[i : i + _BLOCK])
        found = enclose_feasible(beliefs, points, network.limits)
        upper.append(found.above(network.objective_column, network.sign))
        margin.append(MarginBounds(beliefs, scales)(points)[0])
    return np.concatenate(upper), np.concatenate(margin)
