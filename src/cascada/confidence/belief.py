"""Belief about a stage with independent outputs: its posterior, and the assumptions B and L.

Letters: B norm bounds (p,), L Lipschitz constants (p,) in raw ℓ2 distance, ρ_t radius (p,), s prior sd, ε inflation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import UNIT_ROUNDOFF, Array, as_positive_per_output, check_scale
from cascada.confidence.belief_base import BeliefBase
from cascada.confidence.cells import cell_bounds
from cascada.confidence.evidence import Evidence, lipschitz_evidence, norm_evidence
from cascada.confidence.jet_bounds import Fit, PointBounds, point_bounds
from cascada.confidence.radius import tight_radius
from cascada.confidence.regions import Balls, Boxes
from cascada.errors import ArgumentError
from cascada.gp.line import predict_on_line
from cascada.gp.posterior import Posterior, Prediction
from cascada.gp.rounding import INTERVAL_OFFSET_ROUNDING, NORM_ROUNDING, square_rounding, variance_rounding
from cascada.kernels.stationary import Stationary

# Of posterior sds: their prior sds, and by how much rounding can lower their squares and themselves.
_SdRounding: TypeAlias = tuple[Array | float, Array | float, Array | float]


@dataclass(frozen=True, eq=False, init=False)
class Belief(BeliefBase[Prediction]):
    """A posterior with ‖f_j‖_k ≤ B_j, |f_j(x) − f_j(x')| ≤ L_j‖x − x'‖₂ (if L is given), and what follows.

    `tight` chooses the radius: ρ_t (default), or the paper's B. `joint_radius` replaces both where the outputs share a
    joint norm, which restricts each of them more than its own norm does (see `BallBelief.per_output`).
    """

    posterior: Posterior
    norm_bound: Array  # B, (p,)
    lipschitz: Array | None  # L, (p,)
    tight: bool
    joint_radius: Array | None  # (p,)
    output_error: Array  # ε, (p,)
    squared_errors: Array | None  # Σ_i ε_i², (p,), if it is known to be less than t·ε²

    def __init__(
        self,
        posterior: Posterior,
        norm_bound: ArrayLike,
        lipschitz: ArrayLike | None = None,
        tight: bool = True,
        joint_radius: Array | None = None,
        output_error: ArrayLike = 0.0,
        squared_errors: Array | None = None,
    ) -> None:
        p = posterior.output_count
        slopes = None if lipschitz is None else as_positive_per_output(lipschitz, "lipschitz", p)
        object.__setattr__(self, "posterior", posterior)
        bounds = as_positive_per_output(norm_bound, "norm_bound", p)
        check_scale(bounds, "norm_bound")
        object.__setattr__(self, "norm_bound", bounds)
        object.__setattr__(self, "lipschitz", slopes)
        object.__setattr__(self, "tight", tight)
        object.__setattr__(self, "joint_radius", joint_radius)
        object.__setattr__(self, "output_error", np.array(np.broadcast_to(np.asarray(output_error, float), (p,))))
        object.__setattr__(self, "squared_errors", squared_errors)

    def append(self, X: ArrayLike, Y: ArrayLike, *, each: bool = False) -> "Belief":
        """The belief after more observations. `each`: see `Posterior.append`."""
        if self.joint_radius is not None:
            raise ArgumentError(
                "a belief with a joint radius cannot be appended to, because the radius would change. Append to the "
                "BallBelief from which it was taken."
            )
        posterior, squares = self.posterior.append(X, Y, each=each), self.squared_errors
        if squares is not None:  # each new error is at most ε
            squares = squares + (posterior.count - self.posterior.count) * self.output_error**2
        return Belief(posterior, self.norm_bound, self.lipschitz, self.tight, None, self.output_error, squares)

    def with_output_error(self, error: Array) -> "Belief":
        """The same belief if observed outputs may be off by `error`, (p,): the last digit of large numbers."""
        squares = self.squared_errors
        if squares is not None:  # each error grows by at most as much as ε
            more = np.sqrt(self.posterior.count) * np.maximum(error - self.output_error, 0.0)
            squares = (np.sqrt(squares) + more) ** 2
        return Belief(self.posterior, self.norm_bound, self.lipschitz, self.tight, self.joint_radius, error, squares)

    def with_lipschitz(self, constants: Mapping[int | None, float]) -> "Belief":
        """The same belief with other Lipschitz constants for some outputs, by their position."""
        assert self.lipschitz is not None, "there is a constant to replace"
        lipschitz = [constants.get(j, constant) for j, constant in enumerate(self.lipschitz)]
        kept = self.tight, None, self.output_error, self.squared_errors
        return Belief(self.posterior, self.norm_bound, lipschitz, *kept)

    def with_width(self, width: float) -> "Belief":
        """The same belief with the bounds μ ± width·σ, whatever its norm bound."""
        return Belief(self.posterior, np.sqrt(self.posterior.spent + width**2), self.lipschitz)

    @property
    def joint(self) -> bool:
        """False: every output has its own norm."""
        return False

    @property
    def has_output_beliefs(self) -> bool:
        """True: `per_output` is this belief."""
        return True

    @property
    def per_output(self) -> "Belief":
        """This belief itself."""
        return self

    @property
    def jitter(self) -> float:
        """λ of the posterior, relative to the prior variance."""
        return self.posterior.jitter

    @property
    def kernel(self) -> Stationary:
        """The kernel of the posterior."""
        return self.posterior.kernel

    @cached_property
    def radius(self) -> Array:
        """ρ_t, or the paper's B, for every output, shape (p,)."""
        if self.joint_radius is not None:
            return self.joint_radius
        if self.tight:
            return tight_radius(self.budget, self.posterior.spent, self.posterior.count)
        return np.sqrt(self.budget)

    @cached_property
    def budget(self) -> Array:
        """R² = B² + Σ_i ε_i²/(λs²), (p,): the most that f and the errors ε of its data can use up jointly."""
        noise = self.posterior.jitter * self.kernel.variance
        known = self.squared_errors
        return self.norm_bound**2 + (self.posterior.count * self.output_error**2 if known is None else known) / noise

    def radius_at(self, inputs: Array) -> Array:
        """The radius at rows of inputs (n, d), (n, p): the same everywhere."""
        return np.broadcast_to(self.radius, (len(inputs), len(self.radius)))

    @property
    def observed(self) -> Boxes:
        """Boxes that contain f at the data: the outputs ± their error."""
        outputs = self.posterior.outputs
        return Boxes(outputs - self.output_error, outputs + self.output_error)

    @property
    def anchors(self) -> tuple[Array, Boxes]:
        """Inputs (a, d), and boxes that contain f there: the data."""
        return self.posterior.inputs, self.observed

    @property
    def fits(self) -> tuple[Fit, ...]:
        """The fits whose bounds hold together; a belief of exact data is its only one."""
        return (self,)

    def at_points(self, points: Array, slopes: bool) -> PointBounds:
        """The bounds of values, and with `slopes` of slopes, at points (n, d), from this fit alone."""
        return point_bounds(self, points, slopes)

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """Evidence of the data against B and L; empty if they are consistent with both."""
        posterior = self.posterior
        if self.joint_radius is not None:
            return ()  # the BallBelief judges the joint assumption
        found = norm_evidence(posterior.whitened**2, posterior.rows, self.norm_bound, self.budget)
        if self.lipschitz is not None:
            data = posterior.inputs, posterior.outputs, posterior.rows
            found += lipschitz_evidence(*data, self.lipschitz, self.output_error, codes=self.kernel.codes)
        return found

    # ---- pointwise

    def sd_above(self, sd: Array, scale: Array | None = None) -> Array:
        """A computed posterior sd, raised by the most that rounding can lower it; `scale` is its prior sd over s."""
        return _raised(sd, self._value_rounding if scale is None else self._rounding_of(scale))

    def slope_sd_above(self, sd: Array) -> Array:
        """The same for posterior sds (…, d) of ∂_j f, whose prior sds are at most `derivative_scales` times s."""
        return _raised(sd, self._slope_rounding)

    @cached_property
    def _value_rounding(self) -> _SdRounding:
        return self._rounding_of(1.0)

    @cached_property
    def _slope_rounding(self) -> _SdRounding:
        return self._rounding_of(self.derivative_scales)

    def _rounding_of(self, scale: Array | float) -> _SdRounding:
        """The rounding of posterior sds whose prior sds are `scale` times s."""
        prior = np.sqrt(self.kernel.variance) * scale
        return prior, variance_rounding(self.posterior.count) * prior * prior, prior * self.posterior.inflation

    @cached_property
    def mean_error(self) -> Array:
        """How far a computed mean may be off, shape (p,), in units of the prior sd over s."""
        return np.sqrt(self.posterior.spent * self.kernel.variance) * self.posterior.inflation

    def bounds(self, Z: ArrayLike) -> Boxes:
        """LCB and UCB of every output at the rows of Z: μ_t ∓ radius·σ_t, rounded outwards; boxes in ℝ^p."""
        return self.bounds_of(self.posterior.predict(Z))

    def bounds_of(self, prediction: Prediction) -> Boxes:
        """LCB and UCB from a prediction of this belief's posterior."""
        self.check()
        half = self.radius * self.sd_above(prediction.sd)[:, None] + self.mean_error
        return Boxes(
            prediction.mean - half, prediction.mean + half
        ).widened()  # eq:LCB_orig, eq:UCB_orig, eq:ucb_ij_final

    @property
    def largest_sd(self) -> float:
        """The prior sd s of the outputs."""
        return float(np.sqrt(self.kernel.variance))

    @cached_property
    def largest_values(self) -> Array:
        """B·s, the largest |f| of every output, (p,)."""
        return self.norm_bound * np.sqrt(self.kernel.variance)

    def predict_quickly(self, inputs: Array) -> Prediction:
        """The posterior's prediction, interpolated where many inputs lie on a line: not for proofs."""
        return predict_on_line(self.posterior, inputs)

    def output_sds(self, prediction: Prediction) -> Array:
        """The posterior sd, which is the same for every output, (n, p)."""
        return np.repeat(prediction.sd[:, None], self.posterior.output_count, axis=1)

    def half_widths(self, prediction: Prediction, rounding: Array) -> Array:
        """How far f can be from a mean that is off by `rounding` (n, p), rounded up, (n, p)."""
        bounds = self.bounds_of(prediction)
        return np.maximum(bounds.upper - prediction.mean, prediction.mean - bounds.lower) + rounding

    def sample(self, prediction: Prediction, shape: tuple[int, ...], xi: Array) -> Array:
        """Samples μ + σ·ξ, (n, S, p); see `BeliefBase.sample`."""
        mean = prediction.mean.reshape(*shape, xi.shape[1])
        return mean + prediction.sd.reshape(*shape, 1) * xi

    def region(self, inputs: Balls) -> Balls:
        """Balls that contain f over whole balls of inputs, for a single output: a ball in ℝ¹ is an interval."""
        interval = cell_bounds(self, inputs.box_hull())
        return Balls(interval.centre, interval.half[:, 0])

    def image(self, inputs: Balls, offset: Array) -> Balls:
        """Balls that contain f + offset over whole balls of inputs, for a single output."""
        region = self.region(inputs)
        rounding = INTERVAL_OFFSET_ROUNDING * np.abs(offset).max(initial=0.0)
        return Balls(region.centre + offset, region.radius * (1 + NORM_ROUNDING) + rounding)

    # ---- how fast f can change

    def modulus(self, differences: Array) -> Array:
        """The smaller of B·d_k(‖Δ/ℓ‖) and L‖Δ‖₂ along the last axis, (…, p): |f_j(x) − f_j(x + Δ)| is at most this.

        d_k(r) ≤ s·sqrt(−φ''(0))·r, so the first never exceeds the derived Lipschitz bound of `kernel.lipschitz_factor`.
        """
        return self.modulus_at(differences, self.kernel.distance_of(differences))

    def modulus_at(self, differences: Array, distance: Array) -> Array:
        """`modulus` of differences (…, d) whose distance d_k (…) is known."""
        bound = self.norm_bound * distance[..., None]
        if self.lipschitz is not None:
            lengths = np.linalg.norm(differences, axis=-1)
            if self.kernel.codes:  # L says nothing between values without an order
                between = (differences[..., list(self.kernel.codes)] != 0).any(axis=-1)
                lengths = np.where(between, np.inf, lengths)
            bound = np.minimum(bound, self.lipschitz * lengths[..., None])
        return bound * (1.0 + 4 * (differences.shape[-1] + 4) * UNIT_ROUNDOFF)  # the norms are rounded as well

    @cached_property
    def anchored_by_norm(self) -> bool:
        """Whether no anchor at a point bounds f there better than μ ± ρσ, up to the jitter.

        |f| ≤ B and f(X) = y imply both, and μ ± ρσ is the sharpest bound that they imply as λ → 0. An anchor says more
        if the slope is bounded by a given L, if the radius is not ρ_t, or if errors of the outputs widen it.
        """
        own = self.lipschitz is None and self.tight and self.joint_radius is None
        return own and bool(np.all(self.budget <= 1.0001 * self.norm_bound**2))

    @cached_property
    def mean_norm_above(self) -> Array:
        """‖w‖ ≥ ‖μ‖ of every output, rounded up, (p,)."""
        return np.sqrt(self.posterior.spent) * (1 + square_rounding(self.posterior.count))

    @cached_property
    def derivative_scales(self) -> Array:
        """sqrt(−φ''(0))/ℓ_j, (d,): the prior sd of ∂_j f over that of f; for kernels with a derivative."""
        factor = self.kernel.lipschitz_factor
        assert factor is not None, "asked only for kernels with a derivative"
        return factor / np.sqrt(self.kernel.variance) / self.kernel.lengthscales(self.posterior.dimension)

    @cached_property
    def raw_lipschitz(self) -> Array | None:
        """A Lipschitz constant in raw ℓ2 distance for every output (p,): the smaller of L and the derived one.

        None if there is neither: Matérn with ν ≤ 1 and no L.
        """
        factor = self.kernel.lipschitz_factor
        derived = None
        if factor is not None:
            derived = self.norm_bound * factor / self.kernel.lengthscales(self.posterior.dimension).min()
        if self.lipschitz is None or derived is None:
            return self.lipschitz if derived is None else derived
        return np.minimum(self.lipschitz, derived)


def _raised(sd: Array, rounding: _SdRounding) -> Array:
    """Computed sds, raised by their rounding, but not above the prior sds."""
    prior, squared, own = rounding
    return np.minimum(np.sqrt(sd * sd + squared) + own, prior)
