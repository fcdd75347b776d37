"""Function networks whose stages have costs, as in Buathong et al., "Bayesian optimization of function networks with
partial evaluations" (ICML 2024), all to be maximised.

`kernel` and `norm_bound` apply to every stage; with None they are estimated from data.
"""

import math
from collections.abc import Sequence

import numpy as np

from cascada.arrays import Array
from cascada.network import Network, Stage, chain
from cascada.problems.function_networks import Kernel
from cascada.problems.problem import Optimum, Problem
from cascada.problems.sample_paths import FEATURES, SamplePath
from cascada.problems.value_table import Column, ValueTable
from cascada.space import Real


def ackmat(costs: tuple[float, float] = (1.0, 1.0), kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """Ackley's function of six controls, then Matyas' function of its value and a seventh control, negated.

    Matyas' function is a positive definite form, so the best value is 0, where both of its inputs are 0. Ackley's
    function is 0 at 0 only, where it has no derivative.
    """
    network = chain(
        Stage(
            "ackley",
            {f"x{i}": Real(-2.0, 2.0) for i in range(1, 7)},
            kernel=kernel,
            norm_bound=norm_bound,
            function=_ackley,
            cost=costs[0],
        ),
        Stage(
            "matyas",
            {"x7": Real(-10.0, 10.0)},
            kernel=kernel,
            norm_bound=norm_bound,
            function=_matyas,
            cost=costs[1],
        ),
    )
    name = "ackmat" if costs == (1.0, 1.0) else "ackmat-" + "-".join(f"{cost:g}" for cost in costs)
    summary = f"x1 … x6 → ackley, x7 → matyas; costs {costs[0]:g} and {costs[1]:g}"
    return Problem(name, summary, network, ValueTable(network), Optimum(np.zeros((1, 7)), 0.0, "analytic"))


def tablet(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """Four settings of a tablet's formulation → disintegration time and tensile strength, two tests → a score.

    Both tests are sums of logistic functions. The score (60 − time)/60·strength/1.5 is a known formula.
    """
    controls = {f"x{i}": Real(-1.0, 1.0) for i in range(1, 5)}
    network = Network(
        [
            Stage("time", controls, kernel=kernel, norm_bound=norm_bound, function=_disintegration, cost=1.0),
            Stage("strength", controls, kernel=kernel, norm_bound=norm_bound, function=_strength, cost=49.0),
            Stage("score", parents=["time", "strength"], known=True, function=_score, interval=_score_between),
        ]
    )
    answer = Optimum(np.array([TABLET_POINT]), TABLET_VALUE, "numerical")
    summary = "x1 … x4 → time, strength → score; costs 1 and 49"
    return Problem("tablet", summary, network, ValueTable(network), answer)


def manufacturing(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """An intermediate in two steps and a second one in one step, combined in an expensive last step; costs 5/10/10/45.

    Every step is a sample of a Gaussian process with a Matérn-5/2 kernel and the published lengthscales and variances,
    as 1000 random Fourier features. The published samples follow from the generator of a library of that time and
    cannot be drawn again; these are others.
    """
    rng = np.random.default_rng(0)
    box = Real(-1.0, 1.0)

    def step(
        name: str, cost: float, inputs: tuple[str, ...], length: float, variance: float, parents: Sequence[str] = ()
    ) -> Stage:
        return Stage(
            name,
            {control: box for control in inputs if control not in parents},
            parents=parents,
            kernel=kernel,
            norm_bound=norm_bound,
            function=_matern_path(inputs, length, variance, rng),
            cost=cost,
        )

    network = Network(
        [
            step("raw", 5.0, ("x1", "x2"), DEFAULT_SCALE, DEFAULT_SCALE),
            step("refined", 10.0, ("raw",), 1.0, DEFAULT_SCALE, ["raw"]),
            step("additive", 10.0, ("x3", "x4"), 1.0, DEFAULT_SCALE),
            step("product", 45.0, ("refined", "additive"), 3.0, 10.0, ["refined", "additive"]),
        ]
    )
    answer = Optimum(np.array([MANUFACTURING_POINT]), MANUFACTURING_VALUE, "numerical")
    summary = "x1, x2 → raw → refined, x3, x4 → additive; both → product; costs 5, 10, 10, 45"
    return Problem("manufacturing", summary, network, ValueTable(network), answer)


# Found by local searches from the best of 2¹⁴ and of 2¹⁵ other Sobol points, which agree in the last digit but one.
TABLET_POINT = (-1.0, -0.14660715831437693, 0.08563384422748369, -0.2743076849037998)
TABLET_VALUE = 1.0635225301512137
# A surface of settings of x1 and x2 gives the best intermediate; this is one of them.
MANUFACTURING_POINT = (-0.16843051997688072, 0.133938568894976, 0.8183707005371589, -0.5028783771329044)
MANUFACTURING_VALUE = 1.8970957065456333

DEFAULT_SCALE = math.log(2.0)  # lengthscales and variances that are not set: the softplus of 0


def _ackley(**x: Column) -> Column:
    square = sum(value**2 for value in x.values()) / len(x)
    cosine = sum(np.cos(2.0 * math.pi * value) for value in x.values()) / len(x)
    # Grouped in pairs that cancel, so that it is exactly 0 at 0.
    return -20.0 * np.expm1(-0.2 * np.sqrt(square)) + (math.e - np.exp(cosine))


def _matyas(ackley: Column, x7: Column) -> Column:
    return 0.48 * ackley * x7 - 0.26 * (ackley**2 + x7**2)


# Constant, then for every term its height, its threshold and the weights of the four controls.
_TIME = (
    -3.95,
    (9.20, 0.32, 5.06, -4.07, -0.36, -0.34),
    (9.88, -4.83, 7.43, 3.46, 9.19, 16.58),
    (10.84, 7.90, 7.91, 4.48, 4.08, 8.28),
    (15.18, 9.41, -7.99, 0.65, 3.14, 0.31),
)
_STRENGTH = (
    1.07,
    (0.62, 3.05, 0.03, -0.16, 4.03, -0.54),
    (0.65, 1.78, 0.60, -3.19, 0.10, 0.52),
    (-0.72, 0.01, 2.04, -3.73, 0.10, -1.05),
    (-0.45, 1.82, 4.78, 0.48, -4.68, -1.65),
    (-0.32, 2.69, 5.99, 3.87, 3.10, -2.17),
)


def _disintegration(**x: Column) -> Column:
    return _logistic_sum(_TIME, x)


def _strength(**x: Column) -> Column:
    return _logistic_sum(_STRENGTH, x)


def _logistic_sum(table: tuple[float | tuple[float, ...], ...], x: dict[str, Column]) -> Column:
    constant, *terms = table
    total: Column = constant
    for height, threshold, *weights in terms:  # type: ignore[misc]
        angle = threshold + sum(weight * value for weight, value in zip(weights, x.values(), strict=True))
        total = total + height / (1.0 + np.exp(-angle))
    return total


def _score(time: Column, strength: Column) -> Column:
    return (60.0 - time) / 60.0 * (strength / 1.5)


def _score_between(time: tuple[float, float], strength: tuple[float, float]) -> tuple[float, float]:
    """The interval of scores for intervals of both results, rounded outwards: a product is extreme at corners."""
    corners = [_score(a, b) for a in time for b in strength]
    slack = 1e-14 * (60.0 + max(map(abs, time))) * max(map(abs, strength))
    return min(corners) - slack, max(corners) + slack


def _matern_path(inputs: tuple[str, ...], length: float, variance: float, rng: np.random.Generator) -> SamplePath:
    """A sample of a Gaussian process with a Matérn-5/2 kernel, whose spectral density is a t-distribution, ν = 5."""
    normal: Array = rng.standard_normal((len(inputs), FEATURES))
    frequencies = normal / length * np.sqrt(5.0 / rng.chisquare(5.0, FEATURES))
    phases = rng.uniform(0.0, 2.0 * np.pi, FEATURES)
    weights = np.sqrt(2.0 * variance / FEATURES) * rng.standard_normal(FEATURES)
    return SamplePath(inputs, frequencies, phases, weights)
