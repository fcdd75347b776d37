"""Feasible best values of processes with limits and unknown norms, against other libraries.

    python -m benchmarks.limits_estimated [--seeds 20] [--runs 40] [--contestants cascada,optuna-gp,botorch-qlogei]
        [--problems ageing,rosenbrock,tablets] [--records FILE.jsonl] [--out FILE.md]

All contestants of one seed start from the same 2(d + 1) uniform random points and have 40 runs in all. With `--records`
finished runs are read from the file and new ones are added to it, so that contestants may be run one after the other,
each where its packages are installed. The table shows what was lost: the best known feasible value minus the best
feasible value of a run, as a part of the range of feasible values; a run without a feasible value has lost 1. Intervals
are Student's for the mean over seeds; "ahead" is the paired difference to cascada, positive where cascada is better.
"""

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.environment import description, require_one_thread
from benchmarks.limited_peers import CONTESTANTS, PACKAGES
from benchmarks.limited_problems import PROBLEMS, LimitedProblem
from benchmarks.markdown import table, write_section
from cascada.experiments.statistics import Interval, mean_interval
from cascada.network.limits import satisfied

NAME = "benchmarks.limits_estimated"
OURS = "cascada"


@dataclass(frozen=True)
class Record:
    """One contestant on one problem with one seed."""

    problem: str
    contestant: str
    seed: int
    best: list[float | None]  # the best feasible value after each run, as it is maximised; None if there is none
    broken: int  # runs that broke a limit
    ask_seconds: float  # CPU time of one ask, on average
    versions: str


def run(problem: LimitedProblem, contestant: str, seed: int, runs: int) -> Record:
    """Run a contestant."""
    network, domain = problem.network, problem.network.domain
    rng = np.random.default_rng([seed, *problem.name.encode()])
    initial = domain.decode(rng.uniform(domain.lower, domain.upper, (2 * (domain.dimension + 1), domain.dimension)))
    player = CONTESTANTS[contestant](problem, seed)
    best, broken, spent = -math.inf, 0, 0.0
    course: list[float | None] = []
    for i in range(runs):
        if i < len(initial):
            point = initial[i]
        else:
            started = time.process_time()
            point = np.clip(player.ask(), *domain.decode(np.stack([domain.lower, domain.upper])))
            spent += time.process_time() - started
        row = problem.values(point[None])[0]
        player.tell(point, row)
        if satisfied(network.limits, row[None])[0]:
            best = max(best, network.sign * float(row[network.objective_column]))
        else:
            broken += 1
        course.append(best if math.isfinite(best) else None)
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES[contestant])
    return Record(problem.name, contestant, seed, course, broken, spent / (runs - len(initial)), packages)


def lost(problem: LimitedProblem, record: Record, runs: int) -> float:
    """What a record lost after so many runs, as a part of the range of feasible values."""
    value = record.best[runs - 1]
    return 1.0 if value is None else min(1.0, max(0.0, (problem.best - value) / (problem.best - problem.worst)))


def shown(interval: Interval) -> str:
    """A mean with its interval, in percent."""
    if interval.low is None or interval.high is None:
        return f"{100 * interval.mean:.2f}"
    return f"{100 * interval.mean:.2f} [{100 * interval.low:.2f}, {100 * interval.high:.2f}]"


def report(command: str, records: list[Record], runs: int) -> str:
    """The table of all contestants with the same seeds."""
    rows = []
    for make in PROBLEMS:
        problem = make()
        own = {r.seed: lost(problem, r, runs) for r in records if (r.problem, r.contestant) == (problem.name, OURS)}
        for name in CONTESTANTS:
            some = [r for r in records if (r.problem, r.contestant) == (problem.name, name)]
            if not some:
                continue
            values = {r.seed: lost(problem, r, runs) for r in some}
            paired = [values[seed] - own[seed] for seed in values if seed in own]
            rows.append(
                [
                    problem.name,
                    name,
                    str(len(some)),
                    shown(mean_interval(list(values.values()))),
                    f"{100 * median(values.values()):.3g}",
                    "–" if name == OURS or not paired else shown(mean_interval(paired)),
                    str(sum(r.best[runs - 1] is None for r in some)),
                    f"{np.mean([r.broken for r in some]):.1f}",
                    f"{np.mean([r.ask_seconds for r in some]):.2f} s",
                ]
            )
    header = ["problem", "contestant", "seeds", "lost, %", "median", "ahead, %", "none feasible", "broken", "ask"]
    versions = sorted({r.versions for r in records if r.versions})
    return f"`{command}`\n\n{table(header, rows)}\n\n{'; '.join([*versions, description(['numpy', 'scipy'])])}"


def main() -> None:
    parser = argparse.ArgumentParser(prog=f"python -m {NAME}", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--contestants", default="cascada,optuna-gp,botorch-qlogei")
    parser.add_argument("--problems", default="ageing,rosenbrock,tablets")
    parser.add_argument("--records", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    require_one_thread()
    records: list[Record] = []
    if options.records is not None and options.records.exists():
        records = [Record(**json.loads(line)) for line in options.records.read_text().splitlines()]
    done = {(r.problem, r.contestant, r.seed) for r in records}
    problems = [problem for make in PROBLEMS if (problem := make()).name in options.problems.split(",")]
    for seed in range(options.first, options.first + options.seeds):
        for problem in problems:
            for name in filter(None, options.contestants.split(",")):
                if (problem.name, name, seed) in done:
                    continue
                records.append(run(problem, name, seed, options.runs))
                if options.records is not None:
                    with options.records.open("a") as file:
                        file.write(json.dumps(asdict(records[-1])) + "\n")
    command = f"python -m {NAME} --seeds {options.seeds} --runs {options.runs}"
    body = report(command, records, options.runs)
    print(body)
    if options.out is not None:
        write_section(options.out, NAME, body)


if __name__ == "__main__":
    main()
