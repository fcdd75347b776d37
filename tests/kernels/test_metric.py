"""Tests that the metric and Taylor remainders of every kernel are upper bounds and close to the exact values."""

import numpy as np
import pytest
from hypothesis import given
from mpmath import mpf

from cascada.arrays import UNIT_ROUNDOFF
from cascada.kernels import Expansion, random_expansion
from tests import reference
from tests.kernels.cases import (
    HARD,
    dimensions,
    every_differentiable_kernel,
    every_form,
    every_kernel,
    name,
    points,
    radii,
    seeds,
    smoothness,
)

# ---- the metric d_k

# The largest relative excess of `distance` over d_k at r ≥ 1e-6. Where 1 − φ cancels, only kernels with −φ''(0) have a
# second bound; just above ν = 1 that one is approached slowly (1 − φ is −φ''(0)r²/2 up to r^{2ν}).
METRIC_EXCESS = {0.3: 1e-9, 0.5: 1e-8, 1.0: 2e-3, 1.5: 2e-5}


@every_form
@every_kernel
def test_distance_is_never_below_the_metric_and_close_to_it(form, nu):
    kernel = form(nu, 1.0, 2.3)
    r = radii(60)
    truth = reference.Kernel.like(kernel, 1)
    excess = np.array([float(mpf(a) / truth.metric(b) - 1) for a, b in zip(kernel.distance(r), r, strict=True)])
    assert excess.min() >= 0
    assert excess[r >= 1e-6].max() <= METRIC_EXCESS.get(nu, 1e-6)
    assert excess[r >= 1e-2].max() <= 1e-9


@every_form
@pytest.mark.parametrize("nu", HARD)
def test_distance_is_never_below_the_metric_where_bessel_functions_are_hard(form, nu):
    kernel = form(nu)
    truth = reference.Kernel.like(kernel, 1)
    for r in np.linspace(1.7, 2.1, 9) / np.sqrt(2 * nu):
        assert mpf(kernel.distance(np.array([r]))[0]) >= truth.metric(r)


@every_form
@every_kernel
def test_distance_at_zero_and_at_infinity(form, nu):
    kernel = form(nu, 1.0, 2.3)
    assert kernel.distance(np.zeros(2)).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(kernel.distance(np.array([1e3, 1e200, np.inf])), np.sqrt(4.6), rtol=1e-12)
    if kernel.lipschitz_factor is not None:
        r = radii(300)
        assert np.all(kernel.distance(r) <= kernel.lipschitz_factor * r * (1 + 1e-14))


@every_form
@given(smoothness, seeds, dimensions)
def test_distance_bounds_differences_of_functions(form, nu, seed, d):
    kernel = form(nu, tuple(np.linspace(0.5, 1.5, d)), 1.5)
    rng = np.random.default_rng(seed)
    f = random_expansion(kernel, -np.ones(d), np.ones(d), norm=2.0, rng=rng)
    X, Z = points(seed, 20, d), points(seed + 1, 20, d)
    bound = 2.0 * kernel.distance(kernel.scaled_norm(X - Z))
    slack = 1e-14 * kernel.variance * np.abs(f.coefficients).sum()
    assert np.all(np.abs(f(X) - f(Z))[:, 0] <= bound + slack)


# Differences of scaled sizes from 0 to 3 in three inputs; two of them are cubes, |Δ_j|/ℓ_j = 1/2 and 2⁻¹² for all j.
SCALES = (0.5, 2.0, 1.0)
DIFFERENCES = np.array(
    [
        [0.5, -0.5, 0.5],
        [2.0**-12] * 3,
        [0.0, 2.0**-12, 0.5],
        [8.0, 0.5, 0.0],
        [2.0**-26, 2.0**-12, 0.0],
        [0.0, 0.0, 0.5],
    ]
) * np.array(SCALES)


@every_form
@pytest.mark.parametrize("nu", [None, 0.5, 1.0, 1.5, 2.5, 3.7], ids=name)
def test_distance_and_remainder_are_never_below_the_exact_norms(form, nu):
    kernel = form(nu, SCALES, 2.3)
    truth = reference.Kernel.like(kernel, 3)
    r = kernel.scaled_norm(DIFFERENCES) * (1 + 4 * UNIT_ROUNDOFF)  # the scaled norm is rounded
    excess = [
        float(mpf(a) / truth.difference_norm(u) - 1) for a, u in zip(kernel.distance(r), DIFFERENCES, strict=True)
    ]
    assert min(excess) >= 0
    assert excess[0] <= 1e-9
    remainder = kernel.remainder(r)
    if remainder is None:
        return
    excess = [float(mpf(a) / truth.remainder_norm(u) - 1) for a, u in zip(remainder, DIFFERENCES, strict=True)]
    assert min(excess) >= 0
    assert excess[0] <= 1e-8


# ---- the Taylor remainder


@every_form
@every_differentiable_kernel
def test_remainder_is_never_below_the_norm_of_the_functional(form, nu):
    kernel = form(nu, 1.0, 2.3)
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


@every_form
@every_differentiable_kernel
def test_remainder_never_decreases_except_by_rounding(form, nu):
    kernel, r = form(nu), radii(3000)
    remainder = kernel.remainder(r)
    assert remainder is not None
    assert kernel.curvature is not None
    rounding = (8 * kernel.rounding + 16 * kernel.curvature * r**2) * UNIT_ROUNDOFF
    assert np.all(np.diff(remainder**2) >= -rounding[1:])


@every_form
@pytest.mark.parametrize("nu", [1.5, 2.0, 2.5, 3.7, None])
@pytest.mark.parametrize("scale", [0.03, 0.3, 2.0])
def test_a_function_attains_the_remainder(form, nu, scale):
    # The functional's representer k(·, c+u) − k(·, c) − u·∇k(·, c), its last term as a central difference.
    # |u_j|/ℓ_j is the same for all j, where the bound of an additive kernel is also sharp.
    kernel, h = form(nu, (0.5, 1.5), 1.5), 1e-3
    c, u = np.array([0.3, -0.2]), np.array([0.35, -1.05]) * scale
    centres = np.array([c + u, c, c + h * u, c - h * u])
    f = Expansion(kernel, centres, np.array([[1.0], [-1.0], [-0.5 / h], [0.5 / h]]))
    gradient = np.einsum("nmd,mp->nd", kernel.gradient(c[None], centres), f.coefficients)[0]
    left = (f((c + u)[None]) - f(c[None]))[0, 0] - gradient @ u
    remainder = kernel.remainder(kernel.scaled_norm(u[None]))
    assert remainder is not None
    assert left == pytest.approx(f.norm[0] * remainder[0], rel=1e-2)


@every_form
@pytest.mark.parametrize("nu", [1.5, 2.0, 2.5, 3.7, None])
@pytest.mark.parametrize("d", [1, 3])
def test_remainder_bounds_first_order_expansions_of_functions(form, nu, d):
    kernel = form(nu, tuple(np.linspace(0.5, 1.5, d)), 1.5)
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
