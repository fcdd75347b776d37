"""Tests of additive kernels: means of kernels of one input each, and functions without interactions."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from mpmath import mpf
from sklearn.gaussian_process import kernels as peer

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.errors import ArgumentError
from cascada.gp import Posterior
from cascada.kernels import Additive, Matern, Separable, SquaredExponential, Stationary, random_expansion
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

SCALES = (0.6, 1.1, 2.5)


def symmetric(n: int) -> Array:
    weights = np.random.default_rng(n).normal(size=(n, n))
    return weights + weights.T


# ---- mean of kernels of one input each


@every_kernel
def test_with_one_input_an_additive_kernel_equals_its_kernel(nu):
    one, other = additive(nu, 0.7, 1.9), make(nu, 0.7, 1.9)
    X, Z = points(0, 6, 1), np.concatenate([points(1, 4, 1), points(0, 1, 1)])
    np.testing.assert_allclose(one(X, Z), other(X, Z), rtol=0, atol=2 * other.rounding * UNIT_ROUNDOFF)
    np.testing.assert_allclose(one.jet(X, Z), other.jet(X, Z), rtol=1e-12)
    np.testing.assert_allclose(one.scaled_norm(X), other.scaled_norm(X), rtol=1e-15)
    np.testing.assert_allclose(one.by_scales(X)[0], other.by_scales(X)[0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(one.by_scales(X)[1](symmetric(6)), other.by_scales(X)[1](symmetric(6)), rtol=1e-10)
    if nu is None or nu > 1:
        np.testing.assert_array_equal(one.derivative_variances(1), other.derivative_variances(1))


@given(smoothness, seeds, dimensions)
def test_an_additive_kernel_is_the_mean_of_kernels_of_one_input(nu, seed, d):
    ell = np.linspace(0.5, 1.5, d)
    kernel, parts = additive(nu, tuple(ell), 1.7), [make(nu, float(scale), 1.7) for scale in ell]
    X, Z = points(seed, 5, d), points(seed + 1, 4, d)
    columns = [(X[:, [j]], Z[:, [j]]) for j in range(d)]
    values = [part(x, z) for part, (x, z) in zip(parts, columns, strict=True)]
    np.testing.assert_allclose(kernel(X, Z), np.mean(values, axis=0), rtol=0, atol=1e-13)
    slopes = [part.gradient(x, z)[:, :, 0] / d for part, (x, z) in zip(parts, columns, strict=True)]
    np.testing.assert_allclose(kernel.gradient(X, Z), np.stack(slopes, axis=2), rtol=1e-9, atol=1e-13)
    pulled = [part.by_scales(x)[1](symmetric(5))[0] / d for part, (x, _) in zip(parts, columns, strict=True)]
    np.testing.assert_allclose(kernel.by_scales(X)[1](symmetric(5)), pulled, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("nu", [nu for nu in SMOOTHNESS if nu != 150.0], ids=name)  # its K_ν overflows beyond 100
def test_values_agree_with_scikit_learn(nu):
    X, Z = points(0, 20, 3), points(1, 15, 3)
    others = [peer.RBF(scale) if nu is None else peer.Matern(scale, nu=nu) for scale in SCALES]
    expected = sum(1.7 / 3 * other(X[:, [j]], Z[:, [j]]) for j, other in enumerate(others))
    np.testing.assert_allclose(additive(nu, SCALES, 1.7)(X, Z), expected, rtol=0, atol=1e-12)


@every_differentiable_kernel
@pytest.mark.parametrize("d", [1, 2, 5])
def test_prior_variances_of_derivatives_are_divided_by_d(nu, d):
    ell = tuple(np.linspace(0.6, 1.2, d).tolist())
    expected = make(nu, ell, 1.4).derivative_variances(d) / d
    np.testing.assert_allclose(additive(nu, ell, 1.4).derivative_variances(d), expected, rtol=1e-15)


@every_kernel
def test_profile_properties_equal_those_of_the_inner_kernel(nu):
    one, other, r2 = additive(nu, SCALES, 1.7), make(nu, SCALES, 1.7), radii(20) ** 2
    assert (one.variance, one.lengthscale) == (other.variance, other.lengthscale)
    assert (one.curvature, one.fourth_derivative) == (other.curvature, other.fourth_derivative)
    assert (one.lipschitz_factor, one.second_order_factor) == (other.lipschitz_factor, other.second_order_factor)
    np.testing.assert_array_equal(one.profile(r2), other.profile(r2))
    np.testing.assert_array_equal(one.profile_and_slope(r2), other.profile_and_slope(r2))
    assert one.rounding > other.rounding


# ---- no interactions


def interaction(kernel: Stationary, seed: int) -> float:
    """The largest f(x + a + b) − f(x + a) − f(x + b) + f(x) for steps a and b along two axes, over ‖f‖·s."""
    rng = np.random.default_rng(seed)
    f = random_expansion(kernel, [-2] * 3, [2] * 3, norm=1.0, rng=rng)
    x, a, b = rng.uniform(-2, 2, (50, 3)), np.zeros((50, 3)), np.zeros((50, 3))
    a[:, 0], b[:, 2] = rng.uniform(-2, 2, (2, 50))
    mixed = f(x + a + b) - f(x + a) - f(x + b) + f(x)
    return float(np.abs(mixed).max() / np.sqrt(kernel.variance))


@every_kernel
@pytest.mark.parametrize("seed", range(3))
def test_functions_of_an_additive_kernel_have_no_interactions(nu, seed):
    assert interaction(additive(nu, SCALES, 1.7), seed) < 1e-12
    assert interaction(make(nu, SCALES, 1.7), seed) > 0.1  # functions of other kernels have interactions


@every_form
def test_only_an_additive_posterior_extrapolates_to_corners_from_data_on_the_axes(form):
    # Runs that vary one input at a time determine a sum of effects completely, and other functions poorly.
    grid = np.linspace(-2, 2, 9)
    axes = np.concatenate([np.stack([grid, 0 * grid], axis=1), np.stack([0 * grid, grid], axis=1)])
    f = random_expansion(form(2.5, 1.0, 2.0), [-2, -2], [2, 2], norm=1.0, rng=np.random.default_rng(0))
    prediction = Posterior.fit(f.kernel, axes, f(axes)).predict(np.array([[2.0, 2.0], [-2.0, 1.5]]))
    assert (prediction.sd.max() < 1e-3) == (form is additive)


# ---- bounds


@pytest.mark.parametrize("nu", [None, 1.5, 2.5, 3.7], ids=name)
@pytest.mark.parametrize("d", [2, 4])
def test_reference_norms_agree_with_the_reproducing_property(nu, d):
    # The exact norms to which `distance` and `remainder` are compared, from values and derivatives of k alone.
    truth = reference.Kernel.like(additive(nu, tuple(np.linspace(0.5, 1.5, d)), 1.3), d)
    u, c = np.array([0.5, -0.25, 0.0, 1.5])[:d], np.zeros(d)
    with mpmath.workdps(reference.DIGITS):
        square = truth(u, u) - 2 * truth(u, c) + truth(c, c)
        assert abs(truth.difference_norm(u) ** 2 / square - 1) < mpf(10) ** -30
        for j in range(d):  # ∂_jk(c, ·) with k(·, u) and with itself; different derivatives are orthogonal
            square += -2 * mpf(u[j]) * truth.derivative(c, u, j) + mpf(u[j]) ** 2 * truth.derivative_variance(j)
        assert abs(truth.remainder_norm(u) ** 2 / square - 1) < mpf(10) ** -30


@pytest.mark.parametrize("nu", [None, 1.5, 2.5, 3.7], ids=name)
@pytest.mark.parametrize("size", [2.0**-4, 0.5, 2.0])
@pytest.mark.parametrize("d", [2, 5])
def test_bounds_are_exact_for_cubes_and_at_most_the_root_of_d_too_large(nu, size, d):
    ell = 2.0 ** (np.arange(d) % 3 - 1)
    kernel = additive(nu, tuple(ell), 2.3)
    truth = reference.Kernel.like(kernel, d)
    cube, edge = size * ell * (-1) ** np.arange(d), size * ell * (np.arange(d) == 1)
    remainder = kernel.remainder(kernel.scaled_norm(np.array([cube, edge])))
    distance = kernel.distance(kernel.scaled_norm(np.array([cube, edge])))
    assert remainder is not None
    for bounds, norm in ((distance, truth.difference_norm), (remainder, truth.remainder_norm)):
        exact = float(mpf(bounds[0]) / norm(cube))
        assert 1 <= exact <= 1 + 1e-8
        assert float(mpf(bounds[1]) / norm(edge)) == pytest.approx(np.sqrt(d) * exact, rel=1e-12)


# ---- rounding


@pytest.mark.parametrize("nu", [None, 0.5, 2.5, 3.7], ids=name)
def test_values_with_the_most_inputs_are_accurate_to_the_stated_rounding(nu):
    d = Additive.MOST_INPUTS
    rng = np.random.default_rng(0)
    kernel = additive(nu, tuple(rng.uniform(0.3, 2.0, d)), 1.3)
    truth = reference.Kernel.like(kernel, d)
    X = rng.uniform(-1, 1, (2, d))
    # Near points give terms close to 1 with a large sum; far points give terms of all sizes.
    Z = X + rng.normal(size=(2, d)) * np.array([[1e-3], [1.0]])
    jet, promised = kernel.jet(X, Z), 1.3 * kernel.rounding * UNIT_ROUNDOFF
    np.testing.assert_array_equal(jet[0], kernel(X, Z))
    assert max(abs(mpf(jet[0, i, j]) - truth(X[i], Z[j])) for i in range(2) for j in range(2)) <= promised
    assert kernel(X, X).diagonal().tolist() == [1.3, 1.3]
    ell = kernel.lengthscales(d)
    for j in (0, 64, 127):
        error = max(abs(mpf(jet[1 + j, i, i]) - truth.derivative(X[i], Z[i], j)) for i in range(2))
        assert error * d * ell[j] <= promised


# ---- errors and equality


@pytest.mark.parametrize(
    "kernel",
    [None, 2.5, "Matern", Matern, Additive(Matern(2.5)), Separable(Matern(2.5)), lambda X, Z: X @ Z.T],
    ids=["None", "number", "text", "class", "additive", "separable", "function"],
)
def test_additive_requires_a_kernel_of_one_distance(kernel):
    with pytest.raises(ArgumentError, match=r"Additive needs a kernel of one distance, such as Matern\(2\.5\); got"):
        Additive(kernel)


def test_more_than_128_inputs_raise_an_argument_error():
    kernel, most, more = Additive(SquaredExponential()), np.zeros((1, 128)), np.zeros((1, 129))
    assert kernel(most, most) == [[1.0]]
    assert kernel.jet(most, most).shape == (129, 1, 1)
    for call in (
        lambda: kernel(more, more),
        lambda: kernel.jet(more, more),
        lambda: kernel.gradient(more, more),
        lambda: kernel.by_scales(more),
        lambda: kernel.scaled_norm(more),
        lambda: kernel.lengthscales(129),
        lambda: Posterior.empty(kernel, 129),
        lambda: Separable(kernel).check_dimension(129),
        lambda: Additive(Matern(2.5, (1.0,) * 129))(more, more),
    ):
        with pytest.raises(ArgumentError, match="an additive kernel must have at most 128 inputs; got 129"):
            call()


def test_a_wrong_number_of_lengthscales_raises_an_argument_error():
    kernel, X = Additive(Matern(2.5, (1.0, 2.0))), np.zeros((1, 3))
    for call in (
        lambda: kernel(X, X),
        lambda: kernel.jet(X, X),
        lambda: kernel.by_scales(X),
        lambda: kernel.scaled_norm(X),
        lambda: kernel.derivative_variances(3),
    ):
        with pytest.raises(ArgumentError, match="2 lengthscales but its inputs have 3 dimensions"):
            call()


def test_equal_kernels_are_equal():
    kernel, same = Additive(Matern(2.5, (0.3, 0.5), 2.0)), additive(2.5, [0.3, 0.5], 2)
    assert kernel == same
    assert hash(kernel) == hash(same)
    assert kernel not in (Matern(2.5, (0.3, 0.5), 2.0), Additive(Matern(1.5, (0.3, 0.5), 2.0)))
