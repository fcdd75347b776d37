"""OI (optimistic improvement, a baseline of `sec:exp`), with the bounds of cUCB and their extension to any network.

Corrected: the rule is printed as the argmax of a set of two terms; it is the argmax of the larger of them. η_{t−1} at
t = 1 would take the logarithm of 0, so η is used at max(t − 1, 1).
"""

import math
from dataclasses import dataclass

import numpy as np

from cascada.algorithms.acquisition import Acquisition, Scored, near_best
from cascada.algorithms.algorithm import Situation
from cascada.algorithms.grey_box import GreyBox
from cascada.arrays import Array, as_positive
from cascada.search import best_in_box


@dataclass(frozen=True)
class OptimisticImprovement(Scored):
    """argmax max{UCB_{t−1}(x) − max LCB_{t−1}, η_{t−1}·σ̃_{t−1}(x)} with η_t = b/(1 + log t)."""

    b: float = 1.0

    def __post_init__(self) -> None:
        if self.b != 0:  # 0 removes the second term, which leaves the choice of cUCB
            as_positive(self.b, "b")

    def eta(self, trial: int) -> float:
        """η_{t−1} for the choice of point t = trial + 1."""
        return self.b / (1.0 + math.log(max(trial, 1)))

    def acquisition(self, situation: Situation, rng: np.random.Generator) -> Acquisition:
        """The improvement over the largest lower bound, or η·σ̃ if that is larger."""
        grey = GreyBox.of(situation)
        if situation.candidates is not None:
            surest = float(grey.at(situation.candidates).lower.max())
        else:  # over the box: a local search
            found = best_in_box(lambda points: grey.at(points).lower, situation.domain, rng, near_best(situation))
            surest = float(grey.at(found[0][None]).lower[0])

        def score(points: Array) -> Array:
            spread = grey.at(points)
            return np.maximum(spread.upper - surest, self.eta(situation.trial) * spread.sd)

        return Acquisition(score, grey.kept(situation))
