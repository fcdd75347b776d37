"""A laboratory that runs a process one stage at a time, as `suggest_step` says, until the gap is proven.

For benchmarks and soundness: it has the process itself, and keeps no log.
"""

import time
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from cascada.algorithms import Situation
from cascada.algorithms.steps import NextStep, Step, suggest_step
from cascada.algorithms.stock import Begun, Item, Stock
from cascada.arrays import Array
from cascada.network import Beliefs, Node, prior_beliefs
from cascada.network.limits import satisfied
from cascada.problems import Problem
from cascada.search import Leaves
from cascada.search.incumbent import Incumbent, proven_incumbent
from cascada.space import Domain

_LATEST, _HIGHEST = 40, 16  # points from which the proven incumbent is sought


@dataclass(frozen=True)
class Terms:
    """How the stages of a process are run."""

    costs: tuple[float, ...]
    reachable: str = "stock"
    portions: float = 1


def on_terms(problem: Problem, terms: Terms) -> Problem:
    """The same process with costs; every stage is reachable in the same way."""
    network, costs = problem.network, iter(terms.costs)
    stages = {}
    for node in network.nodes:
        if not node.stage.known:
            stage = stages[node.stage.name] = copy(node.stage)
            values = {"cost": float(next(costs)), "reachable": terms.reachable, "portions": terms.portions}
            for name, value in values.items():
                object.__setattr__(stage, name, value)
    return replace(problem, network=network.assuming(stages))


