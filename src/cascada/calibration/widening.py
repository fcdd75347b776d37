"""How much wider than its kernel says an output should be drawn, judged by runs that the others predict.

Runs next to each other predict each other well, whatever the rest of the box is like. So each run is predicted from all
runs but its neighbours, as a place where no run was: y_i − μ_{−B}(x_i) = [((K⁻¹)_BB)⁻¹(K⁻¹y)_B]_i with the variance
[((K⁻¹)_BB)⁻¹]_ii, for a block B of run i and its neighbours.
"""

import math
from collections.abc import Sequence

import numpy as np

from cascada.arrays import Array, IntArray

#: Neighbours are runs within these distances, in ranges of the inputs.
RADII = (0.02, 0.1)


def neighbourhoods(inputs: Array, ranges: Array) -> list[IntArray]:
    """For some of the inputs (t, d), which stand for all, each with its neighbours: their indices, itself first."""
    found = []
    scaled = inputs / ranges
    for radius in RADII:
        for i in spread_out(scaled, radius):
            near = np.flatnonzero(np.linalg.norm(scaled - scaled[i], axis=1) <= radius)
            if len(near) < len(inputs):
                found.append(np.concatenate([[i], near[near != i]]))
    return found


def spread_out(scaled: Array, radius: float) -> list[int]:
    """The indices of rows (t, d) that are farther than a radius from all earlier ones of them."""
    kept: list[int] = []
    for i, row in enumerate(scaled):
        if not kept or (np.linalg.norm(scaled[kept] - row, axis=1) > radius).all():
            kept.append(i)
    return kept


def widening(inverse: Array, rest: Array, blocks: Sequence[IntArray]) -> float:
    """A factor of at least 1 of the sd, from (K + λs²I)⁻¹ (t, t) and outputs minus mean (t,).

    The largest of n normal numbers is about sqrt(2 ln n). If the largest residual in sds is more, the factor is the
    ratio.
    """
    alpha, away = inverse @ rest, []
    for block in blocks:
        cov = np.linalg.inv(inverse[np.ix_(block, block)])
        away.append(abs(float(cov[0] @ alpha[block])) / math.sqrt(max(float(cov[0, 0]), 1e-300)))
    expected = math.sqrt(2 * math.log(max(len(away), 2)) + 1.0)
    return max(1.0, max(away, default=0.0) / expected)
