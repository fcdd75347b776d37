"""The density of lengthscales: against loops and differences, and what must not change it."""

import math
from typing import Any, Literal, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascada.arrays import Array
from cascada.calibration.likelihood import JITTER, MEAN_VARIANCE, PRIOR_COUNT, Likelihood
from cascada.calibration.settings import Calibration, Family
from cascada.errors import ArgumentError

FAMILIES: list[tuple[Family, float]] = [("matern", 1.5), ("matern", 2.5), ("se", 2.5)]
FAMILY_NAMES = [f"{family} {nu}" for family, nu in FAMILIES]


def data(seed: int, n: int, d: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    y = np.sin(4 * X).sum(axis=1) + 0.3 * rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


def made(X: Array, y: Array, family: Family, nu: float) -> Likelihood:
    return Likelihood(X, y, Calibration(nu=nu), family)


def correlation(family: Family, nu: float, r: float) -> float:
    if family == "se":
        return math.exp(-0.5 * r * r)
    u = math.sqrt(2 * nu) * r
    return math.exp(-u) * (1 + u if nu == 1.5 else 1 + u + u * u / 3)


def in_loops(X: Array, y: Array, family: Family, nu: float, theta: Array) -> tuple[float, float, float]:
    """log p(θ | y) up to a constant, m and s²: y ~ N(0, s²(K + λI + c·11ᵀ)), m integrated out, s² at its maximum."""
    n, d = X.shape
    K = np.empty((n, n))
    for a in range(n):
        for b in range(n):
            r = math.sqrt(sum(((X[a, j] - X[b, j]) / math.exp(theta[j])) ** 2 for j in range(d)))
            K[a, b] = correlation(family, nu, r) + (JITTER if a == b else 0.0)
    whole = K + MEAN_VARIANCE * np.ones((n, n))
    inverse = np.linalg.inv(whole)
    square = (float(y @ inverse @ y) + PRIOR_COUNT) / (n + PRIOR_COUNT)
    value = -0.5 * (n + PRIOR_COUNT) * math.log(square) - 0.5 * float(np.linalg.slogdet(whole)[1])
    for j in range(d):
        value -= 0.5 * ((theta[j] - 0.5 * math.log(d)) / 1.5) ** 2
    # The posterior mean of m: c·1ᵀ(K + λI + c·11ᵀ)⁻¹y.
    return value, MEAN_VARIANCE * float(np.ones(n) @ inverse @ y), square


@pytest.mark.parametrize(("family", "nu"), FAMILIES, ids=FAMILY_NAMES)
@pytest.mark.parametrize("d", [1, 2, 4])
def test_against_loops(family: Family, nu: float, d: int) -> None:
    """The difference between any two θ; the constant does not matter."""
    X, y = data(d, 9, d)
    likelihood = made(X, y, family, nu)
    thetas = np.random.default_rng(1).uniform(-2.0, 0.7, (6, d))
    ours = np.array([likelihood(theta)[0] for theta in thetas])
    theirs = np.array([in_loops(X, y, family, nu, theta)[0] for theta in thetas])
    np.testing.assert_allclose(ours - ours[0], theirs - theirs[0], rtol=1e-6, atol=1e-6)
    for theta in thetas:
        _, mean, square = in_loops(X, y, family, nu, theta)
        assert likelihood.mean_and_variance(theta) == pytest.approx((mean, square), rel=1e-5, abs=1e-8)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 14),
    d=st.integers(1, 4),
    case=st.sampled_from(FAMILIES),
    shift=st.floats(-1.5, 0.5),
)
@settings(max_examples=120)
def test_the_gradient_is_that_of_differences(
    seed: int, n: int, d: int, case: tuple[Family, float], shift: float
) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(n, d)), rng.standard_normal(n)
    likelihood = made(X, y, *case)
    theta = likelihood.prior_mode + shift + rng.uniform(-0.3, 0.3, d)
    value, gradient = likelihood(theta)
    assert math.isfinite(value)
    K = in_condition(X, case, theta)
    step = 1e-5
    for j in range(d):
        ahead, behind = theta.copy(), theta.copy()
        ahead[j] += step
        behind[j] -= step
        slope = (likelihood(ahead)[0] - likelihood(behind)[0]) / (2 * step)
        scale = 1.0 + abs(gradient[j]) + abs(value)
        assert gradient[j] == pytest.approx(slope, abs=scale * (1e-6 + 1e-15 * K / step))


