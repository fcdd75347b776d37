"""Bounds of a stage's slopes over whole boxes of inputs."""

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.confidence.belief import Belief
from cascada.confidence.jet_bounds import jet_bounds
from cascada.confidence.regions import Boxes


def steepness(belief: Belief, cells: Boxes) -> Array:
    """The most that every output changes per unit of every input over the cells, (n, p, d), rounded up.

    |∂_j f| is at most its bound at the centre plus B·M₂·r/ℓ_j, and at most B times the prior sd of ∂_j f. Without
    slopes (Matérn with ν ≤ 1) it is L; it is infinite if there is none.
    """
    centre, half = cells.centre, cells.half
    (n, d), p, kernel = centre.shape, len(belief.norm_bound), belief.kernel
    if kernel.curvature is None:
        bound = np.full((n, p, d), np.inf)
    else:
        bound = np.full((n, p, d), belief.largest_values[:, None] * belief.derivative_scales)
        second = kernel.second_order_factor
        if second is not None and n:
            bend = second * kernel.scaled_norm(half)[:, None] / kernel.lengthscales(d)
            at_centre = jet_bounds(belief, centre, slopes=True).steepest
            bound = np.minimum(bound, at_centre + belief.norm_bound[:, None] * bend[:, None, :])
    if belief.lipschitz is not None:
        bound = np.minimum(bound, belief.lipschitz[:, None])
    return bound * (1 + 8 * (d + 8) * UNIT_ROUNDOFF)
