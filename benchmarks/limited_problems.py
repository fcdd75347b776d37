"""Three processes with limits on outputs, whose kernels and norms are unknown: for `benchmarks.limits_estimated`.

The best values were found by `python -m benchmarks.limited_problems`: many starts of SLSQP on the true functions.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.network import Network, Stage, chain
from cascada.network.limits import satisfied
from cascada.problems.two_step_ageing import ageing
from cascada.problems.value_table import Column, ValueTable
from cascada.space import Real


@dataclass(frozen=True, eq=False)
class LimitedProblem:
    """A process with limits and the largest feasible value that is known."""

    name: str
    network: Network
    values: ValueTable
    best: float
    worst: float  # the smallest feasible value among random points, which stands for no feasible run

    def excesses(self, rows: Array) -> Array:
        """By how much the limits are exceeded at rows of values (n, V), one column for each end; ≤ 0 is feasible."""
        columns = []
        for limit in self.network.limits:
            value = rows[:, limit.column]
            columns += [limit.low - value] if np.isfinite(limit.low) else []
            columns += [value - limit.high] if np.isfinite(limit.high) else []
        return np.stack(columns, axis=1)


def limited_ageing() -> LimitedProblem:
    """Two-step ageing with fine precipitates (radius at most 2.5 nm) and a good conductivity (little solute left).

    Without limits the best treatment has a radius of 2.85 nm.
    """
    stages = {stage.name: stage for stage in ageing().network.stages}
    second = stages["age 2"]
    limited = Stage(
        second.name,
        second.controls,
        outputs=second.outputs,
        function=second.function,
        limits={"radius": (None, 2.5), "solute": (None, 6e-4)},
    )
    network = chain(stages["age 1"], limited, stages["test"])
    return LimitedProblem("ageing", network, ValueTable(network, one_by_one=True), BEST["ageing"], WORST["ageing"])


def rosenbrock_in_disc() -> LimitedProblem:
    """−100·(x2 − x1²)² − (1 − x1)² on [−1.5, 1.5]² within the unit disc; the free optimum (1, 1) is outside of it."""
    box = Real(-1.5, 1.5)
    network = Network(
        [
            Stage("bend", {"x1": box, "x2": box}, function=_bend),
            Stage("disc", {"x1": box, "x2": box}, function=_square_radius, limits={"disc": (None, 1.0)}),
            Stage("rosenbrock", {"x1": box}, parents=["bend"], function=_rosenbrock),
        ],
        objective="rosenbrock",
    )
    return LimitedProblem("rosenbrock", network, ValueTable(network), BEST["rosenbrock"], WORST["rosenbrock"])


def tablets() -> LimitedProblem:
    """Granulate, dry, press: the strongest tablet that is dry enough, light enough and neither too dense nor porous."""
    network = chain(
        Stage(
            "granulate",
            {"water": Real(0.15, 0.5), "speed": Real(100.0, 1000.0, log=True)},
            outputs=["size", "wetness"],
            function=_granulate,
        ),
        Stage(
            "dry",
            {"heat": Real(40.0, 110.0), "time": Real(5.0, 60.0, log=True)},
            outputs=["size", "moisture", "colour"],
            function=_dry,
            limits={"moisture": (None, 3.0), "colour": (None, 1.0)},
        ),
        Stage(
            "press",
            {"force": Real(5.0, 40.0)},
            outputs=["strength", "porosity"],
            function=_press,
            limits={"porosity": (0.1, 0.2)},
        ),
        objective="press.strength",
    )
    return LimitedProblem("tablets", network, ValueTable(network), BEST["tablets"], WORST["tablets"])


BEST: Mapping[str, float] = {"ageing": 147.959376, "rosenbrock": -0.0456748087, "tablets": 112.900520}
WORST: Mapping[str, float] = {"ageing": 105.798104, "rosenbrock": -158.674057, "tablets": 2.934242}


def _bend(x1: Column, x2: Column) -> Column:
    return x2 - x1**2


def _square_radius(x1: Column, x2: Column) -> Column:
    return x1**2 + x2**2


def _rosenbrock(bend: Column, x1: Column) -> Column:
    return -100.0 * bend**2 - (1.0 - x1) ** 2


def _granulate(water: Column, speed: Column) -> list[Column]:
    shear = np.log(speed / 300.0)
    size = 0.9 * np.exp(-(((water - 0.34 - 0.05 * shear) / 0.12) ** 2)) + 0.15 - 0.08 * shear
    wetness = 100.0 * water / (1.0 + water) * (1.0 - 0.05 * shear)
    return [size, wetness]


def _dry(size: Column, wetness: Column, heat: Column, time: Column) -> list[Column]:
    rate = 0.055 * np.exp((heat - 70.0) / 25.0) / (0.4 + size)
    moisture = 1.2 + (wetness - 1.2) * np.exp(-rate * time)
    colour = np.exp((heat - 92.0) / 12.0) * np.log1p(time) * 0.8
    return [size * (1.0 - 0.002 * (heat - 40.0)), moisture, colour]


def _press(size: Column, moisture: Column, colour: Column, force: Column) -> list[Column]:
    porosity = 0.32 * np.exp(-force / (14.0 + 6.0 * size)) + 0.02 * moisture / (1.0 + size)
    bond = 1.0 - np.exp(-force / 12.0)
    lubricated = np.exp(-(((moisture - 3.6) / 2.2) ** 2))
    strength = 180.0 * bond * lubricated * (0.4 + size * np.exp(-0.6 * size)) * (1.0 - 1.8 * porosity) - 12.0 * colour
    return [strength, porosity]


PROBLEMS = (limited_ageing, rosenbrock_in_disc, tablets)


def searched(problem: LimitedProblem, starts: int = 12) -> tuple[Array, float, float, float]:
    """The best point and value that SLSQP finds, the smallest feasible value of random points, and their share."""
    from scipy.optimize import minimize

    network, domain = problem.network, problem.network.domain
    rng = np.random.default_rng(0)
    count = 2_000 if problem.values.one_by_one else 10_000
    points = rng.uniform(domain.lower, domain.upper, (count, domain.dimension))
    rows = problem.values(domain.decode(points))
    feasible = satisfied(network.limits, rows)
    values = network.sign * rows[:, network.objective_column]
    order = np.argsort(-np.where(feasible, values, -np.inf))[:starts]
    sides = domain.upper - domain.lower
    units = np.std(problem.excesses(rows), axis=0)

    def row(z: Array) -> Array:
        return problem.values(domain.decode((domain.lower + np.clip(z, 0, 1) * sides)[None]))

    best, found = -math.inf, points[order[0]]
    for i in order:
        result = minimize(
            lambda z: -network.sign * float(row(z)[0, network.objective_column]) / values.std(),
            (points[i] - domain.lower) / sides,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * domain.dimension,
            constraints={"type": "ineq", "fun": lambda z: -problem.excesses(row(z))[0] / units},
            options={"ftol": 1e-12, "maxiter": 200},
        )
        value = network.sign * float(row(result.x)[0, network.objective_column])
        if (problem.excesses(row(result.x)) / units).max() <= 1e-7 and value > best:
            best, found = value, domain.decode((domain.lower + np.clip(result.x, 0, 1) * sides)[None])[0]
    return found, network.sign * best, float(network.sign * values[feasible].min()), float(feasible.mean())


if __name__ == "__main__":
    for make in PROBLEMS:
        problem = make()
        point, best, worst, share = searched(problem)
        row = problem.values(point[None])[0, problem.network.domain.dimension :]
        print(f"{problem.name}: best {best!r} at {point.tolist()}, worst {worst!r}, feasible share {share:.3f}, {row}")
