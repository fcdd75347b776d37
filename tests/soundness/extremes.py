"""Extremal functions: through the data, of norm exactly B, and as large as possible at a chosen point.

f± = μ ± ρ·k_t(·, x)·A·v/(σ_t(x)·sqrt(vᵀAv)) attains the bound in direction v at x when λ = 0. Its coefficients are
solved for with 60 digits, so it passes through the observed floats exactly: no bound of the library may be below it,
and the pointwise bound may not be much above it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from cascada.arrays import Array
from cascada.confidence import BallBelief, Balls, Belief, Boxes, EnvelopeTable, cell_bounds, envelope
from cascada.gp import Posterior, SeparablePosterior
from cascada.kernels import Matern, Separable, SquaredExponential, Stationary, random_expansion
from cascada.network import Stage, chain, prior_beliefs
from cascada.space import Real
from tests.soundness import exact, matrices, truths
from tests.soundness.exact import ExactFunction, Number, mp
from tests.soundness.harness import Ledger

KERNELS: tuple[Stationary, ...] = (
    SquaredExponential(1.0),
    Matern(2.5, 0.8, variance=3.0),
    Matern(1.5),
    Matern(0.5, 1.5),
)
MOST = 12  # observations
SHARP = 1e-5  # in units of B·s: the most that a pointwise bound may exceed the extreme, for spread observations
_SPREAD = 1e-3  # the smallest eigenvalue of a kernel matrix, over s², that the jitter 1e-10 does not blur
_QUERIES = 6  # queries for each extreme, in addition to x


@dataclass(frozen=True, eq=False)
class Extremes:
    """Data, the norm bound, and the two extremal functions at x."""

    inputs: Array
    outputs: Array
    norm: float
    x: Array  # (1, d)
    functions: tuple[ExactFunction, ExactFunction]  # the largest and the smallest at x


def run(rounds: int, seed: int) -> Ledger:
    """Check random data sets of every kind, for every kernel."""
    ledger = Ledger()
    for k, kernel in enumerate(KERNELS):
        rng = np.random.default_rng([seed, k, 7])
        for _ in range(rounds):
            for crowded in (False, True):
                check_scalar(ledger, kernel, crowded, rng)
            for family in ("plain", "scaled", "correlated"):
                check_joint(ledger, kernel, family, rng)
            if kernel.curvature is not None:  # a network needs stages with a slope
                check_chain(ledger, kernel, rng)
    return ledger


def extremes(
    kernel: Stationary, matrix: Array, X: Array, Y: Array, x: Array, direction: Array, rng: np.random.Generator
) -> Extremes:
    """The extremal functions for a random norm bound above the norm of the data."""
    t, p = Y.shape
    K = mp.matrix(exact.gram(kernel, X))
    A = mp.matrix(matrix.tolist())
    section = mp.matrix(exact.section(kernel, X, x[0].tolist()))
    weights = [mp.lu_solve(K, mp.matrix(column)) for column in Y.T.tolist()]  # K⁻¹Y, by columns
    beta = mp.lu_solve(K, section)  # K⁻¹k(X, x)
    inner = [mp.lu_solve(A, mp.matrix([weights[j][i] for j in range(p)])) for i in range(t)]  # A⁻¹(K⁻¹Y)ᵀ
    spent = mp.fsum(inner[i][j] * mp.mpf(Y[i, j]) for i in range(t) for j in range(p))
    variance = mp.mpf(kernel.variance) - mp.fdot(section, beta)
    norm = float(mp.sqrt(spent)) * (1 + float(10 ** rng.uniform(-9, 1)))
    turned = A * mp.matrix(direction.tolist())
    room = mp.sqrt((mp.mpf(norm) ** 2 - spent) / (variance * mp.fdot(direction.tolist(), turned)))

    def function(sign: int) -> ExactFunction:
        step = [sign * room * entry for entry in turned]
        rows = [[weights[j][i] - step[j] * beta[i] for j in range(p)] for i in range(t)]
        return ExactFunction(kernel, np.concatenate([X, x]), [*rows, step])

    return Extremes(X, Y, norm, x, (function(1), function(-1)))


def observations(d: int, crowded: bool, rng: np.random.Generator) -> Array:
    """Inputs: spread out, or half of them in pairs that are 1e-8 to 1e-2 apart."""
    t = int(rng.integers(1, MOST + 1))
    X = rng.uniform(-truths.BOX, truths.BOX, (t, d))
    if crowded:
        half = X[: t // 2]
        X[t - len(half) :] = half + 10 ** rng.uniform(-8, -2, (len(half), 1)) * rng.choice([-1.0, 1.0], half.shape)
    return X


def queries(extreme: Extremes, rng: np.random.Generator) -> Array:
    """x, points next to it, and points next to the data."""
    d = extreme.x.shape[1]
    anchors = np.concatenate([extreme.x, extreme.inputs])[rng.integers(len(extreme.inputs) + 1, size=_QUERIES)]
    near = anchors + 10 ** rng.uniform(-9, 0, (_QUERIES, 1)) * rng.standard_normal((_QUERIES, d))
    return np.concatenate([extreme.x, near])


def check_scalar(ledger: Ledger, kernel: Stationary, crowded: bool, rng: np.random.Generator) -> None:
    """Check pointwise bounds, cells, envelopes and tables of a stage with one output."""
    d = int(rng.integers(1, 4))
    X = observations(d, crowded, rng)
    draw = random_expansion(kernel, [-truths.BOX] * d, [truths.BOX] * d, norm=1.0, rng=rng)
    extreme = extremes(kernel, np.eye(1), X, draw(X), rng.uniform(-1, 1, (1, d)), np.ones(1), rng)
    kind, note = "crowded" if crowded else "spread", f"{kernel}, {len(X)} runs in {d} dimensions, B = {extreme.norm!r}"
    belief = ledger[f"{kind}: accepted"].attempt(lambda: _accepted(kernel, extreme), note)
    if belief is None:
        return
    scale = extreme.norm * float(np.sqrt(kernel.variance))
    Z = queries(extreme, rng)
    cells = truths.cells_around(Z, 3 * truths.BOX, rng)
    bounds: dict[str, Callable[[], Boxes]] = {
        "pointwise": lambda: belief.bounds(Z),
        "cells": lambda: cell_bounds(belief, cells),
        "cells in 4 pieces": lambda: cell_bounds(belief, cells, 4),
    }
    if belief.raw_lipschitz is not None:
        steep = Belief(belief.posterior, extreme.norm, belief.raw_lipschitz * (1 + 1e-12))
        bounds["envelope"] = lambda: envelope(steep, Z, X + 0.1)
        if d == 1:
            nodes = np.sort(rng.uniform(-truths.BOX, truths.BOX, 20))
            bounds["table"] = lambda: EnvelopeTable.of_outputs(belief, nodes)[0].over(cells)
    for f in extreme.functions:
        truth = f(Z)
        for name, compute in bounds.items():
            ledger[f"{kind}: {name}"].try_boxes(compute, truth, scale, note)
    if np.linalg.eigvalsh(kernel(X, X))[0] >= _SPREAD * kernel.variance:
        above = belief.bounds(extreme.x).upper - extreme.functions[0](extreme.x)
        below = extreme.functions[1](extreme.x) - belief.bounds(extreme.x).lower
        ledger["spread: sharp"].add(SHARP - np.concatenate([above, below]) / scale, np.full(1, SHARP), note)


def _accepted(kernel: Stationary, extreme: Extremes) -> Belief:
    belief = Belief(Posterior.fit(kernel, extreme.inputs, extreme.outputs), extreme.norm)
    belief.check()
    return belief


def check_joint(ledger: Ledger, kernel: Stationary, family: str, rng: np.random.Generator) -> None:
    """Check balls, ellipsoids and each output of a stage with a joint norm, in the direction of one output."""
    p, d = int(rng.integers(2, 4)), int(rng.integers(1, 3))
    plain = rng.standard_normal((p, p))
    A = plain @ plain.T + 0.1 * np.eye(p) if family == "plain" else matrices.matrix(family, p, rng)
    sizes = np.sqrt(np.diag(A))
    X = observations(d, False, rng)
    draw = random_expansion(kernel, [-truths.BOX] * d, [truths.BOX] * d, norm=1.0, rng=rng, outputs=p)
    root = np.linalg.cholesky(A / np.outer(sizes, sizes))
    Y = (draw(X) @ root.T) * sizes  # with a norm that is not much larger than 1
    j = int(rng.integers(p))
    extreme = extremes(kernel, A, X, Y, rng.uniform(-1, 1, (1, d)), np.eye(p)[j], rng)
    note = f"{kernel}, {len(X)} runs in {d} dimensions, B = {extreme.norm!r}, A = {A.tolist()}"

    def accepted() -> BallBelief:
        belief = BallBelief(SeparablePosterior.fit(Separable(kernel, A), X, Y), extreme.norm)
        belief.check()
        return belief

    belief = ledger[f"joint, {family}: accepted"].attempt(accepted, note)
    if belief is None:
        return
    scale = extreme.norm * float(np.sqrt(kernel.variance)) * sizes
    Z = queries(extreme, rng)
    cells = truths.cells_around(Z, 3 * truths.BOX, rng)
    radius, size = 10 ** rng.uniform(-6, 0, len(Z)), float(np.linalg.norm(scale))
    around = Balls(Z + 0.99 * radius[:, None] / np.sqrt(d), radius)
    for f in extreme.functions:
        truth = f(Z)
        ledger[f"joint, {family}: balls"].try_balls(lambda: belief.balls(Z), truth, size, note)
        ledger[f"joint, {family}: balls over balls"].try_balls(lambda: belief.region(around), truth, size, note)
        ledger[f"joint, {family}: each output"].try_boxes(lambda: truths.each(belief).bounds(Z), truth, scale, note)
        ledger[f"joint, {family}: cells"].try_boxes(lambda: cell_bounds(truths.each(belief), cells), truth, scale, note)
        left = partial(_left, belief, Z, truth)
        ledger[f"joint, {family}: ellipsoids"].try_margins(left, len(Z), note)


def _left(belief: BallBelief, Z: Array, truth: Array) -> Array:
    """The radius minus the distance of the truth, in units of B."""
    return (belief.radius - truths.ellipsoid_distances(belief, Z, truth)) / belief.norm_bound


def check_chain(ledger: Ledger, kernel: Stationary, rng: np.random.Generator) -> None:
    """Check the chain x → f → g, where f is extremal at x and g at f(x): its bound must not be lower."""
    X = observations(1, False, rng)
    first = random_expansion(kernel, [-truths.BOX], [truths.BOX], norm=1.0, rng=rng)
    one = extremes(kernel, np.eye(1), X, first(X), rng.uniform(-1, 1, (1, 1)), np.ones(1), rng)
    between = np.array([[exact.rounded(f.exact(one.x[0].tolist())[0])] for f in one.functions])
    second = random_expansion(kernel, [-truths.BOX], [truths.BOX], norm=1.0, rng=rng)
    two = extremes(kernel, np.eye(1), one.outputs, second(one.outputs), between[:1], np.ones(1), rng)
    network = chain(
        Stage("f", {"x": Real(-truths.BOX, truths.BOX)}, kernel=kernel, norm_bound=one.norm),
        Stage("g", kernel=kernel, norm_bound=two.norm),
    )
    note = f"{kernel}, {len(X)} runs, B = {one.norm!r} and {two.norm!r}"

    def bounds(cells: Boxes) -> Boxes:
        beliefs = prior_beliefs(network).append(np.hstack([one.inputs, one.outputs, two.outputs]))
        beliefs.check()
        return truths.output_boxes(beliefs, cells)

    scale = np.array([one.norm, two.norm]) * float(np.sqrt(kernel.variance))
    cells = truths.cells_around(one.x, truths.BOX, rng)
    for g in two.functions:
        for sign in (0, 1):
            last: Number = g.exact(between[sign].tolist())[0]
            truth = np.array([[between[sign, 0], exact.rounded(last)]])
            ledger["chain: points"].try_boxes(lambda: bounds(Boxes(one.x, one.x)), truth, scale, note)
            ledger["chain: cells"].try_boxes(lambda: bounds(cells), truth, scale, note)
