"""Interpolation of a squared-exponential posterior of one input, for predictions at very many points.

μ_t and σ_t² are entire functions: off the real line |μ_t(ζ)| ≤ ‖μ_t‖·s·e^{y²} and |k(ζ, ζ) − σ_t²(ζ)| ≤ s²·e^{2y²} with
y = Im ζ/ℓ (Cauchy–Schwarz against ‖k_ζ‖² = s²·e^{2y²}). So the polynomial through N + 1 Chebyshev points of an interval
of half-width R·ℓ has an error of at most 4·M·r^{−N}/(r − 1) for every r > 1. Here M is that bound on the ellipse of
parameter r, where y ≤ R(r − 1/r)/2. About 90 points suffice for ten lengthscales up to rounding, for any t.

For millions of points the polynomial is tabulated and interpolated by the cubic through the four nodes around a point.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.gp.posterior import Posterior, Prediction
from cascada.kernels.squared_exponential import SquaredExponential

# The target interpolation error, relative to s² for variances and smaller for means. Rounding errors are as large.
_ACCURACY = 1e-15

# The largest number of nodes: the matrix from values to coefficients has its square as number of entries.
_MOST_NODES = 1000

# Fourth derivatives in units of 1/ℓ⁴: ‖∂⁴k_z‖ = √105·s, and of k_zᵀ(K + λ)⁻¹k_z by Leibniz' rule:
# 2·‖∂⁴k‖‖k‖ + 8·‖∂³k‖‖∂k‖ + 6·‖∂²k‖² with norms √105, √15, √3, 1, 1 (times s).
_FOURTH_OF_MEAN = math.sqrt(105)
_FOURTH_OF_VARIANCE = 2 * math.sqrt(105) + 8 * math.sqrt(15) + 6 * 3

# The cubic through nodes −1, 0, 1, 2 has an error of at most (9/16)/4! · h⁴·max|f''''| between the nodes 0 and 1.
_CUBIC = 9 / 16 / 24


@dataclass(frozen=True, eq=False)
class Line:
    """Polynomials for mean and variance on [low, high], with bounds of their error apart from rounding."""

    posterior: Posterior
    low: float
    high: float

    def __post_init__(self) -> None:
        if not suits(self.posterior):
            raise ArgumentError(
                f"a line needs a squared exponential posterior of one input; got {self.posterior.kernel!r} "
                f"with {self.posterior.dimension} inputs. Use posterior.predict."
            )

    @property
    def _unit(self) -> float:
        return float(self.posterior.kernel.lengthscales(1)[0])

    @property
    def degree(self) -> int:
        """N, the degree of the polynomials."""
        return _degree(round(self._half / self._unit, 1) + 0.1)

    @property
    def _half(self) -> float:
        return max(0.5 * (self.high - self.low), 1e-6 * self._unit)

    @property
    def _centre(self) -> float:
        return 0.5 * (self.low + self.high)

    @property
    def variance_error(self) -> float:
        """The largest error of an interpolated σ²."""
        return self.posterior.kernel.variance * _ACCURACY

    @property
    def mean_error(self) -> Array:
        """The largest error of an interpolated mean for every output, (p,)."""
        return self.posterior.mean_norm * math.sqrt(self.posterior.kernel.variance) * _ACCURACY

    @cached_property
    def _coefficients(self) -> Array:
        """Chebyshev coefficients of the means and, last, of the variance, (N + 1, p + 1)."""
        points, transform = _chebyshev(self.degree)
        at = self.posterior.predict((self._centre + self._half * points)[:, None])
        return transform @ np.column_stack([at.mean, at.sd**2])

    def _values(self, z: Array) -> Array:
        """Means and variance at points (n,), shape (p + 1, n)."""
        from numpy.polynomial import chebyshev  # slow to import, and many studies have no such line

        return np.asarray(chebyshev.chebval((z - self._centre) / self._half, self._coefficients), dtype=np.float64)

    def predict(self, z: Array) -> Prediction:
        """Means (n, p) and sds (n,) at points (n,) of the interval."""
        values = self._values(z)
        return Prediction(values[:-1].T, np.sqrt(np.maximum(values[-1], 0.0)))

    def table(self, nodes: int) -> "LineTable":
        """The same functions as cubics between `nodes` evenly spaced nodes."""
        step = 2 * self._half / (nodes - 3)
        start = self._centre - self._half - step
        ends = self._centre - self._half, self._centre + self._half
        values = self._values(np.clip(start + step * np.arange(nodes), *ends))
        # The outermost nodes lie outside the interval, where the polynomial is invalid: extrapolate cubically.
        values[:, 0] = 4 * values[:, 1] - 6 * values[:, 2] + 4 * values[:, 3] - values[:, 4]
        values[:, -1] = 4 * values[:, -2] - 6 * values[:, -3] + 4 * values[:, -4] - values[:, -5]
        a, b, c, d = (values[:, i : nodes - 3 + i] for i in range(4))
        # f(u) = p0 + u(p1 + u(p2 + u·p3)), where u runs from 0 at the second of the four nodes to 1 at the third.
        cubic = np.stack([b, -a / 3 - b / 2 + c - d / 6, a / 2 - b + c / 2, -a / 6 + b / 2 - c / 2 + d / 6])
        return LineTable(self, start + step, step, np.ascontiguousarray(cubic.transpose(1, 0, 2)))


@dataclass(frozen=True, eq=False)
class LineTable:
    """Cubics of means and variance, (p + 1, 4, cells), between evenly spaced nodes."""

    line: Line
    start: float
    step: float
    cubic: Array

    @property
    def variance_error(self) -> float:
        """The largest error of a tabulated σ² apart from rounding; the error of σ is at most its root."""
        kernel = self.line.posterior.kernel
        # The end cells use an extrapolated node with an error of h⁴·max|f''''|, whose weight is at most 1/15.
        scaled = (self.step / self.line._unit) ** 4
        return self.line.variance_error * 2 + kernel.variance * _FOURTH_OF_VARIANCE * (_CUBIC + 1 / 15) * scaled

    @property
    def mean_error(self) -> Array:
        """The largest error of a tabulated mean apart from rounding for every output, (p,)."""
        kernel, norm = self.line.posterior.kernel, self.line.posterior.mean_norm
        scaled = (self.step / self.line._unit) ** 4
        return (
            self.line.mean_error * 2 + norm * math.sqrt(kernel.variance) * _FOURTH_OF_MEAN * (_CUBIC + 1 / 15) * scaled
        )

    @cached_property
    def at_nodes(self) -> tuple[Array, Array]:
        """Mean of the first output and sd at the first node of each cell and at the last node, each (cells + 1,)."""
        ends = self.cubic[:, :, -1].sum(axis=1, keepdims=True)
        values = np.hstack([self.cubic[:, 0], ends])
        return values[0], np.sqrt(np.maximum(values[-1], 0.0))

    def draw(self, z: Array, xi: Array, output: int = 0) -> Array:
        """μ(z) + σ(z)·ξ for one output, elementwise on arrays that broadcast to the shape of z."""
        u = (z - self.start) * (1.0 / self.step)
        cell = np.clip(u.astype(np.int32), 0, self.cubic.shape[2] - 1)
        u -= cell
        mean, variance = self._cubic(output, cell, u), self._cubic(-1, cell, u)
        np.maximum(variance, 0.0, out=variance)
        np.sqrt(variance, out=variance)
        variance *= xi
        variance += mean
        return variance

    def _cubic(self, row: int, cell: "np.ndarray[Any, np.dtype[np.int32]]", u: Array) -> Array:
        """One row's cubic at the positions u of the cells, by Horner's rule."""
        p0, p1, p2, p3 = self.cubic[row]
        value = p3.take(cell)
        for coefficient in (p2, p1, p0):
            value *= u
            value += coefficient.take(cell)
        return value


def suits(posterior: Posterior) -> bool:
    """Whether a posterior can be interpolated on a line."""
    return isinstance(posterior.kernel, SquaredExponential) and posterior.dimension == 1


def predict_on_line(posterior: Posterior, Z: Array) -> Prediction:
    """`posterior.predict`, interpolated if that is faster (many points of one input)."""
    if suits(posterior) and len(Z) >= 256 and posterior.count >= 16:
        line = Line(posterior, float(Z.min()), float(Z.max()))
        if 4 * line.degree < len(Z) and line.degree < min(posterior.count**2, _MOST_NODES):
            return line.predict(Z[:, 0])
    return posterior.predict(Z)


@lru_cache(maxsize=256)
def _degree(half_width: float) -> int:
    """The smallest N that meets the error bound above; R is the half-width in lengthscales."""
    r = 1.0 + np.geomspace(1e-3, 1e3, 4000)
    grown = 2 * (0.5 * half_width * (r - 1 / r)) ** 2  # log M of the variance, which exceeds that of the mean
    with np.errstate(over="ignore"):
        needed = (math.log(4 / _ACCURACY) + grown - np.log(r - 1)) / np.log(r)
    return max(2, math.ceil(float(needed.min())))


@lru_cache(maxsize=16)
def _chebyshev(degree: int) -> tuple[Array, Array]:
    """The Chebyshev points of the first kind, and the matrix from values there to coefficients."""
    from numpy.polynomial import chebyshev  # slow to import, and many studies have no such line

    points = chebyshev.chebpts1(degree + 1)
    # T_k at point j is cos(k(2j + 1)π/(2N + 2)), with points counted from the right; a recurrence would lose N²·u.
    index = np.arange(degree + 1)
    turns = np.outer(index, 2 * index[::-1] + 1) % (4 * (degree + 1))
    matrix = np.cos(np.pi / (2 * (degree + 1)) * turns) * (2.0 / (degree + 1))
    matrix[0] *= 0.5
    return points, matrix
