"""Soundness of ranges: bounds that are intersected with what each output can be at any setting.

The ranges are those of the outputs at settings of the process, with almost nothing added. A later stage takes values
outside its range at inputs that no setting reaches, so that bounds at such inputs must not be intersected. Every value
at a setting must lie within the bounds, nothing may be refuted, and gaps must be at least the true regret.

A table of bounds that is clipped to a range at its nodes is wrong at such inputs only. At an input z that a setting
reaches, low ≤ f(z) ≤ high. A node z' there gives the bound min(U(z'), high) + L·|z − z'|: either that of the table
without clipping, or at least high ≥ f(z); the lower bound likewise. So values at settings cannot show the error, and
the bounds at any inputs, from which run anchors take the slopes between two settings, are checked as well.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from cascada.confidence import Boxes
from cascada.confidence.affine import Affine
from cascada.network import Network
from cascada.network.beliefs import StageBelief
from cascada.network.enclosure import enclose_any_inputs
from cascada.problems import Problem, certified
from cascada.study import Study
from tests.soundness import truths
from tests.soundness.harness import Ledger

# The later stages of a chain have one input, and a table of bounds over it.
STRUCTURES = ("chain", "controls", "feed-forward", "join", "known")
_POINTS, _ADDED = 60_000, 0.02  # samples from which ranges are estimated, and what is added, in parts of the range
_RUNS = 8  # of a search before random ones near the ends of the ranges
_CHECKED = 40  # points and cells that are checked after each run


def run(steps: int, seed: int, structures: Sequence[str] = STRUCTURES) -> Ledger:
    """Check one search for every structure; its later runs lie where outputs are close to the ends of their ranges."""
    ledger = Ledger()
    for s, structure in enumerate(structures):
        rng = np.random.default_rng([seed, s, 14])
        problem = ranged(certified(structure, seed))
        check_search(ledger, f"{structure}, seed {seed}", problem, steps, rng)
    return ledger


def ranged(problem: Problem) -> Problem:
    """The same process with the ranges of all modelled outputs at settings."""
    network, domain = problem.network, problem.network.domain
    points = np.random.default_rng(7).uniform(domain.lower, domain.upper, (_POINTS, domain.dimension))
    values = problem.values(points)
    low, high = values.min(axis=0), values.max(axis=0)
    added = _ADDED * (high - low)
    stages = []
    for stage in network.stages:
        columns = dict(zip(stage.outputs, network.node(stage.name).columns, strict=True))
        ranges = {
            o: (low[columns[o]] - added[columns[o]], high[columns[o]] + added[columns[o]]) for o in stage.modelled
        }
        stages.append(replace(stage, ranges=ranges))
    other = Network(stages, objective=".".join(network.objective))
    return Problem(problem.name, problem.summary, other, problem.values, problem.answer)


def check_search(ledger: Ledger, name: str, problem: Problem, steps: int, rng: np.random.Generator) -> None:
    """Check every step of one search against the truth."""
    study, network, optimum = Study(problem.network), problem.network, problem.optimum[1]
    domain = network.domain
    spread = problem.values(rng.uniform(domain.lower, domain.upper, (2_000, domain.dimension)))
    extremes = spread[np.concatenate([spread.argmax(axis=0), spread.argmin(axis=0)])][:, : domain.dimension]
    for step in range(steps):
        note = f"{name}, run {step}"
        if step < _RUNS:
            trial = ledger["suggestion"].attempt(study.ask, note)
        else:
            point = extremes[rng.integers(len(extremes))] + 0.05 * rng.standard_normal(domain.dimension)
            trial = study.enqueue_trial(domain.named(np.clip(point, domain.lower, domain.upper)))
        if trial is None:
            break
        values = problem.values(domain.row(trial.controls)[None])[0]
        outputs = {node.stage.name: values[list(node.columns)].tolist() for node in network.nodes}
        ledger["run accepted"].attempt(partial(study.tell, trial, outputs), note)
        certificate = ledger["certificate"].attempt(study.certificate, note)
        if certificate is None:
            break
        ledger["not refuted"].verdict(certificate.kind == "proven", f"{note}: {certificate}")
        if certificate.gap is not None and certificate.bound is not None and certificate.best is not None:
            margin = np.array([certificate.bound - optimum, certificate.gap - (optimum - certificate.best)])
            ledger["proven bound and gap"].add(margin / truths.NORM, np.array([certificate.gap]) / truths.NORM, note)
        _check_bounds(ledger, problem, study, rng, note)
        _check_any_inputs(ledger, study, rng, note)


def _check_bounds(ledger: Ledger, problem: Problem, study: Study, rng: np.random.Generator, note: str) -> None:
    d = problem.network.domain.dimension
    points = rng.uniform(problem.network.domain.lower, problem.network.domain.upper, (_CHECKED, d))
    truth = problem.values(points)[:, d:]
    ledger["values at points"].try_boxes(
        lambda: truths.output_boxes(study.beliefs, Boxes(points, points)), truth, truths.NORM, note
    )
    cells = truths.random_cells(d, _CHECKED, rng)
    inside = truths.points_in(cells, 8, rng)
    values = problem.values(inside.reshape(-1, d)).reshape(*inside.shape[:2], -1)[:, :, d:]
    ledger["values in cells"].try_boxes(lambda: truths.output_boxes(study.beliefs, cells), values, truths.NORM, note)


def _check_any_inputs(ledger: Ledger, study: Study, rng: np.random.Generator, note: str) -> None:
    """Check the bounds of every stage at random inputs, most of which no setting reaches."""
    for stage in study.beliefs.stages:
        function = stage.node.stage.function
        if stage.belief is None or function is None:
            continue
        inputs = rng.uniform(-truths.BOX, truths.BOX, (_CHECKED, len(stage.node.inputs)))
        truth = np.array([function(**dict(zip(stage.node.input_names, row.tolist(), strict=True))) for row in inputs])
        points = Boxes(inputs, inputs)
        ledger["values at any inputs"].try_boxes(
            partial(_outputs_at, stage, points), truth, truths.NORM, f"{note}, stage {stage.node.stage.name}"
        )


def _outputs_at(stage: StageBelief, points: Boxes) -> Boxes:
    return enclose_any_inputs(stage, points, Affine.of_cells(points))[0]
