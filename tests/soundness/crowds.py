"""Soundness with 300 clustered runs: radii 1e-1 to 1e-12 and exact repeats, in batches of any size, also empty."""

from functools import partial

import numpy as np

from cascada.arrays import Array
from cascada.confidence import BallBelief, Boxes
from cascada.gp import BlockPosterior
from cascada.kernels import BlockKernel, Matern, SquaredExponential, Stationary, random_operator_expansion
from cascada.network import Beliefs, Form, prior_beliefs
from cascada.network.composite import composite_bounds
from cascada.problems import Problem, certified
from cascada.search import Candidates
from tests.soundness import truths
from tests.soundness.harness import Ledger

STRUCTURES = ("chain", "controls", "feed-forward", "multi-output", "join")
KERNELS: tuple[Stationary, ...] = (SquaredExponential(1.0), Matern(2.5), Matern(1.5, 0.7))
FORMS: tuple[Form, ...] = ("union", "hull")
RUNS = 300
BLOCK_RUNS = 40  # for a kernel that is not separable: each run is a block of p rows

# A true Lipschitz constant of a stage of norm 2 under the kernels above: B·s·sqrt(−φ''(0))/ℓ.
_LIPSCHITZ = 2.0 * float(np.sqrt(3.0)) / 0.7 * 1.001


def run(points: int, seed: int, runs: int = RUNS) -> Ledger:
    """Check every structure under one kernel after a third of the runs and after all of them."""
    ledger = Ledger()
    for s, structure in enumerate(STRUCTURES):
        rng = np.random.default_rng([seed, s, 8])
        kernel = KERNELS[(seed + s) % len(KERNELS)]
        lipschitz = _LIPSCHITZ if rng.uniform() < 0.5 else None
        problem = certified(structure, int(rng.integers(1 << 30)), kernel, lipschitz=lipschitz)
        check(ledger, structure, problem, runs, points, rng)
    check_block(ledger, points, np.random.default_rng([seed, 9]))
    return ledger


def crowd(count: int, dimension: int, rng: np.random.Generator) -> Array:
    """Points (n, d) of [−2, 2]^d: half in clusters, a tenth repeats, the rest anywhere."""
    X = rng.uniform(-truths.BOX, truths.BOX, (count, dimension))
    centres, radii = X[:5], 10 ** rng.uniform(-12, -1, 5)
    member = rng.integers(5, size=count // 2)
    X[count // 2 : 2 * (count // 2)] = centres[member] + radii[member, None] * rng.standard_normal(
        (count // 2, dimension)
    )
    repeats = rng.integers(count, size=count // 10)
    X[rng.integers(count, size=count // 10)] = X[repeats]
    return np.clip(rng.permutation(X), -truths.BOX, truths.BOX)


def batches(runs: Array, rng: np.random.Generator) -> list[Array]:
    """The runs cut into batches of random sizes from 0 to 40."""
    cuts = np.cumsum(rng.choice([0, 1, 1, 2, 7, 40], len(runs)))
    return np.split(runs, cuts[cuts < len(runs)])


def near(runs: Array, points: int, dimension: int, rng: np.random.Generator) -> Array:
    """Queries: anywhere, at the runs, and next to them."""
    chosen = runs[rng.integers(len(runs), size=points // 2), :dimension]
    chosen = chosen + rng.choice([0.0, 1e-12, 1e-8, 1e-3], (points // 2, 1)) * rng.standard_normal(chosen.shape)
    anywhere = rng.uniform(-truths.BOX, truths.BOX, (points - points // 2, dimension))
    return np.clip(np.concatenate([anywhere, chosen]), -truths.BOX, truths.BOX)


def check(ledger: Ledger, structure: str, problem: Problem, count: int, points: int, rng: np.random.Generator) -> None:
    """Check bounds after runs of a whole process."""
    d = problem.network.domain.dimension
    runs = problem.values(crowd(count, d, rng))
    note = f"{problem.network.nodes[0].stage.kernel}"

    def learned(rows: Array, points: Array) -> tuple[Beliefs, Candidates]:
        beliefs, candidates = prior_beliefs(problem.network), Candidates.of(points)
        for batch in batches(rows, rng):
            beliefs = beliefs.append(batch)
            candidates = candidates.follow(beliefs) if rng.uniform() < 0.5 else candidates
        beliefs.check()
        return beliefs, candidates.follow(beliefs)

    for part in (count // 3, count):
        Z = near(runs, points, d, rng)
        both = ledger[f"{structure}: true runs accepted"].attempt(partial(learned, runs[:part], Z), note)
        if both is None:
            continue
        beliefs, candidates = both
        values = problem.values(Z)
        truth, best = values[:, d:], values[:, problem.network.objective_column]
        ledger[f"{structure}: candidates"].try_margins(partial(_above, candidates, beliefs, best), len(Z), note)
        ledger[f"{structure}: composite mean"].try_boxes(
            partial(composite_bounds, beliefs, Z), best[:, None], truths.NORM, note
        )
        for where, cells in (("points", Boxes(Z, Z)), ("cells", truths.cells_around(Z, truths.BOX, rng))):
            for form in FORMS:
                compute = partial(truths.output_boxes, beliefs, cells, form)
                ledger[f"{structure}: {where}"].try_boxes(compute, truth, truths.NORM, f"{note}, {form}")


def _above(candidates: Candidates, beliefs: Beliefs, truth: Array) -> Array:
    """The upper bounds of candidates minus their objective, in units of B."""
    return (candidates.upper(beliefs) - truth) / truths.NORM


def check_block(ledger: Ledger, points: int, rng: np.random.Generator) -> None:
    """Check one stage with a kernel that is not separable."""
    factor = rng.standard_normal((2, 2))
    blocks = truths.mixture(SquaredExponential(1.0), Matern(1.5, 0.7), factor)
    kernel = BlockKernel("a smooth and a rough part", blocks)
    f = random_operator_expansion(kernel, [-2, -2], [2, 2], norm=truths.NORM, outputs=2, rng=rng)
    X = crowd(BLOCK_RUNS, 2, rng)

    def learned() -> BallBelief:
        belief = BallBelief(BlockPosterior.empty(kernel, 2, 2), truths.NORM)
        for batch in [X[:0], *batches(X, rng)]:
            belief = belief.append(batch, f(batch))
            belief.check()
        return belief

    belief = ledger["block kernel: true runs accepted"].attempt(learned, "batches, the first of them empty")
    if belief is None:
        return
    Z = near(X, points, 2, rng)
    ledger["block kernel: balls"].try_balls(lambda: belief.balls(Z), f(Z), truths.NORM, "")
    ledger["block kernel: ellipsoids"].try_margins(
        lambda: (belief.radius - truths.ellipsoid_distances(belief, Z, f(Z))) / truths.NORM, len(Z), ""
    )
