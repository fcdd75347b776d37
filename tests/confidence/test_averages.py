"""Bounds that average over scatter, compared with the same formulas in many-digit arithmetic."""

from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from cascada.arrays import Array
from cascada.confidence.averages import (
    FACTORS,
    AveragedFit,
    ScatteredOutput,
    ScatteredRows,
    averaged_fits,
    first_weight,
    intervals_of_bias,
)
from cascada.kernels import Matern, SquaredExponential, Stationary
from tests import reference


def output(kernel: Stationary, scale: float, bound: float = 2.0) -> ScatteredOutput:
    return ScatteredOutput(kernel, bound, scale, first_weight(scale, bound, kernel.variance), 0.0125, 1, 3)


def rows(t: int, d: int, scale: float, bias: float, seed: int = 0, repeats: bool = True) -> ScatteredRows:
    rng = np.random.default_rng([seed, t, d])
    places = rng.uniform(-2, 2, (t, d))
    if repeats:
        places[t // 2 :] = places[: t - t // 2]
    values = np.sin(places.sum(axis=1)) + scale * rng.standard_normal(t)
    return ScatteredRows(places, values, bias * rng.random(t))


@reference.precise
def exact_bounds(one: ScatteredOutput, data: ScatteredRows, factor: float, z: Array) -> tuple[Any, Any]:
    """The interval of f(z) from all readings, none of them merged."""
    kernel, t = reference.Kernel.like(one.kernel, data.places.shape[1]), len(data.values)
    K = mpmath.matrix(reference.gram(kernel, data.places, data.places))
    k = mpmath.matrix([kernel(z, x) for x in data.places])
    y, omega = mpmath.matrix(data.values.tolist()), data.bias.tolist()
    first, unit = mpf(one.first), mpmath.eye(t)
    lam = first * factor
    inverse, inverse0 = (K + lam * unit) ** -1, (K + first * unit) ** -1
    N = inverse - inverse0 * (first / lam)
    Ny, beta = N * y, inverse * k
    price = mpmath.log(mpmath.det(unit + K / first)) + 2 * mpmath.log(1 / mpf(one.risk))
    rho2 = mpf(one.norm_bound) ** 2 + mpf(one.scale) ** 2 / lam * price - (y.T * Ny)[0]
    rho2 += 2 * sum(abs(Ny[i]) * mpf(omega[i]) for i in range(t))
    mean, sd = (beta.T * y)[0], mpmath.sqrt(kernel(z, z) - (beta.T * k)[0])
    half = mpmath.sqrt(rho2) * sd + sum(abs(beta[i]) * mpf(omega[i]) for i in range(t))
    return mean - half, mean + half


@pytest.mark.parametrize("kernel", [SquaredExponential(1.0), Matern(2.5, 0.7, variance=4.0)], ids=str)
@pytest.mark.parametrize(("scale", "bias"), [(0.3, 0.0), (0.05, 0.1), (0.0001, 0.00001), (1e-7, 1e-9)])
def test_bounds_contain_those_of_exact_arithmetic_and_little_more(
    kernel: Stationary, scale: float, bias: float
) -> None:
    one, data = output(kernel, scale), rows(7, 2, scale, bias)
    fits = averaged_fits(one, data)
    assert len(fits) == len(FACTORS)
    for z in (np.zeros(2), data.places[0], np.array([1.9, -1.9])):
        for fit, factor in zip(fits, FACTORS, strict=True):
            lower, upper = exact_bounds(one, data, factor, z)
            found = fit.at_points(z[None], slopes=False)
            assert found.lower[0, 1] <= lower
            assert upper <= found.upper[0, 1]
            rounding = 1e-7 if scale > 0.01 else 1e-2  # at the smallest λ0, a part of the radius
            assert found.upper[0, 1] - found.lower[0, 1] <= float(upper - lower) * (1 + rounding) + 1e-7
            assert np.all(np.isinf(found.upper[0, [0, 2]]))  # the other outputs of the stage


def test_slopes_follow_from_values() -> None:
    """A slope is the limit of differences: the bounds of all fits contain that of a function through the readings."""
    one, data = output(SquaredExponential(1.0), 0.05), rows(12, 1, 0.05, 0.05)
    for fit in averaged_fits(one, data):
        bounds = fit.at_points(np.linspace(-2, 2, 9)[:, None], slopes=True)
        slope = np.cos(np.linspace(-2, 2, 9))
        assert bounds.low_slope is not None
        assert bounds.high_slope is not None
        assert np.all(bounds.low_slope[:, 1, 0] <= slope)
        assert np.all(slope <= bounds.high_slope[:, 1, 0])


def test_many_readings_at_one_place_are_one_row_or_a_few() -> None:
    kernel, scale = SquaredExponential(1.0), 1e-7
    data = ScatteredRows(np.zeros((250, 1)), np.full(250, 0.3), np.full(250, 1e-9))
    fits = averaged_fits(output(kernel, scale), data)
    assert fits[0].belief.posterior.count == 3  # λ0/250 is too small for a factorisation
    assert np.all(fits[0].belief.posterior.noise >= 1e-10)
    fits = averaged_fits(output(kernel, 0.05), data)
    assert fits[0].belief.posterior.count == 1
    narrow = fits[0].at_points(np.zeros((1, 1)), slopes=False)
    assert narrow.upper[0, 1] - narrow.lower[0, 1] < 0.05  # less than the scale of a single reading


def test_averages_become_narrower_with_more_readings() -> None:
    one, at = output(SquaredExponential(1.0), 0.05), np.zeros((1, 1))
    widths = []
    for t in (10, 40, 160):
        parts = [fit.at_points(at, slopes=False) for fit in averaged_fits(one, rows(t, 1, 0.05, 0.0))]
        widths.append(min(part.upper[0, 1] for part in parts) - max(part.lower[0, 1] for part in parts))
    assert widths[2] < 0.75 * widths[1] < 0.75 * 0.75 * widths[0]


def test_readings_that_no_function_of_the_norm_explains_refute_it() -> None:
    places = np.linspace(-2, 2, 40)[:, None]
    data = ScatteredRows(places, 3 * np.sin(8 * places[:, 0]), np.zeros(40))
    assert any(fit.refuted for fit in averaged_fits(output(SquaredExponential(1.0), 0.01), data))


def test_no_reading_gives_no_fit() -> None:
    none = ScatteredRows(np.empty((0, 1)), np.empty(0), np.empty(0))
    assert averaged_fits(output(SquaredExponential(1.0), 0.1), none) == ()


def test_the_first_weight_is_at_least_what_rounding_allows() -> None:
    assert first_weight(0.5, 2.0, 1.0) == 1.0
    assert first_weight(1e-9, 2.0, 4.0) == 4e-8


def test_a_bias_is_bounded_to_first_order() -> None:
    rng = np.random.default_rng(0)
    slope, width, away, half = rng.normal(size=(6, 1, 2)), rng.random((6, 1, 2)), rng.normal(size=(6, 2)), rng.random(2)
    middle, wide = intervals_of_bias(slope, width, away, np.tile(half, (6, 1)), np.full((6, 1), 0.1))
    for _ in range(200):
        true = slope + width * rng.uniform(-1, 1, width.shape)
        change = np.einsum("npd,nd->np", true, away + half * rng.uniform(-1, 1, away.shape))
        assert np.all(np.abs(change + 0.1 * rng.uniform(-1, 1) - middle) <= wide)


def test_a_fit_without_bias_has_the_bounds_of_its_posterior() -> None:
    fit: AveragedFit = averaged_fits(output(SquaredExponential(1.0), 0.1), rows(6, 1, 0.1, 0.0))[0]
    at = np.zeros((1, 1))
    assert fit.at_points(at, slopes=False).upper[0, 1] == pytest.approx(fit.belief.bounds(at).upper[0, 0])
