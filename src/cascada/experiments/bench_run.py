"""One run of a benchmark: an initial design, then a budget of runs chosen by the contestant.

The design depends only on the problem and the seed, so all contestants with the same seed start with the same points
and can be compared in pairs. A point is never run twice, because evaluations are exact. If a contestant suggests a
point that was already run, a uniform random point is run instead and counted as `replaced`.
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

_TRIES = 1000  # draws of a new point, because a box of few whole numbers may be exhausted


@dataclass(frozen=True)
class Gap:
    """The gap of the certificate after `evaluations` runs beyond the initial design."""

    evaluations: int
    gap: float | None
    kind: str


@dataclass
class Course:
    """The history of a run, also of a failed one; filled while the run proceeds."""

    values: list[float] = field(default_factory=list)  # the objective of every run, in the user's sign
    ask: list[float] = field(default_factory=list)  # CPU seconds
    tell: list[float] = field(default_factory=list)  # CPU seconds, including the initial design
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
    """Run the points `initial` (n, d), in user units, then `budget` more; an exception ends the run as failed."""
    course = Course()
    try:
        _execute(_Run(problem, make(), course), initial, budget, seed, gaps_at)
    except Exception as error:  # a user's algorithm may raise anything
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
    """The distance of the best value so far from the optimum after each run.

    It may be slightly negative, because the optimum is known to a finite accuracy.
    """
    sign = problem.network.sign
    best = np.maximum.accumulate(sign * np.array(values, dtype=np.float64))
    return (sign * problem.optimum[1] - best).tolist()


class _Run:
    """The state of a run: process, contestant, and evaluated points."""

    def __init__(self, problem: Problem, contestant: Contestant, course: Course) -> None:
        self.problem, self.contestant, self.course = problem, contestant, course
        self.taken: set[bytes] = set()
        self._process = Process(problem.network)

    def evaluate(self, point: Array) -> None:
        """Run the process at a point (d,) and report the outputs to the contestant."""
        network = self.problem.network
        self.taken.add(_key(point))
        outputs = self._process(network.domain.named(network.domain.check(point[None])[0]))
        self.course.values.append(objective_of(network, outputs))
        started = time.process_time()
        self.contestant.tell(point, outputs)
        self.course.tell.append(time.process_time() - started)

    def ask(self) -> Array | None:
        """The next point of the contestant."""
        started = time.process_time()
        point = self.contestant.ask()
        self.course.ask.append(time.process_time() - started)
        return point

    def record_gap(self, evaluations: int) -> None:
        """Record the gap of the current certificate, if there is one."""
        found = self.contestant.certificate()
        if found is not None:
            self.course.gaps.append(Gap(evaluations, found.gap, found.kind))


def _execute(run: _Run, initial: Array, budget: int, seed: int, gaps_at: tuple[int, ...]) -> None:
    rng = _generator("replaced points", run.problem, seed)
    for point in initial:
        run.evaluate(point)
    for done in range(budget):
        point = run.ask()
        if done in gaps_at or (gaps_at and point is None):
            run.record_gap(
                done
            )  # after the ask, whose CPU time it would reduce: GPN-UCB computes its bound in the suggestion
        if point is not None and _key(point) in run.taken:
            run.course.replaced += 1
            point = _fresh_point(run.problem.network.domain, rng, run.taken)
        if point is None:
            run.course.status = "exhausted"
            return
        run.evaluate(point)
    if budget in gaps_at:
        run.record_gap(budget)


def _fresh_point(domain: Domain, rng: np.random.Generator, taken: set[bytes]) -> Array | None:
    for _ in range(_TRIES):
        point = domain.decode(rng.uniform(domain.lower, domain.upper)[None])[0]
        if _key(point) not in taken:
            return point
    return None


def _key(point: Array) -> bytes:
    return (point + 0.0).tobytes()  # adding 0.0 turns −0.0 into 0.0


def _generator(purpose: str, problem: Problem, seed: int) -> np.random.Generator:
    """A generator for each purpose, different from that of a `Study` with the same seed."""
    return np.random.default_rng([seed, *f"{purpose} {problem.name}".encode()])
