"""φ, φ'/r, −φ''(0) and φ''''(0) of every kernel compared with many-digit arithmetic."""

from functools import cache

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.kernels import Matern, SquaredExponential
from tests import reference
from tests.kernels.cases import HARD, SMOOTHNESS, every_differentiable_kernel, every_kernel, make, radii


@cache
def exact(nu: float | None) -> tuple[Array, list[reference.Number], list[reference.Number]]:
    """r, φ(r) and φ'(r) on the grid shared by the tests."""
    r = radii(40)
    return r, [reference.profile(nu, v) for v in r], [reference.profile_derivative(nu, v) for v in r]


def roundoffs(computed: reference.Vector, true: list[reference.Number]) -> float:
    """The largest error in units of the unit roundoff."""
    return max(float(abs(mpf(a) - b)) for a, b in zip(computed, true, strict=True)) / UNIT_ROUNDOFF


@reference.precise
def exact_products(a: Array, b: Array) -> list[reference.Number]:
    return [mpf(x) * mpf(y) for x, y in zip(a, b, strict=True)]


# ---- the reference itself


@pytest.mark.parametrize("r", [1e-9, 0.3, 2.0, 20.0])
def test_the_reference_agrees_with_the_closed_forms(r):
    with mpmath.workdps(reference.DIGITS):
        u = [mpmath.sqrt(2 * mpf(nu)) * mpf(r) for nu in (0.5, 1.5, 2.5)]
        closed = [mpmath.exp(-u[0]), (1 + u[1]) * mpmath.exp(-u[1]), (1 + u[2] + u[2] ** 2 / 3) * mpmath.exp(-u[2])]
        for nu, value in zip((0.5, 1.5, 2.5), closed, strict=True):
            assert abs(reference.profile(nu, r) / value - 1) < mpf(10) ** (10 - reference.DIGITS)


@every_kernel
def test_the_derivative_of_the_reference_is_that_of_its_profile(nu):
    with mpmath.workdps(reference.DIGITS):
        slope = mpmath.diff(lambda r: reference.profile(nu, r), mpf(3) / 4, h=mpf(10) ** -20)
        assert abs(reference.profile_derivative(nu, mpf(3) / 4) / slope - 1) < mpf(10) ** -18


# ---- profile and slope


@every_kernel
def test_profile_never_increases(nu):
    r = np.append(0.0, radii(2000))
    phi = make(nu).profile(r**2)
    assert np.all(phi >= 0)
    # An increase can only be a rounding error; φ must decrease where it changes by more than that.
    assert np.diff(phi).max() <= make(nu).rounding * UNIT_ROUNDOFF
    visible = phi[(r > 0.01) & (r < 5)]
    assert np.all(np.diff(visible) < 0)


@pytest.mark.parametrize("nu", [*SMOOTHNESS, 100.0, 100.1, 101.5, 106.4, 1e4])
def test_profile_is_exactly_one_at_zero(nu):
    np.testing.assert_array_equal(make(nu).profile(np.zeros((2, 3))), np.ones((2, 3)))
    np.testing.assert_array_equal(make(nu).profile_and_slope(np.zeros((2, 3)))[0], np.ones((2, 3)))


@every_kernel
def test_profile_is_accurate_to_the_stated_rounding(nu):
    r, phi, _ = exact(nu)
    assert roundoffs(make(nu).profile(r**2), phi) <= make(nu).rounding


@every_kernel
def test_slope_is_accurate_to_the_stated_rounding(nu):
    kernel = make(nu)
    r, phi, derivative = exact(nu)
    profile, slope = kernel.profile_and_slope(r**2)
    assert roundoffs(profile, phi) <= kernel.rounding
    if kernel.curvature is None:  # φ' may be infinite at 0, so the stated error is relative
        relative = [float(abs(mpf(a) * mpf(b) / c - 1)) for a, b, c in zip(slope, r, derivative, strict=True) if c]
        assert max(relative) <= 4 * kernel.rounding * UNIT_ROUNDOFF
    else:
        products = exact_products(slope, r)
        assert roundoffs(products, derivative) <= kernel.rounding


@pytest.mark.parametrize("nu", HARD)
def test_profile_and_slope_are_accurate_where_bessel_functions_are_hard(nu):
    kernel = Matern(nu)
    r = np.linspace(1.7, 2.1, 9) / np.sqrt(2 * nu)
    r = r.astype(np.float32).astype(np.float64)
    profile, slope = kernel.profile_and_slope(r**2)
    assert roundoffs(profile, [reference.profile(nu, v) for v in r]) <= kernel.rounding
    products = exact_products(slope, r)
    assert roundoffs(products, [reference.profile_derivative(nu, v) for v in r]) <= kernel.rounding


