"""Soundness of bounds, certificates and evidence where some controls are choices.

Every process is one of `problems.certified_choices`: each value of a choice has a function of its own, of exactly the
stated norm, or all values share one norm (`alike`). Bounds over cells with one value, over cells with several values,
and gaps after every run are compared with the truth.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.kernels import Matern, SquaredExponential, Stationary
from cascada.network import Beliefs, Form, enclose_network, prior_beliefs
from cascada.problems import Problem
from cascada.problems.certified_choices import certified_choices
from cascada.space import Choice
from cascada.study import Study
from tests.soundness.harness import Ledger
from tests.soundness.truths import NORM

STRUCTURES = ("first", "later", "shared", "two", "alone", "outputs", "joint", "formula")
KERNELS: tuple[Stationary, ...] = (SquaredExponential(1.0), Matern(2.5), Matern(1.5, 0.9), SquaredExponential(8.0))
COUNTS = (0, 3, 8, 20, 45)
_DENSE = 2_000  # points of every combination of values, among which the best one is taken as the optimum


def run(points: int, seed: int, steps: int = 0, structures: Sequence[str] = STRUCTURES) -> Ledger:
    """Check the bounds of every structure at growing numbers of runs, and searches of so many `steps`."""
    ledger = Ledger()
    for s, structure in enumerate(structures):
        alikes = (None,) if structure == "joint" else (None, 0.7 if seed % 2 else 0.2)
        for a, alike in enumerate(alikes):
            kernel = KERNELS[(seed + s + a) % len(KERNELS)]
            rng = np.random.default_rng([seed, s, a, 24])
            slopes = (seed + s) % 2 == 0 and structure != "joint"
            problem = certified_choices(structure, int(rng.integers(1 << 30)), kernel, alike=alike, lipschitz=slopes)
            name = structure if alike is None else f"{structure}, alike"
            if points:
                check_growing(ledger, name, problem, points, rng)
            if steps:
                check_search(ledger, f"{name}, seed {seed}", problem, steps, rng, minimised=(seed + s) % 3 == 2)
    return ledger


def random_points(problem: Problem, count: int, rng: np.random.Generator) -> Array:
    """Settings (count, d), with codes."""
    return problem.network.domain.uniform(rng, count)


def check_growing(ledger: Ledger, name: str, problem: Problem, points: int, rng: np.random.Generator) -> None:
    """Check all bounds at growing numbers of runs, a third of which are partial."""
    beliefs, learned = prior_beliefs(problem.network), 0
    for count in COUNTS:
        runs = problem.values(random_points(problem, count - learned, rng))
        last = list(problem.network.nodes[-1].columns)
        runs[::3, last] = np.nan
        beliefs = beliefs.append(runs)
        learned = count
        check_bounds(ledger, name, problem, beliefs, points, rng)


def check_bounds(
    ledger: Ledger, name: str, problem: Problem, beliefs: Beliefs, points: int, rng: np.random.Generator
) -> None:
    """Check every value over points, over cells with one value of each choice, and over cells with several."""
    domain, d = problem.network.domain, problem.network.domain.dimension
    Z = random_points(problem, points, rng)
    cells = cells_around(problem, points // 4, rng)
    several = cells_around(problem, max(points // 40, 2), rng)
    codes = domain.choices
    several.lower[:, codes], several.upper[:, codes] = domain.lower[codes], domain.upper[codes]
    forms: tuple[Form, ...] = ("union", "hull")
    for form in forms:
        for kind, where, count in (("points", Boxes(Z, Z), 1), ("cells", cells, 8), ("several values", several, 24)):
            width = (where.upper - where.lower)[:, None]
            inside = where.lower[:, None] + rng.uniform(size=(len(where.lower), count, d)) * width
            if kind == "several values":
                inside[:, :, codes] = random_points(problem, inside.shape[0] * count, rng)[:, codes].reshape(
                    *inside.shape[:2], len(codes)
                )
            truth = problem.values(inside.reshape(-1, d)).reshape(*inside.shape[:2], -1)[:, :, d:]

            def outputs(where: Boxes = where, form: Form = form) -> Boxes:
                boxes = enclose_network(beliefs, where, form).boxes
                return Boxes(boxes.lower[:, d:], boxes.upper[:, d:])

            ledger[f"{name}: {kind}, {form}"].try_boxes(outputs, truth, NORM, name)


def cells_around(problem: Problem, count: int, rng: np.random.Generator) -> Boxes:
    """Cells of all sizes around random settings, each with one value of every choice."""
    domain = problem.network.domain
    centre = random_points(problem, count, rng)
    half = 2.0 * 10.0 ** rng.uniform(-4, 0, (count, domain.dimension))
    half[:, domain.choices] = 0.0
    return Boxes(np.maximum(centre - half, domain.lower), np.minimum(centre + half, domain.upper))


def best_possible(problem: Problem, sign: int, rng: np.random.Generator) -> float:
    """The largest of many values of what is maximised: every combination of values is searched by itself."""
    domain, column = problem.network.domain, problem.network.objective_column
    best = -np.inf
    choices = [control for control in domain.controls.values() if isinstance(control, Choice)]
    for codes in product(*(range(len(choice.values)) for choice in choices)):
        points = random_points(problem, _DENSE, rng)
        points[:, domain.choices] = codes
        values = sign * problem.values(points)[:, column]
        for step in (0.1, 0.01, 0.001):
            around = points[values.argmax()] + step * rng.standard_normal((500, domain.dimension))
            around = np.clip(around, domain.lower, domain.upper)
            around[:, domain.choices] = codes
            points = np.concatenate([points[[values.argmax()]], around])
            values = sign * problem.values(points)[:, column]
        best = max(best, float(values.max()))
    return best


def check_search(
    ledger: Ledger, name: str, problem: Problem, steps: int, rng: np.random.Generator, *, minimised: bool
) -> None:
    """Check one search: nothing true is refuted, and after every run the gap is at least the true regret."""
    network = problem.network.mirrored() if minimised else problem.network
    study, best = Study(network), best_possible(problem, network.sign, rng)
    for step in range(steps):
        note = f"{name}, run {step}"
        trial = ledger["suggestion"].attempt(study.ask, note)
        if trial is None:
            continue
        values = problem.values(network.domain.row(trial.controls)[None])[0]
        study.tell(trial, {node.stage.name: values[list(node.columns)].tolist() for node in network.nodes})
        certificate = ledger["certificate"].attempt(study.certificate, note)
        if certificate is None:
            continue
        ledger["not refuted"].verdict(certificate.kind == "proven", f"{note}: {certificate}")
        if certificate.gap is None or certificate.bound is None or certificate.best is None:
            continue
        width = np.array([certificate.gap]) / NORM
        ledger["bound"].add(np.array([network.sign * certificate.bound - best]) / NORM, width, note)
        regret = best - network.sign * certificate.best
        ledger["gap"].add(np.array([certificate.gap - regret]) / NORM, width, note)
