"""Radius of the confidence band, in posterior sds."""

import numpy as np

from cascada.arrays import Array
from cascada.gp.rounding import square_rounding


def tight_radius(budget: Array, spent: Array, count: int) -> Array:
    """ρ_t = sqrt(B² − yᵀ(K_t + λI)⁻¹y), rounded up: |f(x) − μ_t(x)| ≤ ρ_t·σ_t(x) for every f with f(X) = y, ‖f‖ ≤ B.

    No smaller multiple of σ_t holds for all such f as λ → 0. It is at most the paper's B (`lem:conf`), which is also
    valid, and shrinks as the data use up B². It is 0 if the data refute B. `budget` is B², or slightly more where
    outputs are exact only to their last digit.
    """
    left = budget - (1.0 - square_rounding(count)) * spent
    return np.sqrt(np.maximum(left, 0.0)) * (1.0 + square_rounding(0))
