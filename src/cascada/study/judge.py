"""The certificate of a study: a bound of the objective over the whole domain, and the gap to the best run."""

import time

import numpy as np

from cascada.algorithms.algorithm import bound_certifies
from cascada.arrays import Array
from cascada.errors import RefutedError
from cascada.network import Beliefs
from cascada.network.slack import objective_slack
from cascada.outwards import difference_up
from cascada.search import Candidates, Leaves, ObjectiveBounds, SearchBudget, search
from cascada.study.advisor import suggest_with_nothing_pending
from cascada.study.certificate import Certificate, assumptions, beaten
from cascada.study.model import Model
from cascada.study.settings import Settings
from cascada.study.state import State

_CELLS = 2_000  # of a search for the certificate of an algorithm without a bound of its own


def certify(model: Model, state: State, settings: Settings, budget: SearchBudget | None = None) -> Certificate:
    """The certificate for the present data: by the bound at hand, or with a `budget` after refining it further."""
    if budget is None and model.certificate is not None:
        return model.certificate
    certificate = _certified(model, state, settings, budget)
    if budget is None:
        model.certificate = certificate
    return certificate


def _certified(model: Model, state: State, settings: Settings, budget: SearchBudget | None) -> Certificate:
    best = state.best_value
    if model.kind == "refuted" or not np.isfinite(best) or _untested(model, state, settings):
        return without_bound(model, state, settings)
    try:
        bound, stopped = _bound(model, state, settings, budget)
    except RefutedError as error:
        model.refuted_by(error)
        return without_bound(model, state, settings)
    return _certificate(model, state, settings, max(bound, best), stopped)


def without_bound(model: Model, state: State, settings: Settings) -> Certificate:
    """The certificate without a gap, which needs no search."""
    return _certificate(model, state, settings, None, "no bound")


def _untested(model: Model, state: State, settings: Settings) -> bool:
    """Whether the gap would rest on estimated bounds that runs after the design have not tested enough."""
    if not state.network.estimated or model.probation.passed:
        return False
    return settings.listed is None or not state.covers(settings.listed.rows)  # else nothing is estimated


def _bound(model: Model, state: State, settings: Settings, budget: SearchBudget | None) -> tuple[float, str]:
    """An upper bound of what is maximised over the whole domain, and what stopped the search for it."""
    best, beliefs = state.best_value, model.judging
    # A calibrated network is judged by other beliefs than the algorithm's.
    own = bound_certifies(settings.algorithm) and not state.network.estimated
    if own and budget is None:
        suggestion = suggest_with_nothing_pending(model, state, settings)
        if suggestion.bound is not None:
            return _checked(suggestion.bound, model, state, settings), suggestion.stopped
    started = time.monotonic()
    if settings.candidates is not None:
        upper = Candidates.of(settings.candidates).follow(beliefs).upper(beliefs)
        _count(model, len(upper), started)
        if model.runs is not None and settings.listed is not None:  # the value of a run is known, learned or not
            upper = np.fmin(upper, state.network.sign * state.values_at(settings.listed.rows))
        return _checked(float(upper.max()), model, state, settings), "every candidate"
    leaves = model.tree if own and isinstance(model.tree, Leaves) else model.leaves
    if leaves is None:
        leaves = Leaves.root(state.network.domain)
    wanted = SearchBudget(settings.tolerance or 0.0, cells=_CELLS) if budget is None else budget
    bounds = ObjectiveBounds(beliefs, model.best_run)
    outcome = search(bounds, leaves, best, len(model.data), wanted, prove=True)
    if budget is None and not settings.shared:  # a tree that grows with every call does not follow from the log
        model.leaves = outcome.leaves
    _count(model, outcome.cells, started)
    return outcome.bound, outcome.stopped


def _checked(bound: float, model: Model, state: State, settings: Settings) -> float:
    """A bound; `RefutedError` if it is a bound over all points that were run, and a run beats it."""
    row, listed = state.network.domain.row, settings.listed
    run = model.best_run
    inside = listed is None or all(row(trial.controls) in listed for trial in state.trials)
    if inside and run is not None:
        check_bound(model.judging, bound, state.best_value, run)
    return bound


def _count(model: Model, cells: int, started: float) -> None:
    model.cells += cells
    model.seconds += time.monotonic() - started


def check_bound(beliefs: Beliefs, bound: float, best: float, run: Array) -> None:
    """Raise `RefutedError` if the best run (V,), which gave `best`, beats a bound over the domain that contains it."""
    if bound < best - objective_slack(beliefs, run):
        raise RefutedError(beaten(best, bound, beliefs.network.sign))


def _certificate(model: Model, state: State, settings: Settings, bound: float | None, stopped: str) -> Certificate:
    """The certificate for a bound of what is maximised; without one it has no gap."""
    sign, best, candidates = state.network.sign, state.best_value, settings.candidates
    observed = sum(bool(trial.outputs) for trial in state.trials)
    some = () if model.runs is None else (f"the bounds rest on {model.runs:,} of {observed:,} runs",)
    return Certificate(
        kind=model.kind,
        best=sign * best if np.isfinite(best) else None,
        bound=None if bound is None else sign * bound,
        gap=None if bound is None else difference_up(bound, best),
        evaluations=state.complete,
        assumptions=(*assumptions(model.judging), *model.enlarged, *some),
        evidence=model.evidence(),
        cells=model.cells,
        seconds=model.seconds,
        stopped=stopped,
        over="the box of controls" if candidates is None else f"the {len(candidates):,} candidates",
        maximised=sign > 0,
        missing=str(model.probation) if _untested(model, state, settings) else "",
        corrections=state.revision,
        runs_used=model.runs,
    )