def in_condition(X: Array, case: tuple[Family, float], theta: Array) -> float:
    """How much rounding grows in K⁻¹."""
    family, nu = case
    kernel = Calibration(nu=nu).kernel(family, tuple(np.exp(theta).tolist()))
    return float(np.linalg.cond(kernel(X, X) + JITTER * np.eye(len(X))))


@pytest.mark.parametrize(("family", "nu"), FAMILIES, ids=FAMILY_NAMES)
@pytest.mark.parametrize("change", ["rows", "columns", "moved inputs", "negated outputs"])
def test_what_does_not_matter(family: Family, nu: float, change: str) -> None:
    X, y = data(3, 10, 3)
    theta = np.array([-0.4, 0.2, -1.0])
    value, gradient = made(X, y, family, nu)(theta)
    columns, order = [0, 1, 2], np.arange(10)
    if change == "rows":
        order = np.random.default_rng(0).permutation(10)
    if change == "columns":
        columns = [2, 0, 1]
    shift = 17.0 if change == "moved inputs" else 0.0
    sign = -1.0 if change == "negated outputs" else 1.0
    again, other = made(X[order][:, columns] + shift, sign * y[order], family, nu)(theta[columns])
    assert again == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(other, gradient[columns], rtol=1e-6, atol=1e-6)


def test_inputs_in_other_units_have_lengthscales_in_other_units() -> None:
    """But for the prior, which is about the ranges."""
    X, y = data(4, 8, 2)
    units = np.array([0.5, 4.0])
    theta = np.array([[-0.3, 0.1], [0.4, -0.8]])

    def without_prior(likelihood: Likelihood, at: Array) -> float:
        away = (at - likelihood.prior_mode) / 1.5
        return likelihood(at)[0] + 0.5 * float(away @ away)

    one = [without_prior(made(X, y, "matern", 2.5), at) for at in theta]
    other = [without_prior(made(X * units, y, "matern", 2.5), at + np.log(units)) for at in theta]
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_data_are_no_trouble(n: int) -> None:
    likelihood = made(np.linspace(0, 1, n)[:, None], np.linspace(-1, 1, n), "matern", 2.5)
    value, gradient = likelihood(likelihood.prior_mode)
    assert math.isfinite(value)
    assert np.isfinite(gradient).all()
    mean, square = likelihood.mean_and_variance(likelihood.prior_mode)
    assert math.isfinite(mean)
    assert square > 0


def test_without_data_the_prior_is_all() -> None:
    likelihood = made(np.empty((0, 2)), np.empty(0), "se", 2.5)
    mode, gradient = likelihood.prior_mode, likelihood(likelihood.prior_mode)[1]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)
    assert likelihood(mode)[0] > max(likelihood(mode + shift)[0] for shift in (-0.5, 0.5))


# ---- settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "rq"}, "family must be 'auto', 'matern' or 'se'; got 'rq'"),
        ({"nu": 0.5}, "nu must be above 1.*got 0.5"),
        ({"nu": -1.0}, "nu must be .*above 0; got -1.0"),
        ({"width": 0.0}, "width must be .*above 0; got 0.0"),
        ({"width": "wide"}, "width must be .*got 'wide'"),
        ({"safety": 1.0}, "safety must be a number above 1; got 1.0"),
        ({"safety": math.inf}, "safety must be a number above 1; got inf"),
        ({"initial": 0}, "initial must be a whole number of at least 1, or None; got 0"),
        ({"initial": True}, "initial must be a whole number"),
        ({"initial": 2.5}, "initial must be a whole number of at least 1, or None; got 2.5"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Calibration(**options)


@pytest.mark.parametrize(("family", "families"), [("auto", ("matern", "se")), ("se", ("se",)), ("matern", ("matern",))])
def test_the_families_to_choose_from(family: str, families: tuple[str, ...]) -> None:
    assert Calibration(family=cast(Literal["auto", "matern", "se"], family)).families == families
