"""Regret of versions of the library, compared with the first one seed by seed.

    git worktree add ../before <commit>
    python -m benchmarks.paired --records FILE.jsonl --variants before=../before/src,now=src,control=../before/src~1e-12
        [--problems drop-wave,rosenbrock-3] [--seeds 0-29] [--budget 50] [--write FILE.md]

A variant is a name and the folder of its sources. All variants of one seed begin with the same 2(d + 1) uniform random
runs; then `--budget` runs of `auto` follow. With `~1e-12` the initial points are moved by this part of the sides of the
box: such a control shows how far runs differ by rounding alone. Finished runs are appended to the file of records and
are not repeated, so that a comparison may be interrupted and extended. With `--budget 0` only the table is printed.

The table shows, for every problem and variant, the median regrets, in how many seeds the variant is better and worse,
the p-value of the two-sided sign test, and the Hodges-Lehmann estimate of the ratio of regrets (variant / first) with
its 95 % interval by Wilcoxon's signed ranks. Regrets below `FLOOR` count as equal: optima are known to a finite
accuracy. The last column is the ratio of CPU times.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import NONE, table, write_section
from cascada.arrays import Array
from cascada.experiments.bench_run import initial_points
from cascada.problems import Problem, by_name
from cascada.process import Process
from cascada.study import Study

NAME = "benchmarks.paired"
PROBLEMS = ("drop-wave", "rosenbrock-3", "ackley", "alpine2", "ageing", "pv-plant")
FLOOR = 1e-9


@dataclass(frozen=True)
class Variant:
    """A version of the library: the folder of its sources, and by how much the initial points are moved."""

    name: str
    source: Path
    moved: float = 0.0

    @classmethod
    def parsed(cls, text: str) -> "Variant":
        """The variant `NAME=FOLDER` or `NAME=FOLDER~AMOUNT`."""
        name, given, rest = text.partition("=")
        folder, _, moved = rest.partition("~")
        if not (name and given and folder):
            raise SystemExit(f"a variant is NAME=FOLDER or NAME=FOLDER~AMOUNT; got {text!r}.")
        return cls(name, Path(folder), float(moved or 0.0))


@dataclass(frozen=True)
class Job:
    """One run of a variant."""

    problem: str
    variant: str
    seed: int
    budget: int


@dataclass(frozen=True)
class Record:
    """The regret after each run beyond the initial design, and the CPU seconds of all asks and tells."""

    problem: str
    variant: str
    seed: int
    budget: int
    regrets: list[float]
    seconds: float

    @property
    def job(self) -> Job:
        return Job(self.problem, self.variant, self.seed, self.budget)


@dataclass(frozen=True)
class Comparison:
    """Paired regrets of a variant and of the first one."""

    better: int
    worse: int
    p_value: float
    ratio: float
    low: float
    high: float


def initial(problem: Problem, seed: int, moved: float) -> Array:
    """The initial points (n, d), moved by this part of the sides of the box."""
    domain = problem.network.domain
    points = initial_points(problem, 2 * (domain.dimension + 1), seed)
    if not moved:
        return points
    low, high = domain.decode(np.stack([domain.lower, domain.upper]))
    return points + moved * (high - low) * np.sign((low + high) / 2 - points)  # towards the middle: they stay inside


def run(job: Job, moved: float) -> Record:
    """Run a job with the library that is imported here."""
    problem = by_name(job.problem)
    network, process, regrets = problem.network, Process(problem.network), []
    domain, first = network.domain, initial(problem, job.seed, moved)
    study = Study(network, seed=job.seed, horizon=len(first) + job.budget, on_violation="enlarge")
    for point in first:
        controls = domain.named(point)
        study.add_trial(controls, process(controls))
    started = time.process_time()
    for _ in range(job.budget):
        trial = study.ask()
        if trial is None:
            break
        study.tell(trial, process(trial.controls))
        assert study.best_trial is not None
        assert study.best_trial.value is not None
        regrets.append(network.sign * (problem.optimum[1] - study.best_trial.value))
    return Record(**asdict(job), regrets=regrets, seconds=time.process_time() - started)


class Worker:
    """A process that runs the jobs of one variant, one after the other."""

    def __init__(self, variant: Variant) -> None:
        folders = [str(variant.source.resolve()), str(Path.cwd())]
        self._process = subprocess.Popen(
            [sys.executable, "-m", NAME, "--worker", str(variant.moved)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, job: Job) -> str:
        """The record of a job as a line of JSON."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asdict(job)) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"the worker ended during {job}; its error stands above.")
        return line

    def close(self) -> None:
        self._process.communicate()


