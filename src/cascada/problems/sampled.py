"""The paper's sampled chains (`sec:exp`): three stages, each drawn from a zero-mean Gaussian process.

A sample is drawn at the points of a grid and defined everywhere as the kernel expansion through those values, for what
leaves a stage lies on no grid. The values themselves are drawn as K^{1/2}ε with the *symmetric* root, which does not
depend on the signs that a linear algebra library gives to eigenvectors: the same seed, the same chain on all machines,
up to rounding.

The paper claims B = 2 for every stage. That is no bound of the norm, which is about 23 for the first stage and 5 for
the others and would grow without end on finer grids; it acts as a width of two standard deviations. By default, every
stage here claims the norm that its expansion has, so that what `maximise` proves is true.
"""

from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.kernels import Expansion, SquaredExponential
from cascada.network import Stage, chain
from cascada.problems.problem import Problem
from cascada.space import Grid, Real

KERNEL = SquaredExponential(1.0)
BOX = 5.0
POINTS = 50
PAPER_GRID = Grid({"x": POINTS, "y": POINTS})

# Later stages: beyond any value that a stage of unit variance was seen to take, at 5 points a lengthscale.
_LATER = np.linspace(-6.0, 6.0, 61)
# Eigenvalues of the Gram matrix fall by ten orders of magnitude and on. Coefficients are divided by their roots, so the
# smallest would swamp the sum with rounding; what is dropped has a variance of 1e-10 and could not be seen in a figure.
_CUTOFF = 1e-10
# The quadratic form of a norm cancels, and so do values: both are exact to about 1e-9 of themselves.
_ROUNDING = 1e-6
_BLOCK = 512


def sampled_chain(seed: int = 0, norm_bound: float | None = None, lipschitz: float | None = None) -> Problem:
    """x, y → f1 → f2 → f3, sampled; the same seed gives the same chain.

    `norm_bound` None lets each stage claim its own norm, which is true. A number is claimed for all stages, true or
    not: the paper's 2 is not. `lipschitz` is claimed for all stages, or by default derived from the norm.
    """
    rng = np.random.default_rng(seed)
    functions = [sample_on_square(rng), sample_on_line(rng), sample_on_line(rng)]
    inputs = [("x", "y"), ("f1",), ("f2",)]
    stages = [
        Stage(
            f"f{i + 1}",
            controls={name: Real(-BOX, BOX) for name in inputs[i]} if i == 0 else {},
            kernel=KERNEL,
            norm_bound=function.norm * (1.0 + _ROUNDING) if norm_bound is None else norm_bound,
            lipschitz=lipschitz,
            function=_OnePoint(function, inputs[i]),
        )
        for i, function in enumerate(functions)
    ]

    def values_at(points: Array) -> Array:
        blocks = [points[i : i + _BLOCK] for i in range(0, len(points), _BLOCK)]  # 2500 centres: bounded memory
        first = np.concatenate([np.empty((0, 1)), *(functions[0](block) for block in blocks)])
        second = functions[1](first)
        return np.hstack([points, first, second, functions[2](second)])

    return Problem("sampled-chain", "x, y → f1 → f2 → f3, Gaussian process samples", chain(*stages), values_at)


def sample_on_square(rng: np.random.Generator) -> Expansion:
    """A sample on the 50×50 grid of [−5, 5]², with its expansion.

    The kernel is a product over the two axes, so the Gram matrix is K₁ ⊗ K₁ and its eigenvectors are the products of
    the 50 of one axis: no matrix larger than 50×50 is ever decomposed.
    """
    axis = np.linspace(-BOX, BOX, POINTS)
    eigenvalues, vectors = _decomposed(axis)
    weights = _inverse_root(np.outer(eigenvalues, eigenvalues))
    noise = rng.standard_normal((POINTS, POINTS))
    coefficients = vectors @ (weights * (vectors.T @ noise @ vectors)) @ vectors.T
    centres = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    return Expansion(KERNEL, centres, coefficients.reshape(-1, 1))


def sample_on_line(rng: np.random.Generator) -> Expansion:
    """A sample on an even grid of [−6, 6], with its expansion; beyond, it falls to the prior mean 0."""
    eigenvalues, vectors = _decomposed(_LATER)
    coefficients = vectors @ (_inverse_root(eigenvalues) * (vectors.T @ rng.standard_normal(len(_LATER))))
    return Expansion(KERNEL, _LATER[:, None], coefficients[:, None])


def _decomposed(axis: Array) -> tuple[Array, Array]:
    """Eigenvalues (n,) and eigenvectors (n, n) of the Gram matrix of points on a line."""
    eigenvalues, vectors = np.linalg.eigh(KERNEL(axis[:, None], axis[:, None]))
    return eigenvalues, vectors


def _inverse_root(eigenvalues: Array) -> Array:
    """1/√λ, or 0 where λ is below the cutoff: K·(K^{−1/2}ε) = K^{1/2}ε are the sampled values."""
    kept = eigenvalues > _CUTOFF * eigenvalues.max()
    return np.where(kept, 1.0 / np.sqrt(np.where(kept, eigenvalues, 1.0)), 0.0)


@dataclass(frozen=True, eq=False)
class _OnePoint:
    """An expansion as a stage calls it: with numbers, by name."""

    expansion: Expansion
    names: tuple[str, ...]

    def __call__(self, **values: float) -> float:
        return float(self.expansion([[values[name] for name in self.names]])[0, 0])
