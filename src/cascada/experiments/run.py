"""One run of an algorithm in the paper's setting (`sec:exp`): a finite domain, known values, and regrets.

No `Study` is used. The paper states B = 2 for stages with a larger norm. The first few runs of a study refute it, and
the study stops. Here B is only a width, nothing is proven, and the algorithm continues. As in the paper, a point may be
run twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from cascada.algorithms import Algorithm, Situation, point_key
from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.network import prior_beliefs
from cascada.problems import Problem
from cascada.problems.sampled_chain import PAPER_GRID

JITTER = 1e-7  # the paper's λ


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The values of a problem at all candidates."""

    problem: Problem
    candidates: Array  # (n, d), coordinates
    values: Array  # (n, V): every column of a run

    @cached_property
    def objective(self) -> Array:
        """The objective at every candidate, (n,)."""
        return self.values[:, self.problem.network.objective_column]

    def row(self, point: Array) -> Array:
        """The values (V,) of a run at coordinates (d,), which need not be those of a candidate."""
        number = self._numbers.get(point_key(self.problem.network.domain, point))
        if number is not None:
            return self.values[number]
        return self.problem.values(self.problem.network.domain.decode(point[None]))[0]

    def regret(self, row: Array) -> float:
        """g(x*) − g(x) of a run's values, with x* the best candidate."""
        return float(self.objective.max() - row[self.problem.network.objective_column])

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        domain = self.problem.network.domain
        return {point_key(domain, point): number for number, point in enumerate(self.candidates)}


@lru_cache(maxsize=32)  # a worker makes many runs of few chains
def outcomes(problem: Problem) -> Outcomes:
    """The values on the grid of 2500 candidates of the paper."""
    points = PAPER_GRID.points(problem.network.domain)
    return Outcomes(problem, problem.network.domain.encode(points), problem.values(points))


def run(
    problem: Problem, algorithm: Algorithm, horizon: int, seed: int | Sequence[int], jitter: float = JITTER
) -> list[float]:
    """The instantaneous regrets g(x*) − g(x_t), t = 1, …, T; they are determined by the seed."""
    table = outcomes(problem)
    return [table.regret(row) for row in _after(table, algorithm, horizon, seed, jitter).data]


def recommended_regret(
    problem: Problem, algorithm: Algorithm, horizon: int, seed: int | Sequence[int], jitter: float = JITTER
) -> float:
    """The regret of the point recommended after T runs, or of the best run if there is none."""
    table = outcomes(problem)
    situation = _after(table, algorithm, horizon, seed, jitter)
    point = algorithm.recommend(situation)
    if point is None:
        return min(table.regret(row) for row in situation.data)
    return table.regret(table.row(point))


def _after(table: Outcomes, algorithm: Algorithm, horizon: int, seed: int | Sequence[int], jitter: float) -> Situation:
    """The situation after `horizon` runs."""
    network = table.problem.network
    entropy = [seed] if isinstance(seed, int) else [*seed]
    situation = Situation(
        beliefs=prior_beliefs(network, jitter, tight=False),  # the radius is the paper's B
        data=np.empty((0, network.width)),
        pending=np.empty((0, network.domain.dimension)),
        candidates=table.candidates,
        best=-np.inf,
        trial=0,
        horizon=horizon,
    )
    for trial in range(horizon):
        suggestion = algorithm.suggest(situation, np.random.default_rng([*entropy, trial]))
        if suggestion.point is None:
            raise ArgumentError(
                f"an algorithm must suggest a point in every trial of the paper's setting; {algorithm} suggested none "
                f"at trial {trial} of {horizon}."
            )
        situation = _after_run(table, situation, suggestion.point, suggestion.cache)
    return situation


def _after_run(table: Outcomes, situation: Situation, point: Array, cache: object) -> Situation:
    """The situation after a run at a point.

    For a repeated point the beliefs stay the same object, so that caches of the algorithm remain valid.
    """
    row = table.row(point)
    repeated = bool((situation.data == row).all(axis=1).any())
    return replace(
        situation,
        beliefs=situation.beliefs if repeated else situation.beliefs.append(row[None]),
        data=np.vstack([situation.data, row]),
        best=max(situation.best, float(row[table.problem.network.objective_column])),
        trial=situation.trial + 1,
        cache=cache,
    )
