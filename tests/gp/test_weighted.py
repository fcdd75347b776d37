"""Posteriors of outputs with errors: a λ for every row, repeated inputs, and the rounding that goes with them."""

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.gp import Posterior
from cascada.gp.rounding import SMALLEST_JITTER, error_rounding, smallest_noise
from cascada.kernels import Matern, SquaredExponential, Stationary
from tests import reference

SE = SquaredExponential((0.7, 1.1), variance=2.5)
kernels = pytest.mark.parametrize("kernel", [SE, Matern(2.5, 0.9)], ids=str)


def rows(t: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs with a repeat and a near repeat, outputs that differ there, and λ over many orders of magnitude."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (t, 2))
    X[1], X[2] = X[0], X[0] + 1e-9
    return X, rng.standard_normal((t, 1)), 10 ** rng.uniform(-8, 2, t)


@kernels
def test_a_weighted_posterior_agrees_with_the_reference(kernel: Stationary) -> None:
    X, Y, noise = rows(12)
    posterior, Z = Posterior.weighted(kernel, X, Y, noise), np.array([[0.3, -0.2], X[0], X[5] + 1e-3])
    true = reference.Posterior(reference.Kernel.like(kernel, 2), X, Y[:, 0], noise.tolist())
    jet, s = posterior.jet(Z), np.sqrt(kernel.variance)
    slack = posterior.inflation * s
    scale = np.sqrt(float(true.spent)) * slack
    for i, z in enumerate(Z):
        assert abs(jet.mean[i, 0] - float(true.mean(z))) <= scale
        assert float(true.sd(z)) <= jet.sd[i] + slack + 1e-7
        assert abs(jet.sd[i] - float(true.sd(z))) <= slack + 1e-7
        for j in range(2):
            assert abs(jet.derivative_mean[i, 0, j] - float(true.derivative_mean(z, j))) <= 4 * scale
            assert abs(jet.derivative_sd[i, j] - float(true.derivative_sd(z, j))) <= 4 * slack + 1e-7
    assert posterior.spent[0] == pytest.approx(float(true.spent), rel=1e-6)
    assert posterior.mean_norm[0] == pytest.approx(float(true.mean_norm), rel=1e-6)


@kernels
def test_equal_weights_give_the_posterior_of_a_jitter(kernel: Stationary) -> None:
    X, Y, _ = rows(9, seed=1)
    X[1], X[2] = [0.1, 0.2], [0.9, -0.9]
    plain, weighted = Posterior.fit(kernel, X, Y, 1e-3), Posterior.weighted(kernel, X, Y, np.full(9, 1e-3))
    np.testing.assert_allclose(weighted.factor, plain.factor, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(weighted.noise, plain.noise)
    assert (weighted.jitter, weighted.inflation) == (plain.jitter, plain.inflation)


def test_all_outputs_of_one_input_are_kept_and_averaged() -> None:
    posterior = Posterior.weighted(SquaredExponential(1.0), [[0.0]] * 3, [[1.0], [2.0], [3.0]], [1e-6] * 3)
    assert posterior.count == 3
    assert posterior.predict([[0.0]]).mean.item() == pytest.approx(2.0, rel=1e-5)


def test_a_weight_below_the_rounding_of_its_rows_is_raised() -> None:
    X, Y, _ = rows(40)
    posterior = Posterior.weighted(SE, X, Y, np.full(40, 1e-300))
    assert np.all(posterior.noise == smallest_noise(40, SE.rounding))
    assert posterior.jitter >= SMALLEST_JITTER


def test_a_heavy_row_says_nothing() -> None:
    X, Y, noise = rows(6, seed=3)
    noise[5] = 1e12
    with_it, without = Posterior.weighted(SE, X, Y, noise), Posterior.weighted(SE, X[:5], Y[:5], noise[:5])
    np.testing.assert_allclose(with_it.predict(X).mean, without.predict(X).mean, atol=1e-8)


def test_an_appended_row_has_the_smallest_weight() -> None:
    X, Y, noise = rows(5)
    posterior = Posterior.weighted(SE, X, Y, np.maximum(noise, 1e-4)).append(X[:1], [[9.0]])
    assert posterior.count == 6
    assert posterior.noise[5] == posterior.noise[:5].min()


def test_the_rounding_of_errors_is_below_one_for_every_allowed_weight() -> None:
    for t in (1, 10, 1000, 30_000):
        assert 0 < error_rounding(t, smallest_noise(t, 20.0), 20.0) < 0.52
    assert error_rounding(50, 1e-8, 20.0) < 1e-3


@pytest.mark.parametrize("noise", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, np.inf], [[1.0, 1.0]]])
def test_invalid_weights_raise(noise: object) -> None:
    with pytest.raises(ArgumentError, match="one finite number above 0 for each of the 2 rows"):
        Posterior.weighted(SE, [[0.0, 0.0], [1.0, 1.0]], [0.0, 1.0], noise)  # type: ignore[arg-type]


def test_no_rows_give_the_prior() -> None:
    posterior = Posterior.weighted(SE, np.empty((0, 2)), np.empty((0, 3)), [])
    prediction = posterior.predict([[0.0, 0.0]])
    assert (prediction.mean.tolist(), prediction.sd.tolist()) == ([[0.0, 0.0, 0.0]], [np.sqrt(2.5)])
