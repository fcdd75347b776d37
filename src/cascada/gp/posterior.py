"""The posterior of independent outputs that share a kernel, inputs and hence one Cholesky factor.

Letters: X (t, d) inputs, Y (t, p) outputs, L the lower Cholesky factor of K_t + λs²I, W = L⁻¹Y (t, p),
V = L⁻¹k_t(z) (t, n), Z (n, d) queries. λ is relative to the kernel's variance s². It is the jitter if data are exact.
If outputs have errors, every row has its own λ (`Posterior.weighted`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array, IntArray, as_outputs, as_points
from cascada.errors import ArgumentError
from cascada.gp.factor import Factor, extend_solution
from cascada.gp.history import new_rows
from cascada.gp.rounding import SMALLEST_JITTER, as_jitter, inflation, jitters, smallest_noise
from cascada.kernels.stationary import Stationary

# Queries are processed in blocks whose t×n matrices have about this many entries (8 MB, which fits into a cache).
_BLOCK_ENTRIES = 1 << 20


@dataclass(frozen=True)
class Prediction:
    """Posterior mean (n, p) and sd (n,), which all outputs share."""

    mean: Array
    sd: Array


@dataclass(frozen=True)
class PredictionGradient:
    """A prediction with its input gradients: mean (n, p, d) and sd (n, d)."""

    mean: Array
    sd: Array
    mean_gradient: Array
    sd_gradient: Array


@dataclass(frozen=True)
class Jet:
    """Posterior of f and ∇f at points: means (n, p), (n, p, d) and sds (n,), (n, d)."""

    mean: Array
    sd: Array
    derivative_mean: Array
    derivative_sd: Array


@dataclass(frozen=True, eq=False)
class Posterior:
    """μ_t and σ_t of p independent outputs (`eq:mean`, `eq:var`). Immutable: `append` returns a new one.

    >>> from cascada.kernels import SquaredExponential
    >>> posterior = Posterior.fit(SquaredExponential(1.0), [[0.0], [1.0]], [0.0, 1.0])
    >>> posterior.predict([[0.0], [0.5]]).mean.round(4)
    array([[0.    ],
           [0.5493]])
    """

    kernel: Stationary
    jitter: float  # the smallest λ
    noise: Array  # λ of every row, (t,)
    inputs: Array  # X, without repeats if data are exact
    outputs: Array  # Y
    rows: IntArray  # the position of each kept observation among all received ones
    received: int  # number of observations received, repeats included
    rounded_inputs: bool  # whether different inputs may round to the same one (logarithms)
    _factor: Factor  # L
    whitened: Array  # W

    @classmethod
    def empty(
        cls,
        kernel: Stationary,
        dimension: int,
        outputs: int = 1,
        jitter: float = SMALLEST_JITTER,
        rounded_inputs: bool = False,
    ) -> "Posterior":
        """The prior, without data."""
        kernel.lengthscales(dimension)
        return cls(
            kernel=kernel,
            jitter=as_jitter(jitter),
            noise=np.empty(0),
            inputs=np.empty((0, dimension)),
            outputs=np.empty((0, outputs)),
            rows=np.empty(0, dtype=np.int64),
            received=0,
            rounded_inputs=rounded_inputs,
            _factor=Factor.empty(),
            whitened=np.empty((0, outputs)),
        )

    @classmethod
    def fit(cls, kernel: Stationary, X: ArrayLike, Y: ArrayLike, jitter: float = SMALLEST_JITTER) -> "Posterior":
        """The posterior given inputs X (t, d) and outputs Y (t, p) or (t,)."""
        inputs = as_points(X, "X")
        outputs = as_outputs(Y, "Y", len(inputs))
        return cls.empty(kernel, inputs.shape[1], outputs.shape[1], jitter).append(inputs, outputs)

    @classmethod
    def weighted(cls, kernel: Stationary, X: ArrayLike, Y: ArrayLike, noise: ArrayLike) -> "Posterior":
        """The posterior given inputs X (t, d) and outputs Y (t, p) with errors, with λ = noise (t,) for every row.

        Inputs may repeat. A λ that is too small for the number of rows is raised; how large it should be follows from
        the errors (`confidence.errors`).
        """
        inputs = as_points(X, "X")
        outputs = as_outputs(Y, "Y", len(inputs))
        kernel.lengthscales(inputs.shape[1])
        t = len(inputs)
        lam = np.asarray(noise, dtype=np.float64)
        if lam.shape != (t,) or not np.all(np.isfinite(lam)) or not np.all(lam > 0):
            raise ArgumentError(f"noise must be one finite number above 0 for each of the {t} rows; got {noise!r}.")
        lam = np.maximum(lam, smallest_noise(t, kernel.rounding))
        gram = kernel(inputs, inputs)
        gram[np.diag_indices(t)] += kernel.variance * lam
        factor = Factor.empty().extended(np.empty((t, 0)), gram)
        return cls(
            kernel=kernel,
            jitter=float(lam.min(initial=1.0)),
            noise=lam,
            inputs=inputs,
            outputs=outputs,
            rows=np.arange(t, dtype=np.int64),
            received=t,
            rounded_inputs=True,
            _factor=factor,
            whitened=extend_solution(factor.array, np.empty((0, outputs.shape[1])), outputs),
        )

    def append(self, X: ArrayLike, Y: ArrayLike, *, each: bool = False) -> "Posterior":
        """The posterior with more rows, in O(t²) per row; exact repeats are dropped.

        Rows that are appended as a block differ in their last bits from rows appended one by one. With `each` the
        result is bit for bit that of one call for every row, at less cost.
        """
        added = as_points(X, "X", self.dimension)
        values = as_outputs(Y, "Y", len(added), self.output_count)
        fresh = new_rows(self, added, values)
        received = self.received + len(added)
        rows = np.append(self.rows, self.received + np.array(fresh, dtype=np.int64))
        added, values = added[fresh], values[fresh]
        t, b = self.count, len(fresh)

        inputs, factor, whitened = np.concatenate([self.inputs, added]), self._factor, self.whitened
        lam = jitters(t, t + b, self.jitter, self.kernel.rounding)
        noise = self.kernel.variance * lam
        for i in range(t, t + b, 1 if each else max(b, 1)):
            block = slice(i, i + 1 if each else t + b)
            cross, corner = self.kernel(inputs[block], inputs[:i]), self.kernel(inputs[block], inputs[block])
            corner[np.diag_indices(len(corner))] += noise[i - t : block.stop - t]
            factor = factor.extended(cross, corner)
            whitened = extend_solution(factor.array, whitened, values[i - t : block.stop - t])
        return Posterior(
            kernel=self.kernel,
            jitter=self.jitter,
            noise=np.concatenate([self.noise, lam]),
            inputs=inputs,
            outputs=np.concatenate([self.outputs, values]),
            rows=rows,
            received=received,
            rounded_inputs=self.rounded_inputs,
            _factor=factor,
            whitened=whitened,
        )

    @property
    def factor(self) -> Array:
        """L, shape (t, t)."""
        return self._factor.array

    # ---- sizes and norms

    @property
    def count(self) -> int:
        """t: the number of observations without repeats."""
        return self.inputs.shape[0]

    @property
    def dimension(self) -> int:
        """d: the number of inputs."""
        return self.inputs.shape[1]

    @property
    def output_count(self) -> int:
        """p: the number of outputs."""
        return self.outputs.shape[1]

    @cached_property
    def spent(self) -> Array:
        """yᵀ(K_t + λI)⁻¹y = ‖w‖² for every output, shape (p,): the part of B² that the data use up."""
        return np.vecdot(self.whitened.T, self.whitened.T)

    @cached_property
    def mean_norm(self) -> Array:
        """‖μ_t‖_k for every output, shape (p,): ‖w‖² − λs²‖(K_t + λI)⁻¹y‖²."""
        weights = self._weights
        noise = np.einsum("t,tp,tp->p", self.kernel.variance * self.noise, weights, weights)
        return np.sqrt(np.maximum(self.spent - noise, 0.0))

    @cached_property
    def inflation(self) -> float:
        """ε of `gp.rounding`: an sd may be s·ε too small, and the error of a mean may be ‖w‖·s·ε."""
        return inflation(self.count, min(self.jitter, 1.0), self.kernel.rounding)

    # ---- predictions

    def mean(self, Z: ArrayLike) -> Array:
        """μ_t at the rows of Z, shape (n, p), in O(t) per point."""
        points = as_points(Z, "Z", self.dimension)
        mean = np.empty((len(points), self.output_count))
        for block in self._blocks(len(points), 1):
            mean[block] = self.kernel(points[block], self.inputs) @ self._weights  # eq:mean
        return mean

    def predict(self, Z: ArrayLike) -> Prediction:
        """μ_t and σ_t at the rows of Z."""
        points = as_points(Z, "Z", self.dimension)
        n = len(points)
        mean, variance = np.empty((n, self.output_count)), np.empty(n)
        for block in self._blocks(n, 1):
            V = self._solve(self.kernel(points[block], self.inputs).T)
            mean[block] = V.T @ self.whitened  # eq:mean
            variance[block] = self.kernel.variance - np.vecdot(V.T, V.T)  # eq:var
        return Prediction(mean, np.sqrt(np.maximum(variance, 0.0)))

    def predict_gradient(self, Z: ArrayLike) -> PredictionGradient:
        """μ_t, σ_t and their gradients in the input; where σ_t = 0 its gradient is given as 0."""
        points = as_points(Z, "Z", self.dimension)
        n, d, p = len(points), self.dimension, self.output_count
        mean, variance = np.empty((n, p)), np.empty(n)
        mean_gradient, variance_gradient = np.empty((n, p, d)), np.empty((n, d))
        for block in self._blocks(n, 1 + d):
            jet = self.kernel.jet(points[block], self.inputs)
            V = self._solve(jet[0].T)
            mean[block] = V.T @ self.whitened
            variance[block] = self.kernel.variance - np.vecdot(V.T, V.T)
            beta = self._solve(V, transposed=True)  # (K_t + λI)⁻¹k_t(z), in the place of V
            mean_gradient[block] = (jet[1:] @ self._weights).transpose(1, 2, 0)
            variance_gradient[block] = -2.0 * np.vecdot(jet[1:], beta.T).T
        sd = np.sqrt(np.maximum(variance, 0.0))
        slope = np.divide(0.5, sd, out=np.zeros(n), where=sd > 0)
        return PredictionGradient(mean, sd, mean_gradient, slope[:, None] * variance_gradient)

    def mean_gradient(self, Z: ArrayLike) -> tuple[Array, Array]:
        """μ_t (n, p), as `predict` computes it, and its gradients (n, p, d): half the work of `predict_gradient`."""
        points = as_points(Z, "Z", self.dimension)
        mean = np.empty((len(points), self.output_count))
        gradient = np.empty((*mean.shape, self.dimension))
        for block in self._blocks(len(points), 1 + self.dimension):
            jet = self.kernel.jet(points[block], self.inputs)
            gradient[block] = (jet[1:] @ self._weights).transpose(1, 2, 0)
            # The weights of close inputs nearly cancel, so they serve only for the gradient.
            mean[block] = self._solve(jet[0].T).T @ self.whitened
        return mean, gradient

    def jet(self, Z: ArrayLike) -> Jet:
        """Means and posterior sds of f and of every ∂_j f at the rows of Z; needs −φ''(0) (Matérn: ν > 1)."""
        points = as_points(Z, "Z", self.dimension)
        n, d, p = len(points), self.dimension, self.output_count
        if self.kernel.curvature is None:
            raise ArgumentError(
                f"derivatives need a kernel with −φ''(0); got {self.kernel}. Use a Matérn kernel with nu > 1."
            )
        mean, variance = np.empty((1 + d, n, p)), np.empty((1 + d, n))
        for block in self._blocks(n, 1 + d):
            jet = self.kernel.jet(points[block], self.inputs)
            V = self._solve(jet.reshape(jet.shape[0] * jet.shape[1], self.count).T)
            mean[:, block] = (V.T @ self.whitened).reshape(1 + d, -1, p)
            variance[:, block] = self._jet_variances - np.vecdot(V.T, V.T).reshape(1 + d, -1)
        sd = np.sqrt(np.maximum(variance, 0.0))
        return Jet(mean[0], sd[0], mean[1:].transpose(1, 2, 0), sd[1:].T)

    def influence(self, Z: ArrayLike, slopes: bool) -> Array:
        """β = (K_t + Λ)⁻¹l(k_t) for l = f(z) at the rows of Z, (1, n, t), or with every ∂_j f(z), (1 + d, n, t).

        The mean of l is βᵀY.
        """
        points = as_points(Z, "Z", self.dimension)
        parts = 1 + self.dimension if slopes else 1
        beta = np.empty((parts, len(points), self.count))
        for block in self._blocks(len(points), parts):
            jet = self.kernel.jet(points[block], self.inputs) if slopes else self.kernel(points[block], self.inputs)
            V = self._solve(jet.reshape(-1, self.count).T)
            beta[:, block] = self._solve(V, transposed=True).T.reshape(parts, -1, self.count)
        return beta

    # ---- linear algebra

    @cached_property
    def _jet_variances(self) -> Array:
        """The prior variances of f and of every ∂_j f, (1 + d, 1)."""
        return np.append(self.kernel.variance, self.kernel.derivative_variances(self.dimension))[:, None]

    @property
    def data_weights(self) -> Array:
        """α = (K_t + Λ)⁻¹Y, shape (t, p)."""
        return self._weights

    @cached_property
    def _weights(self) -> Array:
        """α = (K_t + λI)⁻¹Y, shape (t, p)."""
        return self._solve(self.whitened.copy(order="F"), transposed=True)

    def _solve(self, rhs: Array, transposed: bool = False) -> Array:
        """L⁻¹·rhs (or L⁻ᵀ·rhs) for a (t, n) array that may be overwritten."""
        return self._factor.solve(rhs, transposed)

    def _blocks(self, n: int, columns: int) -> Iterator[slice]:
        """Slices of 0..n−1 such that (t, columns·block) matrices have a bounded size."""
        size = max(1, _BLOCK_ENTRIES // (max(self.count, 1) * columns))
        return (slice(i, min(i + size, n)) for i in range(0, n, size))
