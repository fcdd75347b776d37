"""Balls of stages with a joint norm."""

import numpy as np
import pytest

from cascada.confidence import BallBelief, Balls, Belief
from cascada.errors import ArgumentError
from cascada.gp import BlockPosterior, Posterior, SeparablePosterior
from cascada.kernels import Matern, Separable, SquaredExponential, random_operator_expansion
from tests.soundness.truths import ellipsoid_distances

MATRIX = [[2.0, 0.5], [0.5, 1.0]]


def observed(kernel: Separable, t: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    function = random_operator_expansion(kernel, [-2, -2], [2, 2], norm=2.0, outputs=2, rng=rng)
    X = rng.uniform(-2, 2, (t, 2))
    return X, function(X)


def test_ball_is_centred_at_the_mean_with_the_spectral_radius() -> None:
    """eq:cz with the covariance at the point itself, in loops."""
    kernel = Separable(Matern(2.5), MATRIX)
    X, Y = observed(kernel)
    posterior = SeparablePosterior.fit(kernel, X, Y)
    Z = np.random.default_rng(1).uniform(-2, 2, (10, 2))
    for belief, radius in (
        (BallBelief(posterior, 2.0), np.sqrt(4.0 - posterior.spent)),
        (BallBelief(posterior, 2.0, tight=False), 2.0),
    ):
        balls = belief.balls(Z)
        for i, z in enumerate(Z):
            prediction = posterior.predict(z[None])
            spectral = np.linalg.norm(prediction.covariance[0], 2)
            np.testing.assert_allclose(balls.centre[i], prediction.mean[0], atol=1e-12)
            assert balls.radius[i] == pytest.approx(radius * np.sqrt(spectral), abs=1e-6)


def test_an_empty_append_changes_nothing() -> None:
    kernel = Separable(SquaredExponential(1.0), MATRIX)
    X, Y = observed(kernel)
    Z = np.random.default_rng(2).uniform(-2, 2, (10, 2))
    for posterior in (SeparablePosterior.empty(kernel, 2, 2), BlockPosterior.empty(kernel, 2, 2)):
        belief = BallBelief(posterior, 2.0, 9.0)
        empty = belief.append(X[:0], Y[:0])
        np.testing.assert_array_equal(empty.balls(Z).radius, belief.balls(Z).radius)
        late = empty.append(X, Y).append(X[:0], Y[:0])
        np.testing.assert_array_equal(late.balls(Z).radius, belief.append(X, Y).balls(Z).radius)


def test_separable_and_block_posteriors_give_the_same_balls() -> None:
    kernel = Separable(SquaredExponential(1.0), MATRIX)
    X, Y = observed(kernel)
    Z = np.random.default_rng(2).uniform(-2, 2, (10, 2))
    a = BallBelief(SeparablePosterior.fit(kernel, X, Y), 2.0, 9.0)
    b = BallBelief(BlockPosterior.fit(kernel, X, Y), 2.0, 9.0)
    np.testing.assert_allclose(a.balls(Z).radius, b.balls(Z).radius, atol=1e-6)
    np.testing.assert_allclose(a.balls(Z).centre, b.balls(Z).centre, atol=1e-6)
    np.testing.assert_allclose(
        ellipsoid_distances(a, Z, np.zeros((10, 2))), ellipsoid_distances(b, Z, np.zeros((10, 2))), rtol=1e-4
    )


def test_identity_kernel_gives_the_scalar_width_with_the_joint_radius() -> None:
    """lem:multi_var: Γ = kI has Γ_t = σ_t²I."""
    kernel = Separable(SquaredExponential(1.0))
    X, Y = observed(kernel)
    Z = np.random.default_rng(3).uniform(-2, 2, (10, 2))
    joint = BallBelief(SeparablePosterior.fit(kernel, X, Y), 2.0)
    scalar = Posterior.fit(kernel.kernel, X, Y)
    radius = np.sqrt(4.0 - scalar.spent.sum())
    assert joint.radius == pytest.approx(radius)
    np.testing.assert_allclose(joint.balls(Z).radius, radius * scalar.predict(Z).sd, atol=1e-6)
    assert joint.radius <= Belief(scalar, 2.0).radius.min()


def test_region_of_points_is_within_every_ball_of_its_anchors() -> None:
    """eq:cbarz is an intersection: no wider than eq:cz at z, nor than eq:czz from any nearest observation."""
    kernel = Separable(SquaredExponential(1.0))
    X, Y = observed(kernel)
    belief = BallBelief(SeparablePosterior.fit(kernel, X, Y), 2.0, lipschitz=3.0)
    Z = np.random.default_rng(4).uniform(-2, 2, (40, 2))
    region = belief.region(Balls(Z, np.zeros(40)), anchors=2)
    assert np.all(region.radius <= belief.balls(Z).radius * (1 + 1e-12))
    apart = np.linalg.norm(Z[:, None] - X, axis=2)
    assert np.all(region.radius <= belief.distance_modulus(apart.min(axis=1)) * (1 + 1e-12))
    assert np.all(region.radius >= 0)


def test_region_of_an_observed_point_is_that_observation() -> None:
    kernel = Separable(SquaredExponential(1.0))
    X, Y = observed(kernel)
    belief = BallBelief(SeparablePosterior.fit(kernel, X, Y), 2.0)
    region = belief.region(Balls(X, np.zeros(len(X))))
    np.testing.assert_allclose(region.centre, Y, atol=1e-12)
    assert np.all(region.radius <= 1e-12)


def test_a_general_kernel_needs_a_lipschitz_constant_for_regions() -> None:
    kernel = Separable(SquaredExponential(1.0))
    X, Y = observed(kernel)
    belief = BallBelief(BlockPosterior.fit(kernel, X, Y), 2.0)
    with pytest.raises(ArgumentError, match="lipschitz="):
        belief.region(Balls(X, np.zeros(len(X))))


def test_empty_balls_are_refused() -> None:
    kernel = Separable(SquaredExponential(1.0))
    belief = BallBelief(SeparablePosterior.empty(kernel, 2, 2), 1.0)
    with pytest.raises(ArgumentError, match="negative"):
        belief.region(Balls(np.zeros((1, 2)), np.array([-1.0])))
    whole = belief.region(Balls(np.zeros((1, 2)), np.array([1.0])))
    assert whole.radius.item() >= 1.0
