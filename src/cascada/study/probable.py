"""The probable gap: how much better than the best run the process could be, by processes drawn from the runs.

Where kernels or norms are estimated nothing is proven, and the estimated gap is a worst case over all that the bounds
allow. The probable gap is a quantile instead: each of S processes drawn from the runs is maximised, and the gap is the
order statistic of their gains that is at least the quantile with a confidence of 95 %. It is a statement beside the
certificate, never its kind. It holds if the stages are elsewhere as they are where they were run.
"""

import math

import numpy as np

from cascada.calibration.drawable import check_probable
from cascada.calibration.process_draws import EACH, KERNELS, process_draws
from cascada.calibration.widening import spread_out
from cascada.errors import ArgumentError
from cascada.search.drawn_maxima import drawn_maxima
from cascada.study.advisor import named
from cascada.study.model import Model
from cascada.study.probable_gap import LEVEL, ProbableGap
from cascada.study.settings import Settings
from cascada.study.state import State

_LEAST_LEVEL = 0.5
_CONFIDENCE = 0.95
# No gap is below this part of the spread of the objective: kinks and the jitter are not modelled any finer.
_FLOOR = 1e-3
# Runs within this part of the box count once for that spread, because most of them crowd at the best one.
_CROWD = 0.02
# Keeps the random numbers of the draws apart from those of the algorithm.
_STREAM = 0xD2A35


def probable_gap(model: Model, state: State, settings: Settings, level: float, seed: int) -> ProbableGap:
    """The probable gap for the present data, computed once for each level and seed."""
    check_probable(state.network)
    _check(level, seed)
    key = level, seed
    if key not in model.probable:
        model.probable = {**model.probable, key: _probable_gap(model, state, settings, level, seed)}
    return model.probable[key]


def _probable_gap(model: Model, state: State, settings: Settings, level: float, seed: int) -> ProbableGap:
    network, run = state.network, model.best_run
    limits = tuple(map(str, network.limits))
    missing = _missing(model, state, settings)
    if missing:
        return ProbableGap(None, level, None, state.complete, missing=missing, limits=limits)
    assert model.calibrated is not None, "checked: some stage is estimated"
    assert run is not None, "something is missing without a best run"
    rng, d = np.random.default_rng([_STREAM, seed]), network.domain.dimension
    data, column = model.data, network.objective_column
    complete = np.isfinite(data[:, column])
    process, widened = process_draws(model.calibrated.network, data, model.calibrated.fits, rng)
    found = drawn_maxima(process, KERNELS * EACH, run[:d], data[complete, :d], rng, settings.candidates)
    best = network.sign * float(run[column])
    gains = np.maximum(found.highest - np.minimum(best, found.reached), 0.0)
    top = int(gains.argmax())
    crowd = spread_out(data[complete, :d] / network.domain.sides, _CROWD)
    floor = _FLOOR * float(data[complete][crowd, column].std())
    ordered = np.sort(gains)
    return ProbableGap(
        gap=max(float(ordered[_rank(len(ordered), level)]), floor),
        level=level,
        best=network.sign * best,
        evaluations=state.complete,
        gains=tuple(ordered.tolist()),
        controls=named(found.points[top], network, settings) if gains[top] > 0 else None,
        widened=widened,
        limits=limits,
    )


def _missing(model: Model, state: State, settings: Settings) -> str:
    """What a probable gap still lacks, in words; empty if nothing."""
    if model.noisy:
        return "runs are not exact"
    if model.kind == "refuted":
        return "the data refute an assumption"
    d, column = state.network.domain.dimension, state.network.objective_column
    complete = model.data[np.isfinite(model.data[:, column])]
    count = len(np.unique(complete[:, :d], axis=0))
    needed = settings.calibration.first(state.network) + d + 1
    if count < needed and not _exhausted(state, settings):
        return f"it takes {needed} complete runs at different settings, and there are {count}"
    if model.best_run is None:
        return "no run satisfies the limits" if state.network.limits else "no run is complete"
    return ""


def _exhausted(state: State, settings: Settings) -> bool:
    """Whether every candidate was run: then nothing is left to be drawn."""
    return settings.listed is not None and state.covers(settings.listed.rows)


def _rank(count: int, level: float) -> int:
    """The index of the order statistic that is at least the `level` quantile with a confidence of 95 % (Wilks).

    The r-th smallest of n is at least the quantile p with probability P(Bin(n, p) < r). For the largest level that is
    allowed it is the largest of 64.
    """
    below = 0.0
    for r in range(count):
        below += math.comb(count, r) * level**r * (1 - level) ** (count - r)
        if below >= _CONFIDENCE:
            return r
    return count - 1


def _check(level: object, seed: object) -> None:
    """Raise `ArgumentError` if level or seed is invalid."""
    number = isinstance(level, int | float | np.number) and not isinstance(level, bool)
    if not number or not _LEAST_LEVEL <= float(level) <= LEVEL:  # type: ignore[arg-type]
        raise ArgumentError(
            f"level must be a number between {_LEAST_LEVEL} and {LEVEL}, because {KERNELS * EACH} drawn processes "
            f"support no higher one; got {level!r:.100}."
        )
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ArgumentError(f"seed must be a whole number of at least 0; got {seed!r:.100}.")
