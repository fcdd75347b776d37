"""Shared helpers of the tests of baselines: the baselines, their scores, and situations."""

import numpy as np

from cascada.algorithms import CUCB, GPUCB, CascadedEI, ExpectedImprovement, OptimisticImprovement, Situation
from cascada.algorithms.acquisition import Scored
from cascada.arrays import Array
from cascada.network import Network, prior_beliefs

SCORED: list[Scored] = [
    CUCB(),
    OptimisticImprovement(),
    CascadedEI(samples=64),
    CascadedEI(samples=64, tables=False),
    GPUCB(),
    ExpectedImprovement(),
]


def scores(algorithm: Scored, situation: Situation, at: Array | None = None, seed: int = 0) -> Array:
    """The acquisition at the candidates, or at other points."""
    where = situation.candidates if at is None else at
    assert where is not None
    return algorithm.acquisition(situation, np.random.default_rng(seed)).score(where)


def situation_after(network: Network, data: Array, candidates: Array | None, jitter: float = 1e-10) -> Situation:
    """The situation after the runs `data` (t, V), none of which is taken."""
    seen = network.sign * data[:, network.objective_column]
    best = float(np.nanmax(seen)) if np.isfinite(seen).any() else -np.inf
    beliefs = prior_beliefs(network, jitter).append(data)
    return Situation(beliefs, data, np.empty((0, network.domain.dimension)), candidates, best, trial=len(data))
