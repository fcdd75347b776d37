"""The density of lengthscales against loops in 50 digits and differences, and its invariances."""

import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from cascada.arrays import Array
from cascada.calibration.likelihood import JITTER, MEAN_VARIANCE, PRIOR_COUNT, Likelihood
from cascada.calibration.shape import SE, Shape
from tests.reference import Number, precise, profile
from tests.thorough import examples

SMOOTHNESS = [1.5, 2.5, SE]
SHAPES = [Shape(nu, additive) for additive in (False, True) for nu in SMOOTHNESS]
GENERAL = [(Shape(nu), d) for d in (1, 2, 3) for nu in SMOOTHNESS]


def data(seed: int, n: int, d: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    y = np.sin(4 * X).sum(axis=1) + 0.3 * rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


def crowded(seed: int, d: int, spacing: float) -> tuple[Array, Array]:
    """Seven runs, and five more near two of them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(7, d))
    X = np.concatenate([X, X[[2, 5, 2, 2, 5]] + spacing * rng.uniform(-1, 1, (5, d))])
    y = np.sin(4 * X).sum(axis=1)
    return X, (y - y.mean()) / y.std()


def counted(X: Array) -> int:
    """The number of rows that differ by more than 10⁻³ in some coordinate from every row counted before."""
    kept: list[int] = []
    for a in range(len(X)):
        near = False
        for b in kept:
            near = near or max(abs(X[a, j] - X[b, j]) for j in range(X.shape[1])) <= 1e-3
        if not near:
            kept.append(a)
    return len(kept)


@precise
def in_loops(X: Array, y: Array, shape: Shape, theta: Sequence[Number] | Array) -> tuple[Number, Number, Number]:
    """log p(θ | y) up to a constant, m and s²: y ~ N(0, s²(K + λI + c·11ᵀ)), m integrated out, s² at its maximum.

    s² is the maximum for `counted` observations.
    """
    n, d = X.shape
    nu = None if shape.nu == SE else shape.nu
    centre = 0 if shape.additive else mpmath.log(d) / 2  # a lengthscale of the range; √d times that in d dimensions
    whole = mpmath.matrix(n, n)
    for a in range(n):
        for b in range(n):
            scaled = [abs(mpf(X[a, j]) - mpf(X[b, j])) / mpmath.exp(theta[j]) for j in range(d)]
            if shape.additive:
                k = sum(profile(nu, r) for r in scaled) / d
            else:
                k = profile(nu, mpmath.sqrt(sum(r**2 for r in scaled)))
            whole[a, b] = k + (mpf(JITTER) if a == b else 0) + mpf(MEAN_VARIANCE)
    solved = mpmath.lu_solve(whole, mpmath.matrix(y.tolist()))
    total = counted(X) + mpf(PRIOR_COUNT)
    square = (sum(mpf(y[a]) * solved[a] for a in range(n)) + mpf(PRIOR_COUNT)) / total
    value = -total * mpmath.log(square) / 2 - mpmath.log(mpmath.det(whole)) / 2
    for j in range(d):
        value -= ((theta[j] - centre) / mpf(1.5)) ** 2 / 2
    # The posterior mean of m: c·1ᵀ(K + λI + c·11ᵀ)⁻¹y.
    return value, mpf(MEAN_VARIANCE) * sum(solved), square


@precise
def slope_in_loops(X: Array, y: Array, shape: Shape, theta: Array, j: int) -> float:
    """The derivative in θ_j by differences, which are accurate with so many digits."""
    step = mpf(10) ** -15
    ahead, behind = ([mpf(t) + sign * step * (i == j) for i, t in enumerate(theta)] for sign in (1, -1))
    return float((in_loops(X, y, shape, ahead)[0] - in_loops(X, y, shape, behind)[0]) / (2 * step))


def check_against_loops(X: Array, y: Array, shape: Shape) -> None:
    """Check differences between values of θ; the constant does not matter."""
    likelihood = Likelihood(X, y, shape)
    thetas = np.random.default_rng(1).uniform(-2.0, 0.7, (6, X.shape[1]))
    references = [in_loops(X, y, shape, theta) for theta in thetas]
    ours = np.array([likelihood(theta)[0] for theta in thetas])
    theirs = np.array([float(value) for value, _, _ in references])
    np.testing.assert_allclose(ours - ours[0], theirs - theirs[0], rtol=1e-6, atol=1e-6)
    for theta, (_, mean, square) in zip(thetas, references, strict=True):
        found = likelihood.mean_and_variance(theta)
        assert found == pytest.approx((float(mean), float(square)), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize(("shape", "d"), [*GENERAL[:3], *((shape, d) for d in (2, 4) for shape in SHAPES)], ids=str)
def test_density_mean_and_variance_equal_those_of_loops(shape: Shape, d: int) -> None:
    X, y = data(d, 9, d)
    assert counted(X) == 9
    check_against_loops(X, y, shape)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 14),
    d=st.integers(1, 4),
    shape=st.sampled_from(SHAPES),
    shift=st.floats(-1.5, 0.5),
)
@settings(max_examples=examples(120))
def test_the_gradient_is_that_of_differences(seed: int, n: int, d: int, shape: Shape, shift: float) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(n, d)), rng.standard_normal(n)
    likelihood = Likelihood(X, y, shape)
    theta = likelihood.prior_mode + shift + rng.uniform(-0.3, 0.3, d)
    value, gradient = likelihood(theta)
    assert math.isfinite(value)
    K = in_condition(X, shape, theta)
    step = 1e-5
    for j in range(d):
        ahead, behind = theta.copy(), theta.copy()
        ahead[j] += step
        behind[j] -= step
        slope = (likelihood(ahead)[0] - likelihood(behind)[0]) / (2 * step)
        scale = 1.0 + abs(gradient[j]) + abs(value)
        assert gradient[j] == pytest.approx(slope, abs=scale * (1e-6 + 1e-15 * K / step))


def in_condition(X: Array, shape: Shape, theta: Array) -> float:
    """The growth of rounding errors in K⁻¹."""
    kernel = shape.kernel(tuple(np.exp(theta).tolist()))
    return float(np.linalg.cond(kernel(X, X) + JITTER * np.eye(len(X))))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("change", ["rows", "columns", "moved inputs", "negated outputs"])
def test_the_density_is_invariant(shape: Shape, change: str) -> None:
    X, y = data(3, 10, 3)
    theta = np.array([-0.4, 0.2, -1.0])
    value, gradient = Likelihood(X, y, shape)(theta)
    columns, order = [0, 1, 2], np.arange(10)
    if change == "rows":
        order = np.random.default_rng(0).permutation(10)
    if change == "columns":
        columns = [2, 0, 1]
    shift = 17.0 if change == "moved inputs" else 0.0
    sign = -1.0 if change == "negated outputs" else 1.0
    again, other = Likelihood(X[order][:, columns] + shift, sign * y[order], shape)(theta[columns])
    assert again == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(other, gradient[columns], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [Shape(2.5), Shape(2.5, additive=True)], ids=str)
def test_inputs_in_other_units_have_lengthscales_in_other_units(shape: Shape) -> None:
    """Except for the prior, which refers to the ranges."""
    X, y = data(4, 8, 2)
    units = np.array([0.5, 4.0])
    theta = np.array([[-0.3, 0.1], [0.4, -0.8]])

    def without_prior(likelihood: Likelihood, at: Array) -> float:
        away = (at - likelihood.prior_mode) / 1.5
        return likelihood(at)[0] + 0.5 * float(away @ away)

    one = [without_prior(Likelihood(X, y, shape), at) for at in theta]
    other = [without_prior(Likelihood(X * units, y, shape), at + np.log(units)) for at in theta]
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("shape", [Shape(2.5), Shape(2.5, additive=True)], ids=str)
def test_few_data_have_a_density(shape: Shape, n: int) -> None:
    likelihood = Likelihood(np.linspace(0, 1, n)[:, None], np.linspace(-1, 1, n), shape)
    value, gradient = likelihood(likelihood.prior_mode)
    assert math.isfinite(value)
    assert np.isfinite(gradient).all()
    mean, square = likelihood.mean_and_variance(likelihood.prior_mode)
    assert math.isfinite(mean)
    assert square > 0


@pytest.mark.parametrize(("shape", "centre"), [(Shape(SE), 0.5 * math.log(2)), (Shape(SE, additive=True), 0.0)])
def test_without_data_the_density_is_the_prior(shape: Shape, centre: float) -> None:
    likelihood = Likelihood(np.empty((0, 2)), np.empty(0), shape)
    np.testing.assert_allclose(likelihood.prior_mode, centre)
    mode, gradient = likelihood.prior_mode, likelihood(likelihood.prior_mode)[1]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)
    assert likelihood(mode)[0] > max(likelihood(mode + shift)[0] for shift in (-0.5, 0.5))


# ---- sums


@pytest.mark.parametrize("nu", SMOOTHNESS)
def test_for_one_input_additive_and_general_kernels_agree(nu: float) -> None:
    X, y = data(5, 9, 1)
    for theta in ([-1.2], [0.1], [0.9]):
        value, gradient = Likelihood(X, y, Shape(nu))(np.array(theta))
        again, other = Likelihood(X, y, Shape(nu, additive=True))(np.array(theta))
        assert again == pytest.approx(value, rel=1e-7)
        np.testing.assert_allclose(other, gradient, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("nu", SMOOTHNESS)
def test_the_slope_of_sums_is_that_of_loops(nu: float) -> None:
    X, y = data(3, 8, 3)
    shape = Shape(nu, additive=True)
    theta = np.array([-1.1, 0.4, -0.3])
    slopes = [slope_in_loops(X, y, shape, theta, j) for j in range(3)]
    np.testing.assert_allclose(Likelihood(X, y, shape)(theta)[1], slopes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("nu", SMOOTHNESS)
def test_on_a_grid_some_values_of_a_sum_follow_from_others(nu: float) -> None:
    """f(0,0) + f(1,1) = f(0,1) + f(1,0): the Gram matrix is singular up to the jitter."""
    X = np.array([[a, b] for a in (0.0, 0.5, 1.0) for b in (0.0, 1.0)])
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    y = (y - y.mean()) / y.std()
    shape = Shape(nu, additive=True)
    theta = np.array([-0.4, 0.3])
    assert in_condition(X, shape, theta) > 1e7
    ours, theirs = Likelihood(X, y, shape), [in_loops(X, y, shape, at)[0] for at in (theta, theta - 0.7)]
    assert ours(theta)[0] - ours(theta - 0.7)[0] == pytest.approx(float(theirs[0] - theirs[1]), rel=1e-6, abs=1e-5)
    np.testing.assert_allclose(ours(theta)[1], [slope_in_loops(X, y, shape, theta, j) for j in (0, 1)], atol=1e-4)


# ---- clusters


COUNTS: dict[str, tuple[list[list[float]], int]] = {
    "one": ([[0.3]], 1),
    "far apart": ([[0.0], [0.1], [1.0]], 3),
    "the same": ([[0.3], [0.3], [0.3]], 1),
    "just near": ([[0.3], [0.3009], [0.2991]], 1),
    "just apart": ([[0.3], [0.3011], [0.2989]], 3),
    "two crowds": ([[0.1], [0.8], [0.1 + 1e-6], [0.8 - 1e-6], [0.1 + 2e-6]], 2),
    "every coordinate is near": ([[0.3, 0.5], [0.3009, 0.5009]], 1),
    "one coordinate is apart": ([[0.3, 0.5], [0.3, 0.5011]], 2),
    "each near the last, but not the one that counts": ([[0.0], [0.0008], [0.0016], [0.0024], [0.0032]], 3),
}


@pytest.mark.parametrize("case", COUNTS)
def test_a_cluster_counts_once(case: str) -> None:
    rows, count = COUNTS[case]
    X = np.array(rows)
    assert Likelihood(X, np.zeros(len(X)), Shape(2.5)).count == count
    assert counted(X) == count


def test_the_count_without_inputs_is_zero() -> None:
    assert Likelihood(np.empty((0, 2)), np.empty(0), Shape(2.5)).count == 0


@given(seed=st.integers(0, 10**6), n=st.integers(0, 40), d=st.integers(1, 3), side=st.sampled_from([1e-3, 4e-3, 1.0]))
def test_the_count_is_that_of_loops(seed: int, n: int, d: int, side: float) -> None:
    X = np.random.default_rng(seed).uniform(0, side, (n, d))
    assert Likelihood(X, np.zeros(n), Shape(SE)).count == counted(X)


@pytest.mark.parametrize(("shape", "d"), [*GENERAL[:6], (Shape(2.5, additive=True), 2)], ids=str)
@pytest.mark.parametrize("spacing", [1e-6, 9e-4])
def test_density_of_clusters_equals_that_of_loops(shape: Shape, d: int, spacing: float) -> None:
    X, y = crowded(d, d, spacing)
    assert counted(X) == 7
    check_against_loops(X, y, shape)


@pytest.mark.parametrize(("shape", "d"), [*GENERAL, (Shape(2.5, additive=True), 2)], ids=str)
@pytest.mark.parametrize("spacing", [1e-6, 1e-4, 9e-4])
def test_the_gradient_with_clusters_is_that_of_differences(shape: Shape, d: int, spacing: float) -> None:
    X, y = crowded(d, d, spacing)
    theta = np.random.default_rng(2).uniform(-1.5, 0.5, d)
    slopes = [slope_in_loops(X, y, shape, theta, j) for j in range(d)]
    np.testing.assert_allclose(Likelihood(X, y, shape)(theta)[1], slopes, rtol=1e-5, atol=1e-5)
