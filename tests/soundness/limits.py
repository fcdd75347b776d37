"""Soundness of searches with limits on outputs.

Every process is one of `problems.certified`, so every assumption is true. After each run the gap must be at least the
true regret among feasible settings, the incumbent (run or recommended) must be feasible and give what it is said to
give, and "no setting satisfies the limits" must be true, with the distance that it states. The bounds of random cells
are compared with the values at many of their points.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.network import Beliefs
from cascada.network.feasibility import enclose_feasible
from cascada.network.limits import Interval, margins
from cascada.problems import Problem, certified
from cascada.problems.limited_problem import LIMITED, LimitedProblem, LimitKind, limited, with_limits
from cascada.search.feasible import MarginBounds, margin_scales
from cascada.study import Study
from cascada.study.certificate import Certificate
from tests.soundness import truths
from tests.soundness.harness import Ledger

Kind = LimitKind | Literal["several"]
KINDS: tuple[Kind, ...] = (*get_args(LimitKind), "several")
TOLERANCE = 0.02
_CELLS, _INSIDE = 24, 64  # cells whose bounds are checked after each run, and points in each


def run(steps: int, seed: int, structures: Sequence[str] = tuple(LIMITED), kinds: Sequence[Kind] = KINDS) -> Ledger:
    """Check one search of at most `steps` runs for every structure and kind of limit; some are minimised."""
    ledger = Ledger()
    for s, structure in enumerate(structures):
        for k, kind in enumerate(kinds):
            rng = np.random.default_rng([seed, s, k, 12])
            problem = several(structure, seed) if kind == "several" else limited(structure, seed, kind)
            if (seed + s + k) % 3 == 2:
                problem = minimised(problem)
            check_search(ledger, f"{structure}, {kind}, seed {seed}, sign {problem.network.sign}", problem, steps, rng)
    return ledger


def several(structure: str, seed: int) -> LimitedProblem:
    """A process with a limit on every stage: from below, a band, and one on the objective itself."""
    problem = certified(LIMITED[structure], seed)
    domain, stages = problem.network.domain, problem.network.stages
    points = np.random.default_rng(5).uniform(domain.lower, domain.upper, (4_000, domain.dimension))
    first, second, last = problem.values(points)[:, domain.dimension :].T
    limits: Mapping[str, Interval] = {
        stages[0].name: (float(np.quantile(first, 0.35)), np.inf),
        stages[1].name: tuple(np.quantile(second, [0.3, 0.7]).tolist()),
        stages[2].name: (-np.inf, float(np.quantile(last, 0.9))),
    }
    return with_limits(problem, {stage.name: {stage.outputs[0]: limits[stage.name]} for stage in stages})


def minimised(problem: LimitedProblem) -> LimitedProblem:
    """The same process and limits, with the objective minimised."""
    one = problem.problem
    return LimitedProblem(Problem(one.name, one.summary, one.network.mirrored(), one.values))


def check_search(
    ledger: Ledger, name: str, problem: LimitedProblem, steps: int, rng: np.random.Generator, past: int = 0
) -> Study:
    """Check every step of one search, until the gap is within the tolerance or no setting is proven feasible.

    `past`: the number of random runs before. Returns the study.
    """
    study, network = Study(problem.network, tolerance=TOLERANCE), problem.network
    domain = network.domain
    for point in rng.uniform(domain.lower, domain.upper, (past, domain.dimension)):
        study.add_trial(domain.named(point), _outputs(problem, domain.named(point)))
    for step in range(steps):
        note = f"{name}, run {step}"
        trial = ledger["suggestion"].attempt(study.ask, note)
        if trial is None:
            break
        study.tell(trial, _outputs(problem, trial.controls))
        certificate = ledger["certificate"].attempt(study.certificate, note)
        if certificate is None:
            break
        check_certificate(ledger, problem, certificate, note)
        check_cells(ledger, problem, study.beliefs, rng, note)
    return study


def _outputs(problem: LimitedProblem, controls: Mapping[str, float | int]) -> dict[str, list[float]]:
    """What every stage gives at a setting."""
    values = problem.problem.values(problem.network.domain.row(controls)[None])[0]
    return {node.stage.name: values[list(node.columns)].tolist() for node in problem.network.nodes}


def check_certificate(ledger: Ledger, problem: LimitedProblem, certificate: Certificate, note: str) -> None:
    """Check what a certificate says against the best feasible setting of a dense search."""
    network, truth = problem.network, problem.best_feasible
    ledger["not refuted"].verdict(certificate.kind == "proven", f"{note}: {certificate}")
    if certificate.answer == "infeasible":
        assert certificate.margin is not None, "the answer follows from it"
        ledger["no setting"].verdict(truth is None, f"{note}: {certificate}")
        most = np.array([certificate.margin - largest_margin(problem)])
        ledger["distance to the limits"].add(most / truths.NORM, np.zeros(1), note)
    setting = certificate.recommended
    if setting is not None:
        row = network.domain.row(setting.controls)[None]
        ledger["incumbent is feasible"].verdict(bool(problem.feasible(row)[0]), f"{note}: {setting}")
        more = network.sign * (problem.problem.objective(row) - setting.at_least)
        ledger["value of the incumbent"].add(more / truths.NORM, np.zeros(1), note)
    if certificate.gap is not None and certificate.bound is not None and certificate.reached is not None:
        ledger["feasible settings exist"].verdict(truth is not None, note)
        if truth is not None:
            reached, bound = network.sign * certificate.reached, network.sign * certificate.bound
            margin = np.array([bound - truth[1], certificate.gap - (truth[1] - reached)])
            width = np.array([certificate.gap])
            ledger["proven bound and gap"].add(margin / truths.NORM, width / truths.NORM, note)


def largest_margin(problem: LimitedProblem) -> float:
    """The largest margin of the limits among many points, in the units of a certificate."""
    domain = problem.network.domain
    points = np.random.default_rng(6).uniform(domain.lower, domain.upper, (50_000, domain.dimension))
    return float(true_margins(problem, points, _scales(problem)).max())


def true_margins(problem: LimitedProblem, points: Array, scales: Array) -> Array:
    """The margin of the limits at points (n, d), (n,)."""
    return (margins(problem.network.limits, problem.problem.values(points)) / scales).min(axis=1)


def _scales(problem: LimitedProblem) -> Array:
    return margin_scales(Study(problem.network).beliefs)


def check_cells(ledger: Ledger, problem: LimitedProblem, beliefs: Beliefs, rng: np.random.Generator, note: str) -> None:
    """Check the feasibility and the bounds of random cells of all sizes against the values at many points."""
    network, tally = problem.network, ledger["kind of cells"]
    d, sign = network.domain.dimension, network.sign
    cells = truths.random_cells(d, _CELLS, rng)
    inside = truths.points_in(cells, _INSIDE, rng).reshape(-1, d)
    values = problem.problem.values(inside)
    feasible = problem.feasible(inside).reshape(_CELLS, _INSIDE)
    objective = (sign * values[:, network.objective_column]).reshape(_CELLS, _INSIDE)
    found = tally.attempt(lambda: enclose_feasible(beliefs, cells, network.limits), note)
    if found is None:
        return
    tally.verdict(not feasible[~found.possible].any(), f"{note}: an infeasible cell has a feasible point")
    tally.verdict(bool(feasible[found.certain].all()), f"{note}: a feasible cell has an infeasible point")
    best, least = np.where(feasible, objective, -np.inf).max(axis=1), objective.min(axis=1)
    some = feasible.any(axis=1)
    upper, lower = found.above(network.objective_column, sign), found.below(network.objective_column, sign)
    ledger["bound over cells"].add((upper[some] - best[some]) / truths.NORM, np.zeros(1), note)
    ledger["bound over cells"].add((least[found.certain] - lower[found.certain]) / truths.NORM, np.zeros(1), note)
    # Every value of a feasible point lies within the cut intervals.
    lows, highs = found.boxes.lower[:, None, d:], found.boxes.upper[:, None, d:]
    outputs = values.reshape(_CELLS, _INSIDE, -1)[:, :, d:]
    away = np.minimum(outputs - lows, highs - outputs).min(axis=2)[feasible]
    ledger["values of feasible points"].add(away / truths.NORM, np.zeros(1), note)
    check_margins(ledger, problem, beliefs, cells, inside, note)


def check_margins(
    ledger: Ledger, problem: LimitedProblem, beliefs: Beliefs, cells: Boxes, inside: Array, note: str
) -> None:
    """Check the bound of the margin over cells against the margin at their points, feasible or not."""
    scales = margin_scales(beliefs)
    most = true_margins(problem, inside, scales).reshape(len(cells.lower), -1).max(axis=1)
    ledger["margin over cells"].try_margins(
        lambda: (MarginBounds(beliefs, scales)(cells)[0] - most) / truths.NORM, len(most), note
    )
