"""Operator-valued kernels Γ(x, x') ∈ ℝ^{p×p} for functions with several outputs and one joint norm.

`Separable` is k(x, x')·A. `BlockKernel` is any Γ, given as a named function that returns blocks.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array, check_scale
from cascada.errors import ArgumentError
from cascada.kernels.stationary import Stationary

# Largest deviation of a given matrix from symmetry or positive semidefiniteness, relative to the outputs' variances.
_TOLERANCE = 1e-10


class OperatorKernel(ABC):
    """A symmetric positive semidefinite kernel with p×p values."""

    @abstractmethod
    def blocks(self, X: Array, Z: Array, outputs: int) -> Array:
        """Γ(x_i, z_j), shape (n, m, p, p)."""

    @abstractmethod
    def check_dimension(self, dimension: int) -> None:
        """Raise `ArgumentError` unless the kernel accepts inputs of this dimension."""


@dataclass(frozen=True)
class Separable(OperatorKernel):
    """Γ(x, x') = k(x, x')·A with A symmetric positive semidefinite; by default A is the identity.

    >>> from cascada.kernels import SquaredExponential
    >>> Separable(SquaredExponential(1.0), [[2.0, 1.0], [1.0, 2.0]]).spectral_norm
    3.0
    """

    kernel: Stationary
    matrix: tuple[tuple[float, ...], ...] | None = None

    def __init__(self, kernel: Stationary, matrix: ArrayLike | None = None) -> None:
        if not isinstance(kernel, Stationary):
            raise ArgumentError(f"Separable needs a scalar kernel such as Matern(2.5); got {kernel!r}.")
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "matrix", None if matrix is None else _as_semidefinite(matrix))

    def matrix_for(self, outputs: int) -> Array:
        """A as a (p, p) array."""
        if self.matrix is None:
            return np.eye(outputs)
        if len(self.matrix) != outputs:
            raise ArgumentError(
                f"the separable kernel's matrix is {len(self.matrix)}×{len(self.matrix)} but there are "
                f"{outputs} outputs; give a matrix of that size, or none for the identity."
            )
        return np.array(self.matrix)

    @property
    def spectral_norm(self) -> float:
        """‖A‖₂, the largest eigenvalue of A."""
        return 1.0 if self.matrix is None else float(np.linalg.eigvalsh(np.array(self.matrix))[-1])

    def blocks(self, X: Array, Z: Array, outputs: int) -> Array:
        return self.kernel(X, Z)[:, :, None, None] * self.matrix_for(outputs)

    def check_dimension(self, dimension: int) -> None:
        self.kernel.lengthscales(dimension)


@dataclass(frozen=True)
class BlockKernel(OperatorKernel):
    """Γ given as a function of two arrays of points (n, d) and (m, d) that returns blocks (n, m, p, p).

    Functions are not stored: the name identifies the kernel in stored studies. Symmetry and positive semidefiniteness
    are checked on the data when a posterior is fitted.
    """

    name: str
    function: Callable[[Array, Array], ArrayLike]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ArgumentError(f"a BlockKernel needs a non-empty name; got {self.name!r}.")
        if not callable(self.function):
            raise ArgumentError(f"BlockKernel {self.name!r} needs a function (X, Z) -> blocks; got {self.function!r}.")

    def blocks(self, X: Array, Z: Array, outputs: int) -> Array:
        values = np.asarray(self.function(X, Z), dtype=np.float64)
        expected = (X.shape[0], Z.shape[0], outputs, outputs)
        if values.shape != expected:
            raise ArgumentError(
                f"BlockKernel {self.name!r} must return blocks of shape (n, m, p, p) = {expected}; got {values.shape}."
            )
        if not np.isfinite(values).all():
            raise ArgumentError(f"BlockKernel {self.name!r} must return finite values; got NaN or infinity.")
        return values

    def check_dimension(self, dimension: int) -> None:
        """Accept any dimension; the function itself may raise."""

    def check_symmetric(self, X: Array, Z: Array, outputs: int) -> None:
        """Raise `ArgumentError` unless Γ(x_i, z_j) = Γ(z_j, x_i)ᵀ for all rows."""
        blocks = self.blocks(X, Z, outputs)
        gap = np.abs(blocks - self.blocks(Z, X, outputs).transpose(1, 0, 3, 2))
        if gap.size and gap.max() > _TOLERANCE * np.abs(blocks).max():
            i, j, *_ = np.unravel_index(int(gap.argmax()), gap.shape)
            raise ArgumentError(
                f"BlockKernel {self.name!r} is not symmetric: Γ(x, z) and Γ(z, x)ᵀ differ by {gap.max():.3g} at "
                f"x = {X[i]}, z = {Z[j]}. Return blocks with Γ(x, z) = Γ(z, x)ᵀ."
            )


def _as_semidefinite(matrix: ArrayLike) -> tuple[tuple[float, ...], ...]:
    try:
        array = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"the separable kernel's matrix must be an array of numbers; got {matrix!r}.") from None
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] == 0:
        raise ArgumentError(f"the separable kernel's matrix must be square; got shape {array.shape}.")
    if not np.isfinite(array).all() or not array.any():
        raise ArgumentError(f"the separable kernel's matrix must be finite and not all zero; got {matrix!r:.100}.")
    if np.any(np.diag(array) < 0):
        raise ArgumentError(
            f"the separable kernel's matrix must be positive semidefinite; its diagonal has "
            f"{np.diag(array).min():.3g}. Variances of outputs must be ≥ 0."
        )
    check_scale(np.diag(array)[np.diag(array) > 0], "the diagonal of the separable kernel's matrix", 1e-200, 1e200)
    scaled, _ = equilibrated(array)
    if np.abs(scaled - scaled.T).max() > _TOLERANCE:
        raise ArgumentError(
            f"the separable kernel's matrix must be symmetric; got {matrix!r:.100}. Use (A + Aᵀ)/2 if that is intended."
        )
    array, scaled = 0.5 * (array + array.T), 0.5 * (scaled + scaled.T)
    if scaled[np.diag(array) == 0].any():
        raise ArgumentError(
            "the separable kernel's matrix must be positive semidefinite; got a row with 0 on the diagonal and nonzero "
            "entries elsewhere. Give that output a variance above 0."
        )
    smallest = float(np.linalg.eigvalsh(scaled)[0])
    if smallest < -_TOLERANCE * len(scaled):
        raise ArgumentError(
            f"the separable kernel's matrix must be positive semidefinite; with its diagonal scaled to about 1 its "
            f"smallest eigenvalue is {smallest:.3g}. Check the covariances off the diagonal."
        )
    return tuple(tuple(float(v) for v in row) for row in array)


def equilibrated(matrix: Array) -> tuple[Array, Array]:
    """R and D (p,) with A = D·R·D, where D holds powers of two near the roots of the diagonal, so that R is exact.

    R is decomposed instead of A, so that rounding errors of large outputs do not exceed small outputs.
    """
    diagonal = np.diag(matrix)
    roots = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scales = np.exp2(np.round(np.log2(roots)))
    return matrix / scales[:, None] / scales, scales
