"""The proven incumbent of a study with limits or errors: the setting with the largest proven value, run or not."""

import numpy as np

from cascada.arrays import Array
from cascada.network import Beliefs
from cascada.network.feasibility import feasible_mean
from cascada.network.limits import margins, satisfied
from cascada.search import best_in_box
from cascada.search.incumbent import Incumbent, best_proven, proven_incumbent
from cascada.search.robust import robust_incumbent
from cascada.study.model import Model
from cascada.study.settings import Settings
from cascada.study.state import State

# Keeps the random numbers of this search apart from those of the algorithm.
_STREAM = 0x1BC0
_BEST_RUNS, _NEAREST_RUNS, _LATEST_STEPS = 8, 4, 20  # whose points the search starts from


def incumbent(model: Model, state: State, settings: Settings) -> Incumbent | None:
    """The proven incumbent for the present data, computed once; None if there is none.

    There is none without limits if runs are exact and complete, where norms are estimated, and where bounds were
    refuted and enlarged. With uncertain controls it is the setting with the largest proven worst case, whatever the
    norms rest on; a run does not count. Raises `RefutedError` if the data refute an assumption.
    """
    if state.network.uncertain:
        return _robust(model, settings)
    needed = state.network.limits or model.read_with_errors or state.stepped
    estimated = model.estimated and not state.network.scattered  # selected readings make bounds less sure, not useless
    if not needed or estimated or model.evidence():
        return None
    if not model.incumbent_known:
        found, earlier = _found(model, state, settings), None if settings.shared else model.incumbent
        # What was proven once stays true, even if later data give a lower bound there. And a tree that was pruned by a
        # value says nothing about lower ones.
        lost = earlier is not None and (found is None or found.value < earlier.value)
        model.incumbent, model.incumbent_known = earlier if lost else found, True
    return model.incumbent


def best_known(model: Model, state: State, settings: Settings) -> float:
    """The largest value of what is maximised that is known to be reached by a feasible setting; −∞ if none is.

    With noise, the largest that a run is estimated to reach: its composite mean. A reading with an error reaches
    nothing.
    """
    if model.noisy:
        return -np.inf if model.noisy_best is None else model.noisy_best[1]
    proven = incumbent(model, state, settings)
    if state.network.uncertain or model.read_with_errors:  # no run measures a worst case, or is exact
        return -np.inf if proven is None else proven.value
    return max(state.best_value, -np.inf if proven is None else proven.value)


def best_proven_setting(model: Model, state: State, settings: Settings) -> Incumbent | None:
    """The incumbent, or a better setting that the search for the next point came across; None if there is none."""
    known, found = incumbent(model, state, settings), None if model.suggestion is None else model.suggestion.proven
    if found is None or (known is not None and known.value >= found.value):
        return known
    return found


def _robust(model: Model, settings: Settings) -> Incumbent | None:
    """The setting with the largest worst case, computed once for the present data; None before the first run."""
    complete = np.isfinite(model.data[:, model.judging.network.objective_column])
    if not complete.any() or model.evidence():
        return None
    if not model.incumbent_known:
        earlier = None if settings.shared else model.incumbent
        rng = np.random.default_rng([_STREAM, settings.seed, len(model.data)])
        starts = np.empty((0, model.judging.network.domain.dimension)) if earlier is None else earlier.point[None]
        found = robust_incumbent(model.judging, model.data[complete], rng, starts)
        lost = earlier is not None and found.value < earlier.value and not model.estimated
        model.incumbent, model.incumbent_known = earlier if lost else found, True
    return model.incumbent


def _found(model: Model, state: State, settings: Settings) -> Incumbent | None:
    beliefs, data = model.judging, model.data
    if settings.candidates is not None:
        return best_proven(beliefs, settings.candidates)
    if not len(data) and not len(model.singles):
        return None  # without data, bounds rarely exclude anything
    rng = np.random.default_rng([_STREAM, settings.seed, model.version if state.stepped else len(data)])
    starts = _planned(state)
    if len(data):
        starts = np.concatenate([_starts(beliefs, data, rng), starts])
    if not settings.shared and model.incumbent is not None:
        starts = np.concatenate([starts, model.incumbent.point[None]])
    return proven_incumbent(beliefs, starts, rng)


def _planned(state: State) -> Array:
    """The points (n, d) that the latest steps led to, which need not have been run; none without steps."""
    domain = state.network.domain
    latest = [trial for trial in state.trials if trial.steps][-_LATEST_STEPS:]
    rows = [domain.coded(trial.controls) for trial in latest]
    if state.stepped and not rows:  # nothing but measurements
        return 0.5 * (domain.lower + domain.upper)[None]
    return domain.encode(np.array(rows).reshape(-1, domain.dimension))


def _starts(beliefs: Beliefs, data: Array, rng: np.random.Generator) -> Array:
    """The points of the best feasible runs, of runs that miss the limits by least, and of the largest feasible mean."""
    network, d = beliefs.network, beliefs.network.domain.dimension
    values = np.where(satisfied(network.limits, data), network.sign * data[:, network.objective_column], -np.inf)
    values = np.nan_to_num(values, nan=-np.inf)
    best = np.argsort(-values, kind="stable")[:_BEST_RUNS]
    margin = np.nan_to_num(margins(network.limits, data).min(axis=1, initial=np.inf), nan=-np.inf)
    nearest = np.argsort(-margin, kind="stable")[:_NEAREST_RUNS]
    near = data[[int(best[0])], :d]
    highest = best_in_box(lambda points: feasible_mean(beliefs, points), network.domain, rng, near)[0]
    return np.concatenate([data[best, :d], data[nearest, :d], highest[None]])
