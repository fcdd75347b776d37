"""Random processes with choices for which all assumptions are true: each category has exactly the stated norm.

As in `certified_problem`, stages are sums of 30 kernel sections in [−2, 2]^d, scaled to norm B. A choice without
`alike` has one such function for every value; in the structure "later" each value has a norm bound of its own. With
`alike` it is one function of the joint kernel, or with `same` one that does not depend on the value at all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.kernels import Separable, SquaredExponential, Stationary, random_expansion, random_operator_expansion
from cascada.network import Network, Node, Stage
from cascada.problems.problem import Problem
from cascada.space import Choice, Control, Real

_BOX = 2.0
_TERMS = 30
_SHARES = (1.0, 0.4, 1.5, 0.7)  # of the norm, for the first values of a choice in the structure "later"
_WOODS, _GLUES = ("oak", "pine", "steel"), ("hot", "cold")

Function = Callable[[Array], Array]


@dataclass(frozen=True)
class _Plan:
    """One stage: its controls, its parents by position, and its outputs."""

    controls: tuple[str, ...]
    parents: tuple[int, ...] = ()
    outputs: int = 1
    joint: bool = False
    known: bool = False


#: Structure → its stages; "wood" and "glue" are choices.
STRUCTURES: Mapping[str, tuple[_Plan, ...]] = {
    "first": (_Plan(("wood", "x")), _Plan(("y",), (0,))),
    "later": (_Plan(("x",)), _Plan(("wood", "y"), (0,))),
    "shared": (_Plan(("wood", "x")), _Plan(("x", "wood")), _Plan((), (0, 1))),
    "two": (_Plan(("wood", "x", "glue")), _Plan((), (0,))),
    "alone": (_Plan(("wood",)), _Plan(("glue", "y"), (0,))),
    "outputs": (_Plan(("wood", "x"), outputs=2), _Plan((), (0,))),
    "joint": (_Plan(("wood", "x"), outputs=2, joint=True), _Plan((), (0,))),
    "formula": (_Plan(("wood", "x")), _Plan(("glue",), (0,), known=True)),
}


def certified_choices(
    structure: str,
    seed: int = 0,
    kernel: Stationary | None = None,
    *,
    norm: float = 2.0,
    alike: float | None = None,
    same: bool = False,
    woods: int = 3,
    lipschitz: bool = False,
) -> Problem:
    """A random process with this structure; `alike` of its choice "wood", which has so many values.

    With `lipschitz`, stages are given the Lipschitz constant that the kernel implies for every value. With `same`,
    "wood" changes nothing: the norm of such a function f under `alike` is ‖f‖/sqrt(a + (1 − a)/q).
    """
    kernel = SquaredExponential(1.0) if kernel is None else kernel
    rng, plans = np.random.default_rng(seed), STRUCTURES[structure]
    controls: dict[str, Control] = {
        "wood": Choice([*_WOODS, *(f"wood {i}" for i in range(3, woods))][:woods], alike),
        "glue": Choice(_GLUES),
        "x": Real(-_BOX, _BOX),
        "y": Real(-_BOX, _BOX),
    }
    options: dict[str, Any] = {"kernel": kernel, "norm_bound": norm}
    if lipschitz:
        assert kernel.lipschitz_factor is not None, "the kernel implies a Lipschitz constant"
        options["lipschitz"] = norm * kernel.lipschitz_factor / kernel.lengthscales(1)[0]
    values = len(controls["wood"].values)  # type: ignore[union-attr]
    if same and alike is not None:
        options["norm_bound"] = norm / np.sqrt(alike + (1 - alike) / values)
    stages = [_stage(i, plan, controls, options) for i, plan in enumerate(plans)]
    if structure == "later" and alike is None:
        bounds = {wood: norm * share for wood, share in zip(controls["wood"].values, _SHARES, strict=False)}  # type: ignore[union-attr]
        stages[1] = _stage(1, plans[1], controls, options | {"norm_bound": bounds})
    network = Network(stages, objective=f"s{len(plans)}.{stages[-1].outputs[-1]}")
    functions = [_function(node, plan, norm, same, rng) for node, plan in zip(network.nodes, plans, strict=True)]

    def values_at(points: Array) -> Array:
        values = np.array(points, dtype=float)
        for node, function in zip(network.nodes, functions, strict=True):
            values = np.hstack([values, function(values[:, list(node.inputs)])])
        return values

    for node, function in zip(network.nodes, functions, strict=True):
        object.__setattr__(node.stage, "function", _called(node, function))
    return Problem(f"certified-choices-{structure}", "random stages with choices", network, values_at, None)


def _outputs(i: int, plan: _Plan) -> list[str]:
    return [f"s{i + 1}_{j + 1}" for j in range(plan.outputs)]


def _stage(
    i: int,
    plan: _Plan,
    controls: Mapping[str, Control],
    given: Mapping[str, Any],
) -> Stage:
    options = {**given, "kernel": Separable(given["kernel"]) if plan.joint else given["kernel"]}
    if plan.known:
        options = {"known": True, "lipschitz": 2.0, "function": _no_function}
    return Stage(
        f"s{i + 1}",
        controls={name: controls[name] for name in plan.controls},
        outputs=_outputs(i, plan),
        parents=[f"s{j + 1}" for j in plan.parents],
        **options,
    )


def _no_function(**_: Any) -> float:
    raise AssertionError("replaced before it is called")


def _function(node: Node, plan: _Plan, norm: float, same: bool, rng: np.random.Generator) -> Function:
    """The outputs (n, p) of a stage at its inputs (n, d), codes included."""
    if plan.known:  # a formula that is steeper for one value than for the other
        return lambda inputs: ((1.0 + inputs[:, [1]]) * inputs[:, [0]] + 0.5 * inputs[:, [1]]) * 0.9
    codes = [j for j, control in node.choices.items() if control.alike is None and not same]
    others = [j for j in range(len(node.inputs)) if j not in codes]
    counts = [len(node.choices[j].values) for j in codes]
    shares = dict.fromkeys(range(len(_SHARES)), 1.0) if node.stage.norm_bounds is None else dict(enumerate(_SHARES))
    parts = {
        one: _part(node, others, plan, norm * (shares[one[0]] if one else 1.0), same, rng)
        for one in product(*map(range, counts))
    }

    def function(inputs: Array) -> Array:
        found = np.empty((len(inputs), plan.outputs))
        for one, part in parts.items():
            rows = (inputs[:, codes] == np.array(one)).all(axis=1)
            found[rows] = part(inputs[rows][:, others])
        return found

    return function


def _part(node: Node, others: list[int], plan: _Plan, norm: float, same: bool, rng: np.random.Generator) -> Function:
    """A function of the inputs at these positions, of the stated norm."""
    coded = [position for position, j in enumerate(others) if j in node.choices]
    numbers = [position for position in range(len(others)) if position not in coded]
    kernel = node.stage.kernel
    if not numbers and not coded:  # one number for every output: the norm of a value v is |v|/s
        value = rng.uniform(-1, 1, plan.outputs) * norm
        return lambda inputs: np.tile(value, (len(inputs), 1))
    low, high = [-_BOX] * len(numbers), [_BOX] * len(numbers)
    if plan.joint:
        assert isinstance(kernel, Separable), "a joint norm"
        joint = random_operator_expansion(kernel, low, high, norm=norm, outputs=plan.outputs, rng=rng)
        return lambda inputs: joint(inputs[:, numbers])
    assert isinstance(kernel, Stationary), "a norm for every output"
    if same or not coded:
        plain = random_expansion(kernel, low, high, norm=norm, outputs=plan.outputs, rng=rng)
        return lambda inputs: plain(inputs[:, numbers])
    centres = np.empty((_TERMS, len(others)))
    centres[:, numbers] = rng.uniform(-_BOX, _BOX, (_TERMS, len(numbers)))
    for position in coded:
        centres[:, position] = rng.integers(len(node.choices[others[position]].values), size=_TERMS)
    likeness = {position: node.choices[others[position]].alike or 0.0 for position in coded}

    def gram(points: Array) -> Array:
        shape = (len(points), _TERMS)
        found = kernel(points[:, numbers], centres[:, numbers]) if numbers else np.full(shape, kernel.variance)
        for position, a in likeness.items():
            found = found * np.where(points[:, [position]] == centres[:, position], 1.0, a)
        return found

    weights = rng.standard_normal((_TERMS, plan.outputs))
    weights *= norm / np.sqrt(np.einsum("ip,ij,jp->p", weights, gram(centres), weights))
    # One dot product per value, so that the result at a point does not depend on the batch.
    return lambda inputs: np.vecdot(gram(inputs)[:, None, :], weights.T)


def _called(node: Node, function: Function) -> Callable[..., list[float]]:
    """The function of a stage as a process calls it: by name, with the values of choices as text."""

    def called(**inputs: Any) -> list[float]:
        row = [
            node.choices[j].coded(inputs[name], name) if j in node.choices else inputs[name]
            for j, name in enumerate(node.input_names)
        ]
        return function(np.array([row]))[0].tolist()

    return called
