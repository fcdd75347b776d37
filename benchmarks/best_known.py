"""The best values known of the problems whose maximum cannot be derived: an extensive search, printed in full digits.

    python -m benchmarks.best_known [ageing] [pv-plant]

A dense Sobol sample whose best points are polished, and differential evolution from several seeds, polished as well.
The best of all is what `BEST_KNOWN` of the problem records (2 minutes each).
"""

import argparse

import numpy as np
from scipy.optimize import Bounds, differential_evolution, minimize
from scipy.stats import qmc

from cascada.arrays import Array
from cascada.kernels import Matern
from cascada.problems import PRACTICE, Problem

NAME = "benchmarks.best_known"
# log₂ of the sample, points of it that are polished, seeds and generations of differential evolution
EFFORT = {"ageing": (11, 12, 2, 30), "pv-plant": (16, 120, 12, 150)}
ENOUGH = 1e-9  # relative gain below which polishing ends: more than the error of the ageing model's solver


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
        """A local maximum: simplices, begun anew for as long as that helps, since they can end early on a kink."""
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

    def best(self, sample: int, starts: int, seeds: int, generations: int) -> list[tuple[float, Array]]:
        """Local maxima that were found, best first."""
        dimension = self.domain.dimension
        points = qmc.Sobol(dimension, seed=1).random_base2(sample)
        values = self.problem.objective(self.controls(points))
        order = np.argsort(-values)
        # Half of the starts from the top, the others from further down, where other maxima begin.
        chosen = [*order[: starts // 2], *order[starts // 2 : len(order) // 4 : len(order) // (2 * starts)]]
        found = [self.polished(points[i]) for i in chosen]
        for seed in range(seeds):
            evolved = differential_evolution(self.negated, self.cube, rng=seed, maxiter=generations, tol=0.0)
            found.append(self.polished(evolved.x))
            print(f"  differential evolution, seed {seed}: {found[-1][0]:.9f}", flush=True)
        return sorted(found, key=lambda pair: -pair[0])


def main() -> None:
    parser = argparse.ArgumentParser(prog=f"python -m {NAME}", description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", choices=[*EFFORT, []], default=list(EFFORT))
    for name in parser.parse_args().problems:
        problem = PRACTICE[name](Matern(2.5), 10.0)
        print(f"{name}: recorded {problem.best.value!r}", flush=True)
        search = Search(problem)
        found = search.best(*EFFORT[name])
        distinct: list[tuple[float, Array]] = []
        for value, point in found:
            if all(np.abs(point - other).max() > 0.02 for _, other in distinct):
                distinct.append((value, point))
        for value, point in distinct[:8]:
            print(f"  {value!r} at {search.controls(point[None])[0].tolist()}")


if __name__ == "__main__":
    main()
