"""The plan of a benchmark: its runs as data, and the execution of one run.

A run is an algorithm on a problem with a seed. It depends only on the settings and these three fields, so it can be
done in any process, in any order, and repeated.
"""

import platform
import re
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from cascada import __version__
from cascada.algorithms import NAMES
from cascada.algorithms import by_name as algorithm_by_name
from cascada.arrays import as_whole_number
from cascada.errors import ArgumentError
from cascada.experiments.bench_run import Course, initial_points, run, simple_regret
from cascada.experiments.contestants import contestant
from cascada.experiments.peers import PEERS, require
from cascada.near_names import did_you_mean
from cascada.problems import PROBLEMS, Problem
from cascada.problems import by_name as problem_by_name

#: Numbers of evaluations after the initial design at which regrets and gaps are reported.
CHECKPOINTS = (10, 20, 30, 50, 100)

# Rough relative costs: the longest runs start first, so that no core idles at the end.
_COSTS = {"random_search": 0.1, "optuna-tpe": 0.2, "optuna-gp": 3.0, "botorch-qlogei": 5.0}


@dataclass(frozen=True)
class BenchSettings:
    """The settings shared by all runs in a folder; problems, algorithms and seeds may be added later."""

    budget: int  # runs after the initial design
    initial: int | None = None  # runs of the initial design; None for 2(d + 1)
    gaps: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", as_whole_number(self.budget, "budget"))
        if self.initial is not None:
            object.__setattr__(self, "initial", as_whole_number(self.initial, "initial"))

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """The numbers of evaluations at which regrets are compared, including the last."""
        return (*(n for n in CHECKPOINTS if n < self.budget), self.budget)

    def initial_of(self, problem: Problem) -> int:
        """The size of the initial design for a problem."""
        return 2 * (problem.network.domain.dimension + 1) if self.initial is None else self.initial

    def as_json(self) -> dict[str, Any]:
        """All settings and the version of the library, because a new version may change every number."""
        return {"kind": "bench", **asdict(self), "version": __version__}


@dataclass(frozen=True)
class BenchJob:
    """One run."""

    problem: str
    algorithm: str
    seed: int

    @property
    def name(self) -> str:
        """The file name of its result; the names of a user's algorithm and problem get a checksum."""
        algorithm = _plain(self.algorithm, self.algorithm in NAMES or self.algorithm in PEERS)
        return f"{plain_name(self.problem)}--{algorithm}--{self.seed:04d}"

    @property
    def cost(self) -> float:
        """Its relative cost."""
        return _COSTS.get(self.algorithm, 1.0)


@dataclass(frozen=True)
class Plan:
    """Every algorithm on every problem with the seeds 0, 1, …; the first algorithm is the reference."""

    problems: tuple[str, ...]
    algorithms: tuple[str, ...]
    seeds: int
    settings: BenchSettings

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", as_whole_number(self.seeds, "seeds"))
        for what, names in (("problems", self.problems), ("algorithms", self.algorithms)):
            twice = sorted({name for name in names if names.count(name) > 1})
            if not names or twice:
                got = f"{', '.join(twice)} twice" if twice else "none"
                raise ArgumentError(f"{what} must be at least one name, each given once; got {got}.")

    def check(self) -> None:
        """Raise `ArgumentError` for unknown names and missing packages before the first run."""
        for problem in self.problems:
            if problem not in PROBLEMS:
                problem_by_name(problem)
        for algorithm in self.algorithms:
            if algorithm in PEERS:
                require(algorithm)
            elif algorithm not in NAMES and ":" not in algorithm:
                raise ArgumentError(
                    f"algorithm must be one of {', '.join(NAMES)}, a peer ({', '.join(PEERS)}), or 'module:Class'; "
                    f"got {algorithm!r}{did_you_mean(algorithm, [*NAMES, *PEERS])}."
                )
            else:
                algorithm_by_name(algorithm)

    @property
    def jobs(self) -> list[BenchJob]:
        """All runs, sorted by problem, algorithm and seed."""
        return [
            BenchJob(problem, algorithm, seed)
            for problem in sorted(self.problems)
            for algorithm in sorted(self.algorithms)
            for seed in range(self.seeds)
        ]


def plain_name(problem: str) -> str:
    """The name of a problem as a part of a file name."""
    return _plain(problem, problem in PROBLEMS)


def _plain(name: str, ours: bool) -> str:
    plain = re.sub("[^a-z0-9_.]+", "-", name)
    return plain if ours else f"{plain}-{sha256(name.encode()).hexdigest()[:8]}"


def work(settings: BenchSettings, job: BenchJob) -> dict[str, Any]:
    """Do a run and return its record and its CPU seconds; only the latter differ between repetitions."""
    problem = _problem(job.problem)
    initial = settings.initial_of(problem)
    course = run(
        problem,
        lambda: contestant(problem.network, job.algorithm, job.seed, initial, settings.budget),
        initial_points(problem, initial, job.seed),
        settings.budget,
        job.seed,
        settings.checkpoints if settings.gaps else (),
    )
    return {"record": _record(settings, job, problem, initial, course), "cpu": _cpu(job, course)}


def _record(settings: BenchSettings, job: BenchJob, problem: Problem, initial: int, course: Course) -> dict[str, Any]:
    gaps = {"gaps": [asdict(gap) for gap in course.gaps]} if settings.gaps else {}
    return {
        **asdict(job),
        "status": course.status,
        "message": course.message,
        "initial": initial,
        "budget": settings.budget,
        "optimum": float(problem.optimum[1]),
        "cost": float(sum(stage.cost for stage in problem.network.stages)),
        "values": course.values,
        "regret": simple_regret(problem, course.values),
        "replaced": course.replaced,
        **gaps,
        "versions": _versions(job.algorithm),
    }


def _cpu(job: BenchJob, course: Course) -> dict[str, Any]:
    return {**asdict(job), "ask": course.ask, "tell": course.tell}


def _versions(algorithm: str) -> dict[str, str]:
    """The versions of all packages that affect a record."""
    ours = {
        "cascada": __version__,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
    }
    return ours | (PEERS[algorithm].versions if algorithm in PEERS else {})


@lru_cache(maxsize=32)  # a worker makes many runs of few problems, and finding an optimum is slow
def _problem(name: str) -> Problem:
    return problem_by_name(name)
