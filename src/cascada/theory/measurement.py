"""A run of GPN-UCB on a finite domain as printed in `algo:ucb`, with the regret and the posterior sds of its theorems.

Unlike a study, it may choose a point again, which adds no information but keeps the regret of later rounds small. It
needs the true values at all candidates, so it serves tests and tables only.
"""

from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array, as_points
from cascada.confidence import Boxes
from cascada.errors import ArgumentError
from cascada.network import Beliefs, Network, ball_upper, prior_beliefs
from cascada.search import Candidates, largest
from cascada.theory.layers import check_horizon
from cascada.theory.promises import layers_of


@dataclass(frozen=True, eq=False)
class Measured:
    """A run of T rounds: regrets r_t (T,), posterior sds (T, m) before each round at its inputs."""

    chosen: tuple[int, ...]
    regrets: Array
    sds: Array

    @property
    def cumulative(self) -> float:
        """R_T = Σ_t r_t. Corrected: the printed sum runs over i."""
        return float(self.regrets.sum())


def measure(network: Network, truth: Array, horizon: int, *, balls: bool = False, seed: int = 0) -> Measured:
    """Run T rounds of GPN-UCB over candidates with known values: rows (n, V) as returned by `run_values`.

    With `balls` the regions are those of multi-output chains (`eq:ucb_mul`) instead of boxes. The regret is relative to
    the best candidate.
    """
    layers_of(network)  # raises if the theorems do not apply
    values = as_points(truth, "truth", network.width)
    if not len(values):
        raise ArgumentError("truth must hold at least one candidate; got none.")
    coordinates = values[:, : network.domain.dimension]
    objective = network.sign * values[:, network.objective_column]
    rng = np.random.default_rng(seed)
    beliefs, candidates = prior_beliefs(network), Candidates.of(coordinates)
    chosen, sds = [], []
    for _ in range(check_horizon(horizon)):
        if balls:
            upper = ball_upper(beliefs, Boxes(coordinates, coordinates))
        else:
            candidates = candidates.follow(beliefs)
            upper = candidates.upper(beliefs)
        j = largest(upper, rng)
        chosen.append(j)
        sds.append(_sds(beliefs, values[j]))
        beliefs = beliefs.append(values[j : j + 1])
    regrets = objective.max() - objective[chosen]
    return Measured(tuple(chosen), regrets, np.array(sds))


def _sds(beliefs: Beliefs, row: Array) -> list[float]:
    """σ⁽ⁱ⁾_{t−1}(x⁽ⁱ⁾_t), or ‖Γ⁽ⁱ⁾_{t−1}‖₂^{1/2}, of every stage."""
    found = []
    for stage in beliefs.stages:
        assert stage.belief is not None, "layers_of rejects stages without a belief"
        found.append(float(stage.belief.posterior.predict(row[None, list(stage.node.inputs)]).sd[0]))
    return found
