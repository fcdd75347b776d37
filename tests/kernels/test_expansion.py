"""Tests of functions of known norm."""

import numpy as np
import pytest
from mpmath import mpf

from cascada.errors import ArgumentError
from cascada.kernels import (
    BlockKernel,
    Expansion,
    OperatorExpansion,
    Separable,
    SquaredExponential,
    random_expansion,
    random_operator_expansion,
)
from tests import reference
from tests.kernels.cases import every_form, every_kernel, make

MATRIX = [[2.0, -0.5], [-0.5, 1.0]]


def separable(nu=2.5) -> Separable:
    return Separable(make(nu, (0.8, 1.3), 1.7), MATRIX)


@every_form
@every_kernel
def test_norm_is_the_double_sum(form, nu):
    rng = np.random.default_rng(0)
    kernel = form(nu, (0.8, 1.3), 1.7)
    f = Expansion(kernel, rng.uniform(-1, 1, (5, 2)), rng.normal(size=(5, 2)))
    truth = reference.Kernel.like(kernel, 2)
    for j in range(2):
        expected = reference.expansion_norm(truth, f.centres, f.coefficients[:, j])
        assert abs(mpf(f.norm[j]) / expected - 1) < 1e-13


def test_joint_norm_is_the_double_sum():
    rng = np.random.default_rng(0)
    kernel = separable()
    f = OperatorExpansion(kernel, rng.uniform(-1, 1, (6, 2)), rng.normal(size=(6, 2)))
    blocks = reference.separable(reference.Kernel.like(kernel.kernel, 2), MATRIX)
    expected = reference.operator_expansion_norm(blocks, f.centres, f.coefficients)
    assert abs(mpf(f.norm) / expected - 1) < 1e-13


@every_kernel
def test_values_are_sums_of_kernel_sections(nu):
    rng = np.random.default_rng(1)
    kernel = make(nu, 0.8, 1.7)
    f = Expansion(kernel, rng.uniform(-1, 1, (6, 1)), rng.normal(size=(6, 2)))
    x = rng.uniform(-1, 1, (3, 1))
    for i in range(3):
        for j in range(2):
            terms = [f.coefficients[m, j] * kernel(x[i : i + 1], f.centres[m : m + 1])[0, 0] for m in range(6)]
            assert f(x)[i, j] == pytest.approx(sum(terms), abs=1e-13)


def test_vector_values_are_sums_of_kernel_sections():
    rng = np.random.default_rng(1)
    kernel = separable()
    f = OperatorExpansion(kernel, rng.uniform(-1, 1, (6, 2)), rng.normal(size=(6, 2)))
    x = rng.uniform(-1, 1, (3, 2))
    for i in range(3):
        expected = sum(
            kernel.kernel(x[i : i + 1], f.centres[m : m + 1])[0, 0] * np.array(MATRIX) @ f.coefficients[m]
            for m in range(6)
        )
        np.testing.assert_allclose(f(x)[i], expected, rtol=1e-13)


@every_kernel
@pytest.mark.parametrize("norm", [1e-3, 1.0, 7.0])
def test_scaled_to_gives_exactly_this_norm(nu, norm):
    rng = np.random.default_rng(2)
    f = Expansion(make(nu), rng.uniform(-1, 1, (30, 2)), rng.normal(size=(30, 3)))
    scaled = f.scaled_to(norm)
    np.testing.assert_allclose(scaled.norm, norm, rtol=1e-13)
    X = rng.uniform(-1, 1, (4, 2))
    np.testing.assert_allclose(scaled(X), f(X) * norm / f.norm, rtol=1e-10, atol=1e-12 * norm)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_random_expansions_have_the_given_norm_and_shape(d):
    rng = np.random.default_rng(3)
    low, high = -np.arange(1.0, d + 1), np.arange(1.0, d + 1) / 2
    f = random_expansion(make(1.5), low, high, norm=2.0, rng=rng, outputs=3, terms=50)
    assert f.centres.shape == (50, d)
    assert np.all((f.centres >= low) & (f.centres <= high))
    assert f(np.zeros((4, d))).shape == (4, 3)
    np.testing.assert_allclose(f.norm, 2.0, rtol=1e-13)
    g = random_operator_expansion(Separable(make(1.5)), low, high, norm=2.0, outputs=3, rng=rng)
    assert g.centres.shape == (30, d)
    assert g(np.zeros((4, d))).shape == (4, 3)
    assert g.norm == pytest.approx(2.0, rel=1e-13)


