"""The certificate of a study: a bound of the objective over the whole domain, and the gap to the best run."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from cascada.algorithms import Suggestion
from cascada.algorithms.algorithm import bound_certifies
from cascada.algorithms.feasible_search import FeasibleTrees, candidate_bounds, nearest_margin
from cascada.arrays import Array
from cascada.calibration.gap_beliefs import gap_beliefs
from cascada.errors import ArgumentError, RefutedError
from cascada.network import Beliefs
from cascada.network.floor import Floor, floor_at
from cascada.network.outputs import StageError
from cascada.network.read_beliefs import ReadBeliefs
from cascada.network.slack import objective_slack
from cascada.outwards import difference_up
from cascada.search import Candidates, Leaves, ObjectiveBounds, SearchBudget, search
from cascada.search.ascent import highest
from cascada.search.feasible import FeasibleBounds, MarginBounds, margin_scales
from cascada.search.refined_search import candidates_above
from cascada.search.robust import Deviations, RobustBounds
from cascada.space import ControlValue
from cascada.study.advisor import named, suggest_with_nothing_pending
from cascada.study.certificate import Certificate, RecommendedSetting, assumptions, beaten
from cascada.study.context import certify_at
from cascada.study.incumbent import best_known, best_proven_setting
from cascada.study.model import Model
from cascada.study.noisy_run import noisy_run
from cascada.study.settings import Settings
from cascada.study.slice import Slice
from cascada.study.state import State

# Keeps the random numbers of the ascent apart from those of the algorithm.
_STREAM = 0x6A9B0
_CELLS = 2_000  # of a search for the certificate of an algorithm without a bound of its own
_MARGIN_TOLERANCE = 0.05  # of the margin of the run that misses the limits by least


def certify(
    model: Model,
    state: State,
    settings: Settings,
    budget: SearchBudget | None = None,
    part: Slice | None = None,
) -> Certificate:
    """The certificate for the present data: by the bound at hand, or with a `budget` after refining it further.

    `part` is the context that it is for, if the process has one.
    """
    if part is not None:
        return certify_at(model, state, settings, part, without_bound(model, state, settings), budget)
    if budget is None and model.certificate is not None:
        return model.certificate
    certificate = _certified(model, state, settings, budget)
    if budget is None:
        model.certificate = certificate
    return certificate


def _certified(model: Model, state: State, settings: Settings, budget: SearchBudget | None) -> Certificate:
    # With steps a setting can be proven to give something before any run is complete.
    known = state.complete or state.stepped
    # Nothing can be said for all contexts at once: see `context` and `table`.
    if model.kind == "refuted" or not known or state.network.context or state.network.unbounded:
        return without_bound(model, state, settings)
    untested = _untested(model, state, settings)
    if untested and not (_has_more_than_the_design(model, settings) and _by_ascent(model, settings)):
        return without_bound(model, state, settings)
    try:
        best = _reached(model, state, settings)
        if not np.isfinite(best):
            if not state.network.limits and not state.complete:
                return without_bound(model, state, settings)
            return _without_feasible_setting(model, state, settings, budget)
        bound = _bound(model, state, settings, budget, best)
        # A gap as large as all differences between runs rules nothing out: there is nothing to test.
        if untested and not bound.value - best >= _differences(model) > 0:
            return without_bound(model, state, settings)
        return _certificate(model, state, settings, replace(bound, value=max(bound.value, best)))
    except RefutedError as error:
        model.refuted_by(error)
        return without_bound(model, state, settings)


def without_bound(model: Model, state: State, settings: Settings) -> Certificate:
    """The certificate without a gap, which needs no search."""
    return _certificate(model, state, settings, None)


def _without_feasible_setting(
    model: Model, state: State, settings: Settings, budget: SearchBudget | None
) -> Certificate:
    """The certificate as long as no feasible setting is known: it may prove that there is none."""
    if model.estimated:  # estimated or enlarged bounds do not show that something is impossible
        return without_bound(model, state, settings)
    margin, stopped = _margin(model, state, settings, budget)
    return _certificate(model, state, settings, None, margin, stopped)


def _margin(model: Model, state: State, settings: Settings, budget: SearchBudget | None) -> tuple[float, str]:
    """An upper bound of the margin of the limits over the whole domain, and what stopped the search for it."""
    beliefs, most, trees = model.judging, np.inf, None
    scales = margin_scales(beliefs)
    if bound_certifies(settings.algorithm):
        suggestion = _suggestion(model, state, settings)
        most, trees = np.inf if suggestion.margin is None else suggestion.margin, suggestion.cache
        if budget is None and most >= 0:  # the search that chose the point looked for a proof as well
            return most, suggestion.stopped
    started = time.monotonic()
    if settings.candidates is not None:
        found = float(candidate_bounds(beliefs, settings.candidates, scales)[1].max())
        _count(model, len(settings.candidates), started)
        return min(found, most), "every candidate"
    leaves = trees.margin if isinstance(trees, FeasibleTrees) else Leaves.root(state.network.domain)
    closest = nearest_margin(beliefs, model.data, scales)
    wanted = SearchBudget(_MARGIN_TOLERANCE * abs(closest), cells=_CELLS) if budget is None else budget
    outcome = search(MarginBounds(beliefs, scales), leaves, closest, model.version, wanted, prove=True)
    _count(model, outcome.cells, started)
    return min(outcome.bound, most), outcome.stopped


def _untested(model: Model, state: State, settings: Settings) -> bool:
    """Whether the gap would rest on estimated bounds that runs after the design have not tested enough."""
    if not state.network.estimated or model.probation.passed:
        return False
    known = settings.listed is not None and not model.noisy and state.covers(settings.listed.rows)
    return not known  # else nothing is estimated


def _differences(model: Model) -> float:
    """The largest difference of the objective between two runs, of which at least one is complete."""
    seen = model.data[:, model.judging.network.objective_column]
    return float(np.nanmax(seen) - np.nanmin(seen))


def _has_more_than_the_design(model: Model, settings: Settings) -> bool:
    """Whether there are d + 1 complete runs after the design."""
    network = model.judging.network
    seen = np.isfinite(model.data[:, network.objective_column])
    points = model.data[seen, : network.domain.dimension]
    return len(np.unique(points, axis=0)) > settings.calibration.first(network) + network.domain.dimension


def _by_ascent(model: Model, settings: Settings) -> bool:
    """Whether the bound is estimated by ascent, which can follow no general operator-valued kernel."""
    beliefs = gap_beliefs_of(model)
    if (
        beliefs.network.uncertain
        or beliefs is model.judging
        or settings.candidates is not None
        or beliefs.network.limits
    ):
        return False
    return all(stage.belief is None or stage.per_output is not None for stage in beliefs.stages)


def gap_beliefs_of(model: Model) -> Beliefs:
    """The beliefs by which the gap is judged: where kernels are estimated, not those that are tested.

    With noise, choices or steps the two are the same.
    """
    calibrated = model.calibrated
    if calibrated is None or model.noisy or not calibrated.fits:
        return model.judging
    if calibrated.network.domain.choices or calibrated.network.stepwise:
        return model.judging
    if model.gap_beliefs is None:
        model.gap_beliefs = gap_beliefs(calibrated.network, calibrated.judging, model.data, calibrated.fits)
    return model.gap_beliefs


def _reached(model: Model, state: State, settings: Settings) -> float:
    """The value from which the gap is counted, of what is maximised; −∞ if there is none."""
    if not model.noisy:
        return best_known(model, state, settings)
    run = noisy_run(model)
    return -np.inf if run is None else run.at_least


@dataclass(frozen=True, eq=False)
class _Bound:
    """An upper bound of what is maximised over the whole domain, and what stopped the search for it."""

    value: float
    stopped: str
    highest: Array | None = None  # (d,): about where it is attained, if that is known


def _bound(model: Model, state: State, settings: Settings, budget: SearchBudget | None, best: float) -> _Bound:
    """The bound for the present data; `best` is a value that is reached."""
    if state.network.uncertain:
        return _robust_bound(model, state, settings, budget, best)
    beliefs = gap_beliefs_of(model)
    if _by_ascent(model, settings):
        return _estimated_bound(model, state, settings, beliefs, best)
    # A calibrated network is judged by other beliefs than the algorithm's.
    own = bound_certifies(settings.algorithm) and not state.network.estimated
    if own and budget is None:
        suggestion = _suggestion(model, state, settings)
        if suggestion.bound is not None:
            value = _checked(suggestion.bound, model, state, settings)
            return _Bound(value, suggestion.stopped, suggestion.highest)
    started = time.monotonic()
    if settings.candidates is not None:
        if state.network.limits:
            upper = candidate_bounds(beliefs, settings.candidates, margin_scales(beliefs))[0]
        elif model.read_with_errors:
            upper = candidates_above(beliefs, settings.candidates)
        else:
            upper = Candidates.of(settings.candidates).follow(beliefs).upper(beliefs)
        _count(model, len(upper), started)
        # The value of an exact run is known, learned or not.
        exact = model.runs is not None and not model.noisy and not model.read_with_errors
        if exact and settings.listed is not None:
            upper = np.fmin(upper, state.network.sign * state.values_at(settings.listed.rows))
        value = _checked(float(upper.max()), model, state, settings)
        return _Bound(value, "every candidate", settings.candidates[int(upper.argmax())])
    leaves = _objective_tree(model.tree) if own else None
    if leaves is None:
        leaves = model.leaves or Leaves.root(state.network.domain)
    wanted = SearchBudget(settings.tolerance or 0.0, cells=_CELLS) if budget is None else budget
    bounds = (FeasibleBounds if state.network.limits else ObjectiveBounds)(beliefs, model.best_run)
    outcome = search(bounds, leaves, best, model.version, wanted, prove=True)
    if budget is None and not settings.shared:  # a tree that grows with every call does not follow from the log
        model.leaves = outcome.leaves
    _count(model, outcome.cells, started)
    highest = outcome.leaves.centre[int(outcome.leaves.bound.argmax())] if len(outcome.leaves) else None
    return _Bound(outcome.bound, outcome.stopped, highest)


def _estimated_bound(model: Model, state: State, settings: Settings, beliefs: Beliefs, best: float) -> _Bound:
    """An estimate of the bound by ascent: a search over cells that stops early would count what it did not look at."""
    run, d = model.best_run, beliefs.network.domain.dimension
    near = np.empty((0, d)) if run is None else run[None, :d]
    value, point = highest(beliefs, np.random.default_rng([_STREAM, settings.seed, state.complete]), near)
    return _Bound(max(value, best), "ascent", point)


def _suggestion(model: Model, state: State, settings: Settings) -> Suggestion:
    """What the algorithm, or the rule of steps, suggests if nothing is pending."""
    if state.stepped and state.network.stepwise:
        from cascada.study.step_choice import free_step  # steps are imported where they are used

        return free_step(model, state, settings).suggestion
    return suggest_with_nothing_pending(model, state, settings)


def _robust_bound(model: Model, state: State, settings: Settings, budget: SearchBudget | None, best: float) -> _Bound:
    """The same for the worst case over uncertain controls."""
    if budget is None and not state.network.estimated:
        suggestion = suggest_with_nothing_pending(model, state, settings)
        if suggestion.bound is not None:
            return _Bound(suggestion.bound, suggestion.stopped)
    started, deviations = time.monotonic(), Deviations.of(state.network.domain)
    leaves = model.tree if isinstance(model.tree, Leaves) and not state.network.estimated else None
    wanted = SearchBudget(settings.tolerance or 0.0, cells=_CELLS) if budget is None else budget
    bounds = RobustBounds(model.judging, deviations.corners)
    root = Leaves.root(deviations.settings) if leaves is None else leaves
    outcome = search(bounds, root, best, 2 * len(model.data) + 1, wanted, prove=True)
    _count(model, outcome.cells, started)
    return _Bound(outcome.bound, outcome.stopped)


def _objective_tree(tree: object) -> Leaves | None:
    """The leaves of the objective in what an algorithm kept."""
    return tree.objective if isinstance(tree, FeasibleTrees) else tree if isinstance(tree, Leaves) else None


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


def _floor(model: Model, point: Array | None, highest: Array | None = None) -> Floor | None:
    """What errors leave of the gap of the recommended setting at a point (d,); None if runs are exact.

    Before the first run no setting is recommended, and the point is the middle of the box. `highest`: about where the
    bound is attained.
    """
    beliefs = model.judging
    if point is None:
        point = 0.5 * (beliefs.network.domain.lower + beliefs.network.domain.upper)
    if not isinstance(beliefs, ReadBeliefs) or beliefs.network.scattered:
        return None  # with scatter the gap falls with every reading, as slowly as it may
    with suppress(StageError, ArgumentError):  # a formula is not defined at some of the possible inputs
        reached = highest is not None and floor_at(beliefs, highest).reached
        return replace(floor_at(beliefs, point), reached=reached)
    return None


def _certificate(
    model: Model,
    state: State,
    settings: Settings,
    bound: _Bound | None,
    margin: float | None = None,
    stopped: str = "no bound",
) -> Certificate:
    """The certificate for a bound of what is maximised; without one it has no gap. `margin`: see `Certificate`."""
    sign, best, candidates = state.network.sign, state.best_value, settings.candidates
    network = state.network
    if network.uncertain:
        best = -np.inf  # no run measures a worst case
        network = network.within(Deviations.of(network.domain).settings.controls)
    proven = None if bound is None else best_proven_setting(model, state, settings)
    setting, reading, floor = None, None, None
    if model.read_with_errors:
        reading, best = best, -np.inf  # the best reading is the one with the luckiest error
    reached = best if proven is None else max(best, proven.value)
    if proven is not None and proven.value > best:
        controls = named(proven.point, network, settings)
        run = _reading_at(state, controls) if model.read_with_errors else (None, None)
        setting = RecommendedSetting(controls, sign * proven.value, None, *run)
        floor = None if bound is None else _floor(model, proven.point, bound.highest)
    if not len(model.data) and not model.evidence():
        floor = _floor(model, None)
    if model.noisy:
        reading, best = best, -np.inf  # the best reading is the one with the luckiest error
        likely = None if bound is None else noisy_run(model)
        if likely is not None:
            reached = likely.at_least
            point = named(likely.point, network, settings)
            setting = RecommendedSetting(point, sign * likely.at_least, sign * likely.mean)
    observed = sum(bool(trial.outputs) for trial in state.trials)
    some = () if model.runs is None else (f"the bounds rest on {model.runs:,} of {observed:,} runs",)
    return Certificate(
        kind=model.kind,
        best=sign * best if np.isfinite(best) else None,
        bound=None if bound is None else sign * bound.value,
        gap=None if bound is None else difference_up(bound.value, reached),
        evaluations=state.complete,
        assumptions=(*assumptions(gap_beliefs_of(model)), *model.scatter, *model.enlarged, *some, *_selective(model)),
        evidence=model.evidence(),
        cells=model.cells,
        seconds=model.seconds,
        stopped=stopped if bound is None else bound.stopped,
        over="the box of controls" if candidates is None else f"the {len(candidates):,} candidates",
        maximised=sign > 0,
        missing=str(model.probation) if bound is None and _untested(model, state, settings) else "",
        corrections=state.revision,
        runs_used=model.runs,
        recommended=setting,
        best_reading=None if reading is None or not np.isfinite(reading) else sign * reading,
        limits=tuple(map(str, state.network.limits)),
        margin=margin,
        units=() if margin is None else tuple(margin_scales(model.judging).tolist()),
        floor=floor,
        confidence=settings.confidence if model.kind == "confident" else None,
        depends_on=state.network.context,
        unbounded=state.network.unbounded,
        deviations={name: state.network.domain.controls[name].deviation for name in state.network.uncertain},
    )


def _selective(model: Model) -> tuple[str, ...]:
    """Why the gap of readings with scatter is only estimated, in words."""
    reason = model.reports.selective
    return () if reason is None else (f"{reason}: bounds from scatter hold with no known probability since then",)


def _reading_at(state: State, controls: Mapping[str, ControlValue]) -> tuple[float | None, float | None]:
    """The best reading of the objective in runs at these controls, and its error; None if they are not known."""
    network = state.network
    values = [trial.value for trial in state.trials if trial.value is not None and trial.controls == controls]
    if not values:
        return None, None
    node, column = network.node(network.objective[0]), network.objective_column
    error = None  # of a formula, or of a copy
    if column in node.modelled_columns:
        position = node.modelled_columns.index(column)
        if node.stage.error_scale[position] == 0:  # a single reading with scatter has no bound of its own
            error = float(node.stage.error_bound[position])
    return max(values, key=lambda value: network.sign * value), error
