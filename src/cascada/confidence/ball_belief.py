"""Belief about a stage whose outputs share one joint norm: its regions are balls (`eq:cz` to `eq:cbarz`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import SMALLEST_SCALE, UNIT_ROUNDOFF, Array, as_points, as_positive, as_scale
from cascada.confidence.belief import Belief
from cascada.confidence.belief_base import BeliefBase
from cascada.confidence.evidence import Evidence, lipschitz_evidence, norm_evidence
from cascada.confidence.radius import tight_radius
from cascada.confidence.regions import Balls
from cascada.errors import ArgumentError
from cascada.gp.block_posterior import BlockPosterior
from cascada.gp.operator_posterior import OperatorPosterior, OperatorPrediction
from cascada.gp.rounding import NORM_ROUNDING, variance_rounding
from cascada.gp.separable_posterior import SeparablePosterior


@dataclass(frozen=True, eq=False)
class BallBelief(BeliefBase[OperatorPrediction]):
    """A posterior with ‖f‖_Γ ≤ B, ‖f(x) − f(x')‖₂ ≤ L‖x − x'‖₂ (if L is given), and the balls that follow."""

    posterior: OperatorPosterior
    norm_bound: float
    lipschitz: float | None = None
    tight: bool = True
    output_error: Array = field(default_factory=lambda: np.zeros(1))  # how far each observed output may be off, (p,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm_bound", as_scale(self.norm_bound, "norm_bound"))
        error = np.broadcast_to(np.asarray(self.output_error, dtype=np.float64), (self.posterior.output_count,))
        object.__setattr__(self, "output_error", np.array(error))
        if self.lipschitz is not None:
            object.__setattr__(self, "lipschitz", as_positive(self.lipschitz, "lipschitz"))

    def append(self, X: ArrayLike, Y: ArrayLike, *, each: bool = False) -> "BallBelief":
        """The belief after more observations. `each`: see `Posterior.append`."""
        return replace(self, posterior=self.posterior.append(X, Y, each=each))

    def with_output_error(self, error: Array) -> "BallBelief":
        """The same belief if observed outputs may be off by `error`, (p,)."""
        return replace(self, output_error=error)

    def with_lipschitz(self, constants: Mapping[int | None, float]) -> "BallBelief":
        """The same belief with another Lipschitz constant, that of the key None."""
        return replace(self, lipschitz=constants[None])

    def with_width(self, width: float) -> "BallBelief":
        """The same belief with bounds of `width` posterior sds, whatever its norm bound."""
        return replace(self, norm_bound=float(np.sqrt(self.posterior.spent + width**2)))

    @property
    def joint(self) -> bool:
        """True: all outputs share one norm."""
        return True

    @property
    def has_output_beliefs(self) -> bool:
        """Whether the kernel is separable: a general one has no scalar kernel for an output."""
        return self._separable is not None

    @property
    def _separable(self) -> SeparablePosterior | None:
        """The posterior if its kernel is separable, else None."""
        return self.posterior if isinstance(self.posterior, SeparablePosterior) else None

    @property
    def jitter(self) -> float:
        """λ of the posterior, relative to the prior variance."""
        if self._separable is not None:
            return self._separable.scalar.jitter
        assert isinstance(self.posterior, BlockPosterior), "an operator-valued posterior is of one of two kinds"
        return self.posterior.jitter

    @property
    def largest_sd(self) -> float:
        """The largest prior sd of the outputs; infinite for a kernel given as a function."""
        separable = self._separable
        if separable is None:
            return np.inf
        return float(np.sqrt(separable.kernel.kernel.variance) * separable.output_roots.max())

    @property
    def largest_values(self) -> Array:
        """B·s, the largest |f| of every output (p,); 0 for a kernel given as a function, which need not have one."""
        if self.per_output is None:
            return np.zeros(self.posterior.output_count)
        return self.per_output.largest_values

    @cached_property
    def budget(self) -> float:
        """R² = B² plus the error budget: the most that f and the errors of its observed values can use up jointly."""
        return self.norm_bound**2 + self.posterior.error_budget(self.output_error)

    @property
    def error_norm(self) -> float:
        """The largest error of an observed output vector, in ℓ2 norm."""
        return float(np.linalg.norm(self.output_error)) * (1 + 8 * UNIT_ROUNDOFF)

    @cached_property
    def radius(self) -> float:
        """ρ_t = sqrt(B² − Y_tᵀ(G_t + λ)⁻¹Y_t), or the paper's B."""
        if not self.tight:
            return float(np.sqrt(self.budget))
        entries = self.posterior.count * self.posterior.output_count
        return float(tight_radius(np.array(self.budget), np.array(self.posterior.spent), entries))

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """Evidence of the data against B and L; empty if they are consistent with both."""
        posterior = self.posterior
        spent, bound, budget = posterior.spent_by_row[:, None], np.array([self.norm_bound]), np.array([self.budget])
        found = norm_evidence(spent, posterior.rows, bound, budget, joint=True, hint=self._singular)
        if self.lipschitz is not None:
            data = posterior.inputs, posterior.outputs, posterior.rows
            found += lipschitz_evidence(*data, np.array([self.lipschitz]), self.error_norm, joint=True)
        return found

    @property
    def _singular(self) -> str:
        """A hint if most of the evidence against B lies along the null space of a separable kernel's A; else empty."""
        separable = self._separable
        if separable is None or separable.spent_on_the_null_space <= 0.5 * separable.spent:
            return ""
        return " The outputs leave the range of the separable kernel's singular matrix: use one of full rank."

    def balls(self, Z: ArrayLike) -> Balls:
        """Balls that contain f at the rows of Z: centre μ_t(z), radius ρ_t·‖Γ_t(z, z)‖₂^{1/2}, rounded outwards.

        Deviation from the print of `eq:cz`: the covariance is taken at the point whose value the ball contains.
        """
        self.check()
        prediction = self.posterior.predict(Z)
        return Balls(prediction.mean, self.widths(prediction))  # eq:cz, lem:mul

    def image(self, inputs: Balls, offset: Array) -> Balls:
        """Balls that contain f + offset over balls of inputs."""
        image = self.region(inputs)
        centre = image.centre + offset
        radius = image.radius * (1 + NORM_ROUNDING) + 4 * UNIT_ROUNDOFF * np.linalg.norm(centre, axis=1)
        return Balls(centre, np.where(image.empty, -1.0, radius))

    def region(self, inputs: Balls, anchors: int = 3) -> Balls:
        """Balls that contain f over whole balls of inputs; with radius 0 this is `eq:cbarz` over chosen anchors.

        For an anchor a, f(ball(c, r)) lies in ball(μ(a), ρ‖Γ_t(a, a)‖^{1/2} + the most that f changes over ‖c − a‖ + r)
        (`eq:czz`). Anchors are c itself and the nearest data, which count with their exact values.
        """
        if np.any(inputs.empty):
            raise ArgumentError("the input balls must not be empty; got a negative radius.")
        centre = as_points(inputs.centre, "inputs", self.posterior.dimension)
        own = self.balls(centre)
        region = Balls(own.centre, (own.radius + self.distance_modulus(inputs.radius)) * (1 + 8 * UNIT_ROUNDOFF))
        data, values = self.posterior.inputs, self.posterior.outputs
        if not len(data):
            return region
        apart = np.linalg.norm(centre[:, None, :] - data, axis=2)  # (n, t)
        nearest = np.argsort(apart, axis=1, kind="stable")[:, :anchors]
        for column in nearest.T:
            reach = (apart[np.arange(len(centre)), column] + inputs.radius) * (1 + 8 * UNIT_ROUNDOFF)
            around = Balls(values[column], self.distance_modulus(reach) + self.error_norm)
            region = region.intersect(around)  # eq:czz, eq:cbarz
        return region

    @cached_property
    def per_output(self) -> Belief | None:
        """Every output by itself, as the separable joint norm bounds it: |f_j − μ_j| ≤ ρ_t·sqrt(A_jj)·σ_t.

        ‖f_j‖_k ≤ B·sqrt(A_jj) as well, but the radius is that of the joint norm: the part of B² that one output uses
        up is not available to the others. None for a kernel that is not separable: it has no scalar kernel for an
        output.
        """
        separable = self._separable
        if separable is None:
            return None
        self.check()
        root = separable.output_roots
        return Belief(
            separable.scalar,
            np.maximum(self.norm_bound * root, SMALLEST_SCALE),  # an output with A_jj = 0 is always 0
            self.lipschitz,
            self.tight,
            joint_radius=self.radius * root,
            output_error=self.output_error,
        )

    def distance_modulus(self, distances: Array) -> Array:
        """The most that ‖f(x) − f(x')‖₂ can be for points that are raw ℓ2 `distances` apart, rounded up."""
        bounds = []
        separable = self._separable
        if separable is not None:
            kernel = separable.kernel.kernel
            scaled = distances / kernel.lengthscales(separable.dimension).min()
            root = np.sqrt(separable.kernel.spectral_norm) * (1 + 4 * separable.output_count * UNIT_ROUNDOFF)
            bounds.append(self.norm_bound * root * kernel.distance(scaled * (1 + 4 * UNIT_ROUNDOFF)))
        if self.lipschitz is not None:
            bounds.append(self.lipschitz * distances)
        if not bounds:
            raise ArgumentError(
                "a general operator-valued kernel implies no Lipschitz constant; give the stage one (lipschitz=)."
            )
        return np.minimum.reduce(bounds) * (1 + 8 * UNIT_ROUNDOFF)

    def modulus(self, differences: Array) -> Array:
        """The most that every output can change over the differences along the last axis, (…, p), rounded up.

        Under a separable kernel each output has its own unit, sqrt(A_jj).
        """
        distances = np.linalg.norm(differences, axis=-1)
        separable = self._separable
        if separable is None:
            return np.repeat(self.distance_modulus(distances)[..., None], self.posterior.output_count, axis=-1)
        kernel = separable.kernel.kernel
        bound = kernel.distance(kernel.scaled_norm(differences))[..., None] * (self.norm_bound * separable.output_roots)
        if self.lipschitz is not None:
            bound = np.minimum(bound, self.lipschitz * distances[..., None])
        return bound * (1 + 4 * (differences.shape[-1] + 4) * UNIT_ROUNDOFF)

    @cached_property
    def raw_lipschitz(self) -> float | None:
        """A Lipschitz constant in raw ℓ2 distance: the smaller of L and the kernel's; None if there is neither."""
        known = [] if self.lipschitz is None else [self.lipschitz]
        separable = self._separable
        if separable is not None:
            kernel = separable.kernel.kernel
            if kernel.lipschitz_factor is not None:
                root = np.sqrt(separable.kernel.spectral_norm)
                shortest = kernel.lengthscales(separable.dimension).min()
                known.append(float(self.norm_bound * root * kernel.lipschitz_factor / shortest))
        return min(known, default=None)

    def predict_quickly(self, inputs: Array) -> OperatorPrediction:
        """The posterior's prediction: there is no interpolation of operator-valued ones."""
        return self.posterior.predict(inputs)

    def output_sds(self, prediction: OperatorPrediction) -> Array:
        """The posterior sd of every output, (n, p)."""
        return prediction.output_sds

    def half_widths(self, prediction: OperatorPrediction, rounding: Array) -> Array:
        """How far f can be from a mean that is off by `rounding` (n, p), rounded up, (n, 1)."""
        return self.widths(prediction)[:, None] + np.linalg.norm(rounding, axis=1, keepdims=True)

    def sample(self, prediction: OperatorPrediction, shape: tuple[int, ...], xi: Array) -> Array:
        """Samples μ + Γ_t^{1/2}·ξ, (n, S, p); see `BeliefBase.sample`."""
        p = xi.shape[1]
        mean = prediction.mean.reshape(*shape, p)
        return mean + np.einsum(
            "nspq,sq->nsp", np.broadcast_to(prediction.root.reshape(*shape, p, p), (len(mean), len(xi), p, p)), xi
        )

    def widths(self, prediction: OperatorPrediction) -> Array:
        """How far f can be from its mean at the points of a prediction, (n,), rounded up."""
        error = np.sqrt(self.posterior.spent) * prediction.prior_sd * self.posterior.inflation
        return (self.radius * self.sd_above(prediction.sd, prediction.prior_sd) + error) * (1 + 8 * UNIT_ROUNDOFF)

    def sd_above(self, sd: Array, prior: Array) -> Array:
        """A computed posterior sd, raised by the most that rounding can have lowered it."""
        entries = self.posterior.count * self.posterior.output_count
        rounding = variance_rounding(entries) + self.posterior.covariance_rounding
        raised = np.sqrt(sd * sd + rounding * prior * prior)
        return np.minimum(raised + prior * self.posterior.inflation, prior)