def test_random_expansions_depend_only_on_the_generator():
    first, again, other = (
        random_expansion(make(2.5), [0.0], [1.0], norm=1.0, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.coefficients, again.coefficients)
    np.testing.assert_array_equal(first.centres, again.centres)
    assert not np.array_equal(first.centres, other.centres)


@every_form
@every_kernel
@pytest.mark.parametrize("p", [1, 3, 8])
def test_a_value_does_not_depend_on_the_batch(form, nu, p):
    # Bit for bit, so that reporting the same point twice is never a contradiction.
    rng = np.random.default_rng(9)
    kernel = form(nu, (0.8, 1.3), 1.7)
    f = random_expansion(kernel, [0.0, 0.0], [1.0, 1.0], norm=1.0, rng=rng, outputs=p)
    g = random_operator_expansion(Separable(kernel), [0.0, 0.0], [1.0, 1.0], norm=1.0, outputs=p, rng=rng)
    X = rng.uniform(-1, 2, (37, 2))
    for function in (f, g):
        whole = function(X)
        for step in (1, 2, 5, 16):
            parts = [function(X[i : i + step]) for i in range(0, 37, step)]
            np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_joint_norm_under_the_identity_is_the_root_of_the_sum_of_squares():
    rng = np.random.default_rng(4)
    f = random_expansion(make(2.5), [0.0], [1.0], norm=1.5, rng=rng, outputs=4)
    g = OperatorExpansion(Separable(f.kernel), f.centres, f.coefficients)
    assert g.norm == pytest.approx(1.5 * 2, rel=1e-12)
    X = rng.uniform(0, 1, (5, 1))
    np.testing.assert_allclose(g(X), f(X), rtol=1e-12, atol=1e-13)


def test_a_function_of_two_sections_attains_the_metric():
    kernel = SquaredExponential(0.7, 2.0)
    X = np.array([[0.1, 0.4], [0.5, -0.3]])
    f = Expansion(kernel, X, np.array([[1.0], [-1.0]]))
    values = f(X)[:, 0]
    distance = kernel.distance(kernel.scaled_norm(X[:1] - X[1:]))[0]
    assert f.norm[0] == pytest.approx(distance, rel=1e-12)
    assert abs(values[0] - values[1]) == pytest.approx(f.norm[0] * distance, rel=1e-12)


def test_expansions_of_block_kernels_have_the_given_norm():
    scalar = SquaredExponential(0.7)
    kernel = BlockKernel("k·A", lambda X, Z: scalar(X, Z)[:, :, None, None] * np.array(MATRIX))
    rng = np.random.default_rng(5)
    f = random_operator_expansion(kernel, [0.0], [1.0], norm=3.0, outputs=2, rng=rng)
    g = OperatorExpansion(Separable(scalar, MATRIX), f.centres, f.coefficients)
    assert f.norm == pytest.approx(3.0, rel=1e-12)
    assert g.norm == pytest.approx(3.0, rel=1e-12)


@pytest.mark.parametrize("norm", [0.0, -1.0, np.nan, "big"])
def test_a_norm_must_be_positive(norm):
    rng = np.random.default_rng(6)
    with pytest.raises(ArgumentError, match=r"norm must be a .*number above 0; got"):
        random_expansion(make(2.5), [0.0], [1.0], norm=norm, rng=rng)
    with pytest.raises(ArgumentError, match=r"norm must be a .*number above 0; got"):
        random_operator_expansion(separable(), [0.0, 0.0], [1.0, 1.0], norm=norm, outputs=2, rng=rng)


def test_points_must_have_the_dimension_of_the_centres():
    f = random_expansion(make(2.5), [0.0], [1.0], norm=1.0, rng=np.random.default_rng(7))
    with pytest.raises(ArgumentError, match=r"X must have 1 columns.*got shape \(3, 2\)"):
        f(np.zeros((3, 2)))


def test_an_empty_array_of_points_gives_an_empty_array_of_values():
    rng = np.random.default_rng(8)
    f = random_expansion(make(2.5), [0.0, 0.0], [1.0, 1.0], norm=1.0, rng=rng, outputs=2)
    g = random_operator_expansion(separable(), [0.0, 0.0], [1.0, 1.0], norm=1.0, outputs=2, rng=rng)
    assert f(np.empty((0, 2))).shape == g(np.empty((0, 2))).shape == (0, 2)
