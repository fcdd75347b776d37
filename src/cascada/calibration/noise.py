"""The estimated noise of calibrated beliefs."""

import numpy as np

from cascada.arrays import Array
from cascada.network import Beliefs, StageBelief


def noise_sd(stage: StageBelief) -> float:
    """The sd of the noise of a part with one output; 0 without noise."""
    belief = stage.per_output
    if not stage.node.stage.noisy or belief is None:
        return 0.0
    return float(np.sqrt(belief.posterior.jitter * belief.kernel.variance))


def noise_sds(beliefs: Beliefs) -> Array:
    """The sd of the noise of every column, (V,)."""
    found = np.zeros(beliefs.network.width)
    for stage in beliefs.stages:
        found[list(stage.node.columns)] = noise_sd(stage)
    return found
