"""Soundness of every bound of the confidence layer, for all kernels, dimensions and numbers of data."""

import numpy as np

from cascada.confidence import BallBelief, Balls, Belief, EnvelopeTable, cell_bounds, envelope
from cascada.gp import BlockPosterior, OperatorPosterior, Posterior, SeparablePosterior
from cascada.kernels import Expansion, OperatorKernel, Separable, Stationary
from tests.soundness import truths
from tests.soundness.harness import Ledger

COUNTS = (1, 3, 8, 20, 60)
DIMENSIONS = (1, 2, 3, 4)


def run(points: int, seed: int, every: int = 1) -> Ledger:
    """Check every bound at `points` queries for every kernel, dimension, number of data and scene.

    With `every` only every so many combinations of kernel, dimension and number of data are checked.
    """
    ledger = Ledger()
    for d in DIMENSIONS:
        for i in range(len(truths.kernels(d))):
            rng = np.random.default_rng([seed, d, i])
            for c, t in enumerate(COUNTS):
                if (d + i + c) % every == 0:
                    check_scalar(ledger, truths.kernels(d)[i], d, t, points, rng)
        rng = np.random.default_rng([seed, d, 99])
        for outputs in (2, 3):
            for kernel in truths.operator_kernels(outputs, rng):
                for t in COUNTS[:-1]:
                    check_operator(ledger, kernel, d, outputs, t, points, rng)
    return ledger


def check_scalar(ledger: Ledger, kernel: Stationary, d: int, t: int, points: int, rng: np.random.Generator) -> None:
    """Check pointwise bounds, envelopes, tables and cells of stages with independent outputs."""
    for scene in truths.scenes(kernel, d, t, rng):
        f, B = scene.function, truths.NORM
        posterior = Posterior.fit(kernel, scene.inputs, f(scene.inputs))
        tight, paper = Belief(posterior, B), Belief(posterior, B, tight=False)
        # Queries are everywhere, at the data, and next to them, where rounding matters.
        near = scene.inputs[rng.integers(t, size=points // 2)]
        near = near + rng.choice([0.0, 1e-9, 1e-5, 1e-2], (points // 2, 1)) * rng.standard_normal((points // 2, d))
        Z = np.concatenate([rng.uniform(-truths.BOX, truths.BOX, (points - points // 2, d)), near])
        truth = f(Z)
        ledger["pointwise, radius B"].boxes(paper.bounds(Z), truth, B)
        ledger["pointwise, radius ρ"].boxes(tight.bounds(Z), truth, B)
        if kernel.curvature is not None:
            declared = Belief(posterior, B, truths.lipschitz(f, rng))
            inside = np.clip(Z, -truths.BOX, truths.BOX)
            anchors = rng.uniform(-truths.BOX, truths.BOX, (20, d))
            ledger["envelope, given L"].boxes(envelope(declared, inside, anchors), f(inside), B)
            if d == 1:
                check_table(ledger, tight, f, points, rng)
        else:
            declared = tight
        cells = truths.random_cells(d, points // 4, rng)
        inside = truths.points_in(cells, 8, rng)
        values = f(inside.reshape(-1, d)).reshape(*inside.shape[:2], -1)
        ledger["cells, derived L"].boxes(cell_bounds(tight, cells), values, B)
        ledger["cells, given L"].boxes(cell_bounds(declared, cells), values, B)
        ledger["cells in 4 pieces"].boxes(cell_bounds(tight, cells, pieces=4), values, B)


def check_table(ledger: Ledger, belief: Belief, f: Expansion, points: int, rng: np.random.Generator) -> None:
    """Check a coarse table over intervals between, across and beyond its nodes."""
    nodes = np.sort(rng.uniform(-1.5, 1.5, int(rng.integers(1, 40))))
    intervals = truths.random_cells(1, points // 4, rng)
    inside = truths.points_in(intervals, 8, rng)
    values = f(inside.reshape(-1, 1)).reshape(*inside.shape[:2], -1)
    for output in range(2):
        table = EnvelopeTable.of_outputs(belief, nodes)[output]
        ledger["table over intervals"].boxes(table.over(intervals), values[..., [output]], truths.NORM)


def check_operator(
    ledger: Ledger, kernel: OperatorKernel, d: int, outputs: int, t: int, points: int, rng: np.random.Generator
) -> None:
    """Check balls and ellipsoids of stages with a joint norm."""
    f, B = truths.operator_function(kernel, d, outputs, rng), truths.NORM
    X = rng.uniform(-truths.BOX, truths.BOX, (t, d))
    posterior: OperatorPosterior
    if isinstance(kernel, Separable):
        posterior = SeparablePosterior.fit(kernel, X, f(X))
    else:
        posterior = BlockPosterior.fit(kernel, X, f(X))
    tight = BallBelief(posterior, B, truths.operator_lipschitz(kernel))
    paper = BallBelief(posterior, B, truths.operator_lipschitz(kernel), tight=False)
    n = points // 2
    Z = np.concatenate([rng.uniform(-truths.BOX, truths.BOX, (n, d)), X[rng.integers(t, size=n)]])
    truth = f(Z)
    ledger["balls, radius B"].balls(paper.balls(Z), truth, B)
    ledger["balls, radius ρ"].balls(tight.balls(Z), truth, B)
    distances = truths.ellipsoid_distances(tight, Z, truth)
    ledger["ellipsoids"].add((tight.radius - distances) / B, np.full(1, tight.radius / B))
    radius = np.where(rng.uniform(size=n) < 0.2, 0.0, 10 ** rng.uniform(-4, 0.3, n))
    balls = Balls(Z[:n], radius)
    directions = rng.standard_normal((n, 6, d))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    inside = balls.centre[:, None] + (radius[:, None] * rng.uniform(0, 1, (n, 6)) ** 0.2)[..., None] * directions
    values = f(inside.reshape(-1, d)).reshape(n, 6, outputs)
    ledger["balls over balls"].balls(tight.region(balls), values, B)
