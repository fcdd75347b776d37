"""Tests of kernels of inputs some of which are codes."""

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.kernels import Additive, Coded, Matern, SquaredExponential, Stationary

RNG = np.random.default_rng(24)
KERNELS = (SquaredExponential((0.7, 1.3), 2.0), Matern(2.5, 0.8), Additive(Matern(1.5, 1.1)))


def points(count: int) -> np.ndarray:
    """Rows (number, code of 2, number, code of 3)."""
    X = RNG.uniform(-1, 1, (count, 4))
    X[:, 1], X[:, 3] = RNG.integers(2, size=count), RNG.integers(3, size=count)
    return X


@pytest.mark.parametrize("plain", KERNELS, ids=str)
def test_the_kernel_is_the_product_over_all_inputs(plain: Stationary) -> None:
    kernel, X, Z = Coded(plain, (1, 3), (0.3, 0.8)), points(6), points(5)
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            numbers = plain(x[None, [0, 2]], z[None, [0, 2]])[0, 0]
            likeness = (1.0 if x[1] == z[1] else 0.3) * (1.0 if x[3] == z[3] else 0.8)
            assert kernel(X, Z)[i, j] == pytest.approx(numbers * likeness, rel=1e-14)


@pytest.mark.parametrize("plain", KERNELS, ids=str)
def test_gradients_are_those_of_differences_and_zero_for_codes(plain: Stationary) -> None:
    kernel, X, Z, h = Coded(plain, (1, 3), (0.3, 0.8)), points(6), points(5), 1e-6
    jet = kernel.jet(Z, X)
    assert np.allclose(jet[0], kernel(Z, X), rtol=1e-14)
    for j in (0, 2):
        step = h * np.eye(4)[j]
        assert np.allclose(jet[1 + j], (kernel(Z + step, X) - kernel(Z - step, X)) / (2 * h), atol=1e-7)
    assert not jet[[2, 4]].any()
    assert kernel.derivative_variances(4)[[1, 3]].tolist() == [0.0, 0.0]
    assert kernel.lengthscales(4)[[1, 3]].tolist() == [np.inf, np.inf]


def test_the_likelihood_s_derivatives_are_those_of_differences() -> None:
    X, weights, h = points(7), RNG.standard_normal((7, 7)), 1e-6
    weights += weights.T
    log_scales = np.log([0.7, 0.9, 1.4, 1.2])

    def gram(theta: np.ndarray) -> np.ndarray:
        ell = np.exp(theta)
        plain = SquaredExponential((ell[0], ell[2]))
        return Coded(plain, (1, 3), (float(np.exp(-(ell[1] ** -2))), float(np.exp(-(ell[3] ** -2)))))(X, X)

    ell = np.exp(log_scales)
    kernel = Coded(
        SquaredExponential((ell[0], ell[2])), (1, 3), (float(np.exp(-(ell[1] ** -2))), float(np.exp(-(ell[3] ** -2))))
    )
    found, pull = kernel.by_scales(X)
    assert np.allclose(found, gram(log_scales), rtol=1e-14)
    for j, slope in enumerate(pull(weights)):
        step = h * np.eye(4)[j]
        change = (gram(log_scales + step) - gram(log_scales - step)) / (2 * h)
        assert slope == pytest.approx(float((weights * change).sum()), rel=1e-6)


@pytest.mark.parametrize("plain", KERNELS, ids=str)
def test_no_function_of_the_norm_changes_by_more_than_the_distance(plain: Stationary) -> None:
    kernel, X = Coded(plain, (1, 3), (0.3, 0.8)), points(40)
    for x in X:
        for z in X[:10]:
            pair = np.stack([x, z])
            gram = kernel(pair, pair)
            exact = np.sqrt(max(gram[0, 0] + gram[1, 1] - 2 * gram[0, 1], 0.0))
            assert exact <= kernel.distance_of(x - z) * (1 + 1e-12)
            if not isinstance(plain, Additive):  # whose lengths are upper bounds
                assert kernel.distance_of(x - z) <= exact + 2e-7


def test_a_kernel_of_codes_alone_is_their_likeness() -> None:
    kernel, X = Coded(Matern(2.5), (0,), (0.4,)), np.array([[0.0], [1.0], [0.0]])
    assert kernel(X, X).tolist() == [[1, 0.4, 1], [0.4, 1, 0.4], [1, 0.4, 1]]
    assert kernel.jet(X, X).shape == (2, 3, 3)
    assert kernel.distance_of(np.array([[1.0]])).item() == pytest.approx(np.sqrt(2 * 0.6))


@pytest.mark.parametrize("alike", [(1.0,), (-0.1,), (), (0.1, 0.2)])
def test_an_impossible_likeness_is_refused(alike: tuple[float, ...]) -> None:
    with pytest.raises(ArgumentError, match="at least 0 and below 1"):
        Coded(Matern(2.5), (0,), alike)
