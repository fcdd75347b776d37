"""Test functions decomposed into networks, as in Astudillo and Frazier, "Bayesian optimization of function networks"
(NeurIPS 2021), all to be maximised.

`kernel` and `norm_bound` apply to every stage; with None they are estimated from data.
"""

import math
from dataclasses import dataclass

import numpy as np

from cascada.kernels import OperatorKernel, Stationary
from cascada.network import Network, Stage, chain
from cascada.problems.problem import Optimum, Problem
from cascada.problems.value_table import Column, ValueTable
from cascada.space import Real

Kernel = Stationary | OperatorKernel | None


def drop_wave(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """h = ‖x‖, then (1 + cos 12h)/(2 + h²/2) on [−5.12, 5.12]²: a chain with the best value 1 at 0."""
    box = Real(-5.12, 5.12)
    network = chain(
        Stage("h", {"x1": box, "x2": box}, kernel=kernel, norm_bound=norm_bound, function=_distance),
        Stage("wave", kernel=kernel, norm_bound=norm_bound, function=_wave),
    )
    answer = Optimum(np.zeros((1, 2)), 1.0, "analytic")
    return Problem("drop-wave", "x1, x2 → h → wave", network, ValueTable(network), answer)


def ackley(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """a = mean x², b = mean cos 2πx, then 20·e^{−0.2√a} + e^b − 20 − e on [−2, 2]⁶: two parents, one child.

    The best value is 0 at 0, where √a has no Lipschitz constant.
    """
    controls = {f"x{i}": Real(-2.0, 2.0) for i in range(1, 7)}
    network = Network(
        [
            Stage("a", controls, kernel=kernel, norm_bound=norm_bound, function=_mean_square),
            Stage("b", controls, kernel=kernel, norm_bound=norm_bound, function=_mean_cosine),
            Stage("ackley", parents=["a", "b"], kernel=kernel, norm_bound=norm_bound, function=_ackley),
        ]
    )
    answer = Optimum(np.zeros((1, 6)), 0.0, "analytic")
    return Problem("ackley", "x1 … x6 → a, b → ackley", network, ValueTable(network), answer)


def rosenbrock(dimension: int, kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """s_k = s_{k−1} − 100(x_{k+1} − x_k²)² − (1 − x_k)² on [−2, 2]^d: a running sum.

    Neighbouring stages share a control. The best value is 0 where all controls are 1.
    """
    network = chain(
        *(
            Stage(
                f"s{k}",
                {f"x{k}": Real(-2.0, 2.0), f"x{k + 1}": Real(-2.0, 2.0)},
                kernel=kernel,
                norm_bound=norm_bound,
                function=_RosenbrockTerm(k),
            )
            for k in range(1, dimension)
        )
    )
    answer = Optimum(np.ones((1, dimension)), 0.0, "analytic")
    summary = f"{dimension - 1} stages of a running sum, neighbours share a control"
    return Problem(f"rosenbrock-{dimension}", summary, network, ValueTable(network), answer)


def alpine2(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """s_k = √x_k·sin x_k·s_{k−1} on [0, 10]⁶, s₀ = 1: a running product.

    √x·sin x lies between −2.18 and its maximum 2.81 at the root 7.917… of tan x = −2x. So the best value is the sixth
    power of the maximum.
    """
    count = 6
    network = chain(
        *(
            Stage(f"s{k}", {f"x{k}": Real(0.0, 10.0)}, kernel=kernel, norm_bound=norm_bound, function=_AlpineFactor(k))
            for k in range(1, count + 1)
        )
    )
    answer = Optimum(np.full((1, count), ALPINE), (math.sqrt(ALPINE) * math.sin(ALPINE)) ** count, "analytic")
    return Problem("alpine2", "6 stages of a running product", network, ValueTable(network), answer)


ALPINE = 7.917052684666207


def _distance(x1: Column, x2: Column) -> Column:
    return np.hypot(x1, x2)


def _wave(h: Column) -> Column:
    return (1.0 + np.cos(12.0 * h)) / (2.0 + 0.5 * h**2)


def _mean_square(**x: Column) -> Column:
    return sum(value**2 for value in x.values()) / len(x)


def _mean_cosine(**x: Column) -> Column:
    return sum(np.cos(2.0 * math.pi * value) for value in x.values()) / len(x)


def _ackley(a: Column, b: Column) -> Column:
    return 20.0 * np.expm1(-0.2 * np.sqrt(a)) + (
        np.exp(b) - math.e
    )  # grouped in pairs that cancel, so that it is exactly 0 at 0


@dataclass(frozen=True)
class _RosenbrockTerm:
    """Stage k: the previous sum minus the two terms of this stage."""

    k: int

    def __call__(self, **values: Column) -> Column:
        x, following = values[f"x{self.k}"], values[f"x{self.k + 1}"]
        return values.get(f"s{self.k - 1}", 0.0) - 100.0 * (following - x**2) ** 2 - (1.0 - x) ** 2


@dataclass(frozen=True)
class _AlpineFactor:
    """Stage k: the previous product times the factor of this stage."""

    k: int

    def __call__(self, **values: Column) -> Column:
        x = values[f"x{self.k}"]
        return np.sqrt(x) * np.sin(x) * values.get(f"s{self.k - 1}", 1.0)
