"""Bounds of a stage over whole boxes of inputs, many boxes at once.

For a box with centre c and half-widths h, and r = ‖h/ℓ‖, every z in it has f(z) ∈ [μ(c) ∓ (ρσ(c) + ξ)] with ξ the
smallest of three slacks (`_slack`). With h = 0 this is the pointwise confidence bound.
"""

from itertools import pairwise

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.confidence.belief import Belief
from cascada.confidence.envelope import anchor_bounds
from cascada.confidence.regions import Boxes
from cascada.errors import ArgumentError


def cell_bounds(belief: Belief, cells: Boxes, pieces: int = 1) -> Boxes:
    """Bounds of every output over every cell, boxes in ℝ^p.

    `pieces` > 1 cuts each cell into that many parts along its longest side, measured in lengthscales, and returns the
    hull of their bounds: sharper for wide cells, at that many times the cost.
    """
    belief.check()
    if cells.lower.shape[1] != belief.posterior.dimension:
        raise ArgumentError(
            f"cells must have {belief.posterior.dimension} dimensions, as the inputs of the stage; "
            f"got {cells.lower.shape[1]}."
        )
    if np.any(cells.empty):
        raise ArgumentError("cells must not be empty: a lower end lies above its upper end.")
    if pieces > 1:
        parts = [_one_piece(belief, part) for part in _cut(belief, cells, pieces)]
        lower = np.min([part.lower for part in parts], axis=0)
        upper = np.max([part.upper for part in parts], axis=0)
        return Boxes(lower, upper)
    return _one_piece(belief, cells)


def _one_piece(belief: Belief, cells: Boxes) -> Boxes:
    centre, half = cells.centre, cells.half
    posterior, kernel = belief.posterior, belief.kernel
    if kernel.curvature is None:
        prediction = posterior.predict(centre)
        mean, sd = prediction.mean, prediction.sd
        slack = belief.modulus(half)
    else:
        jet = posterior.jet(centre)
        mean, sd = jet.mean, jet.sd
        slack = _slack(belief, half, jet.derivative_mean, jet.derivative_sd)
    width = belief.radius * belief.sd_above(sd)[:, None] + belief.mean_error + slack
    around_centre = Boxes(mean - width, mean + width).widened()
    outputs = Boxes(posterior.outputs, posterior.outputs)
    around_data = anchor_bounds(belief, posterior.inputs, outputs, centre, half)
    prior = np.broadcast_to(belief.norm_bound * np.sqrt(kernel.variance), mean.shape)  # |f(z)| ≤ B·s
    return around_centre.intersect(around_data).intersect(Boxes(-prior, prior).widened())


def _slack(belief: Belief, half: Array, derivative_mean: Array, derivative_sd: Array) -> Array:
    """ξ (n, p): how far f may move from c to any point of the cell.

    1. modulus(h);
    2. |∇μ(c)|ᵀh + ‖μ‖·R(r) + ρ·d_k(r):  μ to first order, f − μ through its norm ρ;
    3. Σ_j (|∂_jμ(c)| + ρ·s_j(c))·h_j + B·R(r):  f itself to first order, s_j the posterior sd of ∂_j f.

    R(r) is the kernel's first-order remainder: ≤ ½·M₂·r², and defined for every kernel with a derivative.
    """
    kernel = belief.kernel
    r = kernel.scaled_norm(half)
    remainder, distance = kernel.remainder(r), kernel.distance(r)
    assert remainder is not None, "called only for kernels with a derivative"
    rho, spent = belief.radius, np.minimum(belief.posterior.spent, belief.norm_bound**2)
    # Rounding of ∂_j: as for a value, in units of its prior sd s·sqrt(−φ''(0))/ℓ_j.
    factor = kernel.lipschitz_factor / np.sqrt(kernel.variance) / kernel.lengthscales(half.shape[1])
    slope = np.abs(derivative_mean) + belief.mean_error[:, None] * factor  # (n, p, d)
    slope_sd = belief.sd_above(derivative_sd, factor)  # (n, d)
    first = np.einsum("npd,nd->np", slope, half)
    second = first + np.sqrt(spent) * remainder[:, None] + rho * distance[:, None]
    third = first + rho * np.einsum("nd,nd->n", slope_sd, half)[:, None] + belief.norm_bound * remainder[:, None]
    return np.minimum(belief.modulus(half), np.minimum(second, third) * (1 + 4 * (half.shape[1] + 4) * UNIT_ROUNDOFF))


def _cut(belief: Belief, cells: Boxes, pieces: int) -> list[Boxes]:
    """Every cell cut into equal parts that cover it, along its longest side in lengthscales."""
    widths = (cells.upper - cells.lower) / belief.kernel.lengthscales(cells.lower.shape[1])
    rows, side = np.arange(len(widths)), widths.argmax(axis=1)
    ends = np.linspace(cells.lower[rows, side], cells.upper[rows, side], pieces + 1)  # (pieces + 1, n)
    parts = []
    for low, high in pairwise(ends):
        lower, upper = cells.lower.copy(), cells.upper.copy()
        lower[rows, side], upper[rows, side] = low, high
        parts.append(Boxes(lower, upper))
    return parts
