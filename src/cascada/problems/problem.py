"""A process with all its functions, as data: what it is, and what its best value is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cascada.arrays import Array
from cascada.network import Network


@dataclass(frozen=True, eq=False)
class Problem:
    """A network whose stages carry their functions, and all its values at many points at once.

    `values` maps points (n, d) in user units to every column of a run (n, V): coordinates of the controls, then the
    outputs stage by stage. It is the truth that tests and benchmarks look at.
    """

    name: str
    summary: str
    network: Network
    values: Callable[[Array], Array]

    def objective(self, points: Array) -> Array:
        """The objective (n,) at points (n, d) in user units."""
        return self.values(points)[:, self.network.objective_column]

    @cached_property
    def optimum(self) -> tuple[Array, float]:
        """The best point found by a dense Sobol sample and local polishing of its best points, and its value.

        A lower bound of the true maximum, to the accuracy of the polishing (about 1e-9).
        """
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
        return domain.decode(best.x[None])[0], -float(best.fun)
