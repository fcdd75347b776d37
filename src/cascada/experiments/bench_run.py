"""One run of a benchmark: an initial design, then a budget of runs that the contestant chooses.

The design depends on the problem and the seed alone, so that all contestants with the same seed begin alike and can be
compared in pairs. A point is never run twice: noise-free, it would teach nothing. Where a contestant asks for one that
was run, a uniform random point is run instead, and counted as `replaced`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.experiments.contestants import Contestant, objective_of
from cascada.problems import Problem
from cascada.process import Process
from cascada.space import Domain

_TRIES = 1000  # draws of a new point: a box of few whole numbers may be used up


@dataclass(frozen=True)
class Gap:
    """What a certificate says after so many runs beyond the initial design."""

    evaluations: int
    gap: float | None
    kind: str


@dataclass
class Course:
    """What happened in a run, also in one that failed on its way. Filled while it goes on."""

    values: list[float] = field(default_factory=list)  # the objective of every run, in the user's sign
    ask: list[float] = field(default_factory=list)  # CPU seconds
    tell: list[float] = field(default_factory=list)  # CPU seconds, those of the initial design too
    gaps: list[Gap] = field(default_factory=list)
    replaced: int = 0
    status: Literal["budget", "exhausted", "failed"] = "budget"
    message: str | None = None  # why it failed


def run(
    problem: Problem,
    make: Callable[[], Contestant],
    initial: Array,
    budget: int,
    seed: int,
    gaps_at: tuple[int, ...] = (),
) -> Course:
    """Run the points `initial` (n, d), in user units, then `budget` more; what is raised on the way ends this run."""
    course = Course()
    try:
        _follow(_Run(problem, make(), course), initial, budget, seed, gaps_at)
    except Exception as error:  # the contestant may be anybody's
        course.status, course.message = "failed", f"{type(error).__name__}: {error}"
    return course


def initial_points(problem: Problem, count: int, seed: int) -> Array:
    """`count` different uniform random points (n, d) in user units (uniform in coordinates)."""
    domain, rng = problem.network.domain, _generator("initial design", problem, seed)
    points: list[Array] = []
    taken: set[bytes] = set()
    while len(points) < count:
        point = _fresh_point(domain, rng, taken)
        if point is None:
            raise ArgumentError(
                f"problem {problem.name!r} has too few points for an initial design of {count}; give a smaller one."
            )
        taken.add(_key(point))
        points.append(point)
    return np.array(points).reshape(-1, domain.dimension)


def simple_regret(problem: Problem, values: list[float]) -> list[float]:
    """How far the best run so far is from the optimum, after each run.

    It may fall below 0 by the accuracy to which the optimum is known.
    """
    sign = problem.network.sign
    best = np.maximum.accumulate(sign * np.array(values, dtype=np.float64))
    return (sign * problem.optimum[1] - best).tolist()


class _Run:
    """The process, the contestant, and the points that were run."""

    def __init__(self, problem: Problem, contestant: Contestant, course: Course) -> None:
        self.problem, self.contestant, self.course = problem, contestant, course
        self.taken: set[bytes] = set()
        self._process = Process(problem.network)

    def evaluate(self, point: Array) -> None:
        """Run the process at a point (d,) and tell the contestant."""
        network = self.problem.network
        self.taken.add(_key(point))
        outputs = self._process(network.domain.named(network.domain.check(point[None])[0]))
        self.course.values.append(objective_of(network, outputs))
        started = time.process_time()
        self.contestant.tell(point, outputs)
        self.course.tell.append(time.process_time() - started)

    def ask(self) -> Array | None:
        """What the contestant asks for."""
        started = time.process_time()
        point = self.contestant.ask()
        self.course.ask.append(time.process_time() - started)
        return point

    def look(self, evaluations: int) -> None:
        """Keep what the certificate says now, if there is one."""
        found = self.contestant.certificate()
        if found is not None:
            self.course.gaps.append(Gap(evaluations, found.gap, found.kind))


def _follow(run: _Run, initial: Array, budget: int, seed: int, gaps_at: tuple[int, ...]) -> None:
    rng = _generator("replaced points", run.problem, seed)
    for point in initial:
        run.evaluate(point)
    for done in range(budget):
        point = run.ask()
        if done in gaps_at or (gaps_at and point is None):
            run.look(done)  # after the ask, which would cost nothing after a look: GPN-UCB's bound is its suggestion
        if point is not None and _key(point) in run.taken:
            run.course.replaced += 1
            point = _fresh_point(run.problem.network.domain, rng, run.taken)
        if point is None:
            run.course.status = "exhausted"
            return
        run.evaluate(point)
    if budget in gaps_at:
        run.look(budget)


def _fresh_point(domain: Domain, rng: np.random.Generator, taken: set[bytes]) -> Array | None:
    for _ in range(_TRIES):
        point = domain.decode(rng.uniform(domain.lower, domain.upper)[None])[0]
        if _key(point) not in taken:
            return point
    return None


def _key(point: Array) -> bytes:
    return (point + 0.0).tobytes()  # adding 0.0 turns −0.0 into 0.0


def _generator(purpose: str, problem: Problem, seed: int) -> np.random.Generator:
    """One generator for each purpose, none of them that of a `Study` with this seed."""
    return np.random.default_rng([seed, *f"{purpose} {problem.name}".encode()])
