"""Fits of one output: sensible for all data, and near the truth if it is known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascada.arrays import Array
from cascada.calibration.fit import Fit
from cascada.calibration.likelihood import Likelihood
from cascada.calibration.settings import Calibration
from cascada.calibration.shape import SE, Shape
from tests.calibration.cases import AUTO, ONE_FAMILY, Function, fitted, models, shape, smoothness
from tests.thorough import examples

X = np.linspace(0, 1, 12)[:, None]
GRID = np.array([[a, b] for a in (0.0, 0.3, 0.7, 1.0) for b in (0.0, 0.5, 1.0)])


def check(fit: Fit, d: int, ranges: Array | None = None) -> None:
    """Check that numbers are finite, and lengthscales neither far below nor far above the ranges."""
    for (model,) in models(fit):
        assert math.isfinite(model.offset)
        assert math.isfinite(model.kernel.variance)
        assert model.kernel.variance > 0
        scales = model.kernel.lengthscales(d) / (np.ones(d) if ranges is None else ranges)
        assert np.all((scales >= 5e-3 * (1 - 1e-9)) & (scales <= 50 * (1 + 1e-9)))
    check_order(fit)


def check_order(fit: Fit) -> None:
    """Check that the cautious kernel lets inputs interact and is no smoother than the likely one."""
    assert not shape(fit.cautious).additive
    assert (fit.cautious is fit.likely) == (shape(fit.cautious) == shape(fit.likely))
    if not shape(fit.likely).additive:
        assert smoothness(fit.cautious) <= smoothness(fit.likely)


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
    "a grid": (GRID, np.sin(2 * GRID[:, 0]) + GRID[:, 1]),
    "a product on a grid": (GRID, GRID[:, 0] * GRID[:, 1]),
    "a constant on a grid": (GRID, np.full(12, -2.0)),
    "a jump on a grid": (GRID, (GRID.sum(axis=1) > 1.5).astype(float)),
    "on a diagonal": (np.hstack([X, X, X]), np.sin(5 * X[:, 0])),
    "decades of two inputs": (np.hstack([X, X[::-1] ** 2]), 10.0 ** np.linspace(-8, 8, 12)),
    "no input that moves": (np.full((1, 3), 0.3), np.array([1.0])),
}


@pytest.mark.parametrize("case", CASES)
def test_any_data_can_be_fitted(case: str) -> None:
    inputs, outputs = CASES[case]
    fit = fitted(inputs, outputs)
    check(fit, inputs.shape[1])
    check(fitted(inputs, outputs, before=fit), inputs.shape[1])
    assert fit.count == len(np.unique(inputs, axis=0))


def test_repeats_change_nothing() -> None:
    y = np.sin(5 * X[:, 0])
    once, often = fitted(X, y), fitted(np.repeat(X, 3, axis=0), np.repeat(y, 3))
    for one, other in models(once, often):
        assert one.kernel == other.kernel
        assert one.offset == other.offset


@pytest.mark.parametrize("function", [lambda x: np.sin(5 * x), lambda x: np.abs(x - 0.43)], ids=["sin", "abs"])
@pytest.mark.parametrize("factor", [2.0**-40, 2.0**30, 1e-8, 1e8])
def test_scaled_outputs_have_a_scaled_variance(function: Function, factor: float) -> None:
    y = function(X[:, 0])
    for plain, scaled in models(fitted(X, y), fitted(X, factor * y)):
        assert smoothness(plain) == smoothness(scaled)
        assert scaled.kernel.variance == pytest.approx(factor**2 * plain.kernel.variance, rel=1e-3)
        assert scaled.offset == pytest.approx(factor * plain.offset, rel=1e-3)
        np.testing.assert_allclose(scaled.kernel.lengthscales(1), plain.kernel.lengthscales(1), rtol=1e-3)


@pytest.mark.parametrize("shift", [-3.0, 1e4, 1e6, -1e8])
def test_shifted_outputs_have_a_shifted_offset(shift: float) -> None:
    """The shift may far exceed their variation: pressures in pascal, frequencies in hertz."""
    y = np.sin(5 * X[:, 0])
    for plain, shifted in models(fitted(X, y), fitted(X, y + shift)):
        assert shifted.kernel.variance == pytest.approx(plain.kernel.variance, rel=0.05)
        assert shifted.offset - shift == pytest.approx(plain.offset, abs=0.05)
        np.testing.assert_allclose(shifted.kernel.lengthscales(1), plain.kernel.lengthscales(1), rtol=0.05)


def test_negated_outputs_have_the_same_kernel() -> None:
    y = np.sin(5 * X[:, 0])
    for plain, negated in models(fitted(X, y), fitted(X, -y)):
        assert negated.kernel.variance == pytest.approx(plain.kernel.variance, rel=1e-6)
        assert negated.offset == pytest.approx(-plain.offset, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-6, 1e3])
def test_inputs_in_other_units_give_the_same_fit(unit: float) -> None:
    inputs = np.random.default_rng(0).uniform(size=(15, 2))
    y = np.sin(4 * inputs[:, 0]) + inputs[:, 1]
    there = fitted(inputs * unit, y, np.full(2, unit))
    for plain, other in models(fitted(inputs, y), there):
        np.testing.assert_allclose(other.kernel.lengthscales(2), unit * plain.kernel.lengthscales(2), rtol=1e-3)
    check(there, 2, np.full(2, unit))


def test_the_order_of_the_data_does_not_matter() -> None:
    y = np.sin(5 * X[:, 0])
    order = np.random.default_rng(0).permutation(12)
    for plain, other in models(fitted(X, y), fitted(X[order], y[order])):
        assert other.kernel.variance == pytest.approx(plain.kernel.variance, rel=1e-6)


# ---- clusters


SMOOTH: dict[str, Function] = {
    "sine": lambda x: np.sin(6 * x).sum(axis=1),
    "parabola": lambda x: ((x - 0.4) ** 2).sum(axis=1),
    "exponential": lambda x: np.exp(x.sum(axis=1)),
}


@pytest.mark.parametrize("function", SMOOTH)
@pytest.mark.parametrize("options", [AUTO, *ONE_FAMILY.values()], ids=["auto", "1.5", "2.5", "se"])
@pytest.mark.parametrize("at", [0, 5, 11])
def test_a_cluster_of_runs_changes_the_fit_little(function: str, options: Calibration, at: int) -> None:
    """Late in a study many runs are near the best one: thirty redundant runs do not change the variance."""
    f = SMOOTH[function]
    close = X[at] + 1e-6 * np.arange(1, 31)[:, None]
    crowded = np.concatenate([X, close])
    for plain, other in models(fitted(X, f(X), options=options), fitted(crowded, f(crowded), options=options)):
        assert smoothness(plain) == smoothness(other)
        assert other.kernel.variance == pytest.approx(plain.kernel.variance, rel=0.3)


# ---- smoothness


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("d", [1, 2])
def test_an_observed_kink_is_judged_by_the_roughest_kernel(d: int, seed: int) -> None:
    """A cone, |x| in one dimension, from twenty runs anywhere and five near its tip."""
    rng = np.random.default_rng(seed)
    tip = rng.uniform(0.3, 0.7, d)
    inputs = np.concatenate([rng.uniform(size=(20, d)), tip + rng.uniform(-0.05, 0.05, (5, d))])
    fit = fitted(inputs, np.linalg.norm(inputs - tip, axis=1))
    assert smoothness(fit.cautious) == 1.5
    assert smoothness(fit.likely) < SE


def test_a_smoother_kernel_must_be_clearly_more_likely() -> None:
    """Matérn-5/2 is slightly more likely for this kink between runs: enough for choosing points, not for the gap."""
    inputs = np.linspace(0, 1, 20)[:, None]
    fit = fitted(inputs, np.maximum(inputs[:, 0], 0.6))
    assert (smoothness(fit.likely), smoothness(fit.cautious)) == (2.5, 1.5)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("d", "n"), [(1, 12), (2, 30)])
def test_an_analytic_function_is_judged_by_the_smoothest_kernel(d: int, n: int, seed: int) -> None:
    inputs = np.random.default_rng(seed).uniform(size=(n, d))
    fit = fitted(inputs, np.cos(4 * inputs).prod(axis=1))
    assert smoothness(fit.likely) == SE
    assert fit.cautious is fit.likely


def test_few_runs_of_an_analytic_function_do_not_suffice() -> None:
    inputs = np.linspace(0, 1, 6)[:, None]
    fit = fitted(inputs, np.sin(6 * inputs[:, 0]))
    assert (smoothness(fit.likely), smoothness(fit.cautious)) == (SE, 1.5)


@pytest.mark.parametrize("n", [0, 1])
def test_without_evidence_the_roughest_kernel_is_chosen(n: int) -> None:
    fit = fitted(X[:n], np.full(n, 3.0))
    assert smoothness(fit.likely) == 1.5
    assert fit.cautious is fit.likely


FUNCTIONS: dict[str, Function] = SMOOTH | {
    "cone": lambda x: np.linalg.norm(x - 0.437, axis=1),
    "steps": lambda x: np.floor(3 * x).sum(axis=1),
    "waves": lambda x: np.sin(30 * x).sum(axis=1),
}


def by_the_rule(fit: Fit, inputs: Array, outputs: Array) -> tuple[Shape, Shape]:
    """The shape of highest density, minus 3 for sums, and the roughest general shape within 3 of the best one."""
    standardised = (outputs - outputs.mean()) / outputs.std()
    density = {each: Likelihood(inputs, standardised, each)(theta)[0] for each, theta in fit.log_scales.items()}
    general = sorted((each for each in density if not each.additive), key=lambda each: each.nu)
    likely = cautious = general[0]
    for each in general:
        if density[each] > density[likely]:
            likely = each
    for each in reversed(general):
        if density[each] >= density[likely] - 3.0:
            cautious = each
    ahead = density[likely]
    for each in sorted(density.keys() - set(general), key=lambda each: each.nu):
        if density[each] - 3.0 > ahead:
            likely, ahead = each, density[each] - 3.0
    return likely, cautious


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 25),
    d=st.integers(1, 3),
    function=st.sampled_from(sorted(FUNCTIONS)),
    nu=st.sampled_from([1.2, 1.5, 2.5, 3.5]),
)
@settings(max_examples=examples(100))
def test_the_likely_and_the_cautious_are_those_of_the_rule(seed: int, n: int, d: int, function: str, nu: float) -> None:
    inputs = np.unique(np.random.default_rng(seed).uniform(size=(n, d)), axis=0)
    outputs = FUNCTIONS[function](inputs)
    options = Calibration(nu=nu)
    fit = fitted(inputs, outputs, options=options)
    assert tuple(fit.log_scales) == options.shapes(d)
    check_order(fit)
    if np.ptp(outputs) > 0:
        assert (shape(fit.likely), shape(fit.cautious)) == by_the_rule(fit, inputs, outputs)


@pytest.mark.parametrize("nu", ONE_FAMILY)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_with_one_family_there_is_one_model(nu: float, function: str) -> None:
    fit = fitted(X, FUNCTIONS[function](X), options=ONE_FAMILY[nu])
    assert fit.likely is fit.cautious
    assert smoothness(fit.likely) == nu


def test_each_model_equals_the_fit_of_its_family() -> None:
    """Lengthscales, variance and mean belong to the kernel that they were fitted with."""
    inputs = np.linspace(0, 1, 6)[:, None]
    y = np.sin(6 * inputs[:, 0])
    both = fitted(inputs, y)
    assert smoothness(both.likely) != smoothness(both.cautious)
    for (model,) in models(both):
        alone = fitted(inputs, y, options=ONE_FAMILY[smoothness(model)]).likely
        assert (model.kernel, model.offset) == (alone.kernel, alone.offset)


# ---- near the truth


@pytest.mark.parametrize("nu", ONE_FAMILY)
@pytest.mark.parametrize("d", [1, 2])
def test_lengthscales_of_a_sample_are_found(nu: float, d: int) -> None:
    """Within a factor of two, for the median over samples; every one within a factor of four."""
    truth = np.array([0.15, 0.6])[:d]
    kernel = Shape(nu).kernel(tuple(truth.tolist()), 4.0)
    ratios, variances = [], []
    for seed in range(7):
        rng = np.random.default_rng(seed)
        inputs = rng.uniform(size=(25 * d, d))
        factor = np.linalg.cholesky(kernel(inputs, inputs) + 1e-9 * np.eye(25 * d))
        fit = fitted(inputs, 5.0 + factor @ rng.standard_normal(25 * d), options=ONE_FAMILY[nu])
        ratios.append(fit.likely.kernel.lengthscales(d) / truth)
        variances.append(fit.likely.kernel.variance / 4.0)
    assert np.all(np.abs(np.log(np.median(ratios, axis=0))) < math.log(2))
    assert np.all(np.abs(np.log(ratios)) < math.log(4))
    assert abs(math.log(float(np.median(variances)))) < math.log(3)


def test_an_idle_input_has_a_long_lengthscale() -> None:
    inputs = np.random.default_rng(2).uniform(size=(30, 2))
    for (model,) in models(fitted(inputs, np.sin(8 * inputs[:, 0]))):
        used, idle = model.kernel.lengthscales(2)
        assert idle > 5 * used


def test_the_last_fit_is_a_start_in_the_current_units() -> None:
    """Ranges of a parent's output grow with the data: a fit from smaller ones leads to the same maximum."""
    inputs = np.linspace(0, 1, 20)[:, None]
    y = np.sin(6 * inputs[:, 0])
    early = fitted(inputs[:8], y[:8], np.array([0.4]))
    for warm, cold in models(fitted(inputs, y, before=early), fitted(inputs, y)):
        assert smoothness(warm) == smoothness(cold)
        np.testing.assert_allclose(warm.kernel.lengthscales(1), cold.kernel.lengthscales(1), rtol=1e-2)
