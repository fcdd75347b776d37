"""Random processes with a limit on the output of the first stage, for which all assumptions are true.

The processes are those of `certified`. The limit is of one of three kinds:

* "cut": the output must stay a fifth of its range away from its value at the optimum without a limit;
* "band": the output must lie in a band of a tenth of its range;
* "none": the output must exceed its largest value by a tenth of its range, which no setting can do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from cascada.arrays import Array, BoolArray
from cascada.errors import ArgumentError
from cascada.network import Network
from cascada.network.limits import Interval, satisfied
from cascada.problems.certified_problem import StagePlan, Wiring, certified
from cascada.problems.problem import Problem

LimitKind = Literal["cut", "band", "none"]

#: The structures on which proofs with limits are measured.
LIMITED: dict[str, str | Wiring] = {
    "chain": "controls",
    "feed-forward": Wiring(
        "2 → 2 → 1, three stages", (StagePlan(("x", "y")), StagePlan(("x", "y")), StagePlan((), (0, 1)))
    ),
    "join": "join",
}

_SAMPLES = 20_000  # from which the range of the limited output is estimated
_DENSE, _BEST, _AROUND = 200_000, 20, 100  # points of the search for the best feasible value


@dataclass(frozen=True, eq=False)
class LimitedProblem:
    """A problem whose network has limits."""

    problem: Problem

    @property
    def network(self) -> Network:
        return self.problem.network

    def feasible(self, points: Array) -> BoolArray:
        """Whether points (n, d) in user units satisfy the limits, (n,)."""
        return satisfied(self.network.limits, self.problem.values(points))

    @cached_property
    def best_feasible(self) -> tuple[Array, float] | None:
        """The best feasible point found (d,) in user units, and what is maximised there; None if none was found.

        The value is a lower bound of the true optimum: the best of many points, refined at smaller and smaller scales.
        """
        domain, rng = self.network.domain, np.random.default_rng(1)
        points: Array = rng.uniform(domain.lower, domain.upper, (_DENSE, domain.dimension))
        found: tuple[Array, float] | None = None
        for scale in np.geomspace(0.3, 1e-6, 16):
            score = self._scores(points)
            i = int(score.argmax())
            if np.isneginf(score[i]):
                return None
            if found is None or score[i] > found[1]:
                found = points[i], float(score[i])
            top = points[np.argsort(-score)[:_BEST]]
            moved = top + scale * rng.standard_normal((_AROUND, *top.shape))
            points = np.clip(np.concatenate([top, *moved]), domain.lower, domain.upper)
        assert found is not None, "a point was found at the first scale"
        return domain.decode(found[0][None])[0], found[1]

    def _scores(self, points: Array) -> Array:
        values = self.problem.values(self.network.domain.decode(points))
        objective = self.network.sign * values[:, self.network.objective_column]
        return np.where(satisfied(self.network.limits, values), objective, -np.inf)


def limited(structure: str | Wiring, seed: int = 0, kind: LimitKind = "cut") -> LimitedProblem:
    """A random process with a limit of this kind; `structure` is a name in `LIMITED`, or a wiring."""
    if kind not in get_args(LimitKind):
        raise ArgumentError(f"kind must be one of {', '.join(map(repr, get_args(LimitKind)))}; got {kind!r:.100}.")
    problem = certified(LIMITED[structure] if isinstance(structure, str) else structure, seed)
    node = problem.network.nodes[0]
    interval = _interval(problem, node.columns[0], kind)
    return with_limits(problem, {node.stage.name: {node.stage.outputs[0]: interval}})


def with_limits(problem: Problem, limits: Mapping[str, Mapping[str, Interval]]) -> LimitedProblem:
    """The same process with limits: by stage, then by output."""
    network = problem.network
    stages = [replace(stage, limits={**stage.limits, **limits.get(stage.name, {})}) for stage in network.stages]
    other = Network(stages, objective=".".join(network.objective))
    other = other if network.sign > 0 else other.mirrored()
    return LimitedProblem(Problem(problem.name, problem.summary, other, problem.values))


def _interval(problem: Problem, column: int, kind: LimitKind) -> Interval:
    """The limit of this kind on the output in a column."""
    domain = problem.network.domain
    points = np.random.default_rng(2).uniform(domain.lower, domain.upper, (_SAMPLES, domain.dimension))
    output = problem.values(points)[:, column]
    spread = float(np.ptp(output))
    if kind == "none":
        return float(output.max()) + 0.1 * spread, np.inf
    if kind == "band":
        low = float(np.quantile(output, 0.3))
        return low, low + 0.1 * spread
    at_best = float(problem.values(problem.optimum[0][None])[0, column])
    above = at_best > np.median(output)
    return (-np.inf, at_best - 0.2 * spread) if above else (at_best + 0.2 * spread, np.inf)
