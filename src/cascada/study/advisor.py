"""The next point of a study: what its algorithm suggests for the present state."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cascada.algorithms import GPNEI, Algorithm, NonAdaptive, Situation, Suggestion
from cascada.algorithms.algorithm import bound_certifies
from cascada.algorithms.foreign import ForeignAlgorithm
from cascada.algorithms.robust import Robust
from cascada.arrays import Array
from cascada.errors import ArgumentError, RefutedError
from cascada.network import Network
from cascada.network.failures import counts_as_infeasible
from cascada.space import ControlValue, Domain
from cascada.store.trial import Trial
from cascada.study.context import best_at
from cascada.study.incumbent import best_known
from cascada.study.model import Model
from cascada.study.probing import beliefs_to_probe
from cascada.study.settings import Settings
from cascada.study.slice import Slice
from cascada.study.state import State

# Keeps an algorithm's random numbers apart from those of a problem that was drawn with the same seed.
_STREAM = 0xCA5CADA
# Coordinates may leave the box by this part of its ends: the controls are rounded to them.
_ROUNDING = 1e-9


def suggest(model: Model, state: State, settings: Settings, part: Slice | None = None) -> Suggestion:
    """The suggestion for a state, with its running trials pending; in a slice of the box, if one is given."""
    pending = state.running
    if pending or part is not None:
        return _suggest(model, state, settings, pending, part)
    return suggest_with_nothing_pending(model, state, settings)


def suggest_without_beliefs(state: State, settings: Settings, part: Slice | None = None) -> Suggestion:
    """The suggestion of an algorithm that uses no beliefs, by a model that has learned nothing.

    Raises `RefutedError` if the log says that an assumption is wrong.
    """
    if state.refutations:
        raise RefutedError(" ".join(refutation.reason for refutation in state.refutations))
    return _suggest(Model(state.network, settings), state, settings, state.running, part)


def suggest_with_nothing_pending(model: Model, state: State, settings: Settings) -> Suggestion:
    """The suggestion for the present data; computed once, so that asking twice changes nothing."""
    if model.suggestion is None:
        model.suggestion = _suggest(model, state, settings, ())
        model.tree = None if settings.shared else model.suggestion.cache
        if not settings.shared and model.suggestion.proven is not None:
            model.incumbent = model.suggestion.proven  # the tree was pruned by its value
    return model.suggestion


def _suggest(
    model: Model, state: State, settings: Settings, pending: Sequence[Trial], part: Slice | None = None
) -> Suggestion:
    started, now = time.monotonic(), situation(model, state, settings, pending, part)
    suggestion: Suggestion | None
    try:
        chooser = _chooser(state, settings)
        if part is not None and isinstance(chooser, NonAdaptive):
            now = replace(now, taken=frozenset())  # each run is that of the design with its number, in any slice
        suggestion = _validated(chooser, chooser.suggest(now, generator(state, settings)), now.domain)
        # A design of all candidates is complete, and with noise they may be run again.
        if suggestion.point is None and model.noisy:
            chooser = settings.algorithm
            suggestion = _validated(chooser, chooser.suggest(now, generator(state, settings)), now.domain)
        unreached = bool(state.network.limits) and not np.isfinite(now.best)
        if model.estimated and unreached and suggestion.point is None and bound_certifies(chooser):
            suggestion = None  # estimated or enlarged bounds do not show that no setting satisfies the limits
    except RefutedError:
        if not state.network.estimated:
            raise
        suggestion = None  # an estimate contradicts the data
    if suggestion is None:  # this algorithm does not rest on bounds
        suggestion = GPNEI().suggest(replace(now, cache=None), generator(state, settings))
    model.cells += suggestion.cells
    model.seconds += time.monotonic() - started
    return suggestion


def _validated(chooser: Algorithm, suggestion: Suggestion, domain: Domain) -> Suggestion:
    """What an algorithm suggests, which may be the user's own; `ArgumentError` if it is no suggestion."""
    name = type(chooser).__name__
    if not isinstance(suggestion, Suggestion):
        raise ArgumentError(
            f"suggest() of {name} must return a Suggestion, as in Suggestion(point), or Suggestion(None) if no point "
            f"is worth a run; got {suggestion!r:.100}."
        )
    if suggestion.point is not None:
        check_coordinates(suggestion.point, domain, f"the point that suggest() of {name} returns")
    return suggestion


