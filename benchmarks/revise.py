"""Cost of a proven gap if runs that are not worth it are discarded before their expensive last stage.

    python -m benchmarks.revise [--seeds 10] [--write docs/performance.md]

Certified processes of three stages, which cost 1, 10 and 100; the gap to prove is 0.02. After every stage the run is
revised (`Study.revise`): the open controls are chosen anew, and the run is discarded by proof or by rule. At every
revision the bound of the batch is compared with the best of 4,000 random ways to go on, and the gap with the truth.
"""

import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.command import print_or_write_seeds
from benchmarks.environment import description
from benchmarks.markdown import Target, table
from cascada.problems import Problem, certified
from cascada.study import Study, Trial

NAME = "benchmarks.revise"
TOLERANCE = 0.02
COSTS = (1.0, 10.0, 100.0)
MOST_RUNS = 80
COMPLETIONS = 4_000
ROUNDING = 1e-9  # of the process itself
TARGETS = {"controls": 0.8, "join": 0.6}  # of the cost of complete runs


@dataclass(frozen=True)
class Proof:
    """What a proof took: the cost of all stages that were run, and runs, of which some were discarded."""

    cost: float
    runs: int
    discarded: int
    proven: bool
    violations: int
    seconds: float


def prove(structure: str, revised: bool, seed: int) -> Proof:
    """Optimise one process until the gap is proven, with or without revisions."""
    problem, started = certified(structure, seed), time.process_time()
    network = problem.network
    costs = dict(zip([node.stage.name for node in network.nodes], COSTS, strict=True))
    study = Study(network, tolerance=TOLERANCE, horizon=MOST_RUNS)
    violations, rng = 0, np.random.default_rng(seed)
    while len(study.trials) < MOST_RUNS and (trial := study.ask()) is not None:
        for node in network.nodes:
            trial = study.tell_stage(trial, node.stage.name, output(problem, trial, node.stage.name))
            if not revised or trial.state != "running":
                continue
            revision = study.revise(trial, apply=True, costs=costs)
            assert revision.bound is not None, "the norms are given"
            violations += revision.bound < best_completion(problem, trial, rng) - ROUNDING
            trial = study.trials[trial.number]
            if trial.state == "abandoned":
                break
        certificate = study.certificate()
        if certificate.bound is not None:
            violations += certificate.bound < problem.optimum[1] - ROUNDING
    cost = sum(costs[name] for trial in study.trials for name in trial.outputs)
    discarded = sum(trial.state == "abandoned" for trial in study.trials)
    proven, seconds = study.within_tolerance, time.process_time() - started
    return Proof(cost, len(study.trials), discarded, proven, violations, seconds)


def output(problem: Problem, trial: Trial, stage: str) -> list[float]:
    """What a stage of a trial gives, at the outputs of the stages before it."""
    network = problem.network
    node = network.node(stage)
    values: dict[str, float] = dict(trial.controls)
    for parent in node.parents:
        values |= dict(zip(network.node(parent).stage.outputs, trial.outputs[parent], strict=True))
    assert node.stage.function is not None, "a certified process has functions"
    found: list[float] = node.stage.function(**{name: values[name] for name in node.input_names})
    return found


def best_completion(problem: Problem, trial: Trial, rng: np.random.Generator) -> float:
    """The best of many random ways to go on with a trial, controls of stages that were run unchanged."""
    domain = problem.network.domain
    fixed = {control for name in trial.outputs for control in problem.network.node(name).stage.controls}
    points = rng.uniform(domain.lower, domain.upper, (COMPLETIONS, domain.dimension))
    for j, name in enumerate(domain.names):
        if name in fixed:
            points[:, j] = trial.controls[name]
    return float(problem.objective(points).max())


def rows(structure: str, seeds: int, pool: ProcessPoolExecutor) -> list[list[str]]:
    complete, revised = (list(pool.map(partial(prove, structure, revised), range(seeds))) for revised in (False, True))
    ratios = [after.cost / before.cost for before, after in zip(complete, revised, strict=True)]
    return [
        [
            structure,
            kind,
            f"{sum(proof.proven for proof in proofs)} of {seeds}",
            f"{np.median([proof.cost for proof in proofs]):g}",
            " ".join(f"{proof.cost:g}" for proof in proofs),
            " ".join(f"{proof.runs}" for proof in proofs),
            " ".join(f"{proof.discarded}" for proof in proofs),
            f"{sum(proof.violations for proof in proofs)}",
            f"{np.median([proof.seconds for proof in proofs]):.1f}",
            said,
        ]
        for kind, proofs, said in (
            ("complete", complete, ""),
            ("revised", revised, _verdict(structure, ratios)),
        )
    ]


def _verdict(structure: str, ratios: list[float]) -> str:
    middle = float(np.median(ratios))
    all_of_them = " ".join(f"{ratio:.2f}" for ratio in ratios)
    return f"{middle:.2f} ({all_of_them}); {Target(TARGETS[structure], at_least=False).verdict(middle)}"


HEADER = (
    "structure",
    "runs",
    "proven",
    "cost (median)",
    "cost by seed",
    "runs by seed",
    "discarded by seed",
    "bounds violated",
    "seconds (median)",
    "cost relative to complete runs: median (all), target",
)


def report(command: str, seeds: int) -> str:
    """The section for docs/performance.md."""
    with ProcessPoolExecutor(2) as pool:
        found: Mapping[str, list[list[str]]] = {name: rows(name, seeds, pool) for name in TARGETS}
    return "\n".join(
        [
            "## Discarding runs before an expensive stage",
            "",
            f"{seeds} random processes each, whose three stages cost {', '.join(f'{cost:g}' for cost in COSTS)}; the",
            f"cost is that of all stages that were run until a gap of {TOLERANCE:g} was proven. A revised run may be",
            "discarded before its last stage. `controls` is a chain with one control at",
            "each stage, `join` has two branches. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(HEADER, [row for part in found.values() for row in part]),
        ]
    )


if __name__ == "__main__":
    print_or_write_seeds(NAME, __doc__, report, 10)
