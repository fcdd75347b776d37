"""Reference implementation of the mathematics: plain loops in 50-digit arithmetic, slow and simple.

Nothing here shares code, formulas or tricks with `src`: Bessel functions instead of recurrences, sums instead of
matrix products, no slack. A kernel is reduced to its parameters, and every float is treated as an exact binary
fraction. Results are `mpf` numbers, whose comparisons are exact and whose differences are rounded once.

Letters: X inputs (t rows), y outputs (t), z a query, j a coordinate, λ the jitter relative to s².
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

import mpmath
from mpmath import mpf

from cascada.arrays import Array
from cascada.kernels import Additive, Stationary

DIGITS = 50

Function = TypeVar("Function", bound=Callable[..., Any])


def with_digits(digits: int) -> Callable[[Function], Function]:
    """Return a decorator that makes a function compute with this many digits."""
    return cast("Callable[[Function], Function]", mpmath.workdps(digits))


precise = with_digits(DIGITS)

Number = Any  # mpmath.mpf; mpmath ships no types
Vector = Sequence[Any] | Array
Matrix = Sequence[Vector] | Array


# ---- profiles φ(r); ν = None stands for the squared exponential


def _profile(nu: float | None, r: Number) -> Number:
    r = mpf(r)
    if r == 0:
        return mpf(1)
    if nu is None:
        return mpmath.exp(-(r**2) / 2)
    u = mpmath.sqrt(2 * mpf(nu)) * r
    return 2 ** (1 - mpf(nu)) / mpmath.gamma(nu) * u**nu * mpmath.besselk(nu, u)


@cache
@precise
def profile(nu: float | None, r: Number) -> Number:
    """φ(r): exp(−r²/2), or the paper's k_Matérn."""
    return _profile(nu, r)


def _profile_derivative(nu: float | None, r: Number) -> Number:
    r = mpf(r)
    if nu is None:
        return -r * mpmath.exp(-(r**2) / 2)
    scale = mpmath.sqrt(2 * mpf(nu))
    u = scale * r
    return -scale * 2 ** (1 - mpf(nu)) / mpmath.gamma(nu) * u**nu * mpmath.besselk(mpf(nu) - 1, u)


@cache
@precise
def profile_derivative(nu: float | None, r: Number) -> Number:
    """φ'(r) for r > 0, by (u^ν·K_ν(u))' = −u^ν·K_{ν−1}(u)."""
    return _profile_derivative(nu, r)


@cache
def curvature(nu: float | None) -> Number:
    """−φ''(0), as the second central difference: off by O(r² + r^{2ν−2})."""
    with mpmath.workdps(4 * DIGITS):
        r = mpf(10) ** -DIGITS
        return (2 - 2 * _profile(nu, r)) / r**2


