"""Functions whose norm is known exactly, and points and cells at which they are checked."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array, BoolArray
from cascada.confidence import BallBelief, Belief, Boxes
from cascada.kernels import (
    Additive,
    BlockKernel,
    Expansion,
    Matern,
    OperatorExpansion,
    OperatorKernel,
    Separable,
    SquaredExponential,
    Stationary,
    random_expansion,
    random_operator_expansion,
)
from cascada.network import Beliefs, Form, enclose_network

BOX = 2.0  # every input lies in [−2, 2]^d
NORM = 2.0


@dataclass(frozen=True)
class Scene:
    """A function of exact norm, and inputs at which it is observed."""

    function: Expansion
    inputs: Array


def kernels(dimension: int) -> list[Stationary]:
    """Kernels: smooth and rough, closed forms and Bessel functions, several lengthscales, a variance, additive ones."""
    scales = tuple(np.linspace(0.6, 1.6, dimension))
    radial: list[Stationary] = [
        SquaredExponential(1.0),
        SquaredExponential(scales, variance=0.5),
        Matern(0.5),
        Matern(1.0),
        Matern(1.5, 0.8),
        Matern(2.5, scales, variance=3.0),
        Matern(3.7),
    ]
    if dimension == 1:
        return radial  # an additive kernel of one input is radial
    return [
        *radial,
        Additive(SquaredExponential(scales, variance=0.5)),
        Additive(Matern((0.5, 1.5, 2.5)[dimension - 2], 0.8)),
    ]


def scenes(kernel: Stationary, dimension: int, t: int, rng: np.random.Generator) -> list[Scene]:
    """The ordinary case and numerically difficult ones."""
    low, high = np.full(dimension, -BOX), np.full(dimension, BOX)
    uniform = rng.uniform(low, high, (t, dimension))
    function = random_expansion(kernel, low, high, norm=NORM, rng=rng, outputs=2)
    clustered = np.concatenate([uniform[: t // 2], uniform[0] + 1e-4 * rng.standard_normal((t - t // 2, dimension))])
    few = random_expansion(kernel, low, high, norm=NORM, rng=rng, outputs=2, terms=max(1, t // 2))
    through_centres = np.concatenate([few.centres, uniform])[:t]
    return [
        Scene(function, uniform),
        Scene(function, clustered),  # nearly singular kernel matrix
        Scene(few, through_centres),  # all of B² is used up: ρ_t is nearly 0
    ]


def lipschitz(function: Expansion, rng: np.random.Generator) -> Array:
    """A Lipschitz constant of every output on the box: largest sampled slope, a quarter added for the unsampled."""
    d = function.centres.shape[1]
    points = np.concatenate([rng.uniform(-BOX, BOX, (2000, d)), function.centres])
    gradients = np.einsum("ncd,cp->npd", function.kernel.gradient(points, function.centres), function.coefficients)
    return 1.25 * np.linalg.norm(gradients, axis=2).max(axis=0)


def random_cells(dimension: int, n: int, rng: np.random.Generator) -> Boxes:
    """Cells of all sizes, from single points to the whole box, within the box."""
    centre = rng.uniform(-BOX, BOX, (n, dimension))
    half = BOX * 10 ** rng.uniform(-5, 0, (n, 1)) * rng.uniform(0, 1, (n, dimension))
    half[: n // 10] = 0.0
    return Boxes(np.clip(centre - half, -BOX, BOX), np.clip(centre + half, -BOX, BOX))


def points_in(cells: Boxes, k: int, rng: np.random.Generator) -> Array:
    """k points of every cell, (n, k, d): half of them at corners and on edges."""
    n, d = cells.lower.shape
    fractions = rng.uniform(0, 1, (n, k, d))
    fractions[:, : k // 2] = np.round(2 * fractions[:, : k // 2]) / 2
    points = cells.lower[:, None] + fractions * (cells.upper - cells.lower)[:, None]
    return np.clip(points, cells.lower[:, None], cells.upper[:, None])


def cells_around(points: Array, box: float | Array, rng: np.random.Generator) -> Boxes:
    """One cell around every point, of all sizes and within [−box, box]^d; a point may lie on an edge."""
    n, d = points.shape
    below, above = box * 10 ** rng.uniform(-8, 0, (2, n, 1)) * rng.choice([0.0, 0.3, 1.0], (2, n, d))
    return Boxes(np.maximum(points - below, -box), np.minimum(points + above, box))


def output_boxes(beliefs: Beliefs, cells: Boxes, form: Form = "union") -> Boxes:
    """Bounds of all outputs of a network over cells of controls, without the columns of the controls."""
    boxes, d = enclose_network(beliefs, cells, form).boxes, beliefs.network.domain.dimension
    return Boxes(boxes.lower[:, d:], boxes.upper[:, d:])


def contained(boxes: Boxes, points: Array) -> BoolArray:
    """Whether box i contains row i, (n,)."""
    return np.all((boxes.lower <= points) & (points <= boxes.upper), axis=1)


def ellipsoid_distances(belief: BallBelief, Z: Array, values: Array) -> Array:
    """‖Γ_t(z, z)^{−1/2}(value − μ_t(z))‖₂ for every row, (n,): at most ρ_t for f(z), up to rounding.

    The region {distance ≤ ρ_t} is the ellipsoid μ_t + ρ_t·Γ_t^{1/2}·(unit ball), which the ball contains. Rounding
    is allowed for by raising the eigenvalues of Γ_t as `balls` raises its radius.
    """
    belief.check()
    prediction = belief.posterior.predict(Z)
    eigenvalues, vectors = np.linalg.eigh(prediction.covariance)
    raised = belief.sd_above(np.sqrt(np.maximum(eigenvalues, 0.0)), prediction.prior_sd[:, None])
    error = np.sqrt(belief.posterior.spent) * prediction.prior_sd * belief.posterior.inflation
    turned = np.abs(np.einsum("nij,ni->nj", vectors, values - prediction.mean))
    return np.linalg.norm(np.maximum(turned - error[:, None], 0.0) / raised, axis=1)


def each(belief: BallBelief) -> Belief:
    """The belief about every output by itself, under a separable kernel."""
    found = belief.per_output
    assert isinstance(found, Belief), "only asked of separable kernels"
    return found


def operator_kernels(outputs: int, rng: np.random.Generator) -> list[OperatorKernel]:
    """Identity, a random A, a singular A with an additive kernel, and a kernel that is not separable."""
    factor = rng.standard_normal((outputs, outputs))
    thin = rng.standard_normal((outputs, 1))
    smooth, rough = SquaredExponential(1.0), Matern(1.5, 0.7)
    return [
        Separable(smooth),
        Separable(Matern(2.5, 0.9), factor @ factor.T),
        Separable(Additive(smooth), thin @ thin.T),
        BlockKernel("a smooth and a rough part", mixture(smooth, rough, factor)),
    ]


def mixture(first: Stationary, second: Stationary, factor: Array) -> Callable[[Array, Array], Array]:
    """k₁·A + k₂·I, which is not separable."""
    matrix, identity = factor @ factor.T, np.eye(len(factor))

    def blocks(X: Array, Z: Array) -> Array:
        return first(X, Z)[:, :, None, None] * matrix + second(X, Z)[:, :, None, None] * identity

    return blocks


def operator_function(
    kernel: OperatorKernel, dimension: int, outputs: int, rng: np.random.Generator
) -> OperatorExpansion:
    low, high = np.full(dimension, -BOX), np.full(dimension, BOX)
    return random_operator_expansion(kernel, low, high, norm=NORM, outputs=outputs, rng=rng)


def operator_lipschitz(kernel: OperatorKernel) -> float | None:
    """A Lipschitz constant for kernels from which the library derives none.

    f − f' for Γ = k₁A + k₂I: the squared Lipschitz constants of the parts add up under ‖f‖ ≤ B.
    """
    if isinstance(kernel, Separable):
        return None
    return NORM * 40.0
