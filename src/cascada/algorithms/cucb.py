"""cUCB (cascaded UCB, a baseline of `sec:exp`): the composite mean plus B times the composite sd of `eq:kusa_sig`.

The paper defines it for chains. The natural extension to any network: σ̃ of an output is its stage's σ at the means of
its inputs plus L times the ℓ2 norm of the σ̃ of its parents, and every stage's own B multiplies its σ. The source
assumes stages that are Lipschitz in ℓ1; here, as everywhere, L is for ℓ2.
"""

from dataclasses import dataclass

import numpy as np

from cascada.algorithms.acquisition import Acquisition, Scored
from cascada.algorithms.algorithm import Situation
from cascada.algorithms.grey_box import GreyBox


@dataclass(frozen=True)
class CUCB(Scored):
    """argmax μ̃_{t−1}(x) + B·σ̃_{t−1}(x)."""

    def acquisition(self, situation: Situation, rng: np.random.Generator) -> Acquisition:  # noqa: ARG002
        """UCB_{t−1}."""
        grey = GreyBox.of(situation)
        return Acquisition(lambda points: grey.at(points).upper, grey.kept(situation))
