"""Functions of known RKHS norm: finite sums of kernel sections.

They satisfy every assumption of the theory by construction. They are used as test functions, in the certified problems
and in the demo.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array, as_points, as_positive
from cascada.kernels.operator import OperatorKernel
from cascada.kernels.stationary import Stationary


@dataclass(frozen=True, eq=False)
class Expansion:
    """f_j(x) = Σ_i a_ij·k(x, c_i): independent outputs, each with its own norm."""

    kernel: Stationary
    centres: Array  # (n0, d)
    coefficients: Array  # (n0, p)

    def __call__(self, X: ArrayLike) -> Array:
        """f at the rows of X, shape (n, p)."""
        points = as_points(X, "X", self.centres.shape[1])
        # One dot product per value, so that the result at a point does not depend on the batch.
        return np.vecdot(self.kernel(points, self.centres)[:, None, :], self.coefficients.T)

    @property
    def norm(self) -> Array:
        """‖f_j‖_k for every output, shape (p,)."""
        gram = self.kernel(self.centres, self.centres)
        return np.sqrt(np.einsum("ip,ij,jp->p", self.coefficients, gram, self.coefficients))  # eq:norm

    def scaled_to(self, norm: float) -> "Expansion":
        """The function scaled so that ‖f_j‖_k = norm for every output."""
        return Expansion(self.kernel, self.centres, self.coefficients * (as_positive(norm, "norm") / self.norm))


@dataclass(frozen=True, eq=False)
class OperatorExpansion:
    """f(x) = Σ_i Γ(x, c_i)·a_i: a vector-valued function with one joint norm."""

    kernel: OperatorKernel
    centres: Array  # (n0, d)
    coefficients: Array  # (n0, p)

    def __call__(self, X: ArrayLike) -> Array:
        """f at the rows of X, shape (n, p)."""
        points = as_points(X, "X", self.centres.shape[1])
        blocks = self.kernel.blocks(points, self.centres, self.coefficients.shape[1])
        shape = (len(points), self.coefficients.shape[1], self.coefficients.size)
        rows = np.ascontiguousarray(blocks.transpose(0, 2, 1, 3)).reshape(shape)
        return np.vecdot(rows, self.coefficients.ravel())

    @property
    def norm(self) -> float:
        """‖f‖_Γ."""
        blocks = self.kernel.blocks(self.centres, self.centres, self.coefficients.shape[1])
        square = np.einsum("ip,ijpq,jq->", self.coefficients, blocks, self.coefficients)  # eq:mul_norm
        return float(np.sqrt(square))

    def scaled_to(self, norm: float) -> "OperatorExpansion":
        """The function scaled so that ‖f‖_Γ = norm."""
        factor = as_positive(norm, "norm") / self.norm
        return OperatorExpansion(self.kernel, self.centres, self.coefficients * factor)


def random_expansion(
    kernel: Stationary,
    low: ArrayLike,
    high: ArrayLike,
    *,
    norm: float,
    rng: np.random.Generator,
    outputs: int = 1,
    terms: int = 30,
) -> Expansion:
    """A random function of the given norm: uniform centres in [low, high], N(0, 1) coefficients, then scaled."""
    return Expansion(kernel, *_draw(low, high, outputs, terms, rng)).scaled_to(norm)


def random_operator_expansion(
    kernel: OperatorKernel,
    low: ArrayLike,
    high: ArrayLike,
    *,
    norm: float,
    outputs: int,
    rng: np.random.Generator,
    terms: int = 30,
) -> OperatorExpansion:
    """A random vector-valued function of the given joint norm, drawn like `random_expansion`."""
    return OperatorExpansion(kernel, *_draw(low, high, outputs, terms, rng)).scaled_to(norm)


def _draw(low: ArrayLike, high: ArrayLike, outputs: int, terms: int, rng: np.random.Generator) -> tuple[Array, Array]:
    lows, highs = np.atleast_1d(np.asarray(low, float)), np.atleast_1d(np.asarray(high, float))
    centres = rng.uniform(lows, highs, size=(terms, lows.size))
    return centres, rng.standard_normal((terms, outputs))
