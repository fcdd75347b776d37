"""Functions of exactly known norm, in 60-digit arithmetic: their values are rounded once, to the nearest float.

Where a kernel matrix or the matrix of a `Separable` kernel is nearly singular, a function in float64 is not known
accurately. Here coefficients, values and norms are mpmath numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from cascada.arrays import Array
from cascada.kernels import Matern, SquaredExponential, Stationary

DIGITS = 60

#: An mpmath number; the library ships no types.
Number = Any

#: A separate context: the precision affects nothing else in the process.
mp = mpmath.MPContext()
mp.dps = DIGITS


@dataclass(frozen=True, eq=False)
class ExactFunction:
    """f(x) = Σ_i a_i·k(x, c_i) with a_i ∈ ℝ^p; its norm is that of `norm_of`, or a joint norm of the a_i."""

    kernel: Stationary
    centres: Array  # (m, d), floats taken as exact
    coefficients: Sequence[Sequence[Number]]  # m rows of p

    def exact(self, point: Sequence[Number]) -> list[Number]:
        """f at one point, whose coordinates are floats or mpmath numbers."""
        sections = section(self.kernel, self.centres, point)
        return [mp.fdot(column, sections) for column in zip(*self.coefficients, strict=True)]

    def __call__(self, points: Array | Sequence[Sequence[Number]]) -> Array:
        """f at every point (n, p), rounded once."""
        return np.array([[rounded(value) for value in self.exact(point)] for point in points])

    def times(self, factor: Number) -> "ExactFunction":
        """The function times a number."""
        scaled = [[factor * entry for entry in row] for row in self.coefficients]
        return ExactFunction(self.kernel, self.centres, scaled)


def section(kernel: Stationary, centres: Array, point: Sequence[Number]) -> list[Number]:
    """k(x, c_i) for every centre."""
    profile, variance = _profile(kernel), mp.mpf(kernel.variance)
    weights = [1 / mp.mpf(ell) ** 2 for ell in kernel.lengthscales(centres.shape[1]).tolist()]
    x = [mp.mpf(entry) for entry in point]
    return [
        variance * profile(mp.fsum(w * (a - b) ** 2 for w, a, b in zip(weights, x, centre, strict=True)))
        for centre in centres.tolist()
    ]


def gram(kernel: Stationary, centres: Array) -> list[list[Number]]:
    """k(c_i, c_j)."""
    return [section(kernel, centres, centre) for centre in centres.tolist()]


def joint_square(kernel: Stationary, centres: Array, matrix: Array, inner: Sequence[Sequence[Number]]) -> Number:
    """Σ_ij g_iᵀ·A·g_j·k(c_i, c_j): the squared joint norm of Σ_i A·g_i·k(·, c_i) under k·A."""
    turned = times_matrix(matrix, inner)
    weights = gram(kernel, centres)
    return mp.fsum(weights[i][j] * mp.fdot(inner[i], turned[j]) for i in range(len(inner)) for j in range(len(inner)))


def times_matrix(matrix: Array, rows: Sequence[Sequence[Number]]) -> list[list[Number]]:
    """A·g for every row g, A symmetric."""
    exact = [[mp.mpf(entry) for entry in row] for row in matrix.tolist()]
    return [[mp.fdot(row, vector) for row in exact] for vector in rows]


def rounded(number: Number) -> float:
    """The nearest float."""
    with mp.workprec(53):
        return float(+number)


def _profile(kernel: Stationary) -> Callable[[Number], Number]:
    """φ as a function of r²."""
    if isinstance(kernel, SquaredExponential):
        return lambda r2: mp.exp(-r2 / 2)
    if isinstance(kernel, Matern) and kernel.nu in _POLYNOMIALS:
        polynomial, twice_nu = _POLYNOMIALS[kernel.nu], int(2 * kernel.nu)

        def profile(r2: Number) -> Number:
            u = mp.sqrt(twice_nu * r2)
            return polynomial(u) * mp.exp(-u)

        return profile
    raise NotImplementedError(f"no 60-digit profile of {kernel}")


_POLYNOMIALS: dict[float, Callable[[Number], Number]] = {
    0.5: lambda u: u**0,
    1.5: lambda u: 1 + u,
    2.5: lambda u: 1 + u + u * u / 3,
}
