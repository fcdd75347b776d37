"""Bounds of a stage over whole boxes of inputs, for many boxes at once.

For a box with centre c and half-widths h, and r = ‖h/ℓ‖, every z in it has f(z) ∈ [μ(c) ∓ (ρσ(c) + ξ)] with ξ the
smallest of three slacks:

1. modulus(h) = min(B·d_k(r), L‖h‖₂);
2. |∇μ(c)|ᵀh + ‖μ‖·R(r) + ρ·d_k(r):  μ to first order, f − μ through its norm ρ;
3. Σ_j (|∂_jμ(c)| + ρ·s_j(c))·h_j + B·R(r):  f itself to first order, s_j the posterior sd of ∂_j f.

R(r) is the kernel's first-order remainder: ≤ ½·M₂·r², and defined for every kernel with a derivative. With h = 0 this
is the pointwise confidence bound. 2 and 3 hold with ∇μ(c)·(z − c) in place of |∇μ(c)|ᵀh as well; `enclose` uses this if
it knows how z depends on the coordinates of a cell.
"""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.confidence.affine import Affine
from cascada.confidence.envelope import anchor_bounds
from cascada.confidence.regions import Boxes
from cascada.errors import ArgumentError
from cascada.gp.posterior import Jet
from cascada.gp.rounding import square_rounding

if TYPE_CHECKING:  # beliefs use these bounds
    from cascada.confidence.belief import Belief


def cell_bounds(belief: "Belief", cells: Boxes, pieces: int = 1) -> Boxes:
    """Bounds of every output over every cell, boxes in ℝ^p.

    `pieces` > 1 cuts each cell into that many parts along its longest side, measured in lengthscales, and returns the
    hull of their bounds: sharper for wide cells, at that many times the cost.
    """
    parts = [enclose(belief, part, None)[0] for part in cut(belief, cells, pieces)]
    lower, upper = np.min([part.lower for part in parts], axis=0), np.max([part.upper for part in parts], axis=0)
    return Boxes(lower, upper)


def enclose(belief: "Belief", cells: Boxes, inputs: Affine | None) -> tuple[Boxes, Affine | None]:
    """Bounds of every output over every cell, and the outputs as affine forms of the coordinates of `inputs`.

    `inputs` are the points of `cells` as affine forms, if these are known; without them only boxes are returned.
    """
    belief.check()
    _check_cells(belief, cells)
    centre, half = cells.centre, cells.half
    posterior = belief.posterior
    # Three bounds hold for any kernel: the bound at c with the modulus; the data as anchors; |f(z)| ≤ B·s.
    # Slopes matter only for cells of positive width.
    jet = posterior.jet(centre) if belief.kernel.curvature is not None and half.any() else None
    known = posterior.predict(centre) if jet is None else jet
    width = belief.radius * belief.sd_above(known.sd)[:, None] + belief.mean_error
    bounds = Boxes.around(known.mean, width + belief.modulus(half)).widened()
    bounds = bounds.intersect(anchor_bounds(belief, posterior.inputs, belief.observed, centre, half))
    prior = np.broadcast_to(belief.norm_bound * np.sqrt(belief.kernel.variance), known.mean.shape)
    bounds = bounds.intersect(Boxes(-prior, prior).widened())
    if jet is None:
        return bounds, None if inputs is None else Affine.of_boxes(bounds, inputs.slope.shape[2])

    steepness, remainder = _first_order(belief, half, jet)
    slack = np.einsum("npd,nd->np", np.abs(jet.derivative_mean), half) + remainder
    bounds = bounds.intersect(Boxes.around(jet.mean, (width + slack) * steepness).widened())
    if inputs is None:
        return bounds, None
    affine = Affine(
        centre=jet.mean + np.einsum("npd,nd->np", jet.derivative_mean, inputs.centre - centre),
        slope=jet.derivative_mean @ inputs.slope,
        error=width + np.einsum("npd,nd->np", np.abs(jet.derivative_mean), inputs.error) + remainder,
    )
    magnitude = np.abs(jet.mean) + np.einsum(
        "npd,nd->np", np.abs(jet.derivative_mean), np.abs(inputs.centre - centre) + half
    )
    affine = Affine(affine.centre, affine.slope, affine.error * steepness + (steepness - 1) * magnitude)
    return bounds.intersect(affine.hull()), affine


def _first_order(belief: "Belief", half: Array, jet: Jet) -> tuple[float, Array]:
    """A factor above 1 that covers the rounding of sums over the inputs, and slacks 2 and 3 without ∇μ, (n, p)."""
    kernel, d = belief.kernel, half.shape[1]
    remainder, factor = kernel.remainder(kernel.scaled_norm(half)), kernel.lipschitz_factor
    assert remainder is not None, "called only for kernels with a derivative"
    assert factor is not None, "called only for kernels with a derivative"
    distance = kernel.distance(kernel.scaled_norm(half))
    mean_norm = np.sqrt(belief.posterior.spent) * (1 + square_rounding(belief.posterior.count))  # ‖μ‖ ≤ ‖w‖
    # Rounding of ∂_j: as for a value, in units of its prior sd s·sqrt(−φ''(0))/ℓ_j.
    scale = factor / np.sqrt(kernel.variance) / kernel.lengthscales(d)
    rounding = belief.mean_error * (half @ scale)[:, None]
    slope_sd = np.einsum("nd,nd->n", belief.sd_above(jet.derivative_sd, scale), half)
    second = mean_norm * remainder[:, None] + belief.radius * distance[:, None]
    third = belief.radius * slope_sd[:, None] + belief.norm_bound * remainder[:, None]
    return 1 + 8 * (d + 4) * UNIT_ROUNDOFF, np.minimum(second, third) + rounding


def cut(belief: "Belief", cells: Boxes, pieces: int) -> list[Boxes]:
    """Every cell cut into equal parts that cover it, along its longest side in lengthscales."""
    if pieces == 1:
        return [cells]
    widths = (cells.upper - cells.lower) / belief.kernel.lengthscales(cells.lower.shape[1])
    rows, side = np.arange(len(widths)), widths.argmax(axis=1)
    ends = np.linspace(cells.lower[rows, side], cells.upper[rows, side], pieces + 1)  # (pieces + 1, n)
    parts = []
    for low, high in pairwise(ends):
        lower, upper = cells.lower.copy(), cells.upper.copy()
        lower[rows, side], upper[rows, side] = low, high
        parts.append(Boxes(lower, upper))
    return parts


def _check_cells(belief: "Belief", cells: Boxes) -> None:
    if cells.lower.shape[1] != belief.posterior.dimension:
        raise ArgumentError(
            f"cells must have {belief.posterior.dimension} dimensions, as the inputs of the stage; "
            f"got {cells.lower.shape[1]}."
        )
    if np.any(cells.empty):
        raise ArgumentError("cells must not be empty: a lower end lies above its upper end.")
