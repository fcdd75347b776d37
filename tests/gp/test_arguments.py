"""Tests of the validation of arguments and its error messages."""

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.gp import Posterior
from cascada.kernels import Matern


@pytest.mark.parametrize("jitter", [0.0, -1e-10, 9.99e-11, 1e-12, np.nan, np.inf, "small", None])
def test_a_jitter_below_the_smallest_raises_an_argument_error(jitter):
    for make_posterior in (
        lambda: Posterior.empty(Matern(2.5), 1, jitter=jitter),
        lambda: Posterior.fit(Matern(2.5), [[0.0]], [1.0], jitter),
    ):
        with pytest.raises(ArgumentError, match=r"jitter must be .*1e-10.*; got"):
            make_posterior()


POSTERIOR = Posterior.fit(Matern(2.5), [[0.0, 0.0], [1.0, 1.0]], [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("X", "Y", "text"),
    [
        ([0.0, 0.0], [1.0], r"X must have two axes \(n, d\).* got shape \(2,\)"),
        (0.5, [1.0], r"X must have two axes \(n, d\).* got shape \(\)"),
        ([[[0.0, 0.0]]], [1.0], r"X must have two axes \(n, d\).* got shape \(1, 1, 2\)"),
        ([[0.0]], [1.0], r"X must have 2 columns.* got shape \(1, 1\)"),
        ([[0.5, 0.0]], [1.0, 2.0], r"Y must have shape \(1, 1\).* got \(2,\)"),
        ([[0.5, 0.0]], [[1.0, 2.0]], r"Y must have shape \(1, 1\).* got \(1, 2\)"),
        ([[0.5, 0.0]], 1.0, r"Y must have shape \(1, 1\).* got \(\)"),
        ([[0.5, 0.0]], [[[1.0]]], r"Y must have shape \(1, 1\).* got \(1, 1, 1\)"),
        ([[0.5, 0.0], [np.nan, 0.0]], [1.0, 2.0], r"X must be finite; row 1 is \[nan +0\.\]"),
        ([[0.5, 0.0], [0.0, np.inf]], [1.0, 2.0], r"X must be finite; row 1 is \[ *0\. +inf\]"),
        ([[0.5, 0.0], [0.7, 0.0]], [1.0, np.nan], r"Y must be finite; row 1 is \[nan\]. Remove the row"),
        ([["a", "b"]], [1.0], r"X must be an array of real numbers; got \[\['a', 'b'\]\]"),
        ([[0.5, 0.0]], ["high"], r"Y must be an array of real numbers; got \['high'\]"),
        ([[1.0, 2.0], [1.0]], [1.0, 2.0], "X must be an array of real numbers"),
        ([[1j, 0.0]], [1.0], "X must be an array of real numbers"),
    ],
)
def test_invalid_observations_raise_an_argument_error(X, Y, text):
    with pytest.raises(ArgumentError, match=text):
        POSTERIOR.append(X, Y)


@pytest.mark.parametrize("method", ["mean", "predict", "predict_gradient", "mean_gradient", "jet"])
@pytest.mark.parametrize(
    ("Z", "text"),
    [
        ([0.0, 0.0], r"Z must have two axes \(n, d\).* got shape \(2,\)"),
        ([[0.0, 0.0, 0.0]], r"Z must have 2 columns.* got shape \(1, 3\)"),
        ([[0.0, np.nan]], r"Z must be finite; row 0 is"),
        (None, "Z must"),
    ],
)
def test_invalid_queries_raise_an_argument_error(method, Z, text):
    with pytest.raises(ArgumentError, match=text):
        getattr(POSTERIOR, method)(Z)


def test_the_number_of_lengthscales_must_equal_the_dimension():
    kernel = Matern(2.5, (1.0, 2.0))
    with pytest.raises(ArgumentError, match="2 lengthscales but its inputs have 3 dimensions"):
        Posterior.empty(kernel, 3)
    with pytest.raises(ArgumentError, match="2 lengthscales but its inputs have 1 dimensions"):
        Posterior.fit(kernel, [[0.0]], [1.0])


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_numbers_are_converted(dtype):
    X, Y = np.array([[0, 1], [2, 3]], dtype=dtype), np.array([1, 2], dtype=dtype)
    prediction = Posterior.fit(Matern(2.5), X, Y).predict(X)
    assert prediction.mean.dtype == prediction.sd.dtype == np.float64
    np.testing.assert_allclose(prediction.mean[:, 0], [1.0, 2.0], atol=1e-8)
