"""Tests of the constants derived from a network and of rejected networks."""

import json
import math

import numpy as np
import pytest

from cascada.confidence import Boxes
from cascada.errors import ArgumentError
from cascada.kernels import Additive, BlockKernel, Matern, Separable, SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.problems import certified
from cascada.space import Real
from cascada.theory.layers import Layers
from cascada.theory.promises import cover, layers_of, network_of, promise
from cascada.theory.regret import regret_bounds
from cascada.theory.sums import sd_sum

K = Matern(2.5, 0.5)
SLOPE = math.sqrt(2.5 / 1.5) / 0.5  # of a function of norm 1
X = {"x": Real(0, 1), "y": Real(0, 1)}


def first(**changes: object) -> Stage:
    return Stage("f", **({"controls": X, "kernel": K, "norm_bound": 2.0} | changes))  # type: ignore[arg-type]


def then(name: str = "g", **changes: object) -> Stage:
    return Stage(name, **({"kernel": K, "norm_bound": 3.0} | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "structure", "dims", "extra"),
    [
        ("chain", "chain", (2, 1, 1), (0, 0, 0)),
        ("chain-3d", "chain", (3, 1, 1), (0, 0, 0)),
        ("controls", "chain", (1, 1, 1), (0, 1, 1)),
        ("feed-forward-3", "feed-forward", (2, 3), (0, 0)),
        ("multi-output", "multi-output", (2, 2), (0, 0)),
    ],
)
def test_structures_are_recognised(name, structure, dims, extra):
    layers = layers_of(certified(name, 0, K, norm=1.5).network)
    assert (layers.structure, layers.dims, layers.extra) == (structure, dims, extra)
    assert layers.norm_bounds == (1.5,) * len(dims)
    assert layers.lipschitz == pytest.approx((1.5 * SLOPE,) * len(dims))


def test_constants_are_those_of_each_stage():
    layers = layers_of(chain(first(outputs=["a", "b"], norm_bound=[1.0, 2.0], lipschitz=0.3), then(lipschitz=1e9)))
    assert layers.norm_bounds == (2.0, 3.0)
    assert layers.lipschitz == pytest.approx((0.3, 3 * SLOPE))  # the smaller of the given and the derived constant


@pytest.mark.parametrize(
    ("network", "complaint"),
    [
        (chain(first(norm_bound=None), then(kernel=None, norm_bound=None)), "'f' \\(norm_bound\\), 'g' \\(kernel and"),
        (certified("join").network, "stage 's2' breaks the chain of layers"),
        (certified("known").network, "every output is unknown; stage 's3' is a known formula"),
        (chain(first(outputs=["a", "b"]), then(parents=["f.a"])), "breaks the chain of layers"),
        (chain(first(), then(controls={"x": X["x"]})), "breaks the chain of layers"),
        (chain(first(), then(outputs=["a", "b"]), objective="g.a"), "the last stage 'g' must have one output"),
        (
            chain(first(outputs=["a", "b"]), then(outputs=["c", "d"], kernel=Separable(K)), then("h")),
            "need either joint norms or one norm per output",
        ),
        (
            chain(
                first(
                    outputs=["a", "b"],
                    kernel=BlockKernel("o", lambda P, Q: np.ones((len(P), len(Q), 2, 2))),
                    lipschitz=1.0,
                ),
                then(),
            ),
            "scalar and separable kernels",
        ),
    ],
)
def test_other_structures_raise_an_argument_error(network: Network, complaint: str):
    with pytest.raises(ArgumentError, match=complaint):
        layers_of(network)


def test_the_promise_of_a_network_has_all_parts():
    network = certified("feed-forward", 0, Matern(1.5, 2.0)).network
    said = promise(network, 40, points=400)
    assert said.nu == 1.5
    assert said.domains[0] == ((-2.0, 2.0), (-2.0, 2.0))
    assert [bound.value for bound in said.bounds] == [
        bound.value for bound in regret_bounds(said.layers, [one.upper for one in said.sums])
    ]
    assert said.trivial.value == 2 * 2.0 * 40
    assert [one.name for one in said.comparisons] == ["cUCB", "MCBO", "OI"]
    assert said.comparisons[0].theirs.constants["L_σ"] == pytest.approx(np.sqrt(3) / 2)
    json.dumps(said.as_dict(), allow_nan=False)
    assert [note.split()[0] for note in said.notes] == ["Σ_T"]


def test_without_matern_there_are_no_rates():
    said = promise(certified("chain").network, 10, points=50)
    assert (said.nu, said.rates, said.summary) == (None, (), ())
    assert "squared exponential" in said.notes[0]
    stage = Stage("f", controls={"x": Real(0, 1), "y": Real(0, 1)}, kernel=Additive(Matern(2.5)), norm_bound=1.0)
    assert "here they are additive" in promise(chain(stage), 10, points=20).notes[0]


def test_domains_contain_all_inputs_and_their_sum_bounds_that_of_points_inside():
    problem = certified("multi-output", 3, Matern(2.5, 1.5))
    said = promise(problem.network, 12, points=400)
    values = problem.values(np.random.default_rng(0).uniform(-2, 2, (300, 2)))
    for node, domain, bound in zip(problem.network.nodes, said.domains, said.sums, strict=True):
        inputs = values[:, list(node.inputs)]
        low, high = np.array(domain).T
        assert np.all((low <= inputs) & (inputs <= high))
        assert node.stage.kernel is not None
        assert sd_sum(node.stage.kernel, inputs, 12).greedy <= bound.upper


def test_network_of_makes_a_network_with_the_given_layers():
    layers = Layers("multi-output", [2, 3, 1], [1.0, 2.0, 3.0], 5.0)
    network = network_of(layers, K)
    assert [len(node.inputs) for node in network.nodes] == [2, 3, 1]
    assert layers_of(network).structure == "multi-output"
    assert layers_of(network).norm_bounds == (1.0, 2.0, 3.0)
    rough = network_of(Layers("chain", [1, 1], 1.0, 2.0), Matern(0.5))
    assert layers_of(rough).lipschitz == (2.0, 2.0)
    with pytest.raises(ArgumentError, match="Construct the network instead"):
        network_of(Layers("chain", [1, 1], 1.0, 1.0, [0, 1]), K)


def test_every_point_of_a_box_is_within_the_fill_distance_of_a_centre():
    box = Boxes(np.array([[-1.0, 0.0]]), np.array([[3.0, 0.5]]))
    kernel = SquaredExponential((2.0, 0.1))
    centres, fill = cover(box, 50, kernel)
    assert len(centres) == 49
    anywhere = np.random.default_rng(0).uniform(box.lower[0], box.upper[0], (500, 2))
    corners = np.array([[-1.0, 0.0], [3.0, 0.5]])
    apart = np.sqrt(kernel.squared_distances(np.vstack([anywhere, corners]), centres)).min(axis=1)
    assert apart.max() == pytest.approx(fill)
    with pytest.raises(ArgumentError, match="points must be a whole number"):
        cover(box, 0, kernel)
