"""Deliberately broken versions of what is learned from readings with errors; see `broken`."""

from functools import partial
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes, bounded_belief
from cascada.confidence.bounded_belief import BoundedBelief
from cascada.confidence.read_rows import ReadRows
from cascada.network import latent, read_beliefs, reading_evidence, run_anchors
from cascada.network.latent import Latent
from cascada.network.stage_values import computed as _computed
from tests.soundness import readings
from tests.soundness.broken import Broken, always, times

_shift, _shared = BoundedBelief.shift, Latent.shared
_around, _jointly, _bounds_from_runs = latent.around_readings, bounded_belief._jointly, run_anchors.bounds_from_runs


def _no_shift(self: BoundedBelief, places: Array, _reach: Array) -> Array:
    return np.zeros((len(places), len(self.norm_bound)))


def _as_if_exact(rows: ReadRows) -> ReadRows:
    """The rows, as narrow as if their inputs were exact."""
    smallest = rows.values.half.min(axis=0, initial=np.inf)
    return ReadRows(rows.places, Boxes(rows.middle - smallest, rows.middle + smallest), rows.numbers)


def _shift_from_below(self: BoundedBelief, places: Array, reach: Array) -> Array:
    """The most that f changes, by the belief that would be learned if it did not change."""
    if not len(self.rows):
        return np.zeros((len(places), len(self.norm_bound)))
    return _shift(BoundedBelief(self.assumption, _as_if_exact(self.rows), self.where), places, reach)


def _anchors_without_shift(self: BoundedBelief) -> tuple[Array, Boxes]:
    return self.rows.places, _as_if_exact(self.rows).values


def _exact(seen: Array, _error: Array) -> Boxes:
    return _around(seen, np.zeros(seen.shape[1]))


def _averaged(self: Latent, node: Any, groups: Any) -> Latent:
    """Repeats whose mean is taken as a reading of half the error."""
    shared, columns = _shared(self, node, groups), list(node.columns)
    many = np.bincount(groups, minlength=len(groups))[groups] > 1
    box = shared.column(columns)
    quarter = np.where(many[:, None], 0.25 * (box.upper - box.lower), 0.0)
    with np.errstate(invalid="ignore"):
        return shared.intersected(columns, Boxes(box.lower + quarter, box.upper - quarter))


def _of_readings(stage: Any, values: Latent, inputs: Boxes) -> Latent:
    """A formula with the value that was computed from readings."""
    columns = list(stage.node.columns)
    exact = _around(values.readings[:, columns], np.zeros(len(columns)))
    return _computed(stage, values, inputs).intersected(columns, exact)


def _joint_error_of_identity(assumption: Any, rows: ReadRows, weights: Array) -> Any:
    """The error of a joint norm as Σ‖δ_i‖²/λ_i, which is right for A = I only."""
    posterior, _, extra = _jointly(assumption, rows, weights)
    prior, bound = assumption.joint, assumption.joint_bound
    more = (np.sum(rows.error**2, axis=1) / (assumption.kernel.variance * posterior.noise)).sum()
    turned = rows.middle / prior.scales @ prior.eigenvectors
    white = np.linalg.solve(posterior.factor, turned) if len(rows) else turned
    left = bound**2 + more - float(((white**2).sum(axis=0) / prior.eigenvalues).sum())
    return posterior, left * prior.output_roots**2, extra


def _exact_runs(beliefs: Any, values: Latent, cells: Boxes) -> Boxes | None:
    """Run anchors at the middle of what is known of the run."""
    middle = values.values.centre
    return _bounds_from_runs(beliefs, Latent(values.network, values.readings, Boxes(middle, middle)), cells)


def _slopes_halved(beliefs: Any, cells: Boxes) -> Array:
    return 0.5 * _slopes(beliefs, cells)


_slopes = run_anchors.slopes
_chain = partial(readings.run, 12, 1, ("chain", "controls"), 1)
_every = partial(readings.run, 12, 1, ("chain", "controls", "join"), 2)

BROKEN_READINGS: tuple[Broken, ...] = (
    Broken(
        "inputs that are known within an interval are taken as exact",
        "readings",
        ((BoundedBelief, "shift", _no_shift),),
        _chain,
    ),
    Broken(
        "anchors are as narrow as the readings, although their inputs are uncertain",
        "readings",
        ((BoundedBelief, "anchors", property(_anchors_without_shift)),),
        _chain,
    ),
    Broken(
        "the change between nominal and true inputs is derived from below",
        "readings",
        ((BoundedBelief, "shift", _shift_from_below),),
        _every,
    ),
    Broken(
        "the radius does not contain the errors",
        "readings",
        ((bounded_belief, "_errors_above", lambda errors, _posterior: np.zeros(errors.shape[1])),),
        _chain,
    ),
    Broken(
        "half of the errors are missing in the radius",
        "readings",
        ((bounded_belief, "_errors_above", times(bounded_belief._errors_above, 0.5)),),
        partial(readings.run, 12, 1, ("chain", "feed-forward"), 3),
    ),
    Broken(
        "readings are taken as values, also that of the best run",
        "readings",
        ((latent, "around_readings", _exact),),
        _chain,
    ),
    Broken(
        "repeats are averaged",
        "readings",
        ((Latent, "shared", _averaged),),
        _every,
    ),
    Broken(
        "a formula of readings is taken as exact",
        "readings",
        ((read_beliefs, "computed", _of_readings), (reading_evidence, "computed", _of_readings)),
        partial(readings.run, 12, 1, ("known",), 2),
    ),
    Broken(
        "the error of a joint norm is that of independent outputs",
        "readings",
        ((bounded_belief, "_jointly", _joint_error_of_identity),),
        partial(readings.run, 12, 1, ("matrix",), 2),
    ),
    Broken(
        "the value of a run is taken as the middle of its interval",
        "readings",
        ((read_beliefs, "bounds_from_runs", _exact_runs),),
        _chain,
    ),
    Broken(
        "the slopes from a run are half of what they can be",
        "readings",
        ((run_anchors, "slopes", _slopes_halved), (readings, "slopes", _slopes_halved)),
        _every,
    ),
    Broken(
        "the values after a forwarded reading are taken as those of the setting",
        "readings",
        ((run_anchors, "of_readings", always([])),),
        partial(readings.run, 12, 1, ("chain", "controls", "join", "copies"), 4),
    ),
)