@every_kernel
def test_slope_is_the_central_difference_of_the_profile(nu):
    kernel, r, h = make(nu), np.linspace(0.3, 4.0, 30), 1e-5
    difference = (kernel.profile((r + h) ** 2) - kernel.profile((r - h) ** 2)) / (2 * h)
    np.testing.assert_allclose(kernel.profile_and_slope(r**2)[1] * r, difference, rtol=0, atol=2e-9)


@every_kernel
def test_profile_and_slope_agree_with_profile(nu):
    r2 = np.append(0.0, radii(200) ** 2).reshape(3, 67)
    profile, slope = make(nu).profile_and_slope(r2)
    assert profile.shape == slope.shape == r2.shape
    np.testing.assert_array_equal(profile, make(nu).profile(r2))
    assert np.all(slope <= 0)


@every_kernel
@pytest.mark.parametrize("r2", [0.0, 5e-324, 1e-310, 1e-300, 1e300, np.inf])
def test_extreme_distances_give_finite_values_without_a_warning(nu, r2):
    kernel = make(nu)
    squares = np.array([r2])
    profile, slope = kernel.profile_and_slope(squares)
    expected = 1.0 if r2 < 1 else 0.0
    assert kernel.profile(squares)[0] == pytest.approx(expected, abs=1e-12)
    assert profile[0] == pytest.approx(expected, abs=1e-12)
    assert np.isfinite(slope[0])
    assert np.isfinite(kernel.distance(np.sqrt(squares))[0])
    remainder = kernel.remainder(np.sqrt(squares))
    assert remainder is None or np.isfinite(remainder[0])


@every_kernel
def test_arguments_are_not_modified_and_may_be_read_only(nu):
    r2 = radii(20) ** 2
    before = r2.copy()
    r2.flags.writeable = False
    make(nu).profile(r2)
    make(nu).profile_and_slope(r2)
    np.testing.assert_array_equal(r2, before)


@every_kernel
def test_slope_at_zero_is_its_limit_or_zero(nu):
    kernel = make(nu)
    slope = kernel.profile_and_slope(np.zeros(1))[1][0]
    assert slope == pytest.approx(0.0 if kernel.curvature is None else -kernel.curvature, rel=1e-15)


# ---- derivatives at 0


@every_differentiable_kernel
def test_curvature(nu):
    curvature = make(nu).curvature
    assert curvature is not None
    assert abs(mpf(curvature) / reference.curvature(nu) - 1) <= 4 * UNIT_ROUNDOFF


@pytest.mark.parametrize("nu", [None, 2.4, 2.5, 3.7, 50.5, 150.0])
def test_fourth_derivative(nu):
    fourth = make(nu).fourth_derivative
    assert fourth is not None
    assert abs(mpf(fourth) / reference.fourth_derivative(nu) - 1) <= 16 * UNIT_ROUNDOFF


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.0, np.nextafter(1.0, 2.0), 1.5, 2.0, np.nextafter(2.0, 3.0), 2.5])
def test_derivatives_at_zero_exist_exactly_for_smooth_kernels(nu):
    kernel = Matern(nu)
    assert (kernel.curvature is None) == (nu <= 1)
    assert (kernel.lipschitz_factor is None) == (nu <= 1)
    assert (kernel.remainder(np.ones(1)) is None) == (nu <= 1)
    assert (kernel.fourth_derivative is None) == (nu <= 2)
    assert (kernel.second_order_factor is None) == (nu <= 2)


@every_differentiable_kernel
def test_factors_are_the_roots_of_the_derivatives(nu):
    kernel = make(nu, 1.0, 2.5)
    assert kernel.curvature is not None
    assert kernel.lipschitz_factor == pytest.approx(np.sqrt(2.5 * kernel.curvature), rel=1e-15)
    if kernel.fourth_derivative is not None:
        assert kernel.second_order_factor == pytest.approx(np.sqrt(2.5 * kernel.fourth_derivative), rel=1e-15)


# ---- between kernels


def test_squared_exponential_is_the_limit_of_matern():
    r2 = np.linspace(0.0, 5.0, 200) ** 2
    limit = SquaredExponential()
    gaps = [np.abs(Matern(nu).profile(r2) - limit.profile(r2)).max() for nu in (150.0, 1500.0, 15000.0, 150000.0)]
    assert gaps[0] < 1e-2
    ratios = np.divide(gaps[:-1], gaps[1:])
    assert np.all((ratios > 9) & (ratios < 11)), ratios  # the error is of order 1/ν
    assert Matern(1e9).profile_and_slope(r2)[1] == pytest.approx(limit.profile_and_slope(r2)[1], abs=1e-8)


@pytest.mark.parametrize("nu", [0.5, 1.0, 1.5, 2.0, 2.5, 50.5, 100.0])
def test_profile_is_continuous_in_nu_where_the_method_changes(nu):
    r2 = radii(200, 1e-6) ** 2
    here = Matern(nu).profile(r2)
    for near in (nu * (1 - 1e-9), nu * (1 + 1e-9)):
        np.testing.assert_allclose(Matern(near).profile(r2), here, rtol=0, atol=1e-8)
