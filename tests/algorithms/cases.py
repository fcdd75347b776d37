"""What the tests of baselines share: every one of them, its scores, and what it is given."""

import numpy as np

from cascada.algorithms import CUCB, GPUCB, CascadedEI, Context, ExpectedImprovement, OptimisticImprovement
from cascada.algorithms.scored import Scored
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


def scores(algorithm: Scored, context: Context, at: Array | None = None, seed: int = 0) -> Array:
    """The acquisition at the candidates, or at other points."""
    where = context.candidates if at is None else at
    assert where is not None
    return algorithm.acquisition(context, np.random.default_rng(seed)).score(where)


def given(network: Network, told: Array, candidates: Array | None, jitter: float = 1e-10) -> Context:
    """What an algorithm is given after the runs `told` (t, V), none of which is taken."""
    seen = network.sign * told[:, network.objective_column]
    best = float(np.nanmax(seen)) if np.isfinite(seen).any() else -np.inf
    beliefs = prior_beliefs(network, jitter).append(told)
    return Context(beliefs, told, np.empty((0, network.domain.dimension)), candidates, best, trial=len(told))
