"""The recommended setting of a study with noise: the run with the best composite mean."""

from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.network import enclose_network
from cascada.study.model import Model


@dataclass(frozen=True)
class NoisyRun:
    """The point (d,) of a run, and of what is maximised there the estimated mean and lower bound."""

    point: Array
    mean: float
    at_least: float


def noisy_run(model: Model) -> NoisyRun | None:
    """The run with the best composite mean; None before the first complete run.

    Its mean is that of the beliefs by which points are chosen, its lower bound that of the gap's: the latter may be the
    larger one by chance. Raises `RefutedError` if a stage has no possible value.
    """
    best = model.noisy_best
    if best is None:
        return None
    point, mean = best
    network = model.judging.network
    box = enclose_network(model.judging, Boxes(point[None], point[None])).boxes
    column = network.objective_column
    low = box.lower[0, column] if network.sign > 0 else -box.upper[0, column]
    return NoisyRun(point, mean, float(np.minimum(low, mean)))
