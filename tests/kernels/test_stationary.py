"""Conformance tests of all stationary kernels: values, gradients, derivatives by the lengthscales."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf
from sklearn.gaussian_process import kernels as peer

from cascada.arrays import UNIT_ROUNDOFF
from cascada.errors import ArgumentError
from cascada.kernels import Matern, SquaredExponential
from tests import reference
from tests.kernels.cases import (
    SMOOTHNESS,
    additive,
    dimensions,
    every_differentiable_kernel,
    every_form,
    every_kernel,
    make,
    name,
    points,
    radii,
    seeds,
    smoothness,
)

# ---- Gram matrices


@every_form
@given(smoothness, seeds, dimensions, st.integers(0, 12))
def test_gram_is_symmetric_and_positive_semidefinite(form, nu, seed, d, n):
    X = points(seed, n, d)
    gram = form(nu, 0.8, 1.7)(X, X)
    assert gram.shape == (n, n)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(np.diag(gram), 1.7, rtol=1e-15)
    if n:
        # |E_ij| ≤ c·u·s² moves an eigenvalue by at most n times that.
        assert np.linalg.eigvalsh(gram)[0] >= -1.7 * n * (n + form(nu).rounding) * UNIT_ROUNDOFF


@every_form
@every_kernel
def test_a_gram_matrix_of_several_blocks_has_the_rows_of_small_ones(form, nu):
    X, Z = points(0, 700, 2), points(1, 60, 2)
    kernel = form(nu, (0.5, 2.0), 1.7)
    gram = kernel(X, Z)
    assert gram.size > 2 << 14
    for i in (0, 272, 273, 274, 546, 699):  # around the ends of blocks
        np.testing.assert_allclose(gram[i], kernel(X[[i]], Z)[0], rtol=4 * UNIT_ROUNDOFF)


@every_form
@given(smoothness, seeds, dimensions, st.integers(0, 5), st.integers(0, 5))
def test_shapes(form, nu, seed, d, n, m):
    X, Z = points(seed, n, d), points(seed + 1, m, d)
    kernel = form(nu, tuple(np.linspace(0.5, 1.5, d)))
    assert kernel(X, Z).shape == (n, m)
    assert kernel.jet(X, Z).shape == (1 + d, n, m)
    assert kernel.gradient(X, Z).shape == (n, m, d)
    assert kernel.scaled_norm(X).shape == (n,)
    gram, pull = kernel.by_scales(X)
    assert gram.shape == (n, n)
    assert pull(np.ones((n, n))).shape == (d,)
    np.testing.assert_array_equal(kernel.jet(X, Z)[0], kernel(X, Z))
    np.testing.assert_array_equal(kernel(X, Z), kernel(Z, X).T)


@every_form
@every_kernel
@pytest.mark.parametrize("d", [1, 2, 3])
def test_values_are_accurate_to_the_stated_rounding(form, nu, d):
    rng = np.random.default_rng(d)
    kernel = form(nu, tuple(rng.uniform(0.3, 2.0, d)), 1.3)
    truth = reference.Kernel.like(kernel, d)
    X = rng.uniform(-1, 1, (4, d))
    Z = X + rng.normal(size=(4, d)) * 10.0 ** rng.uniform(-8, 0, (4, 1))
    computed = kernel(X, Z)
    worst = max(abs(mpf(computed[i, j]) - truth(X[i], Z[j])) for i in range(4) for j in range(4))
    assert worst <= 1.3 * kernel.rounding * UNIT_ROUNDOFF


@every_form
@given(smoothness, seeds, dimensions)
def test_a_shift_of_the_origin_changes_nothing(form, nu, seed, d):
    # Multiples of 2⁻²⁰ and a shift by a power of two: the shifted differences are exact.
    X = np.round(points(seed, 5, d) * 2**20) / 2**20
    Z = np.round(points(seed + 1, 4, d) * 2**20) / 2**20
    kernel = form(nu, tuple(np.linspace(0.5, 1.5, d)), 0.7)
    np.testing.assert_array_equal(kernel(X + 2.0**20, Z + 2.0**20), kernel(X, Z))
    np.testing.assert_array_equal(kernel.gradient(X + 2.0**20, Z + 2.0**20), kernel.gradient(X, Z))


@every_form
@given(smoothness, seeds, dimensions, st.floats(1e-6, 1e6))
def test_scaling_inputs_and_lengthscales_together_changes_nothing(form, nu, seed, d, factor):
    X, Z = points(seed, 5, d), points(seed + 1, 4, d)
    ell = np.linspace(0.5, 1.5, d)
    expected = form(nu, tuple(ell))(X, Z)
    scaled = form(nu, tuple(ell * factor))
    np.testing.assert_allclose(scaled(X * factor, Z * factor), expected, rtol=0, atol=1e-12)
    slopes = form(nu, tuple(ell)).gradient(X, Z)
    np.testing.assert_allclose(scaled.gradient(X * factor, Z * factor) * factor, slopes, rtol=1e-9, atol=1e-12)


@every_form
@given(smoothness, seeds, dimensions, st.randoms(use_true_random=False))
def test_permuted_rows_and_columns_give_permuted_values(form, nu, seed, d, random):
    X, Z = points(seed, 5, d), points(seed + 1, 4, d)
    rows, columns = random.sample(range(5), 5), random.sample(range(d), d)
    ell = np.linspace(0.5, 1.5, d)
    expected = form(nu, tuple(ell))(X, Z)
    np.testing.assert_array_equal(form(nu, tuple(ell))(X[rows], Z), expected[rows])
    shuffled = form(nu, tuple(ell[columns]))(X[:, columns], Z[:, columns])
    np.testing.assert_allclose(shuffled, expected, rtol=0, atol=1e-13)


@every_form
@every_kernel
def test_variance_scales_values_and_gradients(form, nu):
    X, Z = points(0, 5, 2), points(1, 4, 2)
    one, many = form(nu, 0.7), form(nu, 0.7, 3.5)
    np.testing.assert_allclose(many(X, Z), 3.5 * one(X, Z), rtol=1e-15)
    np.testing.assert_allclose(many.gradient(X, Z), 3.5 * one.gradient(X, Z), rtol=1e-14)
    r = radii(50)
    np.testing.assert_allclose(many.distance(r), np.sqrt(3.5) * one.distance(r), rtol=1e-14)


@every_form
@every_kernel
def test_lengthscales_divide_their_own_coordinate(form, nu):
    X, Z = points(0, 5, 3), points(1, 4, 3)
    ell = (0.3, 1.0, 4.0)
    np.testing.assert_allclose(form(nu, ell)(X, Z), form(nu)(X / ell, Z / ell), rtol=0, atol=1e-13)
    np.testing.assert_allclose(form(nu, (0.7,) * 3)(X, Z), form(nu, 0.7)(X, Z), rtol=0, atol=1e-13)


@pytest.mark.parametrize(("form", "order"), [(make, 2), (additive, np.inf)], ids=["radial", "additive"])
def test_scaled_norm_is_the_euclidean_or_the_largest_in_lengthscales(form, order):
    X, ell = points(0, 12, 3), (0.3, 1.0, 4.0)
    expected = np.linalg.norm(X / ell, ord=order, axis=1)
    np.testing.assert_allclose(form(2.5, ell).scaled_norm(X), expected, rtol=1e-15)
    np.testing.assert_array_equal(form(2.5, ell).scaled_norm(-X), form(2.5, ell).scaled_norm(X))
    blocks = X.reshape(2, 3, 2, 3)
    np.testing.assert_allclose(form(2.5, ell).scaled_norm(blocks), expected.reshape(2, 3, 2), rtol=1e-15)
    assert form(2.5, ell).scaled_norm(X[0]) == pytest.approx(expected[0], rel=1e-15)


@every_form
@every_kernel
def test_arguments_are_not_modified(form, nu):
    X, Z, weights = points(0, 5, 2), points(1, 4, 2), np.ones((5, 5))
    for array in (X, Z, weights):
        array.flags.writeable = False
    kernel = form(nu, (0.5, 2.0), 2.0)
    kernel(X, Z)
    kernel.jet(X, Z)
    kernel.scaled_norm(X)
    kernel.by_scales(X)[1](weights)


@pytest.mark.parametrize("nu", [nu for nu in SMOOTHNESS if nu != 150.0], ids=name)  # its K_ν overflows beyond 100
def test_values_agree_with_scikit_learn(nu):
    X, Z = points(0, 20, 3), points(1, 15, 3)
    ell = np.array([0.6, 1.1, 2.5])
    other = peer.ConstantKernel(1.7) * (peer.RBF(ell) if nu is None else peer.Matern(ell, nu=nu))
    np.testing.assert_allclose(make(nu, tuple(ell), 1.7)(X, Z), other(X, Z), rtol=0, atol=1e-12)


@every_form
@every_kernel
@pytest.mark.parametrize("d", [1, 3])
def test_gradient_is_the_central_difference(form, nu, d):
    kernel, h = form(nu, tuple(np.linspace(0.6, 1.2, d)), 1.4), 1e-5
    Z, X = points(0, 6, d), points(1, 5, d)
    gradient = kernel.gradient(Z, X)
    for j in range(d):
        step = h * np.eye(d)[j]
        difference = (kernel(Z + step, X) - kernel(Z - step, X)) / (2 * h)
        np.testing.assert_allclose(gradient[:, :, j], difference, rtol=1e-6, atol=5e-9)


@every_form
@every_kernel
def test_gradient_vanishes_at_the_point_itself(form, nu):
    X = points(0, 4, 2)
    diagonal = form(nu).gradient(X, X)[np.arange(4), np.arange(4)]
    np.testing.assert_array_equal(diagonal, np.zeros((4, 2)))


@every_form
@every_differentiable_kernel
@pytest.mark.parametrize("d", [1, 2, 3])
def test_derivative_variances_are_those_of_the_gradient(form, nu, d):
    kernel, h = form(nu, tuple(np.linspace(0.6, 1.2, d)), 1.4), 1e-5 if nu is None or nu > 2 else 1e-8
    variances = kernel.derivative_variances(d)
    truth = reference.Kernel.like(kernel, d)
    assert variances.shape == (d,)
    assert max(abs(mpf(v) / truth.derivative_variance(j) - 1) for j, v in enumerate(variances)) <= 8 * UNIT_ROUNDOFF
    # ∂²k/∂x_j∂z_j = −∂²k/∂z_j² at x = z, where ∂k/∂z_j = 0.
    steps = h * np.eye(d)
    slopes = kernel.gradient(steps, np.zeros((1, d)))[np.arange(d), 0, np.arange(d)]
    np.testing.assert_allclose(variances, -slopes / h, rtol=1e-6)


# ---- derivatives of a Gram matrix by the lengthscales


@every_form
@every_kernel
@pytest.mark.parametrize("d", [1, 3])
def test_by_scales_is_the_central_difference(form, nu, d):
    X, ell, h = points(0, 9, d), np.linspace(0.6, 1.2, d), 1e-5
    weights = np.random.default_rng(1).normal(size=(9, 9))
    weights += weights.T
    kernel = form(nu, tuple(ell), 1.4)
    gram, pull = kernel.by_scales(X)
    np.testing.assert_allclose(1.4 * gram, kernel(X, X), rtol=0, atol=2.8 * kernel.rounding * UNIT_ROUNDOFF)
    np.testing.assert_array_equal(gram, gram.T)
    assert gram.diagonal().tolist() == [1.0] * 9
    for j, pulled in enumerate(pull(weights)):
        step = np.exp(h * np.eye(d)[j])
        difference = (form(nu, tuple(ell * step))(X, X) - form(nu, tuple(ell / step))(X, X)) / (2 * h)
        assert pulled == pytest.approx((weights * difference).sum(), rel=1e-7, abs=1e-8)
    twice = pull(2 * weights)
    np.testing.assert_array_equal(twice, 2 * pull(weights))  # a second call gives the same result


@every_form
@every_kernel
def test_by_scales_of_a_shared_lengthscale_equals_that_of_equal_lengthscales(form, nu):
    X = points(0, 9, 3)
    shared, own = form(nu, 0.7).by_scales(X), form(nu, (0.7,) * 3).by_scales(X)
    np.testing.assert_allclose(shared[0], own[0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(shared[1](np.eye(9) + 1), own[1](np.eye(9) + 1), rtol=1e-12)


@every_form
@every_kernel
def test_by_scales_is_the_same_far_from_the_origin(form, nu):
    X = np.round(points(0, 9, 3) * 2**20) / 2**20  # so that the differences are exact
    near, far = (form(nu, 0.7).by_scales(inputs)[1](np.eye(9) + 1) for inputs in (X, X + 2.0**24))
    np.testing.assert_allclose(far, near, rtol=1e-7)


# ---- errors


@pytest.mark.parametrize("nu", [0.0, -1.0, np.nan, np.inf, "smooth", None])
def test_nu_must_be_positive(nu):
    with pytest.raises(ArgumentError, match=r"nu must be a .*number above 0; got"):
        Matern(nu)


@pytest.mark.parametrize("make_kernel", [SquaredExponential, lambda *a: Matern(1.5, *a)], ids=["SE", "Matern"])
class TestErrors:
    @pytest.mark.parametrize(
        "lengthscale", [0.0, -1.0, np.nan, np.inf, "long", (1.0, 0.0), (1.0, np.nan), [[1.0, 2.0]]]
    )
    def test_lengthscales_must_be_positive(self, make_kernel, lengthscale):
        with pytest.raises(ArgumentError, match=r"lengthscale must be a .*number above 0; got"):
            make_kernel(lengthscale)

    def test_an_empty_lengthscale_raises_an_argument_error(self, make_kernel):
        with pytest.raises(ArgumentError, match="one number per input dimension; got an empty sequence"):
            make_kernel(())

    @pytest.mark.parametrize("variance", [0.0, -2.0, np.nan, np.inf, None])
    def test_variance_must_be_positive(self, make_kernel, variance):
        with pytest.raises(ArgumentError, match=r"variance must be a .*number above 0; got"):
            make_kernel(1.0, variance)

    def test_a_wrong_number_of_lengthscales_raises_an_argument_error(self, make_kernel):
        kernel = make_kernel((1.0, 2.0))
        for call in (kernel, kernel.jet, kernel.gradient):
            with pytest.raises(ArgumentError, match="2 lengthscales but its inputs have 3 dimensions"):
                call(np.zeros((1, 3)), np.zeros((1, 3)))
        with pytest.raises(ArgumentError, match="2 lengthscales but its inputs have 1 dimensions"):
            kernel.spectral_density(np.zeros((1, 1)))

    def test_lengthscales_may_be_any_sequence_of_numbers(self, make_kernel):
        for given_scales in ([1, 2], np.array([1.0, 2.0]), (np.float32(1.0), 2)):
            assert make_kernel(given_scales) == make_kernel((1.0, 2.0))
        assert hash(make_kernel([1, 2])) == hash(make_kernel((1.0, 2.0)))

    @pytest.mark.parametrize("one", [2, np.float64(2.0), np.array(2.0)], ids=["int", "float64", "array"])
    def test_a_lengthscale_may_be_any_number(self, make_kernel, one):
        assert make_kernel(one) == make_kernel(2.0)
        assert make_kernel(1.0, one) == make_kernel(1.0, 2.0)
