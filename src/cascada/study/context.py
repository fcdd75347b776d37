"""What is known for one context: the best setting there, and its certificate.

Data of all contexts count, because all of them are runs of one process. But each context has a tree of its own, pruned
only against the best value at this context: a cell that cannot contain the best over all contexts may well contain the
best at this one. There is hardly ever a run at exactly this context, so the gap is mostly that of a proven setting.
"""

import time
from dataclasses import replace

import numpy as np

from cascada.algorithms.feasible_search import candidate_bounds
from cascada.arrays import Array
from cascada.errors import RefutedError
from cascada.network import Beliefs
from cascada.network.feasibility import feasible_mean
from cascada.outwards import difference_up
from cascada.search import Candidates, Leaves, ObjectiveBounds, SearchBudget, best_in_box, search
from cascada.search.feasible import FeasibleBounds, margin_scales
from cascada.search.incumbent import Incumbent, best_proven, proven_incumbent
from cascada.store.trial import best_of
from cascada.study.certificate import Certificate, RecommendedSetting
from cascada.study.model import Model
from cascada.study.settings import Settings
from cascada.study.slice import Slice
from cascada.study.state import State

# Keeps the random numbers of this search apart from those of the algorithm.
_STREAM = 0xC0417
_BEST_RUNS = 8  # whose controls the search for a proven setting starts from
_CELLS = 6_000  # of the search for a bound


def best_at(model: Model, state: State, settings: Settings, part: Slice) -> float:
    """The largest value that is known to be reached at a context by a feasible setting; −∞ if none is.

    Where norms are estimated, the largest composite mean at the controls of earlier runs.
    """
    if not state.complete:
        return -np.inf
    if model.estimated:
        beliefs = part.within(model.acting)
        return float(feasible_mean(beliefs, _moved(model, beliefs)).max(initial=-np.inf))
    run, proven = _run_at(state, part), proven_at(model, settings, part)
    return max(run, -np.inf if proven is None else proven.value)


def proven_at(model: Model, settings: Settings, part: Slice) -> Incumbent | None:
    """The setting with the largest lower bound at a context that a short search finds; None if none is feasible."""
    beliefs = part.within(model.judging)
    candidates = part.candidates(settings)
    if candidates is not None:
        return best_proven(beliefs, candidates)
    rng = np.random.default_rng([_STREAM, settings.seed, len(model.data)])
    near = starts_at(model, beliefs)
    highest = best_in_box(lambda points: feasible_mean(beliefs, points), beliefs.network.domain, rng, near[:1])[0]
    return proven_incumbent(beliefs, np.concatenate([near, highest[None]]), rng)


def starts_at(model: Model, beliefs: Beliefs) -> Array:
    """The controls of the runs with the largest composite means at this context, moved to it, (k, d)."""
    moved = _moved(model, beliefs)
    if not len(moved):
        return 0.5 * (beliefs.network.domain.lower + beliefs.network.domain.upper)[None]
    order = np.argsort(-feasible_mean(beliefs, moved), kind="stable")
    return moved[order[:_BEST_RUNS]]


def _moved(model: Model, beliefs: Beliefs) -> Array:
    """The points of all complete runs, moved into the slice, (n, d)."""
    domain = beliefs.network.domain
    complete = np.isfinite(model.data[:, beliefs.network.objective_column])
    return np.unique(np.clip(model.data[complete, : domain.dimension], domain.lower, domain.upper), axis=0)


def _run_at(state: State, part: Slice) -> float:
    """The value of the best run in a slice; −∞ if there is none."""
    inside = [trial for trial in state.trials if part.contains(trial)]
    best = best_of(inside, state.network.sign, limited=bool(state.network.limits))
    return -np.inf if best is None or best.value is None else state.network.sign * best.value


def certify_at(
    model: Model, state: State, settings: Settings, part: Slice, without: Certificate, budget: SearchBudget | None
) -> Certificate:
    """The certificate for a context; `without` is that without a bound."""
    nothing = replace(without, best=None, depends_on=(), context=dict(part.context))
    if without.kind == "refuted" or without.missing or not state.complete:
        return nothing
    try:
        run = -np.inf if model.noisy else _run_at(state, part)
        proven = proven_at(model, settings, part)
        best = max(run, -np.inf if proven is None else proven.value)
        if not np.isfinite(best):
            return replace(nothing, stopped="no feasible setting is known at this context")
        bound, stopped = _bound(model, settings, part, best, budget)
    except RefutedError as error:
        model.refuted_by(error)
        return replace(nothing, kind=model.kind, evidence=model.evidence())
    sign, setting = state.network.sign, None
    if proven is not None and proven.value > run:
        controls = part.domain.named(part.domain.decode(proven.point[None])[0])
        setting = RecommendedSetting(controls, sign * proven.value)
    return replace(
        nothing,
        best=sign * run if np.isfinite(run) else None,
        bound=sign * max(bound, best),
        gap=difference_up(max(bound, best), best),
        recommended=setting,
        stopped=stopped,
        cells=model.cells,
        seconds=model.seconds,
        over=f"{without.over} at {part}",
    )


def _bound(
    model: Model, settings: Settings, part: Slice, best: float, budget: SearchBudget | None
) -> tuple[float, str]:
    """An upper bound of what is maximised over a slice, and what stopped the search for it."""
    beliefs, started = part.within(model.judging), time.monotonic()
    candidates = part.candidates(settings)
    if candidates is not None:
        if beliefs.network.limits:
            upper = candidate_bounds(beliefs, candidates, margin_scales(beliefs))[0]
        else:
            upper = Candidates.of(candidates).follow(beliefs).upper(beliefs)
        cells, bound, stopped = len(upper), float(upper.max()), "every candidate"
    else:
        bounds = (FeasibleBounds if beliefs.network.limits else ObjectiveBounds)(beliefs)
        wanted = SearchBudget(settings.tolerance or 0.0, cells=_CELLS) if budget is None else budget
        root = Leaves.root(part.domain)
        outcome = search(bounds, root, best, len(model.data), wanted, prove=True)
        cells, bound, stopped = outcome.cells, outcome.bound, outcome.stopped
    model.cells += cells
    model.seconds += time.monotonic() - started
    return bound, stopped
