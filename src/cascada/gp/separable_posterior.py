"""The posterior of a separable kernel k·A: in the eigenvectors of A it is a scalar posterior.

With A = Q·diag(a)·Qᵀ and jitter λA, the rotated outputs ỹ = yQ share one factor, Γ_t = σ_t²·A, and the budget spent is
Σ_j ỹ_jᵀ(K_t + λI)⁻¹ỹ_j / a_j. A direction with a_j = 0 is always zero.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import UNIT_ROUNDOFF, Array, IntArray, as_outputs, as_points
from cascada.errors import ContradictionError
from cascada.gp.history import new_rows
from cascada.gp.operator_posterior import OperatorPosterior, OperatorPrediction
from cascada.gp.posterior import Posterior
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.kernels.operator import Separable

# Eigenvalues below this part of the largest count as zero, and so do outputs along them.
_ZERO = 1e-10


@dataclass(frozen=True, eq=False)
class SeparablePosterior(OperatorPosterior):
    """μ_t and Γ_t = σ_t²·A of a function with norm in H_{k·A}."""

    kernel: Separable
    eigenvalues: Array  # a, shape (p,)
    eigenvectors: Array  # Q, shape (p, p)
    _outputs: Array  # Y as told
    _rows: IntArray
    told: int
    rotated: Posterior  # of ỹ

    @classmethod
    def empty(
        cls, kernel: Separable, dimension: int, outputs: int, jitter: float = SMALLEST_JITTER
    ) -> "SeparablePosterior":
        """The prior: no data yet."""
        eigenvalues, eigenvectors = np.linalg.eigh(kernel.matrix_for(outputs))
        # Computed eigenvalues are off by roundings of the largest; raising them only makes norms smaller.
        raised = eigenvalues + 16 * outputs * UNIT_ROUNDOFF * eigenvalues[-1]
        eigenvalues = np.where(eigenvalues > _ZERO * eigenvalues[-1], raised, 0.0)
        prior = Posterior.empty(kernel.kernel, dimension, outputs, jitter)
        return cls(kernel, eigenvalues, eigenvectors, prior.outputs, prior.rows, 0, prior)

    @classmethod
    def fit(
        cls, kernel: Separable, X: ArrayLike, Y: ArrayLike, jitter: float = SMALLEST_JITTER
    ) -> "SeparablePosterior":
        """The posterior given inputs X (t, d) and outputs Y (t, p)."""
        inputs = as_points(X, "X")
        outputs = as_outputs(Y, "Y", len(inputs))
        return cls.empty(kernel, inputs.shape[1], outputs.shape[1], jitter).append(inputs, outputs)

    def append(self, X: ArrayLike, Y: ArrayLike) -> "SeparablePosterior":
        added = as_points(X, "X", self.dimension)
        values = as_outputs(Y, "Y", len(added), self.output_count)
        null = self.eigenvalues == 0
        outside = np.abs(values @ self.eigenvectors[:, null]).max(axis=1, initial=0.0)
        wrong = outside > _ZERO * np.abs(values).max(axis=1, initial=0.0)
        if np.any(wrong):
            row = int(wrong.argmax())
            raise ContradictionError(
                f"observation {self.told + row} has output {values[row]}, which is not in the range of the "
                f"separable kernel's matrix A (it is {outside[row]:.3g} off). Use a matrix of full rank."
            )
        # Repeats are found among the outputs as told: rotated ones differ in their last digits from batch to batch.
        fresh = new_rows(self.inputs, self.outputs, self.rows, added, values, self.told)
        rotated = values[fresh] @ self.eigenvectors
        rotated[:, null] = 0.0
        return replace(
            self,
            _outputs=np.concatenate([self._outputs, values[fresh]]),
            _rows=np.append(self._rows, self.told + np.array(fresh, dtype=np.int64)),
            told=self.told + len(added),
            rotated=self.rotated.append(added[fresh], rotated),
        )

    def predict(self, Z: ArrayLike) -> OperatorPrediction:
        scalar = self.rotated.predict(Z)
        matrix = self.kernel.matrix_for(self.output_count)
        prior = np.sqrt(self.kernel.kernel.variance * self.eigenvalues[-1])
        return OperatorPrediction(
            mean=scalar.mean @ self.eigenvectors.T,  # eq:multi_mean
            covariance=scalar.sd[:, None, None] ** 2 * matrix,  # eq:multi_var, lem:multi_var
            prior_sd=np.full(len(scalar.sd), prior),
        )

    @property
    def scalar(self) -> Posterior:
        """The same data as a posterior of the outputs as told, on the same factor."""
        rotated = self.rotated
        whitened = rotated.whitened @ self.eigenvectors.T
        whitened[:, np.diag(self.kernel.matrix_for(self.output_count)) == 0] = 0.0  # such an output is always 0
        return replace(rotated, outputs=self._outputs, whitened=whitened, rows=self._rows, told=self.told)

    @property
    def inputs(self) -> Array:
        return self.rotated.inputs

    @property
    def outputs(self) -> Array:
        return self._outputs

    @property
    def rows(self) -> IntArray:
        return self._rows

    @property
    def spent_by_row(self) -> Array:
        weights = np.divide(1.0, self.eigenvalues, out=np.zeros(self.output_count), where=self.eigenvalues > 0)
        return self.rotated.whitened**2 @ weights

    @property
    def noise(self) -> float:
        positive = self.eigenvalues[self.eigenvalues > 0]
        return self.rotated.jitter * self.kernel.kernel.variance * float(positive.min())

    @property
    def inflation(self) -> float:
        return self.rotated.inflation
