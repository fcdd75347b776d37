"""Bounds of a function and of its slopes at points, from several fits that bound the same function.

Every fit bounds values and slopes by mean ± radius·sd. All of these bounds hold, so their intersections hold as well.
An intersection is no longer about the mean of one fit: of the slacks in `cells`, it can be used with 1 and 3 only.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.errors import RefutedError

if TYPE_CHECKING:  # beliefs use these bounds
    from cascada.confidence.belief import Belief

# Mean ± half-width, each of a few operations.
_ROUNDING = 8 * UNIT_ROUNDOFF


@dataclass(frozen=True, eq=False)
class JetBounds:
    """f ∈ mean ± width and ∂_j f ∈ slope ± slope_width at n points."""

    mean: Array  # (n, p)
    width: Array  # (n, p)
    slope: Array | None  # (n, p, d); None if slopes were not asked for, or need not exist
    slope_width: Array | None  # (n, p, d)

    @property
    def steepest(self) -> Array:
        """The largest |∂_j f| at the points, (n, p, d)."""
        assert self.slope is not None, "slopes were asked for"
        assert self.slope_width is not None, "slopes were asked for"
        return np.abs(self.slope) + self.slope_width


class Fit(Protocol):
    """Something that bounds the values and slopes of a function at points."""

    def at_points(self, points: Array, slopes: bool) -> "PointBounds":
        """The bounds at points (n, d)."""


@dataclass(frozen=True, eq=False)
class PointBounds:
    """f ∈ [lower, upper] and ∂_j f ∈ [low_slope, high_slope] at n points, from one fit."""

    lower: Array  # (n, p)
    upper: Array  # (n, p)
    low_slope: Array | None = None  # (n, p, d); None if slopes were not asked for
    high_slope: Array | None = None


def point_bounds(fit: "Belief", points: Array, slopes: bool) -> PointBounds:
    """The bounds of a belief at points (n, d): mean ± radius·sd, rounded outwards."""
    jet = fit.posterior.jet(points) if slopes else None
    known = fit.posterior.predict(points) if jet is None else jet
    half = fit.radius * fit.sd_above(known.sd)[:, None] + fit.mean_error
    values = _around(known.mean, half)
    if jet is None:
        return PointBounds(*values)
    scale = fit.derivative_scales
    sd = fit.slope_sd_above(jet.derivative_sd)[:, None, :]
    half = fit.radius[:, None] * sd + fit.mean_error[:, None] * scale
    return PointBounds(*values, *_around(jet.derivative_mean, half))


def _around(mean: Array, half: Array) -> tuple[Array, Array]:
    """mean ± half, rounded outwards."""
    half = half * (1 + _ROUNDING) + _ROUNDING * np.abs(mean)
    return mean - half, mean + half


def jet_bounds(belief: "Belief", points: Array, slopes: bool) -> JetBounds:
    """The intersection of the bounds of all fits at points (n, d); raises `RefutedError` if it is empty somewhere."""
    limit = belief.largest_values * (1 + _ROUNDING)
    lower, upper = (np.full((len(points), len(limit)), sign * limit) for sign in (-1.0, 1.0))
    scale = belief.derivative_scales if slopes else np.empty(0)
    steepest = limit[:, None] * scale * (1 + _ROUNDING)  # |∂_j f| ≤ B times the prior sd of ∂_j f
    low_slope, high_slope = (np.full((len(points), *steepest.shape), sign * steepest) for sign in (-1.0, 1.0))
    for fit in belief.fits:
        part = fit.at_points(points, slopes)
        lower, upper = np.maximum(lower, part.lower), np.minimum(upper, part.upper)
        if part.low_slope is not None and part.high_slope is not None:
            low_slope, high_slope = np.maximum(low_slope, part.low_slope), np.minimum(high_slope, part.high_slope)
    mean, width = _middle(lower, upper)
    if not slopes:
        return JetBounds(mean, width, None, None)
    return JetBounds(mean, width, *_middle(low_slope, high_slope))


def _middle(lower: Array, upper: Array) -> tuple[Array, Array]:
    """The middles of intervals, and half-widths that cover them."""
    if np.any(lower > upper):
        raise RefutedError(
            "no function agrees with all readings: a norm_bound, a lipschitz or an error is too small. Raise it."
        )
    middle = 0.5 * (lower + upper)
    half = np.maximum(upper - middle, middle - lower)
    return middle, half * (1 + _ROUNDING) + _ROUNDING * np.abs(middle)
