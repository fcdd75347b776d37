"""A search at the level of beliefs for processes that are read with errors, and what it proves: for benchmarks.

Chains of stages of exact norm B = 2, squared exponential kernel of lengthscale 1, two controls in [−2, 2] at the first
stage. The gap is that between the largest upper bound over the box and the largest lower bound at a point, run or not.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.network import Network, Stage, enclose_network, prior_beliefs
from cascada.network.error import Error
from cascada.network.read_beliefs import ReadBeliefs
from cascada.problems import Problem, certified
from cascada.problems.certified_problem import StagePlan, Wiring
from cascada.search import Leaves, ObjectiveBounds, SearchBudget, search

BUDGET = 40
GAPS = (0.2, 0.1)
_CELLS = 1500  # of the search between two runs
_CENTRES = 32  # cells at whose centres a lower bound is computed
_REFINED = 2  # points at which weights are chosen between two runs


@dataclass(frozen=True)
class Proof:
    """The proven gap after every run, the true regret of the recommended setting at the end, and seconds.

    `ask`: seconds of one ask with its tell and certificate after 50 runs; None if there were fewer.
    """

    gaps: tuple[float, ...]
    regret: float
    seconds: float
    ask: float | None = None

    def runs_to(self, gap: float) -> int | None:
        """The number of runs after which the gap was at most this; None if it never was."""
        return next((t for t, found in enumerate(self.gaps, start=1) if found <= gap), None)


class Search:
    """Beliefs about a process that is read with errors, the tree of its bounds, and its proven incumbent."""

    def __init__(self, beliefs: ReadBeliefs) -> None:
        self.beliefs, self._version = beliefs, 0
        self._leaves = Leaves.root(beliefs.network.domain)
        self.best, self.point = -np.inf, np.empty(0)  # the largest proven lower bound, and its setting

    def learn(self, readings: Array) -> None:
        """Learn a run (V,)."""
        self.beliefs = self.beliefs.append(readings[None])
        self.beliefs.check()
        self._version += 1
        self._improve(self._runs)

    def next_point(self, tolerance: float) -> Array | None:
        """The next point to run; None once the gap is within the tolerance."""
        used, refined = 0, 0
        while True:
            budget = SearchBudget(tolerance, cells=max(1, _CELLS - used))
            bounds = ObjectiveBounds(self.beliefs)
            outcome = search(bounds, self._leaves, self.best, self._version, budget, taken=self._taken)
            self._leaves, used = outcome.leaves, used + outcome.cells
            top = np.argsort(-self._leaves.bound, kind="stable")[:_CENTRES]
            centres = self._leaves.centre[top]
            points = centres if outcome.point is None else np.vstack([outcome.point, centres])
            if len(points) and self._improve(points) and used < _CELLS:
                continue
            if outcome.stopped == "point" and outcome.point is not None and refined < _REFINED:
                self.beliefs = self.beliefs.refined(outcome.point)
                refined, self._version = refined + 1, self._version + 1
                continue
            return None if outcome.stopped == "tolerance" else outcome.point

    @property
    def bound(self) -> float:
        """What no setting exceeds."""
        return max(float(self._leaves.bound.max(initial=-np.inf)), self.best)

    @property
    def _runs(self) -> Array:
        return self.beliefs.latent.readings[:, : self.beliefs.network.domain.dimension]

    def _taken(self, point: Array) -> bool:
        return bool((self._runs == point).all(axis=1).any())

    def _improve(self, points: Array) -> bool:
        """Whether one of the points (n, d) has a larger proven lower bound than the incumbent, which it replaces."""
        column = self.beliefs.network.objective_column
        lowest = enclose_network(self.beliefs, Boxes(points, points)).boxes.lower[:, column]
        i = int(lowest.argmax())
        if lowest[i] <= self.best:
            return False
        self.best, self.point = float(lowest[i]), points[i]
        return True


def problem_of(stages: int, seed: int) -> Problem:
    """A chain of random stages."""
    plans = [StagePlan(("x", "y")), *(StagePlan((), (i,)) for i in range(stages - 1))]
    return certified(Wiring(f"a chain of {stages} stages", tuple(plans)), seed)


def gaps(
    problem: Problem, error: Error, read: Callable[[Array], Array], seed: int, tolerance: float, budget: int = BUDGET
) -> Iterator[tuple[float, Search]]:
    """The gap after every run, and the search behind it; `read` returns readings of outputs."""
    domain = problem.network.domain
    stages = [
        Stage(one.name, one.controls, one.outputs, one.parents, one.kernel, one.norm_bound, error=error)
        for one in problem.network.stages
    ]
    beliefs = prior_beliefs(Network(stages))
    assert isinstance(beliefs, ReadBeliefs), "every stage has an error"
    progress = Search(beliefs)
    point: Array | None = np.random.default_rng(seed).uniform(domain.lower, domain.upper)
    for _ in range(budget):
        if point is None:
            return
        readings = problem.values(domain.decode(point[None]))[0]
        readings[domain.dimension :] = read(readings[domain.dimension :])
        progress.learn(readings)
        point = progress.next_point(tolerance)
        yield progress.bound - progress.best, progress


def proof(problem: Problem, steps: Iterator[tuple[float, Search]]) -> Proof:
    """What the steps of a search prove; the proof must hold for the process."""
    started = time.process_time()
    found = list(steps)
    last = found[-1][1]
    value = float(problem.objective(problem.network.domain.decode(last.point[None]))[0])
    regret = problem.optimum[1] - value
    assert last.best <= value, "the recommended setting gives less than was proven"
    assert last.bound >= problem.optimum[1] - 1e-6, "a setting gives more than was proven to be possible"
    return Proof(tuple(gap for gap, _ in found), regret, time.process_time() - started)