class StepLab:
    """One process, what was run of it, and what is proven."""

    def __init__(self, problem: Problem, seed: int = 0, *, tolerance: float = 0.0, guaranteed: bool = True) -> None:
        self.problem, self.network, self._seed = problem, problem.network, seed
        self._tolerance, self._guaranteed = tolerance, guaranteed
        self.beliefs: Beliefs = prior_beliefs(self.network)
        self.data = np.empty((0, self.network.width))  # whole runs
        self.items: list[Item] = []
        self._uncounted: list[float] = []  # of every item, what is not counted for a whole run yet
        self._begun: dict[int, Begun] = {}
        self._points: list[Array] = []
        self.runs = [0] * len(self.network.nodes)
        self.spent = self.spent_on_runs = 0.0
        self.steps = self.repeated = 0
        self.best: Incumbent | None = None
        self.bound = np.inf
        self.next: NextStep | None = None
        self.seconds, self.slowest = 0.0, 0.0

    @property
    def gap(self) -> float:
        """The proven gap."""
        return self.bound - (-np.inf if self.best is None else self.best.value)

    def think(self) -> Step | None:
        """The next step, and the bound for what is known now."""
        started = time.process_time()
        situation = Situation(
            beliefs=self.beliefs,
            data=self.data,
            pending=np.empty((0, self.network.width)),
            candidates=None,
            best=-np.inf if self.best is None else self.best.value,
            trial=self.steps,
            tolerance=self._tolerance,
            cache=None if self.next is None else self.next.suggestion.cache,
            alone=len(self.items),
        )
        stock = Stock(tuple(self.items), tuple(self._begun.values()), (), self.spent, self.spent_on_runs)
        rng = np.random.default_rng([self._seed, self.steps])
        self.next = suggest_step(situation, stock, rng, guaranteed=self._guaranteed)
        if self.next.suggestion.bound is not None:
            self.bound = min(self.bound, self.next.suggestion.bound)
        self.slowest = max(self.slowest, time.process_time() - started)
        self.seconds += time.process_time() - started
        return self.next.step

    def run(self, step: Step) -> None:
        """Run a step, learn what it gave, and look for the best proven setting."""
        network, d = self.network, self.network.domain.dimension
        for feeder, item in step.takes.items():
            for child in step.nodes:
                if feeder in network.feeders[child]:
                    assert item.left[child] >= 1, "an item feeds no more runs than its portions"
                    item.left[child] -= 1  # type: ignore[index]
        row, run = step.row.copy(), np.full(network.width, np.nan)
        if step.closed:
            for item in step.takes.values():
                run = np.where(np.isfinite(run), run, item.row)
            own = [c for i in step.nodes for c in network.nodes[i].inputs if c < d]
            run[own] = step.point[own]
        for i in step.nodes:
            self._run_stage(i, row, run, closed=step.closed)
        self._keep_promise(step, run)
        self._end_run(step, run)
        self.steps += 1
        started = time.process_time()
        self._points = [*self._points, step.point][-_LATEST:]
        self._improve()
        self.seconds += time.process_time() - started

    def _run_stage(self, i: int, row: Array, run: Array, *, closed: bool) -> None:
        network, node = self.network, self.network.nodes[i]
        inputs, columns = list(node.inputs), list(node.columns)
        for item in self.items:
            same = item.node == i and np.array_equal(item.row[inputs], row[inputs])
            self.repeated += same and all(left >= 1 for left in item.left.values())
        row[columns] = run[columns] = outputs(node, row)
        self._evaluate_formulas(row)
        self._evaluate_formulas(run)
        self.beliefs = self.beliefs.append_to(i, row[None])
        children = [
            c for c in range(len(network.nodes)) if i in network.feeders[c] and not network.nodes[c].stage.known
        ]
        left = {c: np.inf if network.nodes[c].stage.reachable == "any" else node.stage.portions for c in children}
        kept = run if closed else np.where(np.isin(np.arange(network.width), inputs + columns), row, np.nan)
        self.items.append(Item(i, self.steps, kept.copy(), closed, left))
        self._uncounted.append(node.stage.cost)
        self.spent += node.stage.cost
        self.runs[i] += 1

    def _evaluate_formulas(self, row: Array) -> None:
        """Add the outputs of formulas whose inputs are known."""
        for node in self.network.nodes:
            values = row[list(node.inputs)]
            if node.stage.known and np.isfinite(values).all():
                row[list(node.columns)] = outputs(node, row)

    def _keep_promise(self, step: Step, run: Array) -> None:
        """Note a complete run that was begun, or that it is finished."""
        label = self.steps if step.begins else step.run
        if label is not None:
            if self._is_whole(run):
                self._begun.pop(label, None)
            else:
                self._begun[label] = Begun(label, step.point, run)

    def _end_run(self, step: Step, run: Array) -> None:
        """Learn a run that has reached the objective, and count what was spent on it."""
        if not step.closed or not self._is_whole(run):
            return
        self.data = np.concatenate([self.data, run[None]])
        for k, item in enumerate(self.items):
            known = np.isfinite(item.row)
            if item.closed and np.array_equal(item.row[known], run[known]):
                self.spent_on_runs += self._uncounted[k]
                self._uncounted[k] = 0.0
        value = self.network.sign * float(run[self.network.objective_column])
        if satisfied(self.network.limits, run[None])[0] and (self.best is None or value > self.best.value):
            self.best = Incumbent(run[: self.network.domain.dimension].copy(), value)

    def _is_whole(self, run: Array) -> bool:
        columns = [self.network.objective_column, *(limit.column for limit in self.network.limits)]
        return bool(np.isfinite(run[columns]).all())

    def _improve(self) -> None:
        """Look for a setting with a larger proven value; nobody need have run it."""
        tree, starts = None if self.next is None else self.next.suggestion.cache, list(self._points)
        if self.best is not None:
            starts.append(self.best.point)
        if isinstance(tree, Leaves):
            starts += list(tree.centre[np.argsort(-tree.bound, kind="stable")[:_HIGHEST]])
        found = proven_incumbent(self.beliefs, np.array(starts), np.random.default_rng([7, self._seed, self.steps]))
        if found is not None and (self.best is None or found.value > self.best.value):
            self.best = found


def outputs(node: Node, row: Array) -> Array:
    """What a stage gives at the inputs in a row (V,), (p,)."""
    assert node.stage.function is not None, "the process has its functions"
    inputs = dict(zip(node.input_names, row[list(node.inputs)].tolist(), strict=True))
    controls = node.stage.controls
    if controls:  # in user units, choices by their names
        domain = Domain(controls)
        inputs |= domain.named(domain.decode(np.array([[inputs[name] for name in controls]]))[0])
    return np.ravel(np.array(node.stage.function(**inputs), dtype=np.float64))
