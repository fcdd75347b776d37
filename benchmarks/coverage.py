"""Coverage of the true regret by the estimated or the probable gap, if no kernel and no norm is given.

    python -m benchmarks.coverage [--estimate estimated] [--seeds 5] [--jobs 2] [--problems drop-wave,ageing]
        [--algorithms auto,gpn_ucb] [--checkpoints 0,10,20,30,50] [--logs FOLDER] [--out FILE.md]

`--estimate` is `estimated`, the gap of the certificate, `probable` (`Study.probable_gap`), or both with a comma.
`--seeds` is a number, or a range as in 3-12. With `--logs` the runs of every study are kept in the folder, and studies
that are there are not run again: their outputs are told to a new study, and the gap is computed after as many of them.
So other estimates are measured on the same runs, and an interrupted benchmark goes on.

After 2(d + 1) uniform random runs the algorithm chooses the runs; the certificate is computed after as many of them as
`--checkpoints` lists, where 0 is directly after the design. Prints one row for each problem, algorithm and checkpoint:
the median gap and the median regret as fractions of the objective's range (optimum − the smallest value at 10,000
uniform random points), the number of runs without a gap, and the number of the others in which it covers the regret;
then every miss at a checkpoint that counts, and the covered fraction. A checkpoint counts if the median gap is at most
a fifth of the range, because a larger gap is useless. A checkpoint without a gap is neither covered nor missed.

For the certified families every seed gives another random process, without its true kernels and norms.

On two free cores five seeds take about 8 minutes for `auto`. Algorithms other than GPN-EI make no probes, so their
gaps appear late or never.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import table, write_section
from cascada.algorithms import GPNUCB, NAMES
from cascada.arrays import Array
from cascada.experiments.bench_run import initial_points, run, simple_regret
from cascada.experiments.contestants import StudyContestant, objective_of
from cascada.experiments.pool import cores, processes
from cascada.network import Network, Stage
from cascada.network.outputs import Outputs
from cascada.problems import PRACTICE, PROBLEMS, STRUCTURES, Problem, by_name, certified
from cascada.study import Study
from cascada.whole_file import write_whole

NAME = "benchmarks.coverage"
FAMILIES = {f"certified-{name}": name for name in STRUCTURES}
ALGORITHMS = ("auto", "gpn_ucb")
VARIANTS = {"gpn_ucb-ascent": f"{NAME}:ascent"}  # in addition to the names of the library
CHECKPOINTS = (0, 10, 20, 30, 50)  # runs after the initial design; the last one is the end
COUNTED = 0.2  # of the range: the largest useful median gap
SOLVED, SMALL = 1e-3, 0.05  # of the range: a regret that is small enough, and a gap that says so
LATE = 20  # runs from which on a gap should be there
ESTIMATES = ("estimated", "probable")
# Nothing in the runs tells of the best region, so that no estimate from them can be right.
DECEPTIVE = ("narrow-peak", "half-rough", "drop-wave")
AIM = 0.95  # of the checkpoints that count
ACCURACY = 1e-9  # of the range: the accuracy of the optima
SAMPLE = 10_000


@dataclass(frozen=True)
class Job:
    """One run: an algorithm on a problem with a seed."""

    problem: str
    algorithm: str
    seed: int
    checkpoints: tuple[int, ...] = CHECKPOINTS
    estimates: tuple[str, ...] = ESTIMATES[:1]

    @property
    def process(self) -> tuple[str, int]:
        """The process: for a family the one with this seed."""
        return self.problem, self.seed if self.problem in FAMILIES else 0


@dataclass(frozen=True)
class Look:
    """The gap at a checkpoint by one of the estimates, and the true regret."""

    job: Job
    estimate: str
    checkpoint: int
    gap: float  # infinite if there was none
    regret: float

    def over(self, scale: float) -> "Look":
        """The same in units of `scale`."""
        return replace(self, gap=self.gap / scale, regret=self.regret / scale)

    @property
    def covered(self) -> bool:
        """Whether there is a gap and the regret is within it, both as fractions of the range."""
        return self.shown and self.regret <= self.gap + ACCURACY

    @property
    def shown(self) -> bool:
        """Whether there was a gap."""
        return bool(np.isfinite(self.gap))


@dataclass(frozen=True)
class Row:
    """All seeds of an algorithm on a problem at a checkpoint."""

    looks: tuple[Look, ...]

    @property
    def shown(self) -> tuple[Look, ...]:
        """The entries with a gap."""
        return tuple(look for look in self.looks if look.shown)

    @property
    def gap(self) -> float:
        """The median of the gaps, infinite if there is none."""
        return median(look.gap for look in self.shown) if self.shown else np.inf

    @property
    def counted(self) -> bool:
        """Whether the median gap is small enough to be useful."""
        return self.gap <= COUNTED

    @property
    def cells(self) -> list[str]:
        """The cells of the row as strings."""
        first = self.looks[0]
        return [
            first.job.problem,
            first.job.algorithm,
            str(first.checkpoint),
            _number(self.gap),
            _number(median(look.regret for look in self.looks)),
            str(len(self.looks) - len(self.shown)),
            f"{sum(look.covered for look in self.shown)} of {len(self.shown)}",
            "yes" if self.counted else "no",
        ]


def ascent() -> GPNUCB:
    """GPN-UCB without its search tree, which takes most of the time and does not help an estimated gap."""
    return GPNUCB(search="ascent")


@lru_cache(maxsize=32)  # a worker makes many runs of few problems, and finding an optimum is slow
def unknown(name: str, seed: int) -> Problem:
    """A built-in problem without assumptions about its stages except known formulas."""
    problem = certified(FAMILIES[name], seed) if name in FAMILIES else by_name(name)
    bare = {stage.name: _bare(stage) for stage in problem.network.stages if not stage.known}
    return replace(problem, network=problem.network.assuming(bare))


def _bare(stage: Stage) -> Stage:
    """The same stage without kernel, norm and slope."""
    return Stage(stage.name, stage.controls, stage.outputs, stage.parents, passes=stage.passes, function=stage.function)


def value_range(name: str, seed: int) -> float:
    """The optimum minus the smallest value at uniform random points (uniform in coordinates)."""
    problem = unknown(name, seed)
    domain = problem.network.domain
    points = np.random.default_rng(0).uniform(domain.lower, domain.upper, (SAMPLE, domain.dimension))
    return float(problem.optimum[1] - problem.objective(domain.decode(points)).min())


def looks(job: Job, folder: Path | None = None) -> tuple[list[Look], str | None]:
    """The gaps of a run in units of the objective, and the reason if the run failed."""
    problem, initial = unknown(*job.process), first_runs(job)
    logged = read_runs(job, folder)
    regret = simple_regret(problem, [run.value for run in logged.runs])
    study = Study(
        problem.network,
        algorithm=VARIANTS.get(job.algorithm, job.algorithm),
        seed=job.seed,
        horizon=initial + job.checkpoints[-1],
        on_violation="enlarge",
    )
    found = []
    for count, one in enumerate(logged.runs, 1):
        study.tell(study.begin_trial(one.controls), one.outputs)
        # If no point was worth a run, the last gap holds for later checkpoints.
        last = count == len(logged.runs) and logged.status == "exhausted"
        for checkpoint in job.checkpoints:
            if count - initial == checkpoint or (last and count - initial < checkpoint):
                for estimate in job.estimates:
                    gap = study.probable_gap().gap if estimate == "probable" else _estimated(study)
                    found.append(Look(job, estimate, checkpoint, np.inf if gap is None else gap, regret[count - 1]))
    return found, logged.message


def _estimated(study: Study) -> float | None:
    certificate = study.certificate()
    assert certificate.kind != "proven", "nothing was given that a proof could rest on"
    return certificate.gap


@dataclass(frozen=True)
class LoggedRun:
    """Controls, outputs and objective of a run."""

    controls: dict[str, float]
    outputs: dict[str, list[float]]
    value: float


@dataclass(frozen=True)
class Log:
    """All runs of a study, and why they ended."""

    runs: list[LoggedRun]
    status: str
    message: str | None


class _Logging(StudyContestant):
    """A contestant that keeps what it is told."""

    def __init__(self, network: Network, algorithm: str, seed: int, horizon: int) -> None:
        super().__init__(network, algorithm, seed, horizon)
        self.network, self.runs = network, list[LoggedRun]()

    def tell(self, point: Array, outputs: Outputs) -> None:
        super().tell(point, outputs)
        told = {stage: [float(value) for value in values] for stage, values in outputs.items()}
        controls = dict(self.network.domain.named(point))
        self.runs.append(LoggedRun(controls, told, objective_of(self.network, outputs)))


def first_runs(job: Job) -> int:
    """The number of uniform random runs that a study begins with."""
    return 2 * (unknown(*job.process).network.domain.dimension + 1)


def read_runs(job: Job, folder: Path | None) -> Log:
    """The runs of a job, from the folder if they are there; else they are made, and kept in it."""
    file = None if folder is None else folder / f"{job.problem}-{job.algorithm}-{job.seed}-{job.checkpoints[-1]}.json"
    if file is not None and file.exists():
        content = json.loads(file.read_text(encoding="utf-8"))
        return Log([LoggedRun(**run) for run in content["runs"]], content["status"], content["message"])
    problem, initial, budget = unknown(*job.process), first_runs(job), job.checkpoints[-1]
    algorithm = VARIANTS.get(job.algorithm, job.algorithm)
    contestants: list[_Logging] = []

    def make() -> _Logging:
        contestants.append(_Logging(problem.network, algorithm, job.seed, initial + budget))
        return contestants[-1]

    course = run(problem, make, initial_points(problem, initial, job.seed), budget, job.seed)
    log = Log(contestants[-1].runs if contestants else [], course.status, course.message)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(asdict(log)))
    return log


def measure(jobs: Sequence[Job], workers: int, folder: Path | None = None) -> tuple[list[Row], list[str]]:
    """The rows of the table in the order of the jobs, and the failures."""
    kinds = list(dict.fromkeys(job.process for job in jobs))
    ordered = sorted(jobs, key=lambda job: -unknown(*job.process).network.width)  # roughly the longest first
    with processes(workers) as pool:
        ranges = {kind: pool.submit(value_range, *kind) for kind in kinds}
        runs = {job: pool.submit(looks, job, folder) for job in ordered}
        waiting: list[Future[Any]] = [*ranges.values(), *runs.values()]
        for done, future in enumerate(as_completed(waiting), 1):
            future.result()  # raises an error of the worker at once
            print(f"{done} of {len(waiting)}", end="\r", file=sys.stderr, flush=True)
    found = [look.over(ranges[job.process].result()) for job in jobs for look in runs[job].result()[0]]
    messages = [(job, runs[job].result()[1]) for job in jobs]
    return as_rows(found), [f"{_named(job)}: {message}" for job, message in messages if message is not None]


def as_rows(found: Iterable[Look]) -> list[Row]:
    """The entries of all seeds by problem, algorithm and checkpoint."""
    groups: dict[tuple[str, str, str, int], list[Look]] = {}
    for look in found:
        groups.setdefault((look.estimate, look.job.problem, look.job.algorithm, look.checkpoint), []).append(look)
    return [Row(tuple(same)) for same in groups.values()]


def report(command: str, rows: Sequence[Row], failed: Sequence[str]) -> str:
    """The table, the misses, the failures, and the covered fractions."""
    header = ["problem", "algorithm", "runs", "gap (median)", "regret (median)", "no gap", "covered", "counted"]
    kind = "a probable" if rows[0].looks[0].estimate == "probable" else "an estimated"
    missed = [
        f"- {_named(look.job)}, after {look.checkpoint}: gap {_number(look.gap)}, regret {_number(look.regret)}"
        for row in rows
        if row.counted
        for look in row.shown
        if not look.covered
    ]
    return "\n".join(
        [
            f"## How often {kind} gap covers the regret",
            "",
            "Fractions of the objective's range; `runs` are those after the initial design. A checkpoint counts where",
            f"the median gap is at most {COUNTED:g}. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(header, [row.cells for row in rows]),
            "",
            *(["Missed where it counts:", "", *missed, ""] if missed else []),
            *(["Failed, and not counted from there on:", "", *(f"- {text}" for text in failed), ""] if failed else []),
            verdict(rows),
            "",
            usefulness(rows),
        ]
    )


def usefulness(rows: Sequence[Row]) -> str:
    """How often small regrets are known to be small, and how often there is a gap, in two lines."""
    honest = [look for row in rows for look in row.looks if look.job.problem not in DECEPTIVE]
    solved = [look.gap <= SMALL for look in honest if look.regret <= SOLVED and look.shown]
    late = [look.shown for row in rows for look in row.looks if look.checkpoint >= LATE]
    apart = [look.covered for look in honest if look.shown]
    return (
        f"Without {', '.join(DECEPTIVE)}: covered {_share(apart)}. Of their looks with a gap and a regret of at most "
        f"{SOLVED:g} the gap is at most {SMALL:g} in {_share(solved)}.\n"
        f"A gap was there in {_share(late)} of the looks from {LATE} runs on."
    )


def verdict(rows: Sequence[Row]) -> str:
    """The covered fractions in one line."""
    counts = [look.covered for row in rows if row.counted for look in row.shown]
    every = [look.covered for row in rows for look in row.shown]
    without = sum(not look.shown for row in rows for look in row.looks)
    met = "nothing counts" if not counts else "met" if sum(counts) >= AIM * len(counts) else "**not met**"
    aim = f"aim ≥ {100 * AIM:g} %: {met}"
    covered = f"Covered where it counts: {_share(counts)}; {aim}. Over all checkpoints: {_share(every)}"
    return f"{covered}; {without} more looks found no gap."


def _share(covered: Sequence[bool]) -> str:
    part = f" ({100 * sum(covered) / len(covered):.1f} %)" if covered else ""
    return f"{sum(covered)} of {len(covered)}{part}"


def _number(value: float) -> str:
    return f"{value:.2g}" if np.isfinite(value) else "none"


def _named(job: Job) -> str:
    return f"{job.problem}, {job.algorithm}, seed {job.seed}"


def _seeds(text: str) -> range:
    """Seeds from their number, or from the first and the last one."""
    first, dash, last = text.partition("-")
    return range(int(first), int(last) + 1) if dash else range(int(first))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog=f"python -m {NAME}", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--estimate", default=ESTIMATES[0])
    parser.add_argument("--seeds", type=_seeds, default=_seeds("5"))
    parser.add_argument("--logs", type=Path)
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument("--problems", default=",".join([*PRACTICE, *FAMILIES]))
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    parser.add_argument("--checkpoints", default=",".join(map(str, CHECKPOINTS)))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    problems, algorithms = given.problems.split(","), given.algorithms.split(",")
    kinds = dict.fromkeys(ESTIMATES)
    for what, names, known in (
        ("estimate", given.estimate.split(","), kinds),
        ("problem", problems, PROBLEMS),
        ("algorithm", algorithms, {**NAMES, **VARIANTS}),
    ):
        strange = [name for name in names if name not in known]
        if strange:
            parser.error(f"there is no {what} {', '.join(map(repr, strange))}; there are {', '.join(known)}")
    require_one_thread()
    checkpoints = tuple(sorted(map(int, given.checkpoints.split(","))))
    estimates = tuple(given.estimate.split(","))
    jobs = [Job(*which, checkpoints, estimates) for which in product(problems, algorithms, given.seeds)]
    options = [f"--{name} {getattr(given, name)}" for name in ("estimate", "problems", "algorithms", "checkpoints")]
    changed = [o for o in options if o.split()[1] != parser.get_default(o.split()[0][2:])]
    seeds = str(len(given.seeds)) if given.seeds[0] == 0 else f"{given.seeds[0]}-{given.seeds[-1]}"
    command = " ".join([f"python -m {NAME} --seeds {seeds}", *changed])
    rows, failed = measure(jobs, given.jobs, given.logs)
    parts = [[row for row in rows if row.looks[0].estimate == estimate] for estimate in estimates]
    text = "\n\n".join(report(command, part, failed) for part in parts if part)
    print(text)
    if given.out:
        write_section(given.out, NAME, text)


if __name__ == "__main__":
    main()
