"""Bounds of a stage over whole boxes of inputs, for many boxes at once.

For a box with centre c and half-widths h, and r = ‖h/ℓ‖, every z in it has f(z) ∈ [μ(c) ∓ (ρσ(c) + ξ)] with ξ the
smallest of three slacks:

1. modulus(h) = min(B·d_k(r), L‖h‖₂);
2. |∇μ(c)|ᵀh + ‖μ‖·R(r) + ρ·d_k(r):  μ to first order, f − μ through its norm ρ;
3. Σ_j (|∂_jμ(c)| + ρ·s_j(c))·h_j + B·R(r):  f itself to first order, s_j the posterior sd of ∂_j f.

R(r) is the kernel's first-order remainder: ≤ ½·M₂·r², and defined for every kernel with a derivative. With h = 0 this
is the pointwise confidence bound. 2 and 3 hold with ∇μ(c)·(z − c) in place of |∇μ(c)|ᵀh as well; `enclose` uses this if
it knows how z depends on the coordinates of a cell.

A belief from readings with errors has several fits. The bounds of values and slopes at c are then the intersections of
those of all fits (`jet_bounds`), with slacks 1 and 3; slack 2 belongs to the mean of a single fit.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array, IntArray
from cascada.confidence.affine import Affine
from cascada.confidence.envelope import anchor_bounds
from cascada.confidence.jet_bounds import jet_bounds
from cascada.confidence.regions import Boxes
from cascada.errors import ArgumentError
from cascada.gp.posterior import Jet

if TYPE_CHECKING:  # beliefs use these bounds
    from cascada.confidence.belief import Belief

# In cells of a smaller half-diagonal, in lengthscales, anchors are of no use: in searches with the squared exponential
# kernel one in a thousand bounds below 0.1 was improved by them, one in five above 0.3.
_NARROW = 0.1
# They are of use at data: there σ is up to sqrt(λ)·s, and their error is 0. Near data σ is below this many sqrt(λ)·s.
_NEAR_DATA = 100.0


def cell_bounds(belief: "Belief", cells: Boxes, pieces: int = 1) -> Boxes:
    """Bounds of every output over every cell, boxes in ℝ^p.

    `pieces` > 1 cuts each cell into that many parts along its longest side, measured in lengthscales, and returns the
    hull of their bounds: sharper for wide cells, at that many times the cost.
    """
    parts = [enclose(belief, part, None)[0] for part in _cut(belief, cells, pieces)]
    lower, upper = np.min([part.lower for part in parts], axis=0), np.max([part.upper for part in parts], axis=0)
    return Boxes(lower, upper)


def enclose(
    belief: "Belief", cells: Boxes, inputs: Affine | None, wide: float | None = None
) -> tuple[Boxes, Affine | None]:
    """Bounds of every output over every cell, and the outputs as affine forms of the coordinates of `inputs`.

    `inputs` are the points of `cells` as affine forms, if these are known; without them only boxes are returned. A cell
    with a half-diagonal of more than `wide` lengthscales is bounded by the union of its quarters as well.
    """
    belief.check()
    _check_cells(belief, cells)
    n, parted = len(cells.lower), np.empty(0, dtype=np.int64)
    if wide is not None:
        parted = np.flatnonzero(belief.kernel.scaled_norm(cells.half) > wide)
    if not len(parted):
        about = _around_centres(belief, cells)
        bounds = about.bounds
    else:  # the quarters in one pass with the cells: every NumPy call counts
        quarters = _quarters(belief, cells, parted)
        every = Boxes(np.concatenate([cells.lower, quarters.lower]), np.concatenate([cells.upper, quarters.upper]))
        about = _around_centres(belief, every)
        lower, upper = about.bounds.lower, about.bounds.upper
        lowest = lower[n:].reshape(4, len(parted), -1).min(axis=0)
        highest = upper[n:].reshape(4, len(parted), -1).max(axis=0)
        lower[parted], upper[parted] = np.maximum(lower[parted], lowest), np.minimum(upper[parted], highest)
        bounds = Boxes(lower[:n], upper[:n])
    if inputs is None:
        return bounds, None
    if about.slope is None:
        return bounds, Affine.of_boxes(bounds, inputs.slope.shape[2])
    affine = about.affine(inputs)
    return bounds.intersect(affine.hull()), affine


@dataclass(frozen=True, eq=False)
class _AroundCentres:
    """Bounds over cells, and what they were computed from at the centres of the cells."""

    bounds: Boxes
    centre: Array  # (n, d)
    half: Array  # (n, d)
    mean: Array  # μ, (n, p)
    slope: Array | None  # ∇μ, (n, p, d); None for kernels without a derivative, and for cells that are points
    width: Array  # ρσ, (n, p)
    remainder: Array  # slacks 2 and 3 without ∇μ, (n, p)

    def affine(self, inputs: Affine) -> Affine:
        """The outputs over the first cells, whose points are `inputs`, as affine forms of the same coordinates."""
        assert self.slope is not None, "asked only where slopes are known"
        n, d = inputs.centre.shape
        slope, mean = self.slope[:n], self.mean[:n]
        shift, steepness = inputs.centre - self.centre[:n], _sum_rounding(d)
        # |∇μ| times the errors of the inputs, and times all that it is multiplied with, in one product.
        factors = np.stack([inputs.error, np.abs(shift) + self.half[:n]], axis=2)
        error, magnitude = np.moveaxis(np.abs(slope) @ factors, 2, 0)
        return Affine(
            centre=mean + np.einsum("npd,nd->np", slope, shift),
            slope=slope @ inputs.slope,
            error=(self.width[:n] + error + self.remainder[:n]) * steepness
            + (steepness - 1) * (np.abs(mean) + magnitude),
        )


def _around_centres(belief: "Belief", cells: Boxes) -> _AroundCentres:
    centre, half = cells.centre, cells.half
    kernel, posterior = belief.kernel, belief.posterior
    r = kernel.scaled_norm(half)
    distance, remainder = kernel.distance_and_remainder(r)
    # Slopes matter only for cells of positive width.
    sloped = kernel.curvature is not None and bool(half.any())
    if len(belief.fits) > 1:
        return _from_fits(belief, centre, half, sloped, distance, remainder)
    jet = posterior.jet(centre) if sloped else None
    known = posterior.predict(centre) if jet is None else jet
    width = belief.radius * belief.sd_above(known.sd)[:, None] + belief.mean_error
    # For any kernel: the bound at c with the modulus; the data as anchors; |f(z)| ≤ B·s.
    reach, rest = width + belief.modulus_at(half, distance), width
    if jet is not None:
        assert remainder is not None, "the kernel has a derivative"
        rest = _first_order(belief, half, jet, distance, remainder)
        slack = np.einsum("npd,nd->np", np.abs(jet.derivative_mean), half) + rest
        reach = np.minimum(reach, (width + slack) * _sum_rounding(half.shape[1]))
    limit = belief.largest_values * (1 + 8 * UNIT_ROUNDOFF)
    about = Boxes.around(known.mean, reach).widened()
    lower, upper = np.maximum(about.lower, -limit), np.minimum(about.upper, limit)
    rows = _anchored(belief, r, known.sd)
    if rows is None or len(rows):
        some = slice(None) if rows is None else rows
        anchors = anchor_bounds(belief, *belief.anchors, centre[some], half[some])
        lower[some], upper[some] = np.maximum(lower[some], anchors.lower), np.minimum(upper[some], anchors.upper)
    slope = None if jet is None else jet.derivative_mean
    return _AroundCentres(Boxes(lower, upper), centre, half, known.mean, slope, width, rest)


def _from_fits(
    belief: "Belief", centre: Array, half: Array, sloped: bool, distance: Array, remainder: Array | None
) -> _AroundCentres:
    """The same from the intersected bounds of several fits, (n, d) cells with d_k(r) and R(r), (n,)."""
    jet = jet_bounds(belief, centre, sloped)
    rest = jet.width
    about = Boxes.around(jet.mean, jet.width + belief.modulus_at(half, distance)).widened()
    if jet.slope is not None and jet.slope_width is not None:
        assert remainder is not None, "the kernel has a derivative"
        rounding = _sum_rounding(half.shape[1])
        rest = np.einsum("npd,nd->np", jet.slope_width, half) + belief.norm_bound * remainder[:, None]
        slack = np.einsum("npd,nd->np", np.abs(jet.slope), half) + rest
        about = about.intersect(Boxes.around(jet.mean, (jet.width + slack) * rounding).widened())
    about = about.intersect(anchor_bounds(belief, *belief.anchors, centre, half))
    limit = np.full(about.lower.shape, belief.largest_values * (1 + 8 * UNIT_ROUNDOFF))
    about = about.intersect(Boxes(-limit, limit))
    return _AroundCentres(about, centre, half, jet.mean, jet.slope, jet.width, rest)


def _anchored(belief: "Belief", r: Array, sd: Array) -> IntArray | None:
    """The cells for which anchors are of use, by their half-diagonals and the sds at their centres; None for all."""
    if not belief.anchored_by_norm or belief.kernel.fourth_derivative is None:
        return None
    near = _NEAR_DATA * np.sqrt(belief.jitter * belief.kernel.variance)
    return np.flatnonzero((r > _NARROW) | (sd < near))


def _sum_rounding(dimension: int) -> float:
    """A factor above 1 that covers the rounding of sums over the inputs."""
    return 1 + 8 * (dimension + 4) * UNIT_ROUNDOFF


def _first_order(belief: "Belief", half: Array, jet: Jet, distance: Array, remainder: Array) -> Array:
    """The smaller of slacks 2 and 3 without ∇μ, (n, p), from d_k(r) and R(r), (n,)."""
    scale = belief.derivative_scales
    # Rounding of ∂_j: as for a value, in units of its prior sd s·sqrt(−φ''(0))/ℓ_j.
    rounding = belief.mean_error * (half @ scale)[:, None]
    slope_sd = np.einsum("nd,nd->n", belief.slope_sd_above(jet.derivative_sd), half)
    second = belief.mean_norm_above * remainder[:, None] + belief.radius * distance[:, None]
    third = belief.radius * slope_sd[:, None] + belief.norm_bound * remainder[:, None]
    return np.minimum(second, third) + rounding


def _quarters(belief: "Belief", cells: Boxes, rows: IntArray) -> Boxes:
    """The quarters of some cells, (4·rows, d): halved along the longest side in lengthscales, and so once more."""
    lower, upper = cells.lower[rows], cells.upper[rows]
    ell = belief.kernel.lengthscales(lower.shape[1])
    for _ in range(2):
        every, side = np.arange(len(lower)), ((upper - lower) / ell).argmax(axis=1)
        middle = 0.5 * (lower[every, side] + upper[every, side])
        left_end, right_start = upper.copy(), lower.copy()
        left_end[every, side] = right_start[every, side] = middle
        lower, upper = np.concatenate([lower, right_start]), np.concatenate([left_end, upper])
    return Boxes(lower, upper)


def _cut(belief: "Belief", cells: Boxes, pieces: int) -> list[Boxes]:
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
    if (cells.lower > cells.upper).any():
        raise ArgumentError("cells must not be empty: a lower end lies above its upper end.")
