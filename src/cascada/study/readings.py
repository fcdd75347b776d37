"""Beliefs of a study from readings with bounded errors, and what they imply for its runs.

All readings are learned at once, so that the beliefs follow from the runs and not from the order in which their stages
were reported. Weights are chosen along the paths of some runs, the latest and the best: the log says where they are.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.network import Beliefs, Network, composite_mean, prior_beliefs
from cascada.network.floor import floor_at
from cascada.network.outputs import StageError
from cascada.network.read_beliefs import ReadBeliefs
from cascada.network.scatter_beliefs import Nominal, ScatterBeliefs
from cascada.outwards import as_given
from cascada.study.caller_warning import warn_caller

# Runs along whose paths weights are chosen: the latest, and those with the best means.
_LATEST, _BEST = 3, 3


def warn_of_errors(network: Network, tolerance: float | None) -> None:
    """Issue a warning if the errors of the readings hardly allow a gap as small as the tolerance."""
    if tolerance is None or not network.read_with_errors:
        return
    beliefs, domain = prior_beliefs(network), network.domain
    assert isinstance(beliefs, ReadBeliefs), "readings have errors"
    with suppress(StageError, ArgumentError):  # a formula is not defined at the middle of the box
        floor = floor_at(beliefs, 0.5 * (domain.lower + domain.upper))
        if tolerance < floor.estimate and floor.stage is not None:
            error = network.node(floor.stage).stage.error_bound.max()
            warn_caller(
                f"the tolerance is {as_given(tolerance)}, but ±{as_given(float(error))} on the stage {floor.stage!r} "
                f"allows a gap of about {floor.estimate:.2g} at best, as a rule. A smaller gap is not sure to be "
                f"proven: raise the tolerance, or read more exactly."
            )


@dataclass(frozen=True, eq=False)
class Reports:
    """What was reported of readings with scatter, in its order: an average depends on it, unlike bounded errors."""

    entries: tuple[tuple[int, Array], ...] = ()  # trials, and rows (V,) of what was reported of them so far
    nominal: Mapping[int, Nominal] = field(default_factory=dict)  # see `State.nominal`
    selective: str | None = None  # see `State.selective`

    def after(self, numbers: Sequence[int], rows: Array) -> "Reports":
        """With more reports of trials, (n, V)."""
        return replace(self, entries=(*self.entries, *zip(numbers, rows, strict=True)))


def beliefs_from(
    prior: ReadBeliefs, data: Array, reports: Reports, alone: Sequence[tuple[int, Array]] = ()
) -> ReadBeliefs:
    """The beliefs after runs (t, V), NaN where nothing was read; evidence against the assumptions is part of them.

    `alone` are readings of single stages: see `Beliefs.append_to`.

    With scatter they follow from the reports, of which the data are the last ones.
    """
    if isinstance(prior, ScatterBeliefs):
        numbers = [number for number, _ in reports.entries]
        rows = np.array([row for _, row in reports.entries]).reshape(-1, prior.network.width)
        nominal = [reports.nominal.get(number, {}) for number in numbers]
        beliefs: ReadBeliefs = prior.append(rows, runs=numbers, nominal=nominal)
    else:
        beliefs = prior.append(data)
        for position, row in alone:
            beliefs = beliefs.append_to(position, row[None])
    for point in _points(beliefs, data):
        beliefs = beliefs.refined(point)
        if beliefs.evidence:
            return beliefs
    return beliefs.relearned()


def nominal_inputs(beliefs: Beliefs, row: Array, number: int) -> dict[str, tuple[float, ...]]:
    """The nominal inputs of stages with scatter of which a row (V,) of a trial has readings that were not learned."""
    return beliefs.nominal_inputs(row, number) if isinstance(beliefs, ScatterBeliefs) else {}


def _points(beliefs: ReadBeliefs, data: Array) -> list[Array]:
    """The points (d,) of the latest runs and of those with the best means, the most important last."""
    network, d = beliefs.network, beliefs.network.domain.dimension
    complete = data[np.isfinite(data[:, network.objective_column]), :d]
    if beliefs.evidence or not len(complete):
        return []
    means = network.sign * composite_mean(beliefs, complete)[:, network.objective_column]
    best = np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable")[:_BEST]
    chosen = [*range(max(len(complete) - _LATEST, 0), len(complete)), *best[::-1].tolist()]
    unique = list(dict.fromkeys(complete[i].tobytes() for i in reversed(chosen)))
    return [np.frombuffer(key, dtype=np.float64) for key in reversed(unique)]
