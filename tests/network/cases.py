"""Networks of every structure, and functions for them whose norms are known exactly."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.kernels import (
    BlockKernel,
    Expansion,
    Matern,
    OperatorExpansion,
    OperatorKernel,
    Separable,
    SquaredExponential,
    Stationary,
    random_expansion,
    random_operator_expansion,
)
from cascada.network import (
    Beliefs,
    Network,
    Node,
    Outputs,
    Stage,
    chain,
    feed_forward,
    multi_output_chain,
    prior_beliefs,
    run_values,
)
from cascada.process import Process
from cascada.space import Integer, Real

SEED = 3
SE = SquaredExponential(1.0)
X = {"x": Real(-2, 2)}
Y = {"y": Real(-2, 2)}
Functions = dict[str, Callable[..., Any]]


def stage(name: str, **options: Any) -> Stage:
    """A stage of norm 2 under SE, unless the options say otherwise."""
    defaults: dict[str, Any] = {"kernel": SE, "norm_bound": 2.0}
    return Stage(name, **(defaults | options))


def _mixture(U: Array, V: Array) -> Array:
    A = np.array([[1.0, 0.5], [0.5, 1.0]])
    return SE(U, V)[:, :, None, None] * A + SquaredExponential(2.0)(U, V)[:, :, None, None] * np.eye(2)


def _sum(low: float, high: float) -> Stage:
    return Stage("sum", parents=["f.u", "g"], known=True, lipschitz=2.0, function=lambda u, g: low * u + high * g)


NETWORKS: dict[str, Network] = {
    "chain": chain(stage("f", controls=X | Y), stage("g"), stage("h")),
    "rough chain": chain(
        stage("f", controls=X, kernel=Matern(1.5, 0.8)), stage("g", kernel=Matern(2.5, variance=0.5), lipschitz=3.0)
    ),
    "chain with controls": chain(stage("f", controls=X), stage("g", controls=Y, offset=0.7, norm_bound=1.0)),
    "feed-forward": feed_forward(
        stage("f", controls=X | Y, outputs=["u", "v"], norm_bound=[2.0, 1.0], offset=[0.0, -1.0]),
        stage("g", kernel=Matern(2.5, (0.9, 1.3))),
    ),
    "multi-output chain": multi_output_chain(
        stage("f", controls=X | Y, outputs=["u", "v"], kernel=Separable(SE, [[2.0, 0.5], [0.5, 1.0]])),
        stage("g", kernel=Separable(SE)),
    ),
    "block kernel": chain(
        stage("f", controls=X, outputs=["u", "v"], kernel=BlockKernel("mixture", _mixture), lipschitz=5.0), stage("g")
    ),
    "graph": Network(
        [
            stage("end", parents=["g", "sum"], controls=X, kernel=Matern(2.5)),  # x is shared with f
            _sum(1.0, -1.0),
            stage("f", controls=X, outputs=["u", "v"]),
            stage("g", parents=["f.v"], controls={"t": Real(0.5, 8.0, log=True)}, lipschitz=4.0),
        ]
    ),
    "passes and integers": chain(
        stage("f", controls=X | {"n": Integer(1, 4)}, outputs=["u", "n"], passes=["n"]),
        stage("g", controls=Y),
    ),
}


def coordinates(node: Node, inputs: Mapping[str, float]) -> Array:
    """A stage's inputs as one row of coordinates, on which its kernel acts."""
    controls = node.stage.controls
    logs = [name in controls and controls[name].log for name in node.input_names]
    return np.array([[np.log(inputs[n]) if log else inputs[n] for n, log in zip(node.input_names, logs, strict=True)]])


def truth(network: Network, seed: int) -> Functions:
    """Random functions of exactly the norms that the network's stages assume; stages with a function keep it."""
    rng = np.random.default_rng(seed)
    return {node.stage.name: _draw(node, rng) for node in network.nodes if node.stage.function is None}


def _draw(node: Node, rng: np.random.Generator) -> Callable[..., list[float]]:
    declared, d = node.stage, len(node.inputs)
    low, high = np.full(d, -2.0), np.full(d, 2.0)
    function: Expansion | OperatorExpansion
    assert declared.norm_bound is not None
    if isinstance(declared.kernel, OperatorKernel):
        bound, p = float(declared.norm_bound), len(declared.modelled)
        function = random_operator_expansion(declared.kernel, low, high, norm=bound, outputs=p, rng=rng)
    else:
        assert isinstance(declared.kernel, Stationary)
        unit = random_expansion(declared.kernel, low, high, norm=1.0, rng=rng, outputs=len(declared.modelled))
        function = Expansion(declared.kernel, unit.centres, unit.coefficients * declared.norm_bound)

    def call(**inputs: float) -> list[float]:
        modelled = iter(function(coordinates(node, inputs))[0] + declared.offset)
        return [inputs[output] if output in declared.passes else float(next(modelled)) for output in declared.outputs]

    return call


def points(network: Network, n: int, rng: np.random.Generator) -> Array:
    """Random controls in user units."""
    domain = network.domain
    return domain.decode(rng.uniform(domain.lower, domain.upper, (n, domain.dimension)))


def run(network: Network, functions: Functions, controls: Array) -> list[Outputs]:
    """All outputs at rows of controls in user units."""
    process = Process(network, functions)
    return [process(network.domain.named(row)) for row in controls]


def values(network: Network, functions: Functions, controls: Array) -> Array:
    """Rows of coordinates and all outputs."""
    return run_values(network, controls, run(network, functions, controls))


@cache
def observed(name: str, t: int = 12) -> tuple[Functions, Array, Beliefs]:
    """A random process, the controls of its runs, and the beliefs after them."""
    network = NETWORKS[name]
    functions = truth(network, SEED)
    controls = points(network, t, np.random.default_rng(SEED))
    return functions, controls, prior_beliefs(network).append(values(network, functions, controls))
