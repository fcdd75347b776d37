"""cEI (cascaded expected improvement, a baseline of `sec:exp`): expected improvement by samples of the whole network.

A sample draws each stage at the drawn outputs of its parents (`network.sampling`), which extends the definition from
chains to any network. All points share the draws. For chains of scalar stages the samples are read from tables
(`network.chain_sampling`), each stage's mean to 4e-11 of its norm and variance to 3e-10 of the kernel's.

With limits an improvement counts in the samples in which they hold. As long as no feasible run is known, the score is
the probability that they hold.
"""

from dataclasses import dataclass

import numpy as np

from cascada.algorithms.acquisition import Acquisition, Scored
from cascada.algorithms.algorithm import Situation
from cascada.algorithms.demands import Demands
from cascada.algorithms.grey_box import GreyBox
from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.gp import Prediction
from cascada.network.chain_sampling import ChainSampler, is_scalar_chain
from cascada.network.sampling import feasibility, improvement, standard_draws

# Starts of a search in a box are chosen with this many of the samples.
_SCREENED_BY = 64


@dataclass(frozen=True)
class CascadedEI(Scored):
    """argmax of the mean over `samples` samples of max{g(x) − y_max, 0}.

    `tables` allows the shortcut for chains; without it every sample is computed from the posteriors themselves.
    """

    samples: int = 1000
    tables: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.samples, bool) or not isinstance(self.samples, int | np.integer) or self.samples < 1:
            raise ArgumentError(f"samples must be a whole number of at least 1; got {self.samples!r}.")

    def acquisition(self, situation: Situation, rng: np.random.Generator) -> Acquisition:
        """The estimate of cEI_{t−1}."""
        grey = GreyBox.of(situation)
        # A separate generator, so that ties are broken as for every other algorithm.
        draws = standard_draws(grey.beliefs, self.samples, rng.spawn(1)[0])
        best, demands = situation.best, Demands.of(situation)

        def score(points: Array) -> Array:
            return self._improvement(grey, points, draws, best, demands)

        def screen(points: Array) -> Array:
            return self._improvement(grey, points, draws[:_SCREENED_BY], best, demands)

        return Acquisition(score, grey.kept(situation), screen)

    def _improvement(self, grey: GreyBox, points: Array, draws: Array, best: float, demands: Demands | None) -> Array:
        tracked = grey.tracked if grey.are_candidates(points) else {}
        if demands is not None:
            if np.isinf(best):
                return feasibility(grey.beliefs, points, draws, demands.units, tracked, demands.risk)
            return improvement(grey.beliefs, points, draws, best, tracked, demands.risk)
        if self.tables and np.isfinite(best) and is_scalar_chain(grey.beliefs):
            sampler = ChainSampler.of(grey.beliefs, tracked.get(0) or _first(grey, points), draws)
            if sampler is not None:
                return sampler.improvement(best)
        return improvement(grey.beliefs, points, draws, best, tracked)


def _first(grey: GreyBox, points: Array) -> Prediction:
    """The first stage of a chain at points (n, d)."""
    stage = grey.beliefs.stages[0]
    belief = stage.per_output
    assert belief is not None, "a scalar chain's stages have independent outputs"
    return belief.posterior.predict(points[:, list(stage.node.inputs)])