@cache
def fourth_derivative(nu: float | None) -> Number:
    """φ''''(0), as the fourth central difference: off by O(r² + r^{2ν−4})."""
    with mpmath.workdps(3 * DIGITS):
        r = mpf(10) ** -(DIGITS // 2)
        return (2 * _profile(nu, 2 * r) - 8 * _profile(nu, r) + 6) / r**4


@cache
@with_digits(2 * DIGITS)  # all but r⁴ cancels
def squared_remainder(nu: float | None, r: Number) -> Number:
    """The squared norm of f ↦ f(c + u) − f(c) − ∇f(c)·u at ‖u/ℓ‖ = r, for s = 1."""
    r = mpf(r)
    phi, slope = _profile(nu, r), _profile_derivative(nu, r)
    # ⟨k(·, c+u) − k(·, c) − u·∇k(·, c)⟩² by the reproducing property; u·∇k(c+u, c) = −rφ'(r), u·∇k(c, c) = 0.
    return 1 + 1 + curvature(nu) * r**2 - 2 * phi + 2 * r * slope


# ---- kernels


@dataclass(frozen=True)
class Kernel:
    """k(x, z) = s²·φ(‖(x − z)/ℓ‖₂), given by its parameters."""

    nu: float | None
    lengthscales: tuple[float, ...]
    variance: float

    @staticmethod
    def like(kernel: Stationary, dimension: int) -> "Kernel":
        form, profile = (AdditiveKernel, kernel.kernel) if isinstance(kernel, Additive) else (Kernel, kernel)
        ell = kernel.lengthscale
        scales = (ell,) * dimension if isinstance(ell, float) else ell
        return form(getattr(profile, "nu", None), scales, kernel.variance)

    @precise
    def scaled_distance(self, x: Vector, z: Vector) -> Number:
        """r = ‖(x − z)/ℓ‖₂."""
        total = mpf(0)
        for a, b, ell in zip(x, z, self.lengthscales, strict=True):
            total += ((mpf(a) - mpf(b)) / mpf(ell)) ** 2
        return mpmath.sqrt(total)

    @precise
    def __call__(self, x: Vector, z: Vector) -> Number:
        """k(x, z)."""
        return mpf(self.variance) * profile(self.nu, self.scaled_distance(x, z))

    @precise
    def derivative(self, z: Vector, x: Vector, j: int) -> Number:
        """∂k(z, x)/∂z_j; 0 where z = x."""
        r = self.scaled_distance(z, x)
        if r == 0:
            return mpf(0)
        outer = mpf(self.variance) * profile_derivative(self.nu, r)
        return outer * (mpf(z[j]) - mpf(x[j])) / (mpf(self.lengthscales[j]) ** 2 * r)

    @precise
    def derivative_variance(self, j: int) -> Number:
        """∂²k(x, z)/∂x_j∂z_j at x = z: −s²·φ''(0)/ℓ_j²."""
        return mpf(self.variance) * curvature(self.nu) / mpf(self.lengthscales[j]) ** 2

    @precise
    def metric(self, r: Number) -> Number:
        """d_k at scaled distance r: the norm of f ↦ f(x) − f(x')."""
        return mpmath.sqrt(2 * mpf(self.variance) * (1 - profile(self.nu, r)))

    @precise
    def remainder(self, r: Number) -> Number:
        """The norm of f ↦ f(c + u) − f(c) − ∇f(c)·u at ‖u/ℓ‖ = r."""
        return mpmath.sqrt(mpf(self.variance) * squared_remainder(self.nu, r)) if r else mpf(0)

    def difference_norm(self, u: Vector) -> Number:
        """The norm of f ↦ f(c + u) − f(c)."""
        return self.metric(self.scaled_distance(u, [0] * len(u)))

    def remainder_norm(self, u: Vector) -> Number:
        """The norm of f ↦ f(c + u) − f(c) − ∇f(c)·u."""
        return self.remainder(self.scaled_distance(u, [0] * len(u)))


class AdditiveKernel(Kernel):
    """k(x, z) = (1/d)·Σ_j k_j(x_j, z_j), the mean of kernels of one input each."""

    @property
    def parts(self) -> list[Kernel]:
        return [Kernel(self.nu, (ell,), self.variance) for ell in self.lengthscales]

    @precise
    def __call__(self, x: Vector, z: Vector) -> Number:
        terms = [part([a], [b]) for part, a, b in zip(self.parts, x, z, strict=True)]
        return mpmath.fsum(terms) / len(terms)

    @precise
    def derivative(self, z: Vector, x: Vector, j: int) -> Number:
        """Only one term depends on z_j."""
        return self.parts[j].derivative([z[j]], [x[j]], 0) / len(self.lengthscales)

    @precise
    def derivative_variance(self, j: int) -> Number:
        return self.parts[j].derivative_variance(0) / len(self.lengthscales)

    # A functional l has the squared norm l_x l_z k(x, z), which is linear in k.

    @precise
    def difference_norm(self, u: Vector) -> Number:
        squares = [part.difference_norm([a]) ** 2 for part, a in zip(self.parts, u, strict=True)]
        return mpmath.sqrt(mpmath.fsum(squares) / len(squares))

    @precise
    def remainder_norm(self, u: Vector) -> Number:
        squares = [part.remainder_norm([a]) ** 2 for part, a in zip(self.parts, u, strict=True)]
        return mpmath.sqrt(mpmath.fsum(squares) / len(squares))


def gram(kernel: Callable[[Vector, Vector], Number], X: Matrix, Z: Matrix) -> list[list[Number]]:
    """k(x_i, z_j) for all rows."""
    return [[kernel(x, z) for z in Z] for x in X]


@precise
def expansion_norm(kernel: Callable[[Vector, Vector], Number], centres: Matrix, coefficients: Vector) -> Number:
    """‖Σ_i a_i·k(·, c_i)‖_k."""
    square = mpf(0)
    for a, x in zip(coefficients, centres, strict=True):
        for b, z in zip(coefficients, centres, strict=True):
            square += mpf(a) * mpf(b) * kernel(x, z)  # eq:norm
    return mpmath.sqrt(square)


# ---- posteriors


class Factor:
    """Products aᵀM⁻¹b for a positive definite M, through M = LLᵀ: aᵀM⁻¹b = ⟨L⁻¹a, L⁻¹b⟩."""

    def __init__(self, M: Sequence[Sequence[Number]]) -> None:
        with mpmath.workdps(DIGITS):
            self.L = mpmath.cholesky(mpmath.matrix(M)).tolist() if M else []

    @precise
    def whiten(self, b: Vector) -> list[Number]:
        """L⁻¹b by forward substitution."""
        solution: list[Number] = []
        for row, value in zip(self.L, b, strict=True):
            known = mpmath.fdot(zip(row, solution))  # noqa: B905 - the row goes on beyond what is solved
            solution.append((mpf(value) - known) / row[len(solution)])
        return solution

    @precise
    def product(self, a: Vector, b: Vector) -> Number:
        """aᵀM⁻¹b."""
        white = self.whiten(a)
        return mpmath.fdot(white, white if b is a else self.whiten(b))


class Posterior:
    """μ_t and σ_t of one output."""

    def __init__(self, kernel: Kernel, X: Matrix, y: Vector, jitter: float | Vector, K: Any = None) -> None:
        """`jitter` is one λ, or one for every row. `K` saves the time to compute `gram(kernel, X, X)` again."""
        self.kernel, self.X, self.y = kernel, X, y
        self.K = gram(kernel, X, X) if K is None else K
        with mpmath.workdps(DIGITS):
            each = [jitter] * len(y) if isinstance(jitter, float) else jitter
            noise = [mpf(lam) * mpf(kernel.variance) for lam in each]
            self.factor = Factor([[k + noise[i] * (i == j) for j, k in enumerate(row)] for i, row in enumerate(self.K)])
        self._white = self.factor.whiten(y)

    @precise
    def _weigh(self, k: Vector) -> Number:
        """kᵀ(K_t + λs²I)⁻¹y."""
        return mpmath.fdot(self.factor.whiten(k), self._white)

    def mean(self, z: Vector) -> Number:
        return self._weigh(self._sections(z))  # eq:mean

    @precise
    def sd(self, z: Vector) -> Number:
        k = self._sections(z)
        return mpmath.sqrt(self.kernel(z, z) - self.factor.product(k, k))  # eq:var

    def derivative_mean(self, z: Vector, j: int) -> Number:
        return self._weigh(self._derivatives(z, j))

    @precise
    def derivative_sd(self, z: Vector, j: int) -> Number:
        """The posterior sd of ∂_j f(z)."""
        dk = self._derivatives(z, j)
        return mpmath.sqrt(self.kernel.derivative_variance(j) - self.factor.product(dk, dk))

    @property
    @precise
    def spent(self) -> Number:
        """yᵀ(K_t + λs²I)⁻¹y."""
        return mpmath.fdot(self._white, self._white)

    @property
    @precise
    def mean_norm(self) -> Number:
        """‖μ_t‖_k = sqrt(αᵀK_tα) with α = (K_t + λs²I)⁻¹y."""
        t = len(self.y)
        alpha = [self._weigh([int(i == j) for j in range(t)]) for i in range(t)]
        return mpmath.sqrt(mpmath.fdot(alpha, [mpmath.fdot(row, alpha) for row in self.K]))

    def _sections(self, z: Vector) -> list[Number]:
        return [self.kernel(z, x) for x in self.X]

    def _derivatives(self, z: Vector, j: int) -> list[Number]:
        return [self.kernel.derivative(z, x, j) for x in self.X]


# ---- operator-valued kernels; a block is Γ(x, z) as p rows of p numbers

Blocks = Callable[[Vector, Vector], Matrix]


def separable(kernel: Callable[[Vector, Vector], Number], A: Matrix) -> Blocks:
    """Γ(x, z) = k(x, z)·A."""

    @precise
    def block(x: Vector, z: Vector) -> Matrix:
        k = kernel(x, z)
        return [[k * mpf(a) for a in row] for row in A]

    return block


@precise
def operator_expansion_norm(blocks: Blocks, centres: Matrix, coefficients: Matrix) -> Number:
    """‖Σ_i Γ(·, c_i)·a_i‖_Γ."""
    square = mpf(0)
    for a, x in zip(coefficients, centres, strict=True):
        for b, z in zip(coefficients, centres, strict=True):
            for row, left in zip(blocks(x, z), a, strict=True):
                for entry, right in zip(row, b, strict=True):
                    square += mpf(left) * mpf(entry) * mpf(right)  # eq:mul_norm
    return mpmath.sqrt(square)


class OperatorPosterior:
    """μ_t and Γ_t; `noise(i, a, b)` is the jitter between outputs a and b of observation i."""

    def __init__(self, blocks: Blocks, X: Matrix, Y: Matrix, noise: Callable[[int, int, int], Number]) -> None:
        self.blocks, self.X, self.outputs = blocks, X, range(len(Y[0]))
        self.y = [value for row in Y for value in row]
        with mpmath.workdps(DIGITS):
            self.factor = Factor(
                [
                    [
                        mpf(blocks(x, z)[a][b]) + (noise(i, a, b) if i == j else 0)
                        for j, z in enumerate(X)
                        for b in self.outputs
                    ]
                    for i, x in enumerate(X)
                    for a in self.outputs
                ]
            )

    def mean(self, z: Vector) -> list[Number]:
        return [self.factor.product(self._column(z, a), self.y) for a in self.outputs]  # eq:multi_mean

    @precise
    def covariance(self, z: Vector) -> list[list[Number]]:
        prior = self.blocks(z, z)
        return [
            [mpf(prior[a][b]) - self.factor.product(self._column(z, a), self._column(z, b)) for b in self.outputs]
            for a in self.outputs
        ]  # eq:multi_var

    @property
    def spent(self) -> Number:
        """Y_tᵀ(G_t + noise)⁻¹Y_t."""
        return self.factor.product(self.y, self.y)

    def _column(self, z: Vector, a: int) -> list[Number]:
        """Column a of G_t(z), the stack of Γ(x_i, z)."""
        return [self.blocks(x, z)[b][a] for x in self.X for b in self.outputs]
