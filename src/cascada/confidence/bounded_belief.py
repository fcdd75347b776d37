"""Belief about a stage that is read with bounded errors.

Letters as in `belief`. Rows are intervals of f at nominal inputs (`ReadRows`). A fit is a posterior with a weight λ for
every row; its radius contains the errors: ρ_j² = B_j² + Σ_i ε_ij²/(λ_i s²) − spent_j. Every choice of weights gives
valid bounds of the same f, also after more rows are known. So a belief holds several fits: one with common weights, and
those whose weights were chosen at points of interest. All their bounds are intersected.

If the outputs share a norm under k·A, A = U·diag(a)·Uᵀ, the weights of a row are λ_i·A and the error term is
Σ_i λ_i⁻¹ Σ_j (Σ_k |U_kj|·ε_ik)²/a_j. A component whose whole range B·s·sqrt(a_j) is within its error is left out of the
data: it is at most that range.
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import SMALLEST_SCALE, UNIT_ROUNDOFF, Array
from cascada.confidence.averages import AveragedFit
from cascada.confidence.belief import Belief
from cascada.confidence.evidence import Evidence
from cascada.confidence.jet_bounds import Fit, jet_bounds
from cascada.confidence.read_rows import ReadRows
from cascada.confidence.regions import Boxes
from cascada.confidence.weights import HEAVIEST, best_weights, common_weights
from cascada.errors import ArgumentError
from cascada.gp.factor import triangular_solve
from cascada.gp.posterior import Posterior
from cascada.gp.rounding import error_rounding, square_rounding
from cascada.gp.separable_posterior import SeparablePosterior
from cascada.kernels.stationary import Stationary

#: Fits at points of interest that are kept, for every output and side: the latest.
MOST_POINTS = 6


@dataclass(frozen=True, eq=False)
class Assumption:
    """What is assumed of a stage: its kernel, B and L for every output, and the joint norm if there is one."""

    kernel: Stationary
    norm_bound: Array  # B, (p,)
    lipschitz: Array | None  # L, (p,)
    dimension: int
    joint: SeparablePosterior | None = None  # without data: the matrix A and its decomposition
    joint_bound: float = 0.0  # B of the joint norm

    @classmethod
    def of_joint(cls, prior: SeparablePosterior, norm_bound: float, lipschitz: float | None) -> "Assumption":
        """From a joint norm under k·A: |f_j| has norm at most B·sqrt(A_jj)."""
        p = prior.output_count
        bounds = np.maximum(norm_bound * prior.output_roots, SMALLEST_SCALE)  # an output with A_jj = 0 is always 0
        slopes = None if lipschitz is None else np.full(p, lipschitz)
        return cls(prior.kernel.kernel, bounds, slopes, prior.dimension, prior, norm_bound)


class WeightedFit(Belief):
    """The bounds from one choice of weights: a posterior with a given radius, and an error of its mean."""

    extra: Array  # what the mean leaves out, (p,)
    refuted: bool  # whether no f agrees with the rows

    def __init__(self, assumption: Assumption, rows: ReadRows, weights: Array) -> None:
        kept = weights <= HEAVIEST
        rows, weights = rows.take(kept), weights[kept]
        make = _separate if assumption.joint is None else _jointly
        posterior, left, extra = make(assumption, rows, weights)
        radius = np.sqrt(np.maximum(left, 0.0)) * (1 + square_rounding(0))
        super().__init__(posterior, assumption.norm_bound, assumption.lipschitz, joint_radius=radius)
        object.__setattr__(self, "extra", extra)
        object.__setattr__(self, "refuted", bool(np.any(left < 0)))

    @cached_property
    def mean_error(self) -> Array:
        """How far a computed mean may be from one within the radius of f, (p,), in units of the prior sd over s."""
        return np.sqrt(self.posterior.spent * self.kernel.variance) * self.posterior.inflation + self.extra


def _errors_above(errors: Array, posterior: Posterior) -> Array:
    """Σ_i errors_i²/(λ_i s²), rounded up, for errors (t, p): what they can use up besides B²."""
    t, kernel = posterior.count, posterior.kernel
    total = (errors**2 / (kernel.variance * posterior.noise)[:, None]).sum(axis=0)
    theta = error_rounding(t, posterior.jitter, kernel.rounding) if t else 0.0
    return total / (1 - theta) * (1 + 4 * (t + 8) * UNIT_ROUNDOFF)


def _separate(assumption: Assumption, rows: ReadRows, weights: Array) -> tuple[Posterior, Array, Array]:
    """A posterior of outputs with their own norms, ρ² (p,), rounded up, and the error of its mean (p,)."""
    posterior = Posterior.weighted(assumption.kernel, rows.places, rows.middle, weights)
    budget = assumption.norm_bound**2 + _errors_above(rows.error, posterior)
    left = budget - (1.0 - square_rounding(posterior.count)) * posterior.spent
    return posterior, left, np.zeros(len(budget))


def _jointly(assumption: Assumption, rows: ReadRows, weights: Array) -> tuple[Posterior, Array, Array]:
    """The same for outputs that share a norm; the radius is that of the joint norm in the units of each output."""
    prior, bound, kernel = assumption.joint, assumption.joint_bound, assumption.kernel
    assert prior is not None, "called only for a joint norm"
    t, p, s = len(rows), prior.output_count, np.sqrt(kernel.variance)
    Q, scales = prior.eigenvectors, prior.scales
    turned = rows.middle / scales @ Q  # (t, p), the components
    largest = np.linalg.norm(rows.middle / scales, axis=1).max(initial=0.0)
    rotation = 4 * (p + 2) * UNIT_ROUNDOFF * largest
    errors = (rows.error / scales @ np.abs(Q)) * (1 + 4 * (p + 2) * UNIT_ROUNDOFF) + rotation
    ranges = bound * s * np.sqrt(prior.eigenvalues)
    kept = (ranges > errors.max(axis=0, initial=0.0)) if t else np.ones(p, dtype=bool)
    outputs = (turned[:, kept] @ Q[:, kept].T) * scales
    posterior = Posterior.weighted(kernel, rows.places, outputs, weights)
    used, values = prior.eigenvalues[kept], errors[:, kept]
    white = triangular_solve(posterior.factor, np.asfortranarray(turned[:, kept])) if t else np.empty((0, len(used)))
    spent = float(((white**2).sum(axis=0) / used).sum())
    more = float((_errors_above(values, posterior) / used).sum())
    left = bound**2 + more * (1 + 4 * p * UNIT_ROUNDOFF) - (1.0 - square_rounding(t * p)) * spent
    # Dropped components are at most B·s·sqrt(a_j). The outputs of the posterior are rounded: |βᵀΔ| ≤ ‖Δ‖/sqrt(λ).
    dropped = bound * s * np.sqrt(Q[:, ~kept] ** 2 @ prior.eigenvalues[~kept]) * scales * (1 + 16 * p * UNIT_ROUNDOFF)
    digits = 16 * (p + 2) * UNIT_ROUNDOFF * largest * scales * np.sqrt(t / posterior.jitter)
    return posterior, left * prior.output_roots**2, dropped + digits


class BoundedBelief(WeightedFit):
    """A belief from rows with errors: a fit with common weights, further fits, and the rows as anchors.

    Immutable: `learned` and `refined` return new ones.
    """

    assumption: Assumption
    rows: ReadRows
    weights: Array  # the common ones, of all rows, (n,)
    where: Array  # points (m, d) spread over the inputs, at which common weights are judged
    further: tuple[WeightedFit, ...]
    found: tuple[Evidence, ...]  # against the assumptions
    averages: tuple[AveragedFit, ...]  # of readings with sub-Gaussian errors

    def __init__(
        self,
        assumption: Assumption,
        rows: ReadRows | None = None,
        where: Array | None = None,
        further: tuple[WeightedFit, ...] = (),
        found: tuple[Evidence, ...] = (),
        averages: tuple[AveragedFit, ...] = (),
    ) -> None:
        p, d = len(assumption.norm_bound), assumption.dimension
        rows = ReadRows.none(d, p) if rows is None else rows
        where = np.empty((0, d)) if where is None else where
        weights = common_weights(assumption.kernel, rows, assumption.norm_bound, where)
        super().__init__(assumption, rows, weights)
        named = {"assumption": assumption, "rows": rows, "where": where, "further": further, "found": found}
        for name, value in (named | {"weights": weights, "averages": averages}).items():
            object.__setattr__(self, name, value)

    # ---- learning

    def spread_over(self, where: Array) -> "BoundedBelief":
        """The same belief, whose common weights are judged at these points (m, d)."""
        return BoundedBelief(self.assumption, self.rows, where, self.further, self.found, self.averages)

    def learned(self, rows: ReadRows) -> "BoundedBelief":
        """The belief from these rows in place of the earlier ones; fits at points of interest stay valid."""
        return BoundedBelief(self.assumption, rows, self.where, self.further, self.found, self.averages)

    def averaged(self, fits: tuple[AveragedFit, ...]) -> "BoundedBelief":
        """The belief with these fits to readings with sub-Gaussian errors, in place of the earlier ones."""
        return self._with(averages=fits)

    def refined(self, point: Array) -> "BoundedBelief":
        """The belief with fits whose weights are chosen at a point (d,), for every output and side."""
        if not len(self.rows):
            return self
        fits = list(self.further)
        for j, bound in enumerate(self.norm_bound):
            for side in (1, -1):
                weights = best_weights(self.kernel, self.rows, float(bound), j, point, side, self.weights)
                fits.append(WeightedFit(self.assumption, self.rows, weights))
        return self._with(further=tuple(fits[-2 * len(self.norm_bound) * MOST_POINTS :]))

    def refuted_by(self, *evidence: Evidence) -> "BoundedBelief":
        """The belief with this evidence against its assumptions."""
        return self._with(found=(*self.found, *evidence))

    def _with(self, **changes: Any) -> "BoundedBelief":
        """A copy with other further fits or evidence; the common fit stays."""
        other = copy(self)
        for name, value in changes.items():
            object.__setattr__(other, name, value)
        return other

    # ---- bounds

    @property
    def fits(self) -> tuple[Fit, ...]:
        """The fit with common weights, the others, and those that average over scatter."""
        return (self, *self.further, *self.averages)

    @property
    def anchors(self) -> tuple[Array, Boxes]:
        """The nominal inputs of the rows, and the boxes that contain f there."""
        return self.rows.places, self.rows.values

    def shift(self, places: Array, reach: Array) -> Array:
        """The most that every output can change between places (n, d) and points within ± reach (n, d), (n, p)."""
        bound = self.modulus(reach)
        if self.kernel.curvature is None or not len(places):
            return bound
        jet = jet_bounds(self, places, slopes=True)
        remainder = self.kernel.remainder(self.kernel.scaled_norm(reach))
        assert remainder is not None, "the kernel has a derivative"
        first = np.einsum("npd,nd->np", jet.steepest, reach) + self.norm_bound * remainder[:, None]
        return np.minimum(bound, first * (1 + 8 * (reach.shape[1] + 4) * UNIT_ROUNDOFF))

    # ---- evidence

    @property
    def contradictory(self) -> bool:
        """Whether no f agrees with the rows of some fit."""
        refuted = any(fit.refuted for fit in self.further) or any(fit.refuted for fit in self.averages)
        return self.refuted or refuted

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Evidence against the assumptions, from the readings behind the rows (`refuted_by`)."""
        return self.found

    def append(self, X: ArrayLike, Y: ArrayLike, *, each: bool = False) -> "BoundedBelief":  # noqa: ARG002
        """Not available: what one more reading says depends on all readings of the network. See `learned`."""
        raise ArgumentError("a belief from readings with errors is learned with `learned`; `append` is for exact data.")
