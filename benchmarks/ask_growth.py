"""Cost of one ask and tell by the number of runs, with estimated kernels and norms.

    git worktree add ../before <commit>
    python -m benchmarks.ask_growth [--before ../before/src] [--sizes 50,500] [--write docs/performance.md]

Prints one row for each problem and number of runs t: the median CPU seconds of an ask and tell after t uniform random
runs, and those of the slowest tell so far, which fits kernels. A tell includes what the model learns from it, as in
`Study.optimise`. With `--before`, every number stands beside that of another version, measured in the same run.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import duration, table, times, write_section
from cascada.experiments.bench_run import initial_points
from cascada.problems import by_name
from cascada.process import Process
from cascada.store.trial import Trial
from cascada.study import Study

NAME = "benchmarks.ask_growth"
PROBLEMS = ("drop-wave", "rosenbrock-3", "ackley", "alpine2", "ageing", "pv-plant")
SIZES = (50, 100, 200, 350, 500)
STEPS = 5  # number of steps after t runs whose median is reported


@dataclass(frozen=True)
class Cost:
    """CPU seconds of one step and of the slowest tell so far."""

    step: float
    fit: float


def cost(name: str, size: int, seed: int = 0) -> Cost:
    """The cost of a step after `size` uniform random runs; larger sizes contain the runs of smaller ones."""
    problem = by_name(name)
    network, process = problem.network, Process(problem.network)
    study = Study(network, algorithm="auto", seed=seed, horizon=size + STEPS, on_violation="enlarge")
    tells: list[float] = []
    asks: list[float] = []

    def tell(trial: Trial) -> None:
        outputs, started = process(trial.controls), time.process_time()
        study.tell(trial, outputs)
        assert not study.refuted, f"{name}: no norm is given that a run could refute"  # and so the model learns
        tells.append(time.process_time() - started)

    for point in initial_points(problem, size, seed):
        tell(study.begin_trial(network.domain.named(point)))
    for _ in range(STEPS):
        started = time.process_time()
        trial = study.ask()
        asks.append(time.process_time() - started)
        assert trial is not None, f"{name} has more points than {size + STEPS}"
        tell(trial)
    return Cost(median(ask + told for ask, told in zip(asks, tells[size:], strict=True)), max(tells))


def cost_by(source: Path, name: str, size: int) -> Cost:
    """The cost by the library in the folder `source`, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source.resolve()), str(Path.cwd())])}
    command = [sys.executable, "-m", NAME, "--cost", name, str(size)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return Cost(**json.loads(done.stdout))


def rows(name: str, sizes: tuple[int, ...], before: Path | None) -> list[list[str]]:
    """The rows of the table for a problem."""
    label = f"{name} (d = {by_name(name).network.domain.dimension})"
    now = Path(__file__).parent.parent / "src"
    found = []
    for size in sizes:
        at = cost_by(now, name, size)
        cells = [label, str(size), duration(at.step), duration(at.fit)]
        if before is not None:
            old = cost_by(before, name, size)
            steps = [duration(old.step), duration(at.step), times(old.step / at.step)]
            cells = [label, str(size), *steps, duration(old.fit), duration(at.fit), times(old.fit / at.fit)]
        found.append(cells)
    return found


def report(command: str, problems: tuple[str, ...], sizes: tuple[int, ...], before: Path | None) -> str:
    """The section for docs/performance.md."""
    columns = ["ask and tell", "slowest tell"]
    if before is not None:
        columns = [text for column in columns for text in (f"{column}: before", "now", "ratio")]
    return "\n".join(
        [
            "## What an ask costs as runs add up",
            "",
            'CPU seconds of one ask with its tell (`algorithm="auto"`, no kernels and no norms given) after t uniform',
            f"random runs, median of {STEPS}; and the slowest tell up to there, one that fits kernels. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(["problem", "t", *columns], [row for name in problems for row in rows(name, sizes, before)]),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog=f"python -m {NAME}", description=__doc__)
    parser.add_argument("--before", type=Path, help="the src folder of a version to compare with")
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--write", type=Path)
    parser.add_argument("--cost", nargs=2, metavar=("PROBLEM", "SIZE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    require_one_thread()
    if given.cost:
        print(json.dumps(asdict(cost(given.cost[0], int(given.cost[1])))))
        return
    command = f"python -m {NAME}" + (" --before ../before/src" if given.before else "") + f" --sizes {given.sizes}"
    sizes = tuple(map(int, given.sizes.split(",")))
    text = report(command, tuple(given.problems.split(",")), sizes, given.before)
    print(text)
    if given.write:
        write_section(given.write, NAME, text)


if __name__ == "__main__":
    main()
