"""One output calibrated: sensible whatever the data, and near the truth where there is one."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.calibration.fit import Fit, fit_output
from cascada.calibration.settings import Calibration
from cascada.kernels import Matern, SquaredExponential, Stationary

SETTINGS = Calibration()
UNIT = np.ones(1)
X = np.linspace(0, 1, 12)[:, None]


def fitted(inputs: Array, outputs: Array, ranges: Array | None = None, before: Fit | None = None) -> Fit:
    return fit_output(inputs, outputs, np.ones(inputs.shape[1]) if ranges is None else ranges, SETTINGS, before)


def check(fit: Fit, d: int, ranges: Array | None = None) -> None:
    """Finite numbers, and lengthscales that are neither far below nor far above the ranges."""
    assert math.isfinite(fit.offset)
    assert math.isfinite(fit.kernel.variance)
    assert fit.kernel.variance > 0
    scales = fit.kernel.lengthscales(d) / (np.ones(d) if ranges is None else ranges)
    assert np.all((scales >= 5e-3 * (1 - 1e-9)) & (scales <= 50 * (1 + 1e-9)))


CASES: dict[str, tuple[Array, Array]] = {
    "nothing": (X[:0], X[:0, 0]),
    "one": (X[:1], np.array([3.0])),
    "two": (X[:2], np.array([3.0, 4.0])),
    "two of one value": (X[:2], np.array([3.0, 3.0])),
    "zeros": (X, np.zeros(12)),
    "a constant": (X, np.full(12, 7.3)),
    "a large constant": (X, np.full(12, -1e12)),
    "a tiny constant": (X, np.full(12, 1e-200)),
    "decades": (X, 10.0 ** np.linspace(-8, 8, 12)),
    "signed decades": (X, (-1.0) ** np.arange(12) * 10.0 ** np.linspace(-8, 8, 12)),
    "a jump": (X, (X[:, 0] > 0.5).astype(float)),
    "one outlier": (X, np.where(np.arange(12) == 5, 1e6, 0.0)),
    "a line": (X, 3 * X[:, 0] - 1),
    "duplicates": (np.repeat(X, 3, axis=0), np.repeat(np.sin(5 * X[:, 0]), 3)),
    "one point often": (np.full((9, 1), 0.4), np.full(9, 2.0)),
    "near duplicates": (np.concatenate([X, X + 1e-12]), np.tile(np.sin(5 * X[:, 0]), 2)),
    "an idle input": (np.hstack([X, np.full((12, 1), 0.3)]), np.sin(5 * X[:, 0])),
    "no input that moves": (np.full((1, 3), 0.3), np.array([1.0])),
}


@pytest.mark.parametrize("case", CASES)
def test_any_data_will_do(case: str) -> None:
    inputs, outputs = CASES[case]
    fit = fitted(inputs, outputs)
    check(fit, inputs.shape[1])
    check(fitted(inputs, outputs, before=fit), inputs.shape[1])
    assert fit.count == len(np.unique(inputs, axis=0))


def test_repeats_change_nothing() -> None:
    y = np.sin(5 * X[:, 0])
    once, often = fitted(X, y), fitted(np.repeat(X, 3, axis=0), np.repeat(y, 3))
    assert once.kernel == often.kernel
    assert once.offset == often.offset


@pytest.mark.parametrize("function", [lambda x: np.sin(5 * x), lambda x: np.abs(x - 0.43)], ids=["sin", "abs"])
@pytest.mark.parametrize("factor", [2.0**-40, 2.0**30, 1e-8, 1e8])
def test_scaled_outputs_have_a_scaled_variance(function: Callable[[Array], Array], factor: float) -> None:
    y = function(X[:, 0])
    plain, scaled = fitted(X, y), fitted(X, factor * y)
    assert type(plain.kernel) is type(scaled.kernel)
    assert scaled.kernel.variance == pytest.approx(factor**2 * plain.kernel.variance, rel=1e-3)
    assert scaled.offset == pytest.approx(factor * plain.offset, rel=1e-3)
    np.testing.assert_allclose(scaled.kernel.lengthscales(1), plain.kernel.lengthscales(1), rtol=1e-3)


@pytest.mark.parametrize("shift", [-3.0, 1e4, 1e6, -1e8])
def test_shifted_outputs_have_a_shifted_offset(shift: float) -> None:
    """Also by far more than they vary: pressures in pascal, frequencies in hertz."""
    y = np.sin(5 * X[:, 0])
    plain, shifted = fitted(X, y), fitted(X, y + shift)
    assert shifted.kernel.variance == pytest.approx(plain.kernel.variance, rel=0.05)
    assert shifted.offset - shift == pytest.approx(plain.offset, abs=0.05)
    np.testing.assert_allclose(shifted.kernel.lengthscales(1), plain.kernel.lengthscales(1), rtol=0.05)


def test_negated_outputs_have_the_same_kernel() -> None:
    y = np.sin(5 * X[:, 0])
    plain, negated = fitted(X, y), fitted(X, -y)
    assert negated.kernel.variance == pytest.approx(plain.kernel.variance, rel=1e-6)
    assert negated.offset == pytest.approx(-plain.offset, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-6, 1e3])
def test_inputs_in_other_units(unit: float) -> None:
    inputs = np.random.default_rng(0).uniform(size=(15, 2))
    y = np.sin(4 * inputs[:, 0]) + inputs[:, 1]
    plain, other = fitted(inputs, y), fitted(inputs * unit, y, np.full(2, unit))
    np.testing.assert_allclose(other.kernel.lengthscales(2), unit * plain.kernel.lengthscales(2), rtol=1e-3)
    check(other, 2, np.full(2, unit))


def test_the_order_of_the_data_does_not_matter() -> None:
    y = np.sin(5 * X[:, 0])
    order = np.random.default_rng(0).permutation(12)
    assert fitted(X[order], y[order]).kernel.variance == pytest.approx(fitted(X, y).kernel.variance, rel=1e-6)


@pytest.mark.parametrize(
    ("function", "kind"),
    [(lambda x: np.sin(6 * x), SquaredExponential), (lambda x: np.abs(x - 0.437), Matern)],
    ids=["analytic", "kinked"],
)
def test_the_family_that_explains_more(function: Callable[[Array], Array], kind: type[Stationary]) -> None:
    inputs = np.linspace(0, 1, 20)[:, None]
    assert type(fitted(inputs, function(inputs[:, 0])).kernel) is kind


@pytest.mark.parametrize("family", ["matern", "se"])
@pytest.mark.parametrize("d", [1, 2])
def test_lengthscales_of_a_sample_are_found(family: str, d: int) -> None:
    """Within a factor of two, for the median over samples; every one within a factor of four."""
    settings = Calibration(family="se" if family == "se" else "matern")
    truth = np.array([0.15, 0.6])[:d]
    kernel = settings.kernel("se" if family == "se" else "matern", tuple(truth.tolist()), 4.0)
    ratios, variances = [], []
    for seed in range(7):
        rng = np.random.default_rng(seed)
        inputs = rng.uniform(size=(25 * d, d))
        factor = np.linalg.cholesky(kernel(inputs, inputs) + 1e-9 * np.eye(25 * d))
        fit = fit_output(inputs, 5.0 + factor @ rng.standard_normal(25 * d), np.ones(d), settings, None)
        ratios.append(fit.kernel.lengthscales(d) / truth)
        variances.append(fit.kernel.variance / 4.0)
    assert np.all(np.abs(np.log(np.median(ratios, axis=0))) < math.log(2))
    assert np.all(np.abs(np.log(ratios)) < math.log(4))
    assert abs(math.log(float(np.median(variances)))) < math.log(3)


def test_an_idle_input_has_a_long_lengthscale() -> None:
    inputs = np.random.default_rng(2).uniform(size=(30, 2))
    used, idle = fitted(inputs, np.sin(8 * inputs[:, 0])).kernel.lengthscales(2)
    assert idle > 5 * used


def test_the_last_fit_is_a_start_in_the_units_of_now() -> None:
    """Ranges of a parent's output grow with the data: a fit from smaller ones leads to the same maximum."""
    inputs = np.linspace(0, 1, 20)[:, None]
    y = np.sin(6 * inputs[:, 0])
    early = fitted(inputs[:8], y[:8], np.array([0.4]))
    warm, cold = fitted(inputs, y, before=early), fitted(inputs, y)
    np.testing.assert_allclose(warm.kernel.lengthscales(1), cold.kernel.lengthscales(1), rtol=1e-2)
