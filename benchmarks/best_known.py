"""Extensive search for the best values of the problems without a derived maximum, printed with all digits.

    python -m benchmarks.best_known [ageing] [pv-plant] [combustor] [supply-chain] [beamline] [fast-charge]
                                    [co2-compression]

It combines a dense Sobol sample and differential evolution with several seeds, both followed by local optimisation.
`BEST_KNOWN` of a problem records the best point. The first two take 2 minutes each and are the default; the others need
their simulators (`make simulators`) and take 5 to 20 minutes of CPU, supply-chain and beamline more.
"""

import argparse

import numpy as np
from scipy.optimize import Bounds, differential_evolution, minimize
from scipy.stats import qmc

from cascada.arrays import Array
from cascada.kernels import Matern
from cascada.problems import PRACTICE, SIMULATORS, Problem

NAME = "benchmarks.best_known"
# log₂ of the sample size, number of local searches, seeds and generations of differential evolution
EFFORT = {
    "ageing": (11, 12, 2, 30),
    "pv-plant": (16, 120, 12, 150),
    "combustor": (7, 6, 0, 0),
    "supply-chain": (9, 8, 2, 20),
    "beamline": (13, 24, 2, 50),
    "fast-charge": (7, 4, 0, 0),
    "co2-compression": (5, 4, 0, 0),
}
SMOOTH = {"combustor", "fast-charge", "co2-compression"}  # almost without kinks, and slow: local search by gradients
STEP = 1e-4  # of the differences for gradients, in the unit cube
DEFAULT = ["ageing", "pv-plant"]
ENOUGH = 1e-9  # relative gain at which local search ends, above the solver error of the ageing model


class Search:
    """A problem on the unit cube of its coordinates."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.domain = problem.network.domain
        self.cube = Bounds(np.zeros(self.domain.dimension), np.ones(self.domain.dimension))

    def controls(self, points: Array) -> Array:
        """User units (n, d) of points in the cube."""
        width = self.domain.upper - self.domain.lower
        return self.domain.decode(self.domain.lower + np.clip(points, 0.0, 1.0) * width)

    def negated(self, point: Array) -> float:
        """Minus the objective at one point of the cube."""
        return -float(self.problem.objective(self.controls(point[None]))[0])

    def polished(self, start: Array) -> tuple[float, Array]:
        """A local maximum by the simplex method, restarted while it improves, because it may stop early at a kink."""
        value, point = -self.negated(start), start
        while True:
            found = minimize(
                self.negated,
                point,
                method="Nelder-Mead",
                bounds=self.cube,
                options={"xatol": 1e-7, "fatol": 1e-10, "maxfev": 800, "adaptive": True},
            )
            gained, (value, point) = -found.fun - value, (-float(found.fun), found.x)
            if gained < ENOUGH * abs(value):
                return value, point

    def climbed(self, start: Array) -> tuple[float, Array]:
        """A local maximum by gradients, for smooth problems; needs fewer runs than the simplex method."""
        found = minimize(self.negated, start, method="L-BFGS-B", bounds=self.cube, options={"eps": STEP, "ftol": 1e-11})
        return -float(found.fun), np.clip(found.x, 0.0, 1.0)

    def best(self, sample: int, starts: int, seeds: int, generations: int, smooth: bool) -> list[tuple[float, Array]]:
        """The local maxima found, best first."""
        dimension = self.domain.dimension
        points = qmc.Sobol(dimension, seed=1).random_base2(sample)
        values = self.problem.objective(self.controls(points))
        order = np.argsort(-values)
        # Half of the starts are the best points, the others are worse ones, which lead to other maxima.
        chosen = [*order[: starts // 2], *order[starts // 2 : len(order) // 4 : len(order) // (2 * starts)]]
        found = []
        for i in chosen:
            found.append(self.climbed(points[i]) if smooth else self.polished(points[i]))
            value, point = found[-1]
            print(f"  local search: {value!r} at {self.controls(point[None])[0].tolist()}", flush=True)
        if smooth:  # a kink may have ended the search by gradients
            found.append(self.polished(max(found, key=lambda pair: pair[0])[1]))
        for seed in range(seeds):
            evolved = differential_evolution(self.negated, self.cube, rng=seed, maxiter=generations, tol=0.0)
            found.append(self.polished(evolved.x))
            print(f"  differential evolution, seed {seed}: {found[-1][0]:.9f}", flush=True)
        return sorted(found, key=lambda pair: -pair[0])


def main() -> None:
    parser = argparse.ArgumentParser(prog=f"python -m {NAME}", description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", choices=[*EFFORT, []], default=DEFAULT)
    for name in parser.parse_args().problems:
        problem = {**PRACTICE, **SIMULATORS}[name](Matern(2.5), 10.0)
        print(f"{name}: recorded {problem.best.value!r}", flush=True)
        search = Search(problem)
        found = search.best(*EFFORT[name], name in SMOOTH)
        distinct: list[tuple[float, Array]] = []
        for value, point in found:
            if all(np.abs(point - other).max() > 0.02 for _, other in distinct):
                distinct.append((value, point))
        for value, point in distinct[:8]:
            print(f"  {value!r} at {search.controls(point[None])[0].tolist()}")


if __name__ == "__main__":
    main()
