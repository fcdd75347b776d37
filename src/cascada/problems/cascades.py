"""Cascades of one test function, as in Kusakawa et al., "Bayesian optimization for cascade-type multi-stage processes"
(2021), all to be maximised.

Each stage is the same function F ≥ 0 of its inputs u, negated and scaled:

    y = h − 2h·F(u)/M,    u = the output of the previous stage and two controls,    controls in [−h, h],

with M the maximum of F over the box [−h, h]^n. So −F, whose values fill [−M, 0], is mapped *onto* [−h, h]: every stage
gets an input within its box, and every value of the box is possible, because a continuous function on a box attains all
values between its minimum and its maximum. The scaling is that of the range over the box and does not depend on data.
The last stage is scaled like the others.

Hence the maximum is exactly h: it requires only F = 0 in the last stage, and the previous stage attains the output that
this needs. The controls of earlier stages may lie anywhere on a surface; `points` holds one of them. The problems
are hard because the best input of the last stage is not an extreme of the previous stage, so
greedy optimisation stage by stage fails.

The published experiments add noise of 0.01 to every output; here there is no noise.
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
from cascada.problems.value_table import Column, ValueTable
from cascada.space import Real


def rosenbrock_cascade(stages: int = 3, kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """F(u) = Σ 100(u_{i+1} − u_i²)² + (1 − u_i)² on [−2, 2]; M = 3609 for two inputs and 7218 for three.

    The term of two neighbouring inputs has its maximum 100·36 + 9 where both are −2.
    """
    # Every stage but the last outputs 1, the best input of the next one: F = M/4, solved for the second control.
    first = [-1.0, 1.0 - math.sqrt((3609.0 / 4.0 - 4.0) / 100.0)]
    middle = [-1.5, 2.25 - math.sqrt((7218.0 / 4.0 - 625.0 - 6.25) / 100.0)]
    point = first + middle * (stages - 2) + [1.0, 1.0]
    return _cascade("rosenbrock", rosenbrock_function, 2.0, (3609.0, 7218.0), point, stages, kernel, norm_bound)


def sphere_cascade(stages: int = 3, kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """F(u) = Σ u_i² on [−5.12, 5.12]; M = 5.12² for each input."""
    h = 5.12
    # Every stage but the last outputs 0, the best input of the next one: F = M/2.
    point = [h, 0.0] + [h * math.sqrt(0.75)] * 2 * (stages - 2) + [0.0, 0.0]
    return _cascade("sphere", sphere_function, h, (2.0 * h**2, 3.0 * h**2), point, stages, kernel, norm_bound)


def matyas_cascade(stages: int = 3, kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """F(u) = 0.26(u₁² + u₂²) − 0.48·u₁u₂ on [−10, 10]; M = 100, at (10, −10).

    F is a function of two inputs. From the second stage on, these are the previous output and the first control; the
    second control has no effect, as in the published code.
    """
    # F(r, −r) = r². The last but one stage outputs 0 for the inputs (r, −r) with r² = 50; earlier stages output r.
    r = math.sqrt(50.0)
    to_r = math.sqrt(5.0 * (10.0 - r))  # F(to_r, −to_r) = M·(h − r)/2h
    # A stage with input r outputs r again with its control x: F(r, x) = 5(10 − r), the smaller root.
    keep = (0.48 * r - math.sqrt((0.48 * r) ** 2 - 4.0 * 0.26 * (0.26 * r**2 - 5.0 * (10.0 - r)))) / 0.52
    point = [to_r, -to_r] + [keep, 0.0] * (stages - 3) + [-r, 0.0] + [0.0, 0.0]
    return _cascade("matyas", matyas_function, 10.0, (100.0, 100.0), point, stages, kernel, norm_bound)


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
        raise ArgumentError(f"a cascade must have at least 3 stages; got {stages}.")
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
    return Problem(f"{name}-cascade-{stages}", summary, network, ValueTable(network), answer)


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


def rosenbrock_function(u: Sequence[Column]) -> Column:
    """Σ 100(u_{i+1} − u_i²)² + (1 − u_i)² of numbers or columns of numbers."""
    return sum(100.0 * (b - a**2) ** 2 + (1.0 - a) ** 2 for a, b in pairwise(u))


def sphere_function(u: Sequence[Column]) -> Column:
    """Σ u_i² of numbers or columns of numbers."""
    return sum(value**2 for value in u)


def matyas_function(u: Sequence[Column]) -> Column:
    """0.26(u₁² + u₂²) − 0.48·u₁u₂ of the first two of numbers or columns of numbers."""
    return 0.26 * (u[0] ** 2 + u[1] ** 2) - 0.48 * u[0] * u[1]