def check_coordinates(point: Any, domain: Domain, what: str) -> None:
    """Raise `ArgumentError` unless a point is an array (d,) of coordinates in the box, up to rounding."""
    d = domain.dimension
    numbers = isinstance(point, np.ndarray) and point.dtype.kind in "fiu" and point.shape == (d,)
    if not numbers or not np.isfinite(point).all():
        raise ArgumentError(f"{what} must be an array of {d} finite coordinates, or None; got {point!r:.100}.")
    off = _ROUNDING * np.maximum(np.abs(domain.lower), np.abs(domain.upper))
    wrong = np.flatnonzero((point < domain.lower - off) | (point > domain.upper + off))
    if wrong.size:
        j = wrong[0]
        raise ArgumentError(
            f"{what} must lie in the box of controls: coordinate {j} ({domain.names[j]}) is between "
            f"{domain.lower[j]:g} and {domain.upper[j]:g}; got {point[j]:g}."
        )


def situation(
    model: Model, state: State, settings: Settings, pending: Sequence[Trial] = (), part: Slice | None = None
) -> Situation:
    """What an algorithm is given. In a slice, the best value is that of its context; what is fixed does not matter."""
    in_context = part is not None and bool(part.context)
    if part is not None and in_context:
        best = best_at(model, state, settings, part.of_context())
    else:
        best = best_known(model, state, settings)
    # A gap that may not stop the study, or is judged by other beliefs, is no reason to stop searching. Nor may the
    # points of a shared study depend on the tolerance of one process.
    blind = settings.shared or state.network.estimated or (model.estimated and not settings.stop_on_estimated)
    untested = beliefs_to_probe(model, pending, best)
    whole = Situation(
        beliefs=model.acting,
        data=model.data,
        pending=model.pending(pending),
        candidates=settings.candidates,
        best=best,
        trial=len(state.trials),
        tolerance=0.0 if blind else settings.tolerance or 0.0,
        cache=model.tree,
        taken=frozenset() if model.noisy else state.taken,
        horizon=settings.horizon,
        untested=untested,
        failed=_failed(model, state),
    )
    if part is None:
        return whole
    return replace(
        whole,
        beliefs=part.within(model.acting),
        candidates=part.candidates(settings),
        cache=None,  # a tree over the whole box was pruned against the best of all
        untested=None if untested is None else part.within(untested),
    )


def _failed(model: Model, state: State) -> Array | None:
    """Rows (n, V) of failed trials that count as infeasible; None if no stage says that its failures do."""
    network = state.network
    if all(stage.failure == "fail" for stage in network.stages):
        return None
    return model.pending([t for t in state.trials if t.state == "failed" and counts_as_infeasible(network, t.outputs)])


def generator(state: State, settings: Settings) -> np.random.Generator:
    """The random numbers of the next suggestion, which follow from the seed and the number of trials."""
    return np.random.default_rng([_STREAM, settings.seed, len(state.trials)])


def named(point: Array, network: Network, settings: Settings) -> dict[str, ControlValue]:
    """A suggested point (d,) in user units; a candidate exactly as it was given, logarithms or not."""
    domain, row = network.domain, None if settings.listed is None else settings.listed.at(point)
    return domain.named(domain.decode(point[None])[0] if row is None else row)


def controls_of(
    suggestion: Suggestion, state: State, settings: Settings, part: Slice | None = None
) -> dict[str, ControlValue] | None:
    """The controls of a suggestion; None if it has no point. In a slice, the given ones exactly as they were given."""
    if suggestion.point is None:
        return None
    found = named(suggestion.point, state.network, settings)
    return found if part is None else {**found, **part.values}


def _chooser(state: State, settings: Settings) -> Algorithm:
    """What chooses the next point: a design for the first ones, where norms have to be estimated."""
    first = settings.calibration.first(state.network)
    learning = state.network.estimated and len(state.trials) < first
    if state.network.uncertain and not (learning and settings.adaptive):
        return Robust()
    if isinstance(settings.algorithm, ForeignAlgorithm):
        return settings.algorithm  # whether it is adaptive is not known
    return NonAdaptive(runs=first) if learning and settings.adaptive else settings.algorithm
