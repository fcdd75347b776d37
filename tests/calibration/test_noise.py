"""Noise that is fitted with the kernels: the density against loops in 50 digits, and levels that are known."""

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import cascada as cd
from cascada.arrays import Array
from cascada.calibration import Calibration, calibrate
from cascada.calibration.fit import fit_output
from cascada.calibration.likelihood import MEAN_VARIANCE, PRIOR_COUNT, Likelihood
from cascada.calibration.noise import noise_sds
from cascada.calibration.probation import agrees
from cascada.calibration.shape import SE, Shape
from cascada.gp import Posterior
from cascada.network.noise import with_noise
from tests.reference import Number, precise, profile
from tests.thorough import THOROUGH, examples

SHAPES = [Shape(nu, additive) for additive in (False, True) for nu in (1.5, 2.5, SE)]
SETTINGS = Calibration()
UNIT = {"x": cd.Real(0, 1), "y": cd.Real(0, 1)}
JITTER = 1e-10


def repeated(seed: int, n: int, d: int) -> tuple[Array, Array]:
    """Standardised outputs at inputs of which some are equal."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))[rng.integers(0, n, n)]
    y = np.sin(4 * X).sum(axis=1) + 0.1 * rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


@precise
def in_loops(X: Array, y: Array, shape: Shape, theta: Array) -> tuple[Number, Number, Number]:
    """log p(θ | y) up to a constant, m and s²: y ~ N(0, s²(K + λI + c·11ᵀ)), and log(λs²) ~ N(log 10⁻⁴, 3²)."""
    n, d = X.shape
    nu = None if shape.nu == SE else shape.nu
    whole = mpmath.matrix(n, n)
    for a in range(n):
        for b in range(n):
            scaled = [abs(mpf(X[a, j]) - mpf(X[b, j])) / mpmath.exp(theta[j]) for j in range(d)]
            if shape.additive:
                k = sum(profile(nu, r) for r in scaled) / d
            else:
                k = profile(nu, mpmath.sqrt(sum(r**2 for r in scaled)))
            whole[a, b] = k + (mpmath.exp(theta[d]) if a == b else 0) + mpf(MEAN_VARIANCE)
    solved = mpmath.lu_solve(whole, mpmath.matrix(y.tolist()))
    total = n + mpf(PRIOR_COUNT)
    square = (sum(mpf(y[a]) * solved[a] for a in range(n)) + mpf(PRIOR_COUNT)) / total
    value = -total * mpmath.log(square) / 2 - mpmath.log(mpmath.det(whole)) / 2
    centre = 0 if shape.additive else mpmath.log(d) / 2
    for j in range(d):
        value -= ((theta[j] - centre) / mpf(1.5)) ** 2 / 2
    value -= ((theta[d] + mpmath.log(square) - mpmath.log(mpf(10) ** -4)) / 3) ** 2 / 2
    return value, mpf(MEAN_VARIANCE) * sum(solved), square


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("d", [1, 3])
def test_the_density_with_noise_equals_that_of_loops(shape: Shape, d: int) -> None:
    X, y = repeated(d, 8, d)
    assert len(np.unique(X, axis=0)) < 8
    likelihood, rng = Likelihood(X, y, shape, noisy=True), np.random.default_rng(1)
    assert likelihood.count == 8  # every repeat counts
    thetas = [np.append(rng.uniform(-2, 0.7, d), rng.uniform(-12, 1)) for _ in range(5)]
    references = [in_loops(X, y, shape, theta) for theta in thetas]
    ours = np.array([likelihood(theta)[0] for theta in thetas])
    theirs = np.array([float(value) for value, _, _ in references])
    np.testing.assert_allclose(ours - ours[0], theirs - theirs[0], rtol=1e-7, atol=1e-7)
    for theta, (_, mean, square) in zip(thetas, references, strict=True):
        assert likelihood.mean_and_variance(theta) == pytest.approx((float(mean), float(square)), rel=1e-6, abs=1e-8)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 14),
    d=st.integers(1, 4),
    shape=st.sampled_from(SHAPES),
    log_noise=st.floats(-12, 2),
)
@settings(max_examples=examples(80))
def test_the_gradient_with_noise_is_that_of_differences(
    seed: int, n: int, d: int, shape: Shape, log_noise: float
) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(n, d)), rng.standard_normal(n)
    likelihood = Likelihood(X, y, shape, noisy=True)
    theta = likelihood.prior_mode + rng.uniform(-1.5, 0.5, d + 1)
    theta[-1] = log_noise
    value, gradient = likelihood(theta)
    step, condition = 1e-5, n * (1 + np.exp(-log_noise))
    for j in range(d + 1):
        ahead, behind = theta.copy(), theta.copy()
        ahead[j] += step
        behind[j] -= step
        slope = (likelihood(ahead)[0] - likelihood(behind)[0]) / (2 * step)
        scale = 1.0 + abs(gradient[j]) + abs(value)
        assert gradient[j] == pytest.approx(slope, abs=scale * (1e-6 + 1e-15 * condition / step))


# ---- known levels


def smooth(X: Array) -> Array:
    return np.asarray(np.sin(3 * X[:, 0]) + X[:, 1] ** 2)


@pytest.mark.parametrize("level", [1e-3, 1e-2, 1e-1])
@pytest.mark.parametrize("repeats", [1, 4])
def test_the_level_of_noise_is_recovered(level: float, repeats: int) -> None:
    ratios = []
    for seed in range(6 if THOROUGH else 3):
        rng = np.random.default_rng(seed)
        X = np.repeat(rng.uniform(size=(60 // repeats, 2)), repeats, axis=0)
        y = smooth(X)
        noise = level * y.std()
        fit = fit_output(X, y + noise * rng.standard_normal(len(y)), np.ones(2), SETTINGS, None, noisy=True)
        assert fit.count == 60
        ratios.append(fit.likely.noise / noise)
        assert 0.5 < ratios[-1] < 1.6
    assert 0.8 < np.median(ratios) < 1.2


def test_the_level_follows_units() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 2))
    y = smooth(X) + 0.02 * rng.standard_normal(30)
    one = fit_output(X, y, np.ones(2), SETTINGS, None, noisy=True)
    other = fit_output(X, 1e6 * y + 1e7, np.ones(2), SETTINGS, None, noisy=True)
    assert other.likely.noise == pytest.approx(1e6 * one.likely.noise, rel=1e-3)


def test_outputs_without_noise_have_little() -> None:
    X = np.random.default_rng(0).uniform(size=(30, 2))
    fit = fit_output(X, smooth(X), np.ones(2), SETTINGS, None, noisy=True)
    assert fit.likely.noise < 1e-3 * smooth(X).std()


def test_without_noise_a_fit_has_none() -> None:
    X = np.random.default_rng(0).uniform(size=(12, 2))
    fit = fit_output(X, smooth(X), np.ones(2), SETTINGS, None)
    assert {fit.likely.noise, fit.general.noise, fit.cautious.noise} == {0.0}


# ---- beliefs


def process(**options: Any) -> cd.Network:
    return cd.chain(cd.Stage("f", controls=UNIT, error="estimate", **options))


def noisy_runs(seed: int, n: int, level: float) -> Array:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    X[n // 2 :] = X[: n - n // 2]  # every point twice
    return np.column_stack([X, smooth(X) + level * rng.standard_normal(n)])


def test_the_mean_is_that_of_a_regression_with_the_fitted_noise() -> None:
    data = noisy_runs(0, 24, 0.05)
    found = calibrate(process(), data, SETTINGS, JITTER)
    model = found.fits["f", "f"].likely
    posterior = found.acting.stages[0].belief.posterior  # type: ignore[union-attr]
    assert isinstance(posterior, Posterior)
    assert posterior.count == 24  # repeats are kept
    Z = np.random.default_rng(1).uniform(size=(5, 2))
    K = model.kernel(data[:, :2], data[:, :2]) + model.noise**2 * np.eye(24)
    mean = model.kernel(Z, data[:, :2]) @ np.linalg.solve(K, data[:, 2] - model.offset)
    np.testing.assert_allclose(posterior.mean(Z)[:, 0], mean, rtol=1e-8, atol=1e-10)


def test_the_same_reading_of_another_trial_is_another_observation() -> None:
    data = np.repeat(noisy_runs(0, 10, 0.05), 2, axis=0)
    rows = calibrate(process(), data, SETTINGS, JITTER, trials=range(20))
    reports = calibrate(process(), data, SETTINGS, JITTER, trials=np.repeat(np.arange(10), 2).tolist())
    counts = [found.acting.stages[0].belief.posterior.count for found in (rows, reports)]  # type: ignore[union-attr]
    assert counts == [20, 10]


def test_nothing_refutes_estimated_bounds_and_they_contain_the_function() -> None:
    inside = []
    for seed in range(8):
        found = calibrate(process(), noisy_runs(seed, 30, 0.1), SETTINGS, JITTER)
        assert not found.judging.evidence
        Z = np.random.default_rng(seed + 100).uniform(size=(200, 2))
        belief = found.judging.stages[0].per_output
        assert belief is not None
        bounds = belief.bounds(Z)
        value = smooth(Z) - found.fits["f", "f"].cautious.offset
        inside.append(np.mean((bounds.lower[:, 0] <= value) & (value <= bounds.upper[:, 0])))
    assert min(inside) > 0.95
    assert np.mean(inside) > 0.99


def test_a_reading_may_leave_the_bounds_by_its_noise() -> None:
    found = calibrate(process(), noisy_runs(0, 40, 0.1), SETTINGS, JITTER)
    sd = float(noise_sds(found.judging)[2])
    assert sd == pytest.approx(found.fits["f", "f"].cautious.noise, rel=1e-9)
    prediction = found.judging.predict({"x": 0.5, "y": 0.5})["f"]
    for beyond, right in ((2.9, True), (3.1, False)):
        assert agrees(found.judging, np.array([[0.5, 0.5, prediction.upper[0] + beyond * sd]])) is right


def test_stages_behind_noise_have_noise_unless_they_receive_the_reading() -> None:
    def network(**options: Any) -> cd.Network:
        first = cd.Stage("f", controls=UNIT, error="estimate", **options)
        return with_noise(cd.chain(first, cd.Stage("g"), cd.Stage("h")))

    assert [stage.noisy for stage in network().stages] == [True, True, True]
    assert [stage.noisy for stage in network(forwards="reading").stages] == [True, False, False]
