"""Soundness of the bounds of whole networks, and of the gaps of whole optimisations."""

import numpy as np

from cascada.confidence import Boxes
from cascada.kernels import Additive, Matern, SquaredExponential, Stationary
from cascada.network import Beliefs, Form, ball_regions, enclose_network, prior_beliefs
from cascada.problems import Problem, certified
from cascada.study import Study
from tests.soundness import truths
from tests.soundness.harness import Ledger

# Without the structures that differ from these in size only.
STRUCTURES = ("chain", "controls", "feed-forward", "multi-output", "join", "known")
KERNELS: tuple[Stationary, ...] = (
    SquaredExponential(1.0),
    Matern(2.5),
    Matern(1.5, 0.9),
    Matern(3.7, 1.2),
    Additive(Matern(2.5)),
)
COUNTS = (0, 2, 6, 15, 40)


def run(points: int, seed: int) -> Ledger:
    """Check every structure with every kernel at growing numbers of runs; a third of the runs are partial."""
    ledger = Ledger()
    for s, structure in enumerate(STRUCTURES):
        for k, kernel in enumerate(KERNELS):
            rng = np.random.default_rng([seed, s, k])
            problem = certified(structure, int(rng.integers(1 << 30)), kernel)
            beliefs, learned = prior_beliefs(problem.network), 0
            for count in COUNTS:
                beliefs = beliefs.append(_runs(problem, count - learned, rng))
                learned = count
                check_bounds(ledger, structure, problem, beliefs, points, rng)
    return ledger


def check_bounds(
    ledger: Ledger, structure: str, problem: Problem, beliefs: Beliefs, points: int, rng: np.random.Generator
) -> None:
    """Check every value of the process over points and over cells, in both forms."""
    domain, scale = problem.network.domain, truths.NORM
    d = domain.dimension
    Z = rng.uniform(domain.lower, domain.upper, (points, d))
    truth = problem.values(Z)[:, None, d:]
    cells = truths.random_cells(d, points // 4, rng)
    inside = truths.points_in(cells, 8, rng)
    values = problem.values(inside.reshape(-1, d)).reshape(*inside.shape[:2], -1)[:, :, d:]
    forms: tuple[Form, ...] = ("union", "hull")
    for form in forms:
        for name, where, true in (("points", Boxes(Z, Z), truth), ("cells", cells, values)):
            boxes = enclose_network(beliefs, where, form).boxes
            outputs = Boxes(boxes.lower[:, d:], boxes.upper[:, d:])
            ledger[f"{structure}: {name}, {form}"].boxes(outputs, true, scale)
    if structure == "multi-output":
        for name, where, true in (("points", Boxes(Z, Z), truth), ("cells", cells, values)):
            column = 0
            for region in ball_regions(beliefs, where):
                p = region.centre.shape[1]
                ledger[f"{structure}: {name}, balls"].balls(region, true[:, :, column : column + p], scale)
                column += p


def run_gaps(ledger: Ledger, seed: int, steps: int, every: int = 1) -> None:
    """Optimise every structure with every kernel, or with every third; a proven gap is at least the true regret."""
    for s, structure in enumerate(STRUCTURES):
        for k, kernel in enumerate(KERNELS):
            if (s + k) % every:
                continue
            problem = certified(structure, 7919 * seed + 31 * s + k, kernel)
            check_gaps(ledger, structure, problem, steps)


def check_gaps(ledger: Ledger, structure: str, problem: Problem, steps: int) -> None:
    """Check one optimisation against the maximum of a dense search, whose error is allowed for."""
    study, best_possible = Study(problem.network), problem.optimum[1]
    for _ in range(steps):
        trial = study.ask()
        if trial is None:
            break
        row = problem.network.domain.row(trial.controls)[None]
        values = problem.values(row)[0]
        study.tell(trial, {node.stage.name: values[list(node.columns)] for node in problem.network.nodes})
        certificate = study.certificate()
        assert certificate.gap is not None, str(certificate)
        assert certificate.best is not None, str(certificate)
        regret = best_possible - certificate.best
        margin, width = np.array([certificate.gap - regret]), np.array([certificate.gap])
        ledger[f"{structure}: gap"].add(margin / truths.NORM, width / truths.NORM)


def _runs(problem: Problem, count: int, rng: np.random.Generator) -> np.ndarray:
    """Random runs; in a third of them only the first stages were observed."""
    domain = problem.network.domain
    points = rng.uniform(domain.lower, domain.upper, (count, domain.dimension))
    values = problem.values(points)
    for i in np.flatnonzero(rng.uniform(size=count) < 1 / 3):
        values[i, rng.integers(domain.dimension + 1, values.shape[1] + 1) :] = np.nan
    return values
