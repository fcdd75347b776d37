"""Search for points better than a stated optimum: a Sobol sample and local optimisation of its best points."""

from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.stats import qmc

from cascada.arrays import Array
from cascada.kernels import Matern
from cascada.problems import PRACTICE, Problem

KERNEL = Matern(2.5, 1.0)
NORM_BOUND = 10.0


def practice(name: str) -> Problem:
    """A problem with a stated kernel and norm bound, which need not be true because only its functions are tested."""
    return PRACTICE[name](kernel=KERNEL, norm_bound=NORM_BOUND)


def sobol(problem: Problem, exponent: int, seed: int = 0) -> Array:
    """2^exponent points (n, d) in user units, evenly spread in the coordinates of the controls."""
    domain = problem.network.domain
    unit = qmc.Sobol(domain.dimension, seed=seed).random_base2(exponent)
    return domain.decode(qmc.scale(unit, domain.lower, domain.upper))


def polished(problem: Problem, start: Array, kinks: bool = False, most: int = 1000) -> tuple[Array, float]:
    """A local maximiser (d,) in user units near a start, and its value; `kinks` selects a method without gradients."""
    domain = problem.network.domain
    width = domain.upper - domain.lower

    def controls(u: Array) -> Array:
        return domain.decode((domain.lower + np.clip(u, 0.0, 1.0) * width)[None])

    def negated(u: Array) -> float:
        return -float(problem.objective(controls(u))[0])

    cube = Bounds(np.zeros(domain.dimension), np.ones(domain.dimension))
    unit = np.clip((domain.encode(start[None])[0] - domain.lower) / width, 0.0, 1.0)
    if kinks:
        method, options = "Nelder-Mead", {"xatol": 1e-6, "fatol": 1e-9, "maxfev": most, "adaptive": True}
    else:
        method, options = "L-BFGS-B", {"eps": 1e-6, "maxfun": most}
    call: Any = minimize  # the overloads in its stubs do not know all options, and take seconds to check
    found = call(negated, unit, method=method, bounds=cube, options=options)
    return controls(found.x)[0], -float(found.fun)


def best_found(problem: Problem, exponent: int, starts: int, kinks: bool = False, most: int = 1000) -> float:
    """The best value of a sample of 2^exponent points after local optimisation of its best points."""
    points = sobol(problem, exponent)
    values = problem.objective(points)
    order = np.argsort(-values)[:starts]
    return max(float(values.max()), *(polished(problem, points[i], kinks, most)[1] for i in order))
