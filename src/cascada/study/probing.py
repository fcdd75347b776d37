"""Tests of assumptions by runs: what bounds rule out, and which runs test estimated bounds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cascada.algorithms.probe import is_probe
from cascada.arrays import Array
from cascada.calibration.probation import Probation, agrees
from cascada.errors import CascadaError, RefutedError
from cascada.network import Beliefs
from cascada.network.consistency import impossible
from cascada.network.outputs import StageError
from cascada.store.trial import Trial

if TYPE_CHECKING:
    from cascada.study.model import Model


def tested(model: "Model", trial: Trial, values: Array, refuted: bool) -> Probation:
    """The test of the estimated bounds after a run (1, V) that they have not learned yet.

    `refuted`: whether the run refutes a norm bound, estimated or not.
    """
    seen = np.isfinite(model.data[:, model.network.objective_column])
    d = model.network.domain.dimension
    if len(np.unique(model.data[seen, :d], axis=0)) < model.settings.calibration.first(model.network):
        return model.probation  # the design, to which the bounds are fitted
    if refuted or not agrees(model.judging, values):
        return model.probation.contradicted()
    if trial.steps and trial.value is None:
        return model.probation  # a step tests the bounds when it completes a run
    point, after = values[:, :d], model.probation
    # A second run of a point tests nothing.
    if not np.any(np.all(model.data[:, :d] == point, axis=1)):
        run = model.best_run  # with limits, the best feasible one
        best = -np.inf if run is None else float(model.network.sign * run[model.network.objective_column])
        if model.noisy:
            best = -np.inf if model.noisy_best is None else model.noisy_best[1]
        after = after.begun(trial.number, bool(is_probe(model.judging, point, best, model.data[:, :d])[0]))
    return after if trial.value is None else after.completed(trial.number)


def beliefs_to_probe(model: "Model", pending: Sequence[Trial], best: float) -> Beliefs | None:
    """The estimated bounds, if the next run should probe them and no pending run does; else None."""
    if model.calibrated is None or model.network.unbounded or not model.probation.probe_is_due:
        return None
    d, unfinished = model.network.domain.dimension, model.probation.unfinished
    if any(unfinished.get(trial.number, False) for trial in pending):
        return None
    points = model.pending([trial for trial in pending if not trial.outputs])[:, :d]
    try:
        probing = len(points) > 0 and is_probe(model.judging, points, best, model.data[:, :d]).any()
    except CascadaError:  # the bounds are empty at one of these points: its run will show that they are wrong
        return None
    return None if probing else model.judging


def ruled_out(beliefs: Beliefs, values: Array) -> tuple[str, ...]:
    """What the assumptions rule out of a run (1, V), in words, before it is learned."""
    try:
        return impossible(beliefs, values)
    except RefutedError as error:  # no value is possible any more
        return (str(error),)
    except StageError:  # a formula is not defined at some of the possible inputs, which the run need not have
        return ()