def work(moved: float, lines: Iterable[str]) -> None:
    """Run the jobs in `lines` and print their records."""
    for line in lines:
        print(json.dumps(asdict(run(Job(**json.loads(line)), moved))), flush=True)


def read(path: Path) -> dict[Job, Record]:
    """The records of a file; none if there is no file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    records = [Record(**json.loads(line)) for line in lines]
    return {record.job: record for record in records}


def run_all(variants: Sequence[Variant], jobs: Sequence[Job], path: Path) -> None:
    """Run the jobs that the file has no record of, in their order, and append their records."""
    known = read(path)
    workers = {variant.name: Worker(variant) for variant in variants}
    try:
        for job in jobs:
            if job not in known:
                line = workers[job.variant].run(job)
                with path.open("a", encoding="utf-8") as file:
                    file.write(line)
    finally:
        for worker in workers.values():
            worker.close()


def compare(first: Sequence[float], other: Sequence[float]) -> Comparison:
    """Compare paired regrets."""
    from scipy.stats import binomtest, norm

    logs = np.log(np.maximum(other, FLOOR)) - np.log(np.maximum(first, FLOOR))
    better, worse = int((logs < 0).sum()), int((logs > 0).sum())
    p_value = float(binomtest(better, better + worse).pvalue) if better + worse else 1.0
    i, j = np.triu_indices(len(logs))
    averages = np.sort((logs[i] + logs[j]) / 2)  # Walsh averages, whose median is the Hodges-Lehmann estimate
    n = len(logs)
    # The interval leaves out the same number of averages at each end: the normal approximation of signed ranks.
    out = n * (n + 1) / 4 - norm.ppf(0.975) * math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    k = max(0, math.floor(out))
    low, high = averages[k], averages[len(averages) - 1 - k]
    return Comparison(better, worse, p_value, *(math.exp(x) for x in (float(np.median(averages)), low, high)))


def rows(records: Mapping[Job, Record], problems: Sequence[str], variants: Sequence[str]) -> list[list[str]]:
    """The rows of the table: seeds that both the first variant and another one have run."""
    found = []
    for problem, name in product(problems, variants[1:]):
        of = [
            {job.seed: record for job, record in records.items() if (job.problem, job.variant) == (problem, each)}
            for each in (variants[0], name)
        ]
        seeds = sorted(of[0].keys() & of[1].keys())
        if not seeds:
            found.append([problem, name, "0", *[NONE] * 6])
            continue
        first, other = ([each[seed].regrets[-1] for seed in seeds] for each in of)
        result = compare(first, other)
        spent = [sum(each[seed].seconds for seed in seeds) for each in of]
        found.append(
            [
                problem,
                name,
                str(len(seeds)),
                f"{median(first):.2g}",
                f"{median(other):.2g}",
                f"{result.better} : {result.worse}",
                f"{result.p_value:.2g}",
                f"{result.ratio:.2g} [{result.low:.2g}, {result.high:.2g}]",
                f"{spent[1] / spent[0]:.2f}",
            ]
        )
    return found


def report(records: Mapping[Job, Record], problems: Sequence[str], variants: Sequence[str]) -> str:
    """The table as Markdown."""
    head = ["problem", "variant", "seeds", f"median of {variants[0]}", "median", "better : worse", "p"]
    head += ["ratio of regrets", "ratio of CPU"]
    return f"{description(['numpy', 'scipy'])}\n\n{table(head, rows(records, problems, variants))}"


def seeds_of(text: str) -> list[int]:
    """The seeds of "30" (0 to 29) or "100-119"."""
    first, given, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if given else list(range(int(first)))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog=f"python -m {NAME}", description=__doc__)
    parser.add_argument("--records", type=Path)
    parser.add_argument("--variants", help="NAME=FOLDER[~AMOUNT],...; the others are compared with the first")
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--seeds", default="30")
    parser.add_argument("--budget", type=int, default=50)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--worker", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    require_one_thread()
    if given.worker is not None:
        work(given.worker, sys.stdin)
        return
    if given.records is None or given.variants is None:
        parser.error("--records and --variants are required.")
    variants = [Variant.parsed(text) for text in given.variants.split(",")]
    names, problems = [variant.name for variant in variants], given.problems.split(",")
    if given.budget:
        wanted = product(seeds_of(given.seeds), problems, names)
        run_all(variants, [Job(problem, name, seed, given.budget) for seed, problem, name in wanted], given.records)
    text = report(read(given.records), problems, names)
    print(text)
    if given.write:
        write_section(given.write, NAME, text)


if __name__ == "__main__":
    main()
