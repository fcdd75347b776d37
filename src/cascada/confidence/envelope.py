"""Confidence bounds sharpened by Lipschitz continuity, over chosen anchors (`eq:ucb_i`, `eq:lcb_i`, `eq:ucb_ij_bar`).

The paper minimises over all z'. A minimum over fewer anchors is larger, hence still an upper bound. The anchors are the
data with their exact values, z itself, and any further points of the caller.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array, as_points
from cascada.confidence.regions import Boxes

if TYPE_CHECKING:  # belief.py imports this module
    from cascada.confidence.belief import Belief

# Queries are processed in blocks whose (n, anchors, d) differences have about this many entries.
_BLOCK_ENTRIES = 1 << 21


def envelope(belief: "Belief", Z: ArrayLike, anchors: ArrayLike | None = None) -> Boxes:
    """Lower and upper bounds of every output at the rows of Z, boxes in ℝ^p."""
    points = as_points(Z, "Z", belief.posterior.dimension)
    own = belief.bounds(points)  # z' = z
    places, values = belief.anchors  # exact, where σ would be up to sqrt(λ)
    if anchors is not None:
        further = as_points(anchors, "anchors", belief.posterior.dimension)
        extra = belief.bounds(further)
        places = np.concatenate([places, further])
        values = Boxes(np.concatenate([values.lower, extra.lower]), np.concatenate([values.upper, extra.upper]))
    return own.intersect(anchor_bounds(belief, places, values, points, np.zeros_like(points)))


def anchor_bounds(belief: "Belief", places: Array, values: Boxes, centre: Array, half: Array) -> Boxes:
    """Bounds from anchors: f_j(z) ≤ upper_s + (how far f can rise from place s to the cell's farthest corner).

    `places` (a, d) with bounds `values` of f there; cells by centre and half-width (n, d). Boxes in ℝ^p.
    """
    n, d, p = len(centre), centre.shape[1], belief.posterior.output_count
    lower, upper = np.full((n, p), -np.inf), np.full((n, p), np.inf)
    size = max(1, _BLOCK_ENTRIES // max(1, len(places) * max(d, p)))
    for i in range(0, n if len(places) else 0, size):
        block = slice(i, i + size)
        # Stored with the coordinates first: NumPy is fast along a long last axis only.
        farthest = np.abs(np.subtract(centre[block].T[:, :, None], places.T[:, None, :], order="C"))
        farthest += half[block].T[:, :, None]
        change = belief.modulus(farthest.transpose(1, 2, 0))  # (n, a, p)
        upper[block] = (values.upper + change).min(axis=1)  # eq:ucb_i
        lower[block] = (values.lower - change).max(axis=1)  # eq:lcb_i
    return Boxes(lower, upper).widened()
