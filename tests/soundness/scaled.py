"""Processes of exact norms in any units: the structures of `problems.certified` with a scale for every quantity.

The same seed draws the same process whatever the units are. With scales that are powers of two, every number of one
process is the number of another one times a power of two, to the last digit.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.kernels import (
    Additive,
    Expansion,
    OperatorExpansion,
    Radial,
    Separable,
    Stationary,
    random_expansion,
    random_operator_expansion,
)
from cascada.network import Network, Stage
from cascada.problems import Problem
from cascada.problems.certified_problem import STRUCTURES, StagePlan
from cascada.space import Real
from tests.soundness.truths import BOX, NORM


@dataclass(frozen=True, eq=False)
class Units:
    """Scales of the controls, by name, and of every stage: outputs, offset over output scale, and kernel variance."""

    controls: dict[str, float]
    outputs: Array  # (stages,)
    offsets: Array  # (stages,): in units of the outputs
    variances: Array  # (stages,)

    @classmethod
    def plain(cls, structure: str, offsets: Array | float = 0.0) -> "Units":
        """Scale 1 for everything."""
        plans = STRUCTURES[structure].plans
        names = {name: 1.0 for plan in plans for name in plan.controls}
        return cls(names, np.ones(len(plans)), np.broadcast_to(offsets, len(plans)) * np.ones(1), np.ones(len(plans)))

    def times(self, controls: dict[str, float], outputs: Array, variances: Array) -> "Units":
        """Other units for the same process."""
        both = {name: scale * controls[name] for name, scale in self.controls.items()}
        return Units(both, self.outputs * outputs, self.offsets, self.variances * variances)


def process(structure: str, seed: int, kernel: Stationary, units: Units) -> Problem:
    """A random process of this structure in these units; every modelled stage has exactly its declared norm."""
    rng, plans = np.random.default_rng(seed), STRUCTURES[structure].plans
    stages: list[Stage] = []
    functions: list[Callable[[Array], Array]] = []
    for i, plan in enumerate(plans):
        scales, centre = _inputs(plan, plans, units)
        if plan.known:
            weights = units.outputs[i] / scales
            function: Callable[[Array], Array] = partial(_weighted, weights)
            options: dict[str, Any] = {"known": True, "interval": partial(_interval, weights)}
        else:
            function, options = _modelled(plan, i, scales, centre, kernel, units, rng)
        names = _inputs_by_name(plan, plans)
        functions.append(function)
        stages.append(
            Stage(
                f"s{i + 1}",
                controls={
                    name: Real(-BOX * units.controls[name], BOX * units.controls[name]) for name in plan.controls
                },
                outputs=_outputs(i, plan),
                parents=[f"s{j + 1}" for j in plan.parents],
                function=partial(_one, function, names),
                **options,
            )
        )
    network = Network(stages, objective=f"s{len(plans)}.{_outputs(len(plans) - 1, plans[-1])[-1]}")

    def values_at(points: Array) -> Array:
        values = network.domain.encode(points)
        for node, function in zip(network.nodes, functions, strict=True):
            values = np.hstack([values, function(values[:, list(node.inputs)])])
        return values

    return Problem(f"scaled-{structure}", STRUCTURES[structure].summary, network, values_at)


def column_scales(problem: Problem, structure: str, units: Units) -> Array:
    """The scale of every value of the process, (V,)."""
    controls = [units.controls[name] for name in problem.network.domain.names]
    plans = STRUCTURES[structure].plans
    return np.array([*controls, *(units.outputs[i] for i, plan in enumerate(plans) for _ in range(plan.outputs))])


def in_units(kernel: Stationary, scales: Array, variance: float) -> Stationary:
    """The kernel for inputs that are `scales` (d,) times as large."""
    if isinstance(kernel, Additive):
        part = in_units(kernel.kernel, scales, variance)
        assert isinstance(part, Radial), "a sum of effects is made of radial ones"
        return Additive(part)
    lengths = kernel.lengthscales(len(scales)) * scales
    return replace(kernel, lengthscale=tuple(lengths.tolist()), variance=kernel.variance * variance)  # type: ignore[type-var]


def _inputs(plan: StagePlan, plans: Any, units: Units) -> tuple[Array, Array]:
    """Scale and centre of every input of a stage: outputs of its parents, then controls."""
    parents = [j for j in plan.parents for _ in range(plans[j].outputs)]
    scales = [units.outputs[j] for j in parents] + [units.controls[name] for name in plan.controls]
    centre = [units.outputs[j] * units.offsets[j] for j in parents] + [0.0] * len(plan.controls)
    return np.array(scales), np.array(centre)


def _modelled(
    plan: StagePlan, i: int, scales: Array, centre: Array, kernel: Stationary, units: Units, rng: np.random.Generator
) -> tuple[Callable[[Array], Array], dict[str, Any]]:
    """The function of a stage, drawn in plain units and then scaled, and its assumptions."""
    size, variance, ones = float(units.outputs[i]), float(units.variances[i]), np.ones(len(scales))
    plain, own = in_units(kernel, ones, 1.0), in_units(kernel, scales, variance)
    # Σ a·k = Σ (a/v)·(v·k): with the kernel v·k, the norm is smaller by sqrt(v).
    bound, factor, offset = size * NORM / np.sqrt(variance), size / variance, size * float(units.offsets[i])
    drawn: Expansion | OperatorExpansion
    if plan.joint:
        joint = random_operator_expansion(
            Separable(plain), -BOX * ones, BOX * ones, norm=NORM, outputs=plan.outputs, rng=rng
        )
        drawn = OperatorExpansion(Separable(own), joint.centres * scales + centre, joint.coefficients * factor)
    else:
        each = random_expansion(plain, -BOX * ones, BOX * ones, norm=NORM, outputs=plan.outputs, rng=rng)
        drawn = Expansion(own, each.centres * scales + centre, each.coefficients * factor)
        # Centres far from 0 were rounded: the norm is no longer that of the draw.
        drawn = drawn.scaled_to(bound) if centre.any() else drawn
    options = {"kernel": Separable(own) if plan.joint else own, "norm_bound": bound, "offset": offset}
    return partial(_shifted, drawn, offset), options


def _shifted(function: Callable[[Array], Array], offset: float, points: Array) -> Array:
    return function(points) + offset


def _weighted(weights: Array, points: Array) -> Array:
    return (points * weights).sum(axis=1, keepdims=True)


def _interval(weights: Array, **pairs: tuple[float, float]) -> tuple[float, float]:
    """The weighted sum of intervals, rounded outwards; weights are positive."""
    ends = np.array(list(pairs.values())) * weights[:, None]
    slack = 1e-15 * float(np.abs(ends).sum())
    return float(ends[:, 0].sum()) - slack, float(ends[:, 1].sum()) + slack


def _one(function: Callable[[Array], Array], names: list[str], **values: float) -> list[float]:
    return function(np.array([[values[name] for name in names]]))[0].tolist()


def _outputs(i: int, plan: StagePlan) -> list[str]:
    return [f"s{i + 1}_{j + 1}" for j in range(plan.outputs)]


def _inputs_by_name(plan: StagePlan, plans: Any) -> list[str]:
    return [name for j in plan.parents for name in _outputs(j, plans[j])] + list(plan.controls)
