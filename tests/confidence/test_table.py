"""The tabulated envelope against its definition, evaluated by brute force."""

import numpy as np
import pytest

from cascada.confidence import Belief, Boxes, EnvelopeTable, envelope
from cascada.errors import ArgumentError
from cascada.gp import Posterior
from cascada.kernels import Matern, SquaredExponential, random_expansion


def brute_force(nodes: np.ndarray, upper: np.ndarray, L: float, z: np.ndarray) -> np.ndarray:
    """eq:ucb_i over the nodes: min over z' of U(z') + L|z − z'|."""
    return (upper + L * np.abs(z[:, None] - nodes)).min(axis=1)


@pytest.mark.parametrize("count", [1, 2, 3, 17, 64, 65])
def test_maximum_over_intervals_is_that_of_the_envelope(count: int) -> None:
    rng = np.random.default_rng(count)
    nodes, upper = np.sort(rng.uniform(-3, 3, count)), rng.standard_normal(count)
    lower, L = upper - rng.uniform(0, 2, count), 1.7
    table = EnvelopeTable.build(nodes, Boxes(lower[:, None], upper[:, None]), L)
    left = rng.uniform(-4, 4, 300)
    right = left + np.where(rng.uniform(size=300) < 0.2, 0.0, rng.uniform(0, 4, 300))
    left[:count] = nodes[: len(left)]
    right = np.maximum(left, right)
    bounds = table.over(Boxes(left[:, None], right[:, None]))
    inside = np.linspace(left, right, 4001)  # (4001, 300)
    step = (right - left) / 4000
    highest = np.array([brute_force(nodes, upper, L, column).max() for column in inside.T])
    lowest = np.array([-brute_force(nodes, -lower, L, column).max() for column in inside.T])
    assert np.all(bounds.upper[:, 0] >= highest - 1e-12)
    assert np.all(bounds.upper[:, 0] <= highest + L * step + 1e-12)
    assert np.all(bounds.lower[:, 0] <= lowest + 1e-12)
    assert np.all(bounds.lower[:, 0] >= lowest - L * step - 1e-12)


def test_bounds_over_gaps_cap_the_tents() -> None:
    nodes, values = np.array([0.0, 1.0, 2.0]), Boxes(np.full((3, 1), -0.1), np.full((3, 1), 0.1))
    gaps = Boxes(np.array([[-0.2], [-9.0]]), np.array([[0.3], [9.0]]))
    table = EnvelopeTable.build(nodes, values, 1.0, gaps)
    bounds = table.over(Boxes(np.array([[0.1], [1.1], [0.5], [-1.0]]), np.array([[0.9], [1.9], [1.9], [3.0]])))
    np.testing.assert_allclose(bounds.upper[:, 0], [0.3, 0.6, 0.6, 1.1])
    np.testing.assert_allclose(bounds.lower[:, 0], [-0.2, -0.6, -0.6, -1.1])


def test_table_of_a_belief_agrees_with_the_envelope_at_its_nodes() -> None:
    rng = np.random.default_rng(5)
    function = random_expansion(SquaredExponential(0.8), [-2], [2], norm=2.0, rng=rng, outputs=2)
    X, nodes = rng.uniform(-2, 2, (6, 1)), np.linspace(-2, 2, 33)
    belief = Belief(Posterior.fit(function.kernel, X, function(X)), 2.0, lipschitz=3.0)
    direct = envelope(belief, nodes[:, None], anchors=nodes[:, None])
    for output in range(2):
        bounds = EnvelopeTable.of_outputs(belief, nodes)[output].over(Boxes(nodes[:, None], nodes[:, None]))
        np.testing.assert_allclose(bounds.upper[:, 0], direct.upper[:, output], atol=1e-9)
        assert np.all(bounds.upper[:, 0] <= belief.bounds(nodes[:, None]).upper[:, output] + 1e-12)


def test_data_enter_with_their_exact_values() -> None:
    belief = Belief(Posterior.fit(SquaredExponential(1.0), [[0.3]], [0.7]), 2.0)
    bounds = EnvelopeTable.of_outputs(belief, np.linspace(-1, 1, 5))[0].over(
        Boxes(np.full((1, 1), 0.3), np.full((1, 1), 0.3))
    )
    assert bounds.upper.item() == pytest.approx(0.7, abs=1e-13)
    assert bounds.lower.item() == pytest.approx(0.7, abs=1e-13)


def test_a_table_refuses_what_it_cannot_bound() -> None:
    flat = Posterior.fit(SquaredExponential(1.0), [[0.0, 0.0]], [0.0])
    with pytest.raises(ArgumentError, match="this one has 2"):
        EnvelopeTable.of_outputs(Belief(flat, 1.0), [0.0])
    with pytest.raises(ArgumentError, match="Lipschitz"):
        EnvelopeTable.of_outputs(Belief(Posterior.fit(Matern(0.5), [[0.0]], [0.0]), 1.0), [0.0])
    with pytest.raises(ArgumentError, match="at least one node"):
        EnvelopeTable.of_outputs(Belief(Posterior.empty(SquaredExponential(1.0), 1), 1.0), [])
    table = EnvelopeTable.build(np.zeros(1), Boxes(np.zeros((1, 1)), np.zeros((1, 1))), 1.0)
    with pytest.raises(ArgumentError, match="not empty"):
        table.over(Boxes(np.ones((1, 1)), np.zeros((1, 1))))
