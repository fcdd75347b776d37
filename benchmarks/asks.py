"""Cost of one suggestion, and speed of the paper's practical variant relative to its literal transcription.

python -m benchmarks.asks [--write docs/performance.md]
"""

import time

import numpy as np

from benchmarks.command import print_or_write
from benchmarks.environment import description
from benchmarks.markdown import Target, duration, table, times
from cascada.algorithms import GPNUCB
from cascada.experiments.paper_grid import PaperGrid
from cascada.problems import Problem, certified
from cascada.space import Grid
from cascada.study import Study
from tests.reference_algorithms import PaperStage, paper_grid_ucb

NAME = "benchmarks.asks"
JITTER = 1e-7
SIDE = 50  # 2,500 candidates, as in the paper


def with_random_runs(problem: Problem, study: Study, count: int) -> Study:
    """Add random runs to a study."""
    rng = np.random.default_rng(count)
    domain = problem.network.domain
    for row in rng.uniform(domain.lower, domain.upper, (count, domain.dimension)):
        trial = study.enqueue_trial(domain.named(row))
        values = problem.values(row[None])[0]
        study.tell(trial, {node.stage.name: values[list(node.columns)] for node in problem.network.nodes})
    return study


def seconds_to_ask(study: Study) -> float:
    assert study.model is not None  # a study learns its runs when the model is first needed: not a part of the ask
    started = time.perf_counter()
    study.ask()
    return time.perf_counter() - started


def growth_table() -> str:
    """One certified suggestion of a chain (d = 2, m = 3) after t random runs, from an empty tree."""
    rows = []
    problem = certified("chain", 0)
    for t in (10, 50, 100, 200, 500):
        box = min(seconds_to_ask(with_random_runs(problem, Study(problem.network), t)) for _ in range(3))
        grid = Grid({"x": SIDE, "y": SIDE})
        listed = min(
            seconds_to_ask(with_random_runs(problem, Study(problem.network, candidates=grid), t)) for _ in range(3)
        )
        rows.append([str(t), duration(box), duration(listed)])
    return table(["t", "box", "2,500 candidates"], rows)


def paper_table() -> str:
    """One step of the paper's variant (2,500 candidates, 100 grid points, window 1) after 4 runs, relative to loops."""
    problem, grid = certified("chain", 0, lipschitz=2.0), PaperGrid()
    study = Study(problem.network, algorithm=grid, candidates=Grid({"x": SIDE, "y": SIDE}), jitter=JITTER)
    study = with_random_runs(problem, study, 4)
    beliefs = [stage.belief for stage in study.beliefs.stages]
    points = Grid({"x": SIDE, "y": SIDE}).points(problem.network.domain)
    started = time.perf_counter()
    fast = grid.upper(beliefs, points)  # type: ignore[arg-type]
    ours = time.perf_counter() - started
    stages = [
        PaperStage([tuple(x) for x in b.posterior.inputs.tolist()], b.posterior.outputs[:, 0].tolist(), JITTER)
        for b in beliefs
        if b is not None
    ]
    started = time.perf_counter()
    slow = paper_grid_ucb(stages, [tuple(x) for x in points.tolist()], grid.grid.tolist(), grid.radius, B=2.0, L=2.0)
    loops = time.perf_counter() - started
    gap = float(np.abs(fast - np.array(slow)).max())
    verdict = Target(100, at_least=True).verdict(loops / ours)
    return table(
        ["one step", "literal loops", "ratio", "target", "largest difference"],
        [[duration(ours), duration(loops), times(loops / ours), verdict, f"{gap:.0e}"]],
    )


def report(command: str) -> str:
    """The section for docs/performance.md."""
    return "\n".join(
        [
            "## What a suggestion costs",
            "",
            "GPN-UCB on a chain of three stages with two controls after t random runs, from an empty tree, on one core",
            f"(`{GPNUCB()}`). Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            growth_table(),
            "",
            "The paper's practical variant (`PaperGrid`) in the paper's setting, one step, against its transcription",
            "in loops (`tests/reference_algorithms.py`):",
            "",
            paper_table(),
        ]
    )


if __name__ == "__main__":
    print_or_write(NAME, __doc__, report)
