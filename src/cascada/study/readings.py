"""Beliefs of a study from readings with bounded errors, and what they imply for its runs.

All readings are learned at once, so that the beliefs follow from the runs and not from the order in which their stages
were reported. Weights are chosen along the paths of some runs, the latest and the best: the log says where they are.
"""

import warnings
from contextlib import suppress

import numpy as np

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.network import Network, composite_mean, prior_beliefs
from cascada.network.floor import floor_at
from cascada.network.outputs import StageError
from cascada.network.read_beliefs import ReadBeliefs
from cascada.outwards import as_given

# Runs along whose paths weights are chosen: the latest, and those with the best means.
_LATEST, _BEST = 3, 3


def warn_of_errors(network: Network, tolerance: float | None, stacklevel: int = 3) -> None:
    """Issue a warning if the errors of the readings hardly allow a gap as small as the tolerance."""
    if tolerance is None or not network.read_with_errors:
        return
    beliefs, domain = prior_beliefs(network), network.domain
    assert isinstance(beliefs, ReadBeliefs), "readings have errors"
    with suppress(StageError, ArgumentError):  # a formula is not defined at the middle of the box
        floor = floor_at(beliefs, 0.5 * (domain.lower + domain.upper))
        if tolerance < floor.estimate and floor.stage is not None:
            error = network.node(floor.stage).stage.error_bound.max()
            warnings.warn(
                f"the tolerance is {as_given(tolerance)}, but ±{as_given(float(error))} on the stage {floor.stage!r} "
                f"allows a gap of about {floor.estimate:.2g} at best, as a rule. A smaller gap is not sure to be "
                f"proven: raise the tolerance, or read more exactly.",
                RuntimeWarning,
                stacklevel=stacklevel,
            )


def beliefs_from(prior: ReadBeliefs, data: Array) -> ReadBeliefs:
    """The beliefs after runs (t, V), NaN where nothing was read; evidence against the assumptions is part of them."""
    beliefs = prior.append(data)
    for point in _points(beliefs, data):
        beliefs = beliefs.refined(point)
        if beliefs.evidence:
            return beliefs
    return beliefs.relearned()


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
