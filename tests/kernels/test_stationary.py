"""What every stationary kernel must satisfy: Gram matrices, gradients, the kernel's metric, Taylor remainders."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf
from sklearn.gaussian_process import kernels as peer

from cascada.arrays import UNIT_ROUNDOFF
from cascada.errors import ArgumentError
from cascada.kernels import Expansion, Matern, SquaredExponential, random_expansion
from tests import reference
from tests.kernels.cases import HARD, SMOOTHNESS, every_differentiable_kernel, every_kernel, make, name, radii

smoothness = st.sampled_from(SMOOTHNESS)
seeds = st.integers(0, 2**32 - 1)
dimensions = st.integers(1, 4)


def points(seed: int, n: int, d: int):
    return np.random.default_rng(seed).uniform(-2.0, 2.0, (n, d))


# ---- Gram matrices


@given(smoothness, seeds, dimensions, st.integers(0, 12))
def test_gram_is_symmetric_and_positive_semidefinite(nu, seed, d, n):
    X = points(seed, n, d)
    gram = make(nu, 0.8, 1.7)(X, X)
    assert gram.shape == (n, n)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(np.diag(gram), 1.7, rtol=1e-15)
    if n:
        # |E_ij| ≤ c·u·s² moves an eigenvalue by at most n times that.
        assert np.linalg.eigvalsh(gram)[0] >= -1.7 * n * (n + make(nu).rounding) * UNIT_ROUNDOFF


@given(smoothness, seeds, dimensions, st.integers(0, 5), st.integers(0, 5))
def test_shapes(nu, seed, d, n, m):
    X, Z = points(seed, n, d), points(seed + 1, m, d)
    kernel = make(nu, tuple(np.linspace(0.5, 1.5, d)))
    assert kernel(X, Z).shape == kernel.squared_distances(X, Z).shape == (n, m)
    assert kernel.jet(X, Z).shape == (1 + d, n, m)
    assert kernel.gradient(X, Z).shape == (n, m, d)
    np.testing.assert_array_equal(kernel.jet(X, Z)[0], kernel(X, Z))
    np.testing.assert_array_equal(kernel(X, Z), kernel(Z, X).T)


@every_kernel
@pytest.mark.parametrize("d", [1, 2, 3])
def test_values_are_right_to_the_promised_rounding(nu, d):
    rng = np.random.default_rng(d)
    kernel = make(nu, tuple(rng.uniform(0.3, 2.0, d)), 1.3)
    truth = reference.Kernel.like(kernel, d)
    X = rng.uniform(-1, 1, (4, d))
    Z = X + rng.normal(size=(4, d)) * 10.0 ** rng.uniform(-8, 0, (4, 1))
    computed = kernel(X, Z)
    worst = max(abs(mpf(computed[i, j]) - truth(X[i], Z[j])) for i in range(4) for j in range(4))
    assert worst <= 1.3 * kernel.rounding * UNIT_ROUNDOFF


@given(smoothness, seeds, dimensions)
def test_a_shift_of_the_origin_changes_nothing(nu, seed, d):
    # Multiples of 2⁻²⁰ and a shift by a power of two: the shifted differences are exact.
    X = np.round(points(seed, 5, d) * 2**20) / 2**20
    Z = np.round(points(seed + 1, 4, d) * 2**20) / 2**20
    kernel = make(nu, tuple(np.linspace(0.5, 1.5, d)), 0.7)
    np.testing.assert_array_equal(kernel(X + 2.0**20, Z + 2.0**20), kernel(X, Z))
    np.testing.assert_array_equal(kernel.gradient(X + 2.0**20, Z + 2.0**20), kernel.gradient(X, Z))


@given(smoothness, seeds, dimensions, st.floats(1e-6, 1e6))
def test_scaling_inputs_and_lengthscales_together_changes_nothing(nu, seed, d, factor):
    X, Z = points(seed, 5, d), points(seed + 1, 4, d)
    ell = np.linspace(0.5, 1.5, d)
    expected = make(nu, tuple(ell))(X, Z)
    scaled = make(nu, tuple(ell * factor))
    np.testing.assert_allclose(scaled(X * factor, Z * factor), expected, rtol=0, atol=1e-12)
    slopes = make(nu, tuple(ell)).gradient(X, Z)
    np.testing.assert_allclose(scaled.gradient(X * factor, Z * factor) * factor, slopes, rtol=1e-9, atol=1e-12)


@given(smoothness, seeds, dimensions, st.randoms(use_true_random=False))
def test_permuted_rows_and_columns_give_permuted_values(nu, seed, d, random):
    X, Z = points(seed, 5, d), points(seed + 1, 4, d)
    rows, columns = random.sample(range(5), 5), random.sample(range(d), d)
    ell = np.linspace(0.5, 1.5, d)
    expected = make(nu, tuple(ell))(X, Z)
    np.testing.assert_array_equal(make(nu, tuple(ell))(X[rows], Z), expected[rows])
    shuffled = make(nu, tuple(ell[columns]))(X[:, columns], Z[:, columns])
    np.testing.assert_allclose(shuffled, expected, rtol=0, atol=1e-13)


@every_kernel
def test_variance_scales_values_and_gradients(nu):
    X, Z = points(0, 5, 2), points(1, 4, 2)
    one, many = make(nu, 0.7), make(nu, 0.7, 3.5)
    np.testing.assert_allclose(many(X, Z), 3.5 * one(X, Z), rtol=1e-15)
    np.testing.assert_allclose(many.gradient(X, Z), 3.5 * one.gradient(X, Z), rtol=1e-14)
    r = radii(50)
    np.testing.assert_allclose(many.distance(r), np.sqrt(3.5) * one.distance(r), rtol=1e-14)


@every_kernel
def test_lengthscales_divide_their_own_coordinate(nu):
    X, Z = points(0, 5, 3), points(1, 4, 3)
    ell = (0.3, 1.0, 4.0)
    np.testing.assert_allclose(make(nu, ell)(X, Z), make(nu)(X / ell, Z / ell), rtol=0, atol=1e-13)
    np.testing.assert_allclose(make(nu, (0.7,) * 3)(X, Z), make(nu, 0.7)(X, Z), rtol=0, atol=1e-13)
    np.testing.assert_allclose(make(nu, ell).scaled_norm(X), np.linalg.norm(X / ell, axis=1), rtol=1e-15)


@every_kernel
def test_arguments_are_not_modified(nu):
    X, Z = points(0, 5, 2), points(1, 4, 2)
    for array in (X, Z):
        array.flags.writeable = False
    kernel = make(nu, (0.5, 2.0), 2.0)
    kernel(X, Z)
    kernel.jet(X, Z)
    kernel.scaled_norm(X)


@pytest.mark.parametrize("nu", [nu for nu in SMOOTHNESS if nu != 150.0], ids=name)  # its K_ν overflows beyond 100
def test_scikit_learn_has_the_same_values(nu):
    X, Z = points(0, 20, 3), points(1, 15, 3)
    ell = np.array([0.6, 1.1, 2.5])
    other = peer.ConstantKernel(1.7) * (peer.RBF(ell) if nu is None else peer.Matern(ell, nu=nu))
    np.testing.assert_allclose(make(nu, tuple(ell), 1.7)(X, Z), other(X, Z), rtol=0, atol=1e-12)


@every_kernel
@pytest.mark.parametrize("d", [1, 3])
def test_gradient_is_the_central_difference(nu, d):
    kernel, h = make(nu, tuple(np.linspace(0.6, 1.2, d)), 1.4), 1e-5
    Z, X = points(0, 6, d), points(1, 5, d)
    gradient = kernel.gradient(Z, X)
    for j in range(d):
        step = h * np.eye(d)[j]
        difference = (kernel(Z + step, X) - kernel(Z - step, X)) / (2 * h)
        np.testing.assert_allclose(gradient[:, :, j], difference, rtol=1e-6, atol=5e-9)


@every_kernel
def test_gradient_vanishes_at_the_point_itself(nu):
    X = points(0, 4, 2)
    diagonal = make(nu).gradient(X, X)[np.arange(4), np.arange(4)]
    np.testing.assert_array_equal(diagonal, np.zeros((4, 2)))


# ---- the metric d_k

# How much `distance` may exceed d_k, relatively, at r ≥ 1e-6. Where 1 − φ cancels, only kernels with −φ''(0) have a
# second bound; just above ν = 1 that one is approached slowly (1 − φ is −φ''(0)r²/2 up to r^{2ν}).
METRIC_EXCESS = {0.3: 1e-9, 0.5: 1e-8, 1.0: 2e-3, 1.5: 2e-5}


@every_kernel
def test_distance_is_never_below_the_metric_and_close_to_it(nu):
    kernel = make(nu, 1.0, 2.3)
    r = radii(60)
    truth = reference.Kernel.like(kernel, 1)
    excess = np.array([float(mpf(a) / truth.metric(b) - 1) for a, b in zip(kernel.distance(r), r, strict=True)])
    assert excess.min() >= 0
    assert excess[r >= 1e-6].max() <= METRIC_EXCESS.get(nu, 1e-6)
    assert excess[r >= 1e-2].max() <= 1e-9


@pytest.mark.parametrize("nu", HARD)
def test_distance_is_never_below_the_metric_where_bessel_functions_are_hard(nu):
    kernel = make(nu)
    truth = reference.Kernel.like(kernel, 1)
    for r in np.linspace(1.7, 2.1, 9) / np.sqrt(2 * nu):
        assert mpf(kernel.distance(np.array([r]))[0]) >= truth.metric(r)


@every_kernel
def test_distance_at_the_ends(nu):
    kernel = make(nu, 1.0, 2.3)
    assert kernel.distance(np.zeros(2)).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(kernel.distance(np.array([1e3, 1e200, np.inf])), np.sqrt(4.6), rtol=1e-12)
    if kernel.lipschitz_factor is not None:
        r = radii(300)
        assert np.all(kernel.distance(r) <= kernel.lipschitz_factor * r * (1 + 1e-14))


@given(smoothness, seeds, dimensions)
def test_distance_bounds_differences_of_functions(nu, seed, d):
    kernel = make(nu, tuple(np.linspace(0.5, 1.5, d)), 1.5)
    rng = np.random.default_rng(seed)
    f = random_expansion(kernel, -np.ones(d), np.ones(d), norm=2.0, rng=rng)
    X, Z = points(seed, 20, d), points(seed + 1, 20, d)
    bound = 2.0 * kernel.distance(kernel.scaled_norm(X - Z))
    slack = 1e-14 * kernel.variance * np.abs(f.coefficients).sum()
    assert np.all(np.abs(f(X) - f(Z))[:, 0] <= bound + slack)


# ---- the Taylor remainder


@every_differentiable_kernel
def test_remainder_is_never_below_the_norm_of_the_functional(nu):
    kernel = make(nu, 1.0, 2.3)
    r = radii(10 if nu == 2 else 30)  # K_ν of a whole order is slow at many digits
    truth = reference.Kernel.like(kernel, 1)
    remainder = kernel.remainder(r)
    assert remainder is not None
    excess = np.array([float(mpf(a) / truth.remainder(b) - 1) for a, b in zip(remainder, r, strict=True)])
    assert excess.min() >= 0
    assert excess[r >= 0.1].max() <= 1e-8
    if kernel.second_order_factor is not None:
        assert np.all(remainder <= 0.5 * kernel.second_order_factor * r**2 * (1 + 1e-14))
        assert excess.max() <= 2e-3
    assert kernel.remainder(np.zeros(1)) == [0.0]


@every_differentiable_kernel
def test_remainder_never_decreases_but_by_rounding(nu):
    kernel, r = make(nu), radii(3000)
    remainder = kernel.remainder(r)
    assert remainder is not None
    assert kernel.curvature is not None
    rounding = (8 * kernel.rounding + 16 * kernel.curvature * r**2) * UNIT_ROUNDOFF
    assert np.all(np.diff(remainder**2) >= -rounding[1:])


@pytest.mark.parametrize("nu", [1.5, 2.0, 2.5, 3.7, None])
@pytest.mark.parametrize("scale", [0.03, 0.3, 2.0])
def test_a_function_attains_the_remainder(nu, scale):
    # The functional's representer k(·, c+u) − k(·, c) − u·∇k(·, c), its last term as a central difference.
    kernel, h = make(nu, (0.5, 1.5), 1.5), 1e-3
    c, u = np.array([0.3, -0.2]), np.array([0.4, -0.7]) * scale
    centres = np.array([c + u, c, c + h * u, c - h * u])
    f = Expansion(kernel, centres, np.array([[1.0], [-1.0], [-0.5 / h], [0.5 / h]]))
    gradient = np.einsum("nmd,mp->nd", kernel.gradient(c[None], centres), f.coefficients)[0]
    left = (f((c + u)[None]) - f(c[None]))[0, 0] - gradient @ u
    remainder = kernel.remainder(kernel.scaled_norm(u[None]))
    assert remainder is not None
    assert left == pytest.approx(f.norm[0] * remainder[0], rel=1e-2)


@pytest.mark.parametrize("nu", [1.5, 2.0, 2.5, 3.7, None])
@pytest.mark.parametrize("d", [1, 3])
def test_remainder_bounds_first_order_expansions_of_functions(nu, d):
    kernel = make(nu, tuple(np.linspace(0.5, 1.5, d)), 1.5)
    rng = np.random.default_rng(7)
    for _ in range(20):
        f = random_expansion(kernel, -np.ones(d), np.ones(d), norm=2.0, rng=rng, terms=5)
        C = rng.uniform(-1, 1, (30, d))
        U = rng.normal(size=(30, d)) * 10.0 ** rng.uniform(-2, 0.3, (30, 1))
        gradient = np.einsum("nmd,m->nd", kernel.gradient(C, f.centres), f.coefficients[:, 0])
        left = np.abs((f(C + U) - f(C))[:, 0] - np.einsum("nd,nd->n", gradient, U))
        remainder = kernel.remainder(kernel.scaled_norm(U))
        assert remainder is not None
        slack = 1e-13 * kernel.variance * np.abs(f.coefficients).sum()
        assert np.all(left <= 2.0 * remainder + slack)


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

    def test_there_must_be_a_lengthscale(self, make_kernel):
        with pytest.raises(ArgumentError, match="one number per input dimension; got none"):
            make_kernel(())

    @pytest.mark.parametrize("variance", [0.0, -2.0, np.nan, np.inf, None])
    def test_variance_must_be_positive(self, make_kernel, variance):
        with pytest.raises(ArgumentError, match=r"variance must be a .*number above 0; got"):
            make_kernel(1.0, variance)

    def test_number_of_lengthscales_must_fit(self, make_kernel):
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
