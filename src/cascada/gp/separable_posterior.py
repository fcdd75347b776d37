"""The posterior of a separable kernel k·A: one scalar posterior, and the part of the joint norm used up by the data.

With jitter λA, μ_t is the scalar posterior mean of each output, and Γ_t = σ_t²·A. The part of B² used up by the data is
Σ_j ỹ_jᵀ(K_t + λI)⁻¹ỹ_j / a_j, with a and Q the eigenvalues and eigenvectors of A, ỹ = yQ.

Rounding. A is equilibrated first, A = D·R·D with D diagonal, so that outputs in different units do not affect each
other: f ↦ D⁻¹f maps the norm of k·A to that of k·R. D consists of powers of two, so R and D⁻¹y are exact. A computed
decomposition of R is exact for a matrix that differs from R by some p·u·‖R‖ =: δ/2. The posterior uses R̂, that matrix
plus δ·I, which is at least R. The norm under R̂ is at most that under R, so a function of norm ≤ B under A has norm ≤ B
here, and Γ_t ≤ σ_t²·(A + 2δD²). No eigenvalue is treated as 0: rounding cannot distinguish an eigenvalue of the size of
δ from 0, and the bound is valid in both cases. The rotation D⁻¹yQ has a rounding error of some p·u·‖D⁻¹y‖, which counts
as an error of the observed outputs.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import UNIT_ROUNDOFF, Array, IntArray, as_outputs, as_points
from cascada.errors import ContradictionError
from cascada.gp.factor import extend_solution
from cascada.gp.operator_posterior import OperatorPosterior, OperatorPrediction
from cascada.gp.posterior import Posterior
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.kernels.operator import Separable, equilibrated


@dataclass(frozen=True, eq=False)
class SeparablePosterior(OperatorPosterior):
    """μ_t and Γ_t = σ_t²·A of a function with norm in H_{k·A}."""

    kernel: Separable
    scales: Array  # D, shape (p,)
    eigenvalues: Array  # of R̂, shape (p,), increasing
    eigenvectors: Array  # Q, shape (p, p)
    scalar: Posterior  # of each output
    rotated: Array  # L⁻¹D⁻¹YQ, shape (t, p)

    @classmethod
    def empty(
        cls,
        kernel: Separable,
        dimension: int,
        outputs: int,
        jitter: float = SMALLEST_JITTER,
        rounded_inputs: bool = False,
    ) -> "SeparablePosterior":
        """The prior, without data."""
        matrix, scales = equilibrated(kernel.matrix_for(outputs))
        eigenvalues, eigenvectors = np.linalg.eigh(matrix)
        raised = np.maximum(eigenvalues, 0.0) + _decomposition_rounding(eigenvalues)
        prior = Posterior.empty(kernel.kernel, dimension, outputs, jitter, rounded_inputs)
        return cls(kernel, scales, raised, eigenvectors, prior, np.empty((0, outputs)))

    @classmethod
    def fit(
        cls, kernel: Separable, X: ArrayLike, Y: ArrayLike, jitter: float = SMALLEST_JITTER
    ) -> "SeparablePosterior":
        """The posterior given inputs X (t, d) and outputs Y (t, p)."""
        inputs = as_points(X, "X")
        outputs = as_outputs(Y, "Y", len(inputs))
        return cls.empty(kernel, inputs.shape[1], outputs.shape[1], jitter).append(inputs, outputs)

    def append(self, X: ArrayLike, Y: ArrayLike, *, each: bool = False) -> "SeparablePosterior":
        added = as_points(X, "X", self.dimension)
        values = as_outputs(Y, "Y", len(added), self.output_count)
        self._check_zeros(values)
        scalar, rotated = self.scalar.append(added, values, each=each), self.rotated
        for i in range(self.count, scalar.count, 1 if each else max(len(added), 1)):
            stop = i + 1 if each else scalar.count
            fresh = scalar.outputs[i:stop] / self.scales @ self.eigenvectors
            rotated = extend_solution(scalar.factor[:stop, :stop], rotated, fresh)
        return replace(self, scalar=scalar, rotated=rotated)

    def _check_zeros(self, values: Array) -> None:
        """Raise `ContradictionError` if an output with A_jj = 0 is not 0."""
        always = np.diag(self.kernel.matrix_for(self.output_count)) == 0
        wrong = (values != 0) & always
        if wrong.any():
            row, output = (int(i) for i in np.argwhere(wrong)[0])
            raise ContradictionError(
                f"observation {self.received + row} has {values[row, output]:.6g} as output {output}, which is always "
                f"0: its variance in the separable kernel's matrix A is 0. Give it a variance above 0."
            )

    def predict(self, Z: ArrayLike) -> OperatorPrediction:
        scalar = self.scalar.predict(Z)
        matrix = self.kernel.matrix_for(self.output_count)
        prior = np.sqrt(self.kernel.kernel.variance * np.linalg.eigvalsh(matrix)[-1])
        return OperatorPrediction(
            mean=scalar.mean,  # eq:multi_mean
            covariance=scalar.sd[:, None, None] ** 2 * matrix,  # eq:multi_var, lem:multi_var
            prior_sd=np.full(len(scalar.sd), prior * (1 + 4 * self.output_count * UNIT_ROUNDOFF)),
        )

    @property
    def covariance_rounding(self) -> float:
        # Γ_t ≤ σ_t²·(A + 2δD²), and D² ≤ 2·‖A‖₂ because D_j² ≤ 2·A_jj.
        return 4 * _decomposition_rounding(self.eigenvalues)

    @property
    def output_roots(self) -> Array:
        """sqrt((A + 2δD²)_jj), shape (p,): |f_j − μ_j| ≤ ρ_t·σ_t times this; 0 for an output that is always 0."""
        diagonal = np.diag(self.kernel.matrix_for(self.output_count))
        raised = diagonal + 2 * _decomposition_rounding(self.eigenvalues) * self.scales**2
        return np.where(diagonal > 0, np.sqrt(raised), 0.0)

    @property
    def inputs(self) -> Array:
        return self.scalar.inputs

    @property
    def outputs(self) -> Array:
        return self.scalar.outputs

    @property
    def rows(self) -> IntArray:
        return self.scalar.rows

    @property
    def received(self) -> int:
        """The number of observations received, repeats included."""
        return self.scalar.received

    @property
    def spent_by_row(self) -> Array:
        return self.rotated**2 @ (1.0 / self.eigenvalues)

    @property
    def spent_on_the_null_space(self) -> float:
        """The part of `spent` along directions in which A is singular up to rounding."""
        null = self.eigenvalues <= 2 * _decomposition_rounding(self.eigenvalues)
        return float((self.rotated[:, null] ** 2 @ (1.0 / self.eigenvalues[null])).sum())

    def error_budget(self, error: Array) -> float:
        largest = np.linalg.norm(self.outputs / self.scales, axis=1).max(initial=0.0)
        rotation = 4 * (self.output_count + 2) * UNIT_ROUNDOFF * largest
        total = np.linalg.norm(error / self.scales) + rotation
        noise = self.scalar.jitter * self.kernel.kernel.variance * self.eigenvalues[0]
        return float(self.count * total**2 / noise)

    @property
    def inflation(self) -> float:
        return self.scalar.inflation


def _decomposition_rounding(eigenvalues: Array) -> float:
    """δ: twice the largest error of a computed eigendecomposition in the spectral norm."""
    return float(16 * len(eigenvalues) * UNIT_ROUNDOFF * eigenvalues[-1])
