"""A problem: a process with all its functions and its best value."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from cascada.arrays import Array, as_points
from cascada.network import Network


@dataclass(frozen=True, eq=False)
class Optimum:
    """The largest value of an objective, its maximisers, and how they were found.

    `points` (k, d) are some of the maximisers in user units. `how` is

    * "analytic": derived by hand, exact up to rounding;
    * "numerical": computed once by a more thorough search and recorded; see docs/problems.md;
    * "search": computed now by a dense Sobol sample and local optimisation from its best points. It is a lower bound of
      the true maximum, up to the accuracy of the local optimisation (about 1e-9).
    """

    points: Array
    value: float
    how: Literal["analytic", "numerical", "search"]

    def __post_init__(self) -> None:
        points = as_points(self.points, "points").copy()
        points.flags.writeable = False  # the array is shared by all callers
        object.__setattr__(self, "points", points)


@dataclass(frozen=True, eq=False)
class Problem:
    """A network whose stages have functions, with all its values at many points.

    `values` maps points (n, d) in user units to every column of a run (n, V): coordinates of the controls, then the
    outputs stage by stage. Tests and benchmarks use it as the truth. `answer` is the optimum if it is known, or
    a function that computes it; with None it is found by a search.
    """

    name: str
    summary: str
    network: Network
    values: Callable[[Array], Array]
    answer: Optimum | Callable[[], Optimum] | None = None

    def objective(self, points: Array) -> Array:
        """The objective (n,) at points (n, d) in user units."""
        return self.values(points)[:, self.network.objective_column]

    @cached_property
    def best(self) -> Optimum:
        """The optimum and how it was found."""
        if isinstance(self.answer, Optimum):
            return self.answer
        return self._searched() if self.answer is None else self.answer()

    @property
    def optimum(self) -> tuple[Array, float]:
        """A best point (d,) in user units and its value; `best.how` tells how they were found."""
        return self.best.points[0], self.best.value

    def _searched(self) -> Optimum:
        from scipy.optimize import minimize
        from scipy.stats import qmc

        domain = self.network.domain
        points = qmc.scale(qmc.Sobol(domain.dimension, seed=0).random_base2(14), domain.lower, domain.upper)
        values = self.objective(domain.decode(points))
        starts = points[np.argsort(-values)[:24]]

        def negated(x: Array) -> float:
            return -float(self.objective(domain.decode(x[None]))[0])

        bounds = list(zip(domain.lower, domain.upper, strict=True))
        found = [minimize(negated, x, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15}) for x in starts]
        best = min(found, key=lambda result: float(result.fun))
        return Optimum(domain.decode(best.x[None]), -float(best.fun), "search")
