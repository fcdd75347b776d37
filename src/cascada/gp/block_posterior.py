"""The posterior of any operator-valued kernel, by a block Cholesky factor of the tp×tp matrix G_t + λI.

Rows are ordered by observation, then by output. The jitter of an observation is λ times the largest ‖Γ(x, x)‖₂ observed
so far, so that it exceeds the rounding errors of the earlier rows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array, IntArray, as_outputs, as_points
from cascada.gp.factor import Factor, extend_solution
from cascada.gp.history import new_rows
from cascada.gp.operator_posterior import OperatorPosterior, OperatorPrediction
from cascada.gp.rounding import SMALLEST_JITTER, as_jitter, inflation, jitters
from cascada.kernels.operator import BlockKernel, OperatorKernel

# The assumed error of a user's kernel function in unit roundoffs.
_KERNEL_ROUNDING = 256.0


@dataclass(frozen=True, eq=False)
class BlockPosterior(OperatorPosterior):
    """μ_t and Γ_t under any operator-valued kernel."""

    kernel: OperatorKernel
    jitter: float
    _inputs: Array
    _outputs: Array
    _rows: IntArray
    received: int
    rounded_inputs: bool
    scale: float  # the largest ‖Γ(x, x)‖₂ of all observations
    _first_scale: float  # ‖Γ(x, x)‖₂ of the first observation, which has the smallest jitter
    _factor: Factor  # (tp, tp)
    whitened: Array  # (tp, 1)

    @classmethod
    def empty(
        cls,
        kernel: OperatorKernel,
        dimension: int,
        outputs: int,
        jitter: float = SMALLEST_JITTER,
        rounded_inputs: bool = False,
    ) -> "BlockPosterior":
        """The prior, without data."""
        kernel.check_dimension(dimension)
        return cls(
            kernel=kernel,
            jitter=as_jitter(jitter),
            _inputs=np.empty((0, dimension)),
            _outputs=np.empty((0, outputs)),
            _rows=np.empty(0, dtype=np.int64),
            received=0,
            rounded_inputs=rounded_inputs,
            scale=0.0,
            _first_scale=1.0,
            _factor=Factor.empty(),
            whitened=np.empty((0, 1)),
        )

    @classmethod
    def fit(
        cls, kernel: OperatorKernel, X: ArrayLike, Y: ArrayLike, jitter: float = SMALLEST_JITTER
    ) -> "BlockPosterior":
        """The posterior given inputs X (t, d) and outputs Y (t, p)."""
        inputs = as_points(X, "X")
        outputs = as_outputs(Y, "Y", len(inputs))
        return cls.empty(kernel, inputs.shape[1], outputs.shape[1], jitter).append(inputs, outputs)

    def append(self, X: ArrayLike, Y: ArrayLike, *, each: bool = False) -> "BlockPosterior":
        added = as_points(X, "X", self.dimension)
        values = as_outputs(Y, "Y", len(added), self.output_count)
        if each and len(added) > 1:
            posterior = self
            for i in range(len(added)):
                posterior = posterior.append(added[i : i + 1], values[i : i + 1])
            return posterior
        fresh = new_rows(self, added, values)
        received = self.received + len(added)
        rows = np.append(self._rows, self.received + np.array(fresh, dtype=np.int64))
        added, values = added[fresh], values[fresh]
        p, t, b = self.output_count, self.count, len(fresh)

        if isinstance(self.kernel, BlockKernel):
            self.kernel.check_symmetric(added, np.concatenate([self._inputs, added]), p)
        blocks = self.kernel.blocks(added, added, p)
        scales = np.maximum.accumulate([self.scale, *(np.linalg.eigvalsh(blocks[i, i])[-1] for i in range(b))])
        corner = _flatten(blocks)
        lam = jitters(t * p, (t + b) * p, self.jitter, _KERNEL_ROUNDING)
        corner[np.diag_indices(b * p)] += lam * np.repeat(scales[1:], p)
        factor = self._factor.extended(_flatten(self.kernel.blocks(added, self.inputs, p)), corner)
        return BlockPosterior(
            kernel=self.kernel,
            jitter=self.jitter,
            _inputs=np.concatenate([self._inputs, added]),
            _outputs=np.concatenate([self._outputs, values]),
            _rows=rows,
            received=received,
            rounded_inputs=self.rounded_inputs,
            scale=float(scales[-1]),
            _first_scale=float(scales[1]) if b and not t else self._first_scale,
            _factor=factor,
            whitened=extend_solution(factor.array, self.whitened, values.reshape(-1, 1)),
        )

    def predict(self, Z: ArrayLike) -> OperatorPrediction:
        points = as_points(Z, "Z", self.dimension)
        n, p = len(points), self.output_count
        prior = np.array([self.kernel.blocks(z[None], z[None], p)[0, 0] for z in points]).reshape(n, p, p)
        cross = _flatten(self.kernel.blocks(points, self.inputs, p))  # (np, tp)
        V = self._factor.solve(cross.T).reshape(self.whitened.size, n, p)
        mean = np.einsum("rnp,r->np", V, self.whitened[:, 0])  # eq:multi_mean
        covariance = prior - np.einsum("rnp,rnq->npq", V, V)  # eq:multi_var
        covariance = 0.5 * (covariance + covariance.transpose(0, 2, 1))
        largest = np.linalg.eigvalsh(prior)[:, -1] if n else np.empty(0)
        return OperatorPrediction(mean, covariance, np.sqrt(np.maximum(largest, self.scale)))

    @property
    def inputs(self) -> Array:
        return self._inputs

    @property
    def outputs(self) -> Array:
        return self._outputs

    @property
    def rows(self) -> IntArray:
        return self._rows

    @property
    def spent_by_row(self) -> Array:
        return (self.whitened**2).reshape(-1, self.output_count).sum(axis=1)

    def error_budget(self, error: Array) -> float:
        return float(self.count * (error @ error) / (self.jitter * self._first_scale)) if self.count else 0.0

    @property
    def inflation(self) -> float:
        return inflation(self.whitened.size, self.jitter, _KERNEL_ROUNDING)


def _flatten(blocks: Array) -> Array:
    """Blocks (n, m, p, p) as a matrix (np, mp)."""
    n, m, p, _ = blocks.shape
    return np.array(blocks.transpose(0, 2, 1, 3), order="C").reshape(
        n * p, m * p
    )  # a copy, because the blocks belong to the user
