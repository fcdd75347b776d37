"""Cascades of one test function, as in Kusakawa et al., "Bayesian optimization for cascade-type multi-stage processes"
(2021), all to be maximised.

Each stage is the same function F ≥ 0 of its inputs u, negated and scaled:

    y = h − 2h·F(u)/M,    u = its two controls, and before them the output of the stage before,    controls in [−h, h],

with M the maximum of F over the box [−h, h]^n. So −F, whose values fill [−M, 0], is mapped *onto* [−h, h]: whatever the
stages before can do, the next one gets an input within its box, and every value of the box can be had (a continuous
function on a box takes all values between its lowest and its highest). The scaling is of the range over the box; it
depends on no data. The last stage is scaled like the others.

Hence the maximum is h exactly: it asks for F = 0 in the last stage alone, and the output that this takes from the stage
before can be reached. The controls of the stages before may be any of a whole surface that leads there; `points` names
one. What makes the problems hard is that the best input of the last stage is no extreme of the stage before: greedy
optimisation, stage by stage, fails.

The published experiments add noise of 0.01 to every output; here there is none.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cascada.errors import ArgumentError
from cascada.network import Stage, chain
from cascada.problems.function_networks import Kernel
from cascada.problems.problem import Optimum, Problem
from cascada.problems.tabulated import Column, Tabulated
from cascada.space import Real


def rosenbrock_cascade(stages: int = 3, kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """F(u) = Σ 100(u_{i+1} − u_i²)² + (1 − u_i)² on [−2, 2]; M = 3609 for two inputs and 7218 for three.

    Each term of two neighbours is largest, 100·36 + 9, where both are −2.
    """
    # Every stage but the last gives 1, the best input of the next: F = M/4, solved for the second control.
    first = [-1.0, 1.0 - math.sqrt((3609.0 / 4.0 - 4.0) / 100.0)]
    middle = [-1.5, 2.25 - math.sqrt((7218.0 / 4.0 - 625.0 - 6.25) / 100.0)]
    point = first + middle * (stages - 2) + [1.0, 1.0]
    return _cascade("rosenbrock", rosenbrock, 2.0, (3609.0, 7218.0), point, stages, kernel, norm_bound)


def sphere_cascade(stages: int = 3, kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """F(u) = Σ u_i² on [−5.12, 5.12]; M = 5.12² for each input."""
    h = 5.12
    # Every stage but the last gives 0, the best input of the next: F = M/2.
    point = [h, 0.0] + [h * math.sqrt(0.75)] * 2 * (stages - 2) + [0.0, 0.0]
    return _cascade("sphere", sphere, h, (2.0 * h**2, 3.0 * h**2), point, stages, kernel, norm_bound)


def matyas_cascade(stages: int = 3, kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """F(u) = 0.26(u₁² + u₂²) − 0.48·u₁u₂ on [−10, 10]; M = 100, at (10, −10).

    F is a function of two inputs. From the second stage on, these are the stage before and the first control, and the
    second control does nothing, as in the published code.
    """
    # F(r, −r) = r². The last but one stage gives 0 from the inputs (r, −r) with r² = 50; the ones before it give r.
    r = math.sqrt(50.0)
    to_r = math.sqrt(5.0 * (10.0 - r))  # F(to_r, −to_r) = M·(h − r)/2h
    # A stage whose input is r gives r again from its control x: F(r, x) = 5(10 − r), the smaller root.
    keep = (0.48 * r - math.sqrt((0.48 * r) ** 2 - 4.0 * 0.26 * (0.26 * r**2 - 5.0 * (10.0 - r)))) / 0.52
    point = [to_r, -to_r] + [keep, 0.0] * (stages - 3) + [-r, 0.0] + [0.0, 0.0]
    return _cascade("matyas", matyas, 10.0, (100.0, 100.0), point, stages, kernel, norm_bound)


def _cascade(
    name: str,
    function: Callable[[Sequence[Column]], Column],
    half: float,
    largest: tuple[float, float],
    point: Sequence[float],
    stages: int,
    kernel: Kernel,
    norm_bound: float | None,
) -> Problem:
    """Stages y1, y2, … of a function whose largest values over the boxes of two and three inputs are given."""
    if stages < 3:
        raise ArgumentError(f"a cascade has 3 stages or more; got {stages}.")
    made = []
    for i in range(1, stages + 1):
        controls = (f"x{i}a", f"x{i}b")
        inputs = controls if i == 1 else (f"y{i - 1}", *controls)
        made.append(
            Stage(
                f"y{i}",
                {control: Real(-half, half) for control in controls},
                kernel=kernel,
                norm_bound=norm_bound,
                function=_Scaled(function, half, largest[0 if i == 1 else 1], inputs),
            )
        )
    network = chain(*made)
    answer = Optimum(np.array([point]), half, "analytic")
    summary = f"{stages} stages of a scaled {name.capitalize()} function, 2 controls each"
    return Problem(f"{name}-cascade-{stages}", summary, network, Tabulated(network), answer)


@dataclass(frozen=True)
class _Scaled:
    """h − 2h·F(u)/M."""

    function: Callable[[Sequence[Column]], Column]
    half: float
    largest: float
    inputs: tuple[str, ...]

    def __call__(self, **values: Column) -> Column:
        u = [values[name] for name in self.inputs]
        return self.half - 2.0 * self.half * self.function(u) / self.largest


def rosenbrock(u: Sequence[Column]) -> Column:
    """Σ 100(u_{i+1} − u_i²)² + (1 − u_i)², of numbers or of columns of them."""
    return sum(100.0 * (b - a**2) ** 2 + (1.0 - a) ** 2 for a, b in pairwise(u))


def sphere(u: Sequence[Column]) -> Column:
    """Σ u_i², of numbers or of columns of them."""
    return sum(value**2 for value in u)


def matyas(u: Sequence[Column]) -> Column:
    """0.26(u₁² + u₂²) − 0.48·u₁u₂ of the first two, of numbers or of columns of them."""
    return 0.26 * (u[0] ** 2 + u[1] ** 2) - 0.48 * u[0] * u[1]
