"""Random processes for which all assumptions are true: each stage has exactly the stated norm.

Stages are sums of 30 kernel sections with uniform centres in [−2, 2]^d and N(0, 1) coefficients, scaled to norm B; all
controls lie in [−2, 2]. So every proven gap must be correct.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.kernels import Separable, SquaredExponential, Stationary, random_expansion, random_operator_expansion
from cascada.network import Network, Stage
from cascada.problems.problem import Problem
from cascada.problems.recorded import recorded_optimum
from cascada.space import Real

BOX = 2.0


@dataclass(frozen=True)
class StagePlan:
    """One stage of a wiring: controls, parents (by position), number of outputs, and kind."""

    controls: tuple[str, ...] = ()
    parents: tuple[int, ...] = ()
    outputs: int = 1
    joint: bool = False  # one norm for all outputs
    known: bool = False  # the sum of its inputs, a known formula


@dataclass(frozen=True)
class Wiring:
    """A summary and the stages of a network."""

    summary: str
    plans: Sequence[StagePlan] = field(default_factory=tuple)


STRUCTURES: Mapping[str, Wiring] = {
    "chain": Wiring("x, y → f → g → h", (StagePlan(("x", "y")), StagePlan((), (0,)), StagePlan((), (1,)))),
    "chain-3d": Wiring("x, y, z → f → g → h", (StagePlan(("x", "y", "z")), StagePlan((), (0,)), StagePlan((), (1,)))),
    "controls": Wiring(
        "a chain with one control at each of three stages",
        (StagePlan(("x",)), StagePlan(("y",), (0,)), StagePlan(("z",), (1,))),
    ),
    "controls-4d": Wiring(
        "two controls at the first of three stages, one at each later one",
        (StagePlan(("w", "x")), StagePlan(("y",), (0,)), StagePlan(("z",), (1,))),
    ),
    "feed-forward": Wiring("2 → 2 → 1, independent outputs", (StagePlan(("x", "y"), (), 2), StagePlan((), (0,)))),
    "feed-forward-3": Wiring("2 → 3 → 1, independent outputs", (StagePlan(("x", "y"), (), 3), StagePlan((), (0,)))),
    "multi-output": Wiring("2 → 2 → 1, joint norms", (StagePlan(("x", "y"), (), 2, joint=True), StagePlan((), (0,)))),
    "join": Wiring(
        "two branches that share the control y and meet in a third stage",
        (StagePlan(("x", "y")), StagePlan(("y", "z")), StagePlan((), (0, 1))),
    ),
    "known": Wiring(
        "two stages whose sum, a known formula, is maximised",
        (StagePlan(("x", "y")), StagePlan((), (0,)), StagePlan((), (0, 1), known=True)),
    ),
}


def certified(
    structure: str | Wiring,
    seed: int = 0,
    kernel: Stationary | None = None,
    norm: float = 2.0,
    lipschitz: float | None = None,
) -> Problem:
    """A random process with this structure, given by name or as a `Wiring`; the seed determines the process."""
    usual = seed == 0 and kernel is None and norm == 2.0  # L changes no function
    kernel = SquaredExponential(1.0) if kernel is None else kernel
    rng = np.random.default_rng(seed)
    given = structure if isinstance(structure, Wiring) else STRUCTURES[structure]
    name = "own" if isinstance(structure, Wiring) else structure
    plans = given.plans
    stages: list[Stage] = []
    batches: list[Callable[[Array], Array]] = []
    for i, plan in enumerate(plans):
        width = len(plan.controls) + sum(plans[j].outputs for j in plan.parents)
        batch = _function(plan, width, kernel, norm, rng)
        batches.append(batch)
        stages.append(_stage(i, plan, plans, batch, kernel, norm, lipschitz))
    network = Network(stages, objective=f"s{len(plans)}.{_outputs(len(plans) - 1, plans[-1])[-1]}")

    def values_at(points: Array) -> Array:
        values = network.domain.encode(points)
        for node, batch in zip(network.nodes, batches, strict=True):
            values = np.hstack([values, batch(values[:, list(node.inputs)])])
        return values

    answer = recorded_optimum(f"certified-{name}") if usual else None
    return Problem(f"certified-{name}", given.summary, network, values_at, answer)


def _outputs(i: int, plan: StagePlan) -> list[str]:
    return [f"s{i + 1}_{j + 1}" for j in range(plan.outputs)]


def _function(
    plan: StagePlan, width: int, kernel: Stationary, norm: float, rng: np.random.Generator
) -> Callable[[Array], Array]:
    low, high = [-BOX] * width, [BOX] * width
    if plan.known:
        return lambda points: points.sum(axis=1, keepdims=True)
    if plan.joint:
        return random_operator_expansion(Separable(kernel), low, high, norm=norm, outputs=plan.outputs, rng=rng)
    return random_expansion(kernel, low, high, norm=norm, outputs=plan.outputs, rng=rng)


def _stage(
    i: int,
    plan: StagePlan,
    plans: Sequence[StagePlan],
    batch: Callable[[Array], Array],
    kernel: Stationary,
    norm: float,
    lipschitz: float | None,
) -> Stage:
    inputs = [name for j in plan.parents for name in _outputs(j, plans[j])] + list(plan.controls)

    def function(**values: float) -> list[float]:
        return batch(np.array([[values[name] for name in inputs]]))[0].tolist()

    options: dict[str, Any] = {"kernel": Separable(kernel) if plan.joint else kernel, "norm_bound": norm}
    if plan.known:
        options = {"known": True, "interval": _sum_interval}
    elif lipschitz is not None:
        options["lipschitz"] = lipschitz
    return Stage(
        f"s{i + 1}",
        controls={name: Real(-BOX, BOX) for name in plan.controls},
        outputs=_outputs(i, plan),
        parents=[f"s{j + 1}" for j in plan.parents],
        function=function,
        **options,
    )


def _sum_interval(**pairs: tuple[float, float]) -> tuple[float, float]:
    """The sum of intervals, rounded outwards."""
    low, high = sum(pair[0] for pair in pairs.values()), sum(pair[1] for pair in pairs.values())
    slack = 1e-15 * sum(abs(end) for pair in pairs.values() for end in pair)
    return low - slack, high + slack
