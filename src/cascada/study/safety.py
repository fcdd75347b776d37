"""Safe mode of a study: only settings that are proven to satisfy the limits are run, from a start that does.

If the given norms hold, no such run breaks a limit. What was proven once stays true, so trials that were asked for or
enqueued are not proven again, unless a correction or an amendment changed what the proof rested on.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cascada.algorithms import Suggestion
from cascada.algorithms.algorithm import point_key
from cascada.arrays import Array
from cascada.errors import ArgumentError, RefutedError
from cascada.network import Beliefs, hallucinated
from cascada.search.safe import nearest_safe, proven_safe
from cascada.space import ControlValue
from cascada.store.trial import Trial
from cascada.study.advisor import suggest
from cascada.study.change import Change
from cascada.study.model import Model
from cascada.study.settings import Settings
from cascada.study.slice import Slice
from cascada.study.state import State

# Keeps the random numbers of this search apart from those of the algorithm.
_STREAM = 0x5AFE


def safe_suggestion(model: Model, state: State, settings: Settings, part: Slice | None = None) -> Suggestion:
    """The algorithm's suggestion, moved to the nearest setting that is proven safe and worth a run.

    Its point is None if no such setting was found, if the first run is still under way, or if no run satisfies the
    limits. Raises `ArgumentError` before the first run, when there is nothing to start from.
    """
    suggestion, domain = suggest(model, state, settings, part), state.network.domain
    if suggestion.point is None:
        return suggestion
    feasible = [trial for trial in state.trials if state.rules.feasible(trial.controls, trial.outputs)]
    if not feasible and (state.running or state.complete):
        return replace(suggestion, point=None)
    if not feasible:
        limits = " and ".join(map(str, state.network.limits))
        raise ArgumentError(
            f"safe=True needs a run that satisfies {limits} to start from; the study has none. Give maximise or "
            f"minimise a start=, the controls of a setting that is known to satisfy them (on the command line: --start "
            f"of cascada run and cascada ask), or add a run with add_trial(controls, outputs) (cascada add)."
        )
    beliefs, pending, candidates = model.judging, state.running, settings.candidates
    if part is not None:  # what is tried stays within the slice
        beliefs, candidates = part.within(beliefs), part.candidates(settings)
        domain = part.domain
    point = nearest_safe(
        beliefs,
        _imagined(beliefs, model.pending(pending)),
        suggestion.point,
        domain.encode(np.array([state.network.domain.row(trial.controls) for trial in feasible])),
        lambda one: point_key(domain, one) in state.taken,
        np.random.default_rng([_STREAM, settings.seed, len(state.trials)]),
        candidates=candidates,
        # The points of a study that others can continue must not depend on the tolerance of one process.
        tolerance=0.0 if settings.shared else settings.tolerance or 0.0,
    )
    return replace(suggestion, point=point)


def _imagined(beliefs: Beliefs, pending: Array) -> Beliefs:
    """The beliefs after pending runs, which tell what will be known; without them if imagined outputs contradict."""
    try:
        imagined = hallucinated(beliefs, pending)
        imagined.check()
    except RefutedError:
        return beliefs
    return imagined


def nothing_safe_left(model: Model, state: State, settings: Settings) -> bool:
    """Whether the algorithm suggests a point and no setting is left that is proven safe and worth a run."""
    wanted = suggest(model, state, settings).point
    return wanted is not None and safe_suggestion(model, state, settings).point is None


def check_proven(model: Model, state: State, controls: Mapping[str, Any]) -> None:
    """Raise `ArgumentError` if controls of the user's choice are not proven to satisfy the limits."""
    if not _is_proven(model, state, state.rules.controls(controls)):
        limits = " and ".join(map(str, state.network.limits))
        raise ArgumentError(
            f"this study is safe, and these controls are not proven to satisfy {limits}: {dict(controls)}. Nothing was "
            f"written. A run that was made elsewhere can be added with add_trial(controls, outputs)."
        )


def first_waiting(change: Change, learned: Callable[[State], Model]) -> Trial | None:
    """The first trial that waits. Those that a correction or an amendment leaves without a proof are abandoned.

    A trial that is known to be safe needs no proof, unless an amendment came after it.
    """
    state = change.state
    if not (state.revision or state.described):  # nothing that a proof rests on has changed
        return change.waiting
    while (trial := change.waiting) is not None and trial.number not in state.known_safe:
        if _is_proven(learned(state), state, trial.controls):
            break
        change.end(trial.number, "abandoned", "not proven to be safe after a correction or an amendment")
    return trial


def _is_proven(model: Model, state: State, controls: Mapping[str, ControlValue]) -> bool:
    found = model.evidence()
    if found:
        raise RefutedError(" ".join(found))
    domain = state.network.domain
    return bool(proven_safe(model.judging, domain.encode(domain.row(controls)[None]))[0])
