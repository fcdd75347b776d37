"""Functions drawn by pathwise conditioning, against the exact posterior."""

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.gp import Posterior
from cascada.gp.paths import Paths
from cascada.kernels import Additive, Matern, Radial, SquaredExponential

KERNELS = [SquaredExponential((0.4, 0.9), 2.0), Matern(1.5, (0.5, 0.8), 0.5), Additive(Matern(2.5, 0.6, 1.5))]
X = np.array([[0.1, 0.2], [0.4, 0.9], [0.8, 0.3], [0.6, 0.6], [0.95, 0.9]])
Y = np.array([0.3, -1.0, 0.8, 0.1, 2.0])
POINTS = np.array([[0.2, 0.3], [0.25, 0.35], [0.9, 0.1], [0.5, 0.5]])
MEAN = 0.7


def drawn(kernel, count: int, seed: int = 0, inputs=X, outputs=Y) -> Paths:
    return Paths(inputs, outputs, [kernel], [MEAN], count, np.random.default_rng(seed))


def values(paths: Paths, points: np.ndarray) -> np.ndarray:
    """Values (S, n) of all functions."""
    path = np.repeat(np.arange(paths.count), len(points))
    return paths(np.tile(points, (paths.count, 1)), path)[0].reshape(paths.count, len(points))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_draws_have_the_mean_and_covariance_of_the_posterior(kernel):
    count = 4000
    found = values(drawn(kernel, count), POINTS)
    K, k = kernel(X, X) + 1e-10 * kernel.variance * np.eye(len(X)), kernel(POINTS, X)
    exact = kernel(POINTS, POINTS) - k @ np.linalg.solve(K, k.T)
    posterior = Posterior.fit(kernel, X, (Y - MEAN)[:, None]).predict(POINTS)
    np.testing.assert_allclose(np.sqrt(np.diag(exact)), posterior.sd, atol=1e-4)
    sd = posterior.sd
    assert (np.abs(found.mean(axis=0) - posterior.mean[:, 0] - MEAN) <= 4.5 * sd / np.sqrt(count)).all()
    error = np.abs(np.cov(found.T) - exact)
    assert (error <= 6 * np.outer(sd, sd) / np.sqrt(count)).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_every_draw_interpolates_the_data(kernel):
    paths = Paths(X, Y, [kernel, kernel], [MEAN, -MEAN], 8, np.random.default_rng(1))
    np.testing.assert_allclose(values(paths, X), np.tile(Y, (16, 1)), atol=1e-6)


def test_draws_interpolate_a_crowd_of_runs():
    rng = np.random.default_rng(0)
    crowd = np.concatenate([X, 0.5 + 1e-4 * rng.standard_normal((30, 2))])
    outputs = np.sin(3 * crowd[:, 0]) + crowd[:, 1] ** 2
    found = values(drawn(Matern(1.5, 0.8), 16, inputs=crowd, outputs=outputs), crowd)
    np.testing.assert_allclose(found, np.tile(outputs, (16, 1)), atol=1e-4)


def test_without_data_the_draws_are_of_the_prior():
    kernel, nothing = Matern(2.5, 0.5, 3.0), np.empty((0, 2))
    found = values(drawn(kernel, 4000, inputs=nothing, outputs=np.empty(0)), POINTS)
    assert np.abs(found.mean(axis=0) - MEAN).max() <= 4.5 * np.sqrt(3 / 4000)
    assert np.abs(np.cov(found.T) - kernel(POINTS, POINTS)).max() <= 6 * 3 / np.sqrt(4000)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gradients_are_difference_quotients(kernel):
    paths, path = drawn(kernel, 3), np.array([0, 1, 2, 0])
    gradients = paths(POINTS, path, slopes=True)[1]
    assert gradients is not None
    for j in range(2):
        step = 1e-6 * np.eye(2)[j]
        quotient = (paths(POINTS + step, path)[0] - paths(POINTS - step, path)[0]) / 2e-6
        np.testing.assert_allclose(gradients[:, j], quotient, rtol=1e-4, atol=1e-4)


def test_the_same_generator_gives_the_same_functions():
    first, second, other = (values(drawn(KERNELS[0], 4, seed), POINTS) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, second)
    assert (first != other).all()


def test_a_kernel_of_another_kind_is_refused():
    class Other(Radial):
        lengthscale, variance, curvature, fourth_derivative, rounding = 1.0, 1.0, 1.0, 1.0, 1.0

        def profile(self, r2):
            return 1 / (1 + r2)

        def profile_and_slope(self, r2):
            return 1 / (1 + r2), -2 / (1 + r2) ** 2

        def spectral_density(self, frequencies):
            raise NotImplementedError

    with pytest.raises(ArgumentError, match="Matern and SquaredExponential"):
        Paths(X, Y, [Other()], [0.0], 2, np.random.default_rng(0))
