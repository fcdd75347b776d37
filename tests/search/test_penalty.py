"""Penalties in the joint form: gradients, ranges, and constrained maxima of known functions."""

from typing import Any

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.kernels import SquaredExponential
from cascada.network import Beliefs, Network, Stage, chain, composite_mean, prior_beliefs
from cascada.network.failures import FailureRisk, StageRisk
from cascada.search import Joint, ascend_mean, refine_mean
from cascada.search.penalty import WIDTHS, Penalty
from cascada.space import Real

SE = SquaredExponential(1.0)


def known_network(**limits: Any) -> Network:
    """x, y → s = x² + y², and the objective x + y/2, both exact formulas."""
    box = Real(-1.5, 1.5)
    return Network(
        [
            Stage("s", {"x": box, "y": box}, known=True, lipschitz=9.0, function=lambda x, y: x**2 + y**2, **limits),
            Stage("g", {"x": box, "y": box}, known=True, lipschitz=2.0, function=lambda x, y: x + y / 2),
        ],
        objective="g",
    )


def modelled(sign: int = 1, **options: Any) -> Beliefs:
    """Two stages with two outputs between them, and some data."""
    network = chain(
        Stage("f", {"x": Real(-2, 2), "y": Real(-2, 2)}, ["u", "v"], kernel=SE, norm_bound=2.0, **options),
        Stage("g", {"y": Real(-2, 2)}, kernel=SE, norm_bound=2.0, limits={"g": (-0.7, 0.6)}),
    )
    network = network if sign > 0 else network.mirrored()
    rng = np.random.default_rng(0)
    data = np.hstack([rng.uniform(-2, 2, (6, 2)), rng.uniform(-0.9, 0.9, (6, 3))])
    return prior_beliefs(network, 1e-8).append(data)


def penalty(beliefs: Beliefs, weight: float | None, risk: bool = False) -> Penalty:
    rng, limits = np.random.default_rng(5), beliefs.network.limits
    some = FailureRisk((StageRisk((2, 3, 1), rng.uniform(-1, 1, (2, 3)), rng.uniform(-1, 1, (3, 3)), np.ones(3)),))
    return Penalty(limits, np.full(len(limits), 0.3), weight, some if risk else None, 0.05)


def differences(joint: Joint, at: Array) -> Array:
    steps = 1e-6 * np.eye(joint.size)
    return np.stack([(joint.values(at + step) - joint.values(at - step)) / 2e-6 for step in steps], axis=1)


@pytest.mark.parametrize("deviations", [True, False])
@pytest.mark.parametrize("weight", [7.0, None])
@pytest.mark.parametrize("sign", [1, -1])
def test_gradients_are_those_of_differences(sign: int, weight: float | None, deviations: bool) -> None:
    beliefs = modelled(sign, limits={"u": (None, 0.1), "v": (-0.2, 0.2)}, ranges={"u": (-0.5, 0.4), "v": (None, 0.3)})
    joint = Joint(beliefs, deviations, penalty(beliefs, weight, risk=True))
    rng = np.random.default_rng(2)
    at = np.hstack([rng.uniform(-2, 2, (40, 2)), rng.uniform(-1, 1, (40, joint.size - 2))])
    values, slopes = joint(at)
    np.testing.assert_allclose(values, joint.values(at), atol=1e-9)
    smooth = np.abs(differences(joint, at) - differences(joint, at + 3e-6)).max(axis=1) < 1e-2  # no kink nearby
    assert smooth.mean() > 0.8
    np.testing.assert_allclose(slopes[smooth], differences(joint, at)[smooth], rtol=2e-4, atol=2e-3)


def test_where_limits_hold_the_penalty_changes_no_digit() -> None:
    beliefs = modelled(limits={"u": (-50, 50)})
    limits = beliefs.network.limits[:1]
    rng = np.random.default_rng(2)
    at = np.hstack([rng.uniform(-2, 2, (40, 2)), rng.uniform(-1, 1, (40, 3))])
    free, held = Joint(beliefs), Joint(beliefs, penalty=Penalty(limits, np.ones(1), 30.0))
    for a, b in zip(free(at), held(at), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not held.exceeds(at).any()


def test_outputs_are_clipped_for_later_stages_but_not_the_objective() -> None:
    """Gradient 0 through a clipped output; what is maximised keeps its slope beyond its range."""
    box = {"x": Real(-3.0, 3.0)}

    def line(**options: Any) -> Network:
        first = Stage("f", box, known=True, lipschitz=2.0, function=lambda x: 2 * x, **options)
        return chain(first, Stage("g", known=True, lipschitz=1.0, function=lambda f: f + 1.0, ranges={"g": (None, 0.5)}))

    at = np.array([[-1.0], [0.1], [2.0]])
    values, slopes = Joint(prior_beliefs(line()))(at)
    np.testing.assert_allclose(values, [-1.0, 1.2, 5.0])
    np.testing.assert_allclose(slopes, [[2.0]] * 3, rtol=1e-6)
    values, slopes = Joint(prior_beliefs(line(ranges={"f": (-1.0, 1.0)})))(at)
    np.testing.assert_allclose(values, [0.0, 1.2, 2.0])
    np.testing.assert_allclose(slopes, [[0.0], [2.0], [0.0]], rtol=1e-6)


def test_the_ascent_ends_on_the_limit_of_a_disc() -> None:
    """max x + y/2 within x² + y² ≤ 1 is √1.25 at (2, 1)/√5; the excess is far below the unit."""
    network = known_network(limits={"s": (None, 1.0)})
    beliefs, wanted = prior_beliefs(network), np.array([2.0, 1.0]) / np.sqrt(5)
    some = Penalty(network.limits, np.ones(1), 30.0)
    found = ascend_mean(beliefs, np.random.default_rng(0), np.empty((0, 2)), some)[0]
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    refined = refine_mean(beliefs, np.array([[-1.4, 1.4], [0.0, 0.0], [1.5, 1.5]]), some)
    np.testing.assert_allclose(refined, [wanted] * 3, atol=1e-3)
    excess = composite_mean(beliefs, refined)[:, 2] - 1.0
    assert np.all(np.abs(excess) < 1e-5)
    assert WIDTHS[-1] < WIDTHS[0]


def test_the_margin_is_largest_in_the_middle_of_a_band() -> None:
    network = known_network(limits={"s": (0.4, 0.8)})
    beliefs = prior_beliefs(network)
    margin = Penalty(network.limits, np.ones(1), None)
    found = ascend_mean(beliefs, np.random.default_rng(0), np.empty((0, 2)), margin)[0]
    assert composite_mean(beliefs, found[None])[0, 2] == pytest.approx(0.6, abs=1e-3)


def test_likely_failures_are_avoided() -> None:
    """The maximum of x + y/2 in the box is a corner where a run failed."""
    beliefs = prior_beliefs(known_network())
    risk = FailureRisk((StageRisk((0, 1), np.array([[1.5, 1.5]]), np.array([[0.0, 0.0]]), np.array([3.0, 3.0])),))
    some = Penalty((), np.empty(0), 30.0, risk)
    found = ascend_mean(beliefs, np.random.default_rng(0), np.empty((0, 2)), some)[0]
    assert 0.45 < risk.stages[0].at(found[None])[0] < 0.501
    assert found.sum() > 1.5
    free = ascend_mean(beliefs, np.random.default_rng(0), np.empty((0, 2)))[0]
    np.testing.assert_allclose(free, [1.5, 1.5])
