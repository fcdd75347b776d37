"""The sampled chains of the paper (`sec:exp`): three stages, each drawn from a zero-mean Gaussian process.

A sample is drawn at the points of a grid and defined everywhere as the kernel expansion through these values, because
outputs of a stage do not lie on a grid. The values are drawn as K^{1/2}ε with the *symmetric* root, which does not
depend on the signs of eigenvectors: up to rounding, a seed gives the same chain on all machines.

The paper states B = 2 for every stage. This is not a bound of the norm, which is about 23 for the first stage and 5 for
the others and would grow without limit on finer grids; it acts as a width of two standard deviations. By default every
stage here has the norm of its expansion as its norm bound, so that the proofs of `maximise` are valid.
"""

from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.kernels import Expansion, SquaredExponential
from cascada.network import Stage, chain
from cascada.problems.problem import Problem
from cascada.problems.recorded import recorded_optimum
from cascada.space import Grid, Real

KERNEL = SquaredExponential(1.0)
BOX = 5.0
POINTS = 50
PAPER_GRID = Grid({"x": POINTS, "y": POINTS})
CHAIN_INPUTS = (("x", "y"), ("f1",), ("f2",))  # of each stage
CHAIN_SUMMARY = "x, y → f1 → f2 → f3, Gaussian process samples"

# The grid of later stages covers all values of a stage of unit variance, with 5 points per lengthscale.
_LATER = np.linspace(-6.0, 6.0, 61)
# Eigenvalues of the Gram matrix decrease by more than ten orders of magnitude. Coefficients are divided by their roots,
# so the smallest would dominate the sum with rounding errors. The dropped part has a variance of 1e-10.
_CUTOFF = 1e-10
# Norms and values cancel; both have a relative error of about 1e-9.
_ROUNDING = 1e-6
_BLOCK = 512


def sampled_chain(seed: int = 0, norm_bound: float | None = None, lipschitz: float | None = None) -> Problem:
    """A sampled chain x, y → f1 → f2 → f3; the seed determines the chain.

    With `norm_bound` None the bound of each stage is its true norm. A number is used for all stages, without a check;
    the 2 of the paper is not a valid bound. `lipschitz` applies to all stages; by default it is derived from the norm.
    """
    rng = np.random.default_rng(seed)
    functions = [sample_on_square(rng), sample_on_line(rng), sample_on_line(rng)]
    stages = [
        Stage(
            f"f{i + 1}",
            controls={name: Real(-BOX, BOX) for name in CHAIN_INPUTS[i]} if i == 0 else {},
            kernel=KERNEL,
            norm_bound=function.norm * (1.0 + _ROUNDING) if norm_bound is None else norm_bound,
            lipschitz=lipschitz,
            function=_OnePoint(function, CHAIN_INPUTS[i]),
        )
        for i, function in enumerate(functions)
    ]

    def values_at(points: Array) -> Array:
        blocks = [points[i : i + _BLOCK] for i in range(0, len(points), _BLOCK)]  # limits the memory: 2500 centres
        first = np.concatenate([np.empty((0, 1)), *(functions[0](block) for block in blocks)])
        second = functions[1](first)
        return np.hstack([points, first, second, functions[2](second)])

    answer = recorded_optimum("sampled-chain") if seed == 0 else None
    return Problem("sampled-chain", CHAIN_SUMMARY, chain(*stages), values_at, answer)


def sample_on_square(rng: np.random.Generator) -> Expansion:
    """The expansion of a sample on the 50×50 grid of [−5, 5]².

    The kernel is a product over the two axes, so the Gram matrix is K₁ ⊗ K₁ and its eigenvectors are products of
    those of one axis. No matrix larger than 50×50 is decomposed.
    """
    axis = np.linspace(-BOX, BOX, POINTS)
    eigenvalues, vectors = _decomposed(axis)
    weights = _inverse_root(np.outer(eigenvalues, eigenvalues))
    noise = rng.standard_normal((POINTS, POINTS))
    coefficients = vectors @ (weights * (vectors.T @ noise @ vectors)) @ vectors.T
    centres = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    return Expansion(KERNEL, centres, coefficients.reshape(-1, 1))


def sample_on_line(rng: np.random.Generator) -> Expansion:
    """The expansion of a sample on an evenly spaced grid of [−6, 6]; outside it decays to the prior mean 0."""
    eigenvalues, vectors = _decomposed(_LATER)
    coefficients = vectors @ (_inverse_root(eigenvalues) * (vectors.T @ rng.standard_normal(len(_LATER))))
    return Expansion(KERNEL, _LATER[:, None], coefficients[:, None])


def _decomposed(axis: Array) -> tuple[Array, Array]:
    """Eigenvalues (n,) and eigenvectors (n, n) of the Gram matrix of points on a line."""
    eigenvalues, vectors = np.linalg.eigh(KERNEL(axis[:, None], axis[:, None]))
    return eigenvalues, vectors


def _inverse_root(eigenvalues: Array) -> Array:
    """1/√λ, or 0 if λ is below the cutoff: K·(K^{−1/2}ε) = K^{1/2}ε are the sampled values."""
    kept = eigenvalues > _CUTOFF * eigenvalues.max()
    return np.where(kept, 1.0 / np.sqrt(np.where(kept, eigenvalues, 1.0)), 0.0)


@dataclass(frozen=True, eq=False)
class _OnePoint:
    """An expansion as a function of named numbers."""

    expansion: Expansion
    names: tuple[str, ...]

    def __call__(self, **values: float) -> float:
        return float(self.expansion([[values[name] for name in self.names]])[0, 0])
