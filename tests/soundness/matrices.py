"""Soundness of joint norms under badly scaled, strongly correlated and singular matrices A of a `Separable` kernel.

Functions are Σ_i A·g_i·k(·, c_i) with Σ_ij g_iᵀ·A·g_j·k(c_i, c_j) = B² to 60 digits. Their outputs are computed with 60
digits and rounded once, so observed outputs differ from the truth by at most half a unit in the last place.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.confidence import BallBelief, Balls, Boxes, cell_bounds
from cascada.errors import ContradictionError
from cascada.gp import BlockPosterior, OperatorPosterior, SeparablePosterior
from cascada.kernels import BlockKernel, Expansion, Matern, Separable, SquaredExponential, Stationary, random_expansion
from cascada.network import Beliefs, Form, Network, Stage, ball_regions, chain, prior_beliefs
from cascada.space import Real
from tests.soundness import exact, truths
from tests.soundness.exact import ExactFunction, mp
from tests.soundness.harness import Ledger

FAMILIES = ("scaled", "correlated", "singular")
KERNELS: tuple[Stationary, ...] = (SquaredExponential(1.0), Matern(2.5, 0.9, variance=3.0), Matern(1.5, 1.2))
FORMS: tuple[Form, ...] = ("union", "hull")
COUNTS = (1, 4, 12)
_CENTRES = 6


@dataclass(frozen=True, eq=False)
class Scene:
    """A function of exact joint norm under k·A, and a second stage that takes its outputs."""

    kernel: Separable
    function: ExactFunction
    norm: float
    sizes: Array  # (p,): the most that every output can be, B·s·sqrt(A_jj)
    second: Expansion

    @property
    def dimension(self) -> int:
        return self.function.centres.shape[1]

    @property
    def network(self) -> Network:
        """Controls in [−2, 2]^d → p outputs with one joint norm → one output of norm 2."""
        controls = {f"x{j}": Real(-truths.BOX, truths.BOX) for j in range(self.dimension)}
        outputs = [f"y{j}" for j in range(len(self.sizes))]
        return chain(
            Stage("first", controls=controls, outputs=outputs, kernel=self.kernel, norm_bound=self.norm),
            Stage("second", kernel=self.second.kernel, norm_bound=truths.NORM),
        )

    def values(self, points: Array) -> Array:
        """All values of the process (n, V)."""
        first = self.function(points)
        return np.hstack([points, first, self.second(first)])


def run(points: int, seed: int) -> Ledger:
    """Check every bound at `points` queries for every family of matrices, kernel, and number of runs."""
    ledger = Ledger()
    for i, family in enumerate(FAMILIES):
        for k, kernel in enumerate(KERNELS):
            rng = np.random.default_rng([seed, i, k, 1])
            scene = draw(family, kernel, rng)
            check(ledger, family, scene, points, rng)
    return ledger


def matrix(family: str, outputs: int, rng: np.random.Generator) -> Array:
    """A random A of this family: scale ratios of outputs to 1e14, correlations to 1 − 1e-12, or of lower rank."""
    scales = 2.0 ** np.round(rng.uniform(-23, 23, outputs))
    if family == "scaled":
        scales[:2] = rng.permutation([2.0**-23, 2.0**23])  # a ratio of 7e13
        factor = rng.standard_normal((outputs, outputs + 2)) * rng.choice([0.0, 1.0])
        correlation = factor @ factor.T + np.eye(outputs)
    elif family == "correlated":
        apart = 10 ** rng.uniform(-12, -1)
        sign = rng.choice([-1.0, 1.0], outputs)
        correlation = (1 - apart) * np.outer(sign, sign) + apart * np.eye(outputs)
        scales = scales if rng.uniform() < 0.5 else np.ones(outputs)
    else:
        # Small whole numbers times powers of two: their products and sums are exact, and A has rank 1 or 2 exactly.
        rank = 1 if outputs == 2 or rng.uniform() < 0.5 else 2
        thin = rng.integers(1, 9, (outputs, rank)) * rng.choice([-1.0, 1.0], (outputs, rank))
        correlation = thin @ thin.T
        scales = scales if rng.uniform() < 0.5 else np.ones(outputs)
    return correlation * np.outer(scales, scales)


def draw(family: str, kernel: Stationary, rng: np.random.Generator) -> Scene:
    """A random scene: B² is distributed over large and small directions of A equally, or at random."""
    p, d = int(rng.integers(2, 4)), int(rng.integers(1, 3))
    A = matrix(family, p, rng)
    sizes = np.sqrt(np.diag(A))
    values, vectors = np.linalg.eigh(A / np.outer(sizes, sizes))
    weights = np.maximum(values, 1e-13) ** -rng.choice([0.0, 0.5, 1.0])
    inner = (rng.standard_normal((_CENTRES, p)) * weights) @ vectors.T / sizes
    centres = rng.uniform(-truths.BOX, truths.BOX, (_CENTRES, d))
    norm = float(10 ** rng.uniform(-3, 3))
    exact_inner = [[mp.mpf(entry) for entry in row] for row in inner.tolist()]
    length = mp.sqrt(exact.joint_square(kernel, centres, A, exact_inner))
    function = ExactFunction(kernel, centres, exact.times_matrix(A, exact_inner)).times(mp.mpf(norm) / length)
    sizes = norm * np.sqrt(kernel.variance) * sizes
    second_kernel = SquaredExponential(tuple(sizes.tolist()))
    second = random_expansion(second_kernel, -sizes, sizes, norm=truths.NORM, rng=rng, terms=10)
    return Scene(Separable(kernel, A), function, norm, sizes, second)


def check(ledger: Ledger, family: str, scene: Scene, points: int, rng: np.random.Generator) -> None:
    """Check all bounds of one scene with more and more runs, half of them at the centres, which use up all of B²."""
    d = scene.dimension
    X = np.concatenate([scene.function.centres, rng.uniform(-truths.BOX, truths.BOX, (max(COUNTS), d))])
    X = rng.permutation(X)[: max(COUNTS)]
    near = X[rng.integers(len(X), size=points // 4)] + 10 ** rng.uniform(-12, -1, (points // 4, 1))
    Z = np.concatenate([rng.uniform(-truths.BOX, truths.BOX, (points - points // 4, d)), near])
    Z = np.clip(Z, -truths.BOX, truths.BOX)
    runs, truth = scene.values(X), scene.values(Z)
    for t in COUNTS:
        check_stage(ledger, family, scene, runs[:t], truth, rng)
        check_block(ledger, family, scene, runs[:t], truth)
        check_network(ledger, family, scene, runs[:t], truth, rng)
    check_refusal(ledger, family, scene, runs[: COUNTS[1]], rng)


def check_block(ledger: Ledger, family: str, scene: Scene, runs: Array, truth: Array) -> None:
    """Check the same kernel as a general function that returns blocks."""
    d, p = scene.dimension, len(scene.sizes)
    X, Y, Z, values = runs[:, :d], runs[:, d : d + p], truth[:, :d], truth[:, d : d + p]
    kernel = BlockKernel("k·A", partial(scene.kernel.blocks, outputs=p))
    note, scale = describe(scene, len(X)), float(np.linalg.norm(scene.sizes))
    belief = ledger[f"{family}: block kernel, true outputs accepted"].attempt(
        lambda: _believed(BlockPosterior.fit(kernel, X, Y), scene.norm, Y), note
    )
    if belief is not None:
        ledger[f"{family}: block kernel, balls"].try_balls(lambda: belief.balls(Z), values, scale, note)


def _believed(posterior: OperatorPosterior, norm: float, outputs: Array) -> BallBelief:
    """The belief about outputs that were rounded once."""
    belief = BallBelief(posterior, norm).with_output_error(UNIT_ROUNDOFF * np.abs(outputs).max(axis=0))
    belief.check()
    return belief


def check_stage(ledger: Ledger, family: str, scene: Scene, runs: Array, truth: Array, rng: np.random.Generator) -> None:
    """Check balls, ellipsoids, each output by itself, and regions, from the belief about the stage."""
    d, p = scene.dimension, len(scene.sizes)
    X, Y, Z, values = runs[:, :d], runs[:, d : d + p], truth[:, :d], truth[:, d : d + p]
    note = describe(scene, len(X))

    belief = ledger[f"{family}: true outputs accepted"].attempt(
        lambda: _believed(SeparablePosterior.fit(scene.kernel, X, Y), scene.norm, Y), note
    )
    if belief is None:
        return
    scale = float(np.linalg.norm(scene.sizes))
    ledger[f"{family}: balls"].try_balls(lambda: belief.balls(Z), values, scale, note)
    ledger[f"{family}: ellipsoids"].try_margins(
        lambda: (belief.radius - truths.ellipsoid_distances(belief, Z, values)) / scene.norm, len(Z), note
    )
    radius = 10 ** rng.uniform(-6, 0, len(Z))
    turn = rng.standard_normal(Z.shape)
    centre = Z + turn * (0.999 * radius * rng.uniform(0, 1, len(Z)) / np.linalg.norm(turn, axis=1))[:, None]
    ledger[f"{family}: balls over balls"].try_balls(lambda: belief.region(Balls(centre, radius)), values, scale, note)
    cells = truths.cells_around(Z, truths.BOX, rng)
    ledger[f"{family}: each output"].try_boxes(lambda: truths.each(belief).bounds(Z), values, scene.sizes, note)
    ledger[f"{family}: each output over cells"].try_boxes(
        lambda: cell_bounds(truths.each(belief), cells), values, scene.sizes, note
    )


def check_network(
    ledger: Ledger, family: str, scene: Scene, runs: Array, truth: Array, rng: np.random.Generator
) -> None:
    """Check every value of the process over points and cells, in every form."""
    d, p, note = scene.dimension, len(scene.sizes), describe(scene, len(runs))

    def believed() -> Beliefs:
        beliefs = prior_beliefs(scene.network).append(runs)
        beliefs.check()
        return beliefs

    beliefs = ledger[f"{family}: true runs accepted"].attempt(believed, note)
    if beliefs is None:
        return
    Z, outputs, scale = truth[:, :d], truth[:, d:], np.append(scene.sizes, truths.NORM)
    size = float(np.linalg.norm(scene.sizes))
    for where, over in (("points", Boxes(Z, Z)), ("cells", truths.cells_around(Z, truths.BOX, rng))):
        for form in FORMS:
            ledger[f"{family}: network, {where}"].try_boxes(
                partial(truths.output_boxes, beliefs, over, form), outputs, scale, note
            )
        kind = ledger[f"{family}: network, balls"]
        kind.try_balls(partial(_region, beliefs, over, 0), outputs[:, :p], size, note)
        kind.try_balls(partial(_region, beliefs, over, 1), outputs[:, p:], truths.NORM, note)


def _region(beliefs: Beliefs, cells: Boxes, stage: int) -> Balls:
    return ball_regions(beliefs, cells)[stage]


def check_refusal(ledger: Ledger, family: str, scene: Scene, runs: Array, rng: np.random.Generator) -> None:
    """Check that an output of three times its largest possible value refutes B, whatever the scale of the others."""
    d = scene.dimension
    for j, size in enumerate(scene.sizes):
        wrong = scene.values(rng.uniform(-truths.BOX, truths.BOX, (1, d)))
        wrong[0, d + j] = 3 * size * rng.choice([-1.0, 1.0])
        wrong[0, d + len(scene.sizes) :] = np.nan
        note = f"{describe(scene, len(runs))}, output {j}"
        ledger[f"{family}: impossible outputs refused"].judge(partial(refused, scene.network, runs, wrong), note)


def refused(network: Network, runs: Array, wrong: Array) -> bool:
    """Whether beliefs refuse a run as impossible, by an error or by evidence."""
    try:
        return bool(prior_beliefs(network).append(runs).append(wrong).evidence)
    except ContradictionError:
        return True


def describe(scene: Scene, count: int) -> str:
    """A scene in words, with the numbers that reproduce its matrix."""
    entries = np.array(scene.kernel.matrix).tolist()
    return f"{scene.kernel.kernel}, B = {scene.norm!r}, A = {entries}, {count} runs"
