"""Additive models: chosen if outputs are sums and there are enough runs, and never used for the gap."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from unittest import mock

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.calibration.fit import Fit
from cascada.calibration.likelihood import Likelihood
from cascada.calibration.settings import Calibration
from cascada.calibration.shape import SE, Shape
from tests.calibration.cases import AUTO, Function, error, fitted, models, shape, smoothness, without_sums

SUMS: dict[str, Function] = {
    "waves": lambda x: np.cos(2 * np.pi * x).mean(axis=1),
    "parabola": lambda x: ((x - 0.4) ** 2 * np.arange(1, x.shape[1] + 1)).sum(axis=1),
    "line": lambda x: x @ np.arange(1.0, x.shape[1] + 1),
    "kinks": lambda x: np.abs(x - 0.4).sum(axis=1),
}
OTHERS: dict[str, Function] = {
    "product": lambda x: np.cos(3 * x).prod(axis=1),
    "cone": lambda x: np.linalg.norm(x - 0.45, axis=1),
    "exponential": lambda x: np.exp(x.sum(axis=1)),
    "wave": lambda x: np.sin(3 * x.sum(axis=1)),
}
FUNCTIONS = SUMS | OTHERS


def data(function: str, n: int, d: int, seed: int) -> tuple[Array, Array]:
    inputs = np.random.default_rng(seed).uniform(size=(n, d))
    return inputs, FUNCTIONS[function](inputs)


def general_only() -> AbstractContextManager[object]:
    """The fit without additive kernels."""
    return mock.patch.object(Calibration, "shapes", without_sums)


def ahead(fit: Fit, inputs: Array, outputs: Array) -> float:
    """The largest log density of an additive kernel minus that of all others."""
    y = (outputs - outputs.mean()) / outputs.std()
    density = {each: Likelihood(inputs, y, each)(theta)[0] for each, theta in fit.log_scales.items()}
    best = {kind: max(density[each] for each in density if each.additive == kind) for kind in (True, False)}
    return best[True] - best[False]


# ---- recognition


@pytest.mark.parametrize(
    ("function", "gain", "d"),
    [
        *(("waves", 20.0, d) for d in (2, 4, 6)),
        *(("parabola", 3.0, d) for d in (2, 5)),
        ("line", 2.0, 4),
        ("kinks", 2.0, 4),
    ],
)
def test_sums_are_recognised_and_predicted_better(function: str, gain: float, d: int) -> None:
    inputs, outputs = data(function, 8 * d, d, 1)
    at, truth = data(function, 100, d, 101)
    fit = fitted(inputs, outputs)
    with general_only():
        general = fitted(inputs, outputs)
    assert shape(fit.likely).additive
    if function != "kinks":
        assert smoothness(fit.likely) == SE
    assert error(fit.likely, inputs, outputs, at, truth) * gain < error(general.likely, inputs, outputs, at, truth)


@pytest.mark.parametrize("function", ["waves", "parabola"])
def test_sums_need_far_fewer_runs(function: str) -> None:
    """Twenty-four runs with six inputs are far too few for a general model."""
    inputs, outputs = data(function, 24, 6, 0)
    at, truth = data(function, 100, 6, 100)
    fit = fitted(inputs, outputs)
    with general_only():
        general = fitted(inputs, outputs)
    assert error(fit.likely, inputs, outputs, at, truth) < 0.15
    assert error(general.likely, inputs, outputs, at, truth) > 0.3


@pytest.mark.parametrize(("d", "seed"), [(2, 0), (2, 1), (4, 0)])
@pytest.mark.parametrize("function", OTHERS)
def test_interacting_inputs_are_not_modelled_as_a_sum(function: str, d: int, seed: int) -> None:
    inputs, outputs = data(function, 8 * d, d, seed)
    assert not shape(fitted(inputs, outputs).likely).additive


@pytest.mark.parametrize("nu", [1.5, 2.5, SE])
def test_effects_of_a_sample_have_their_own_lengthscales(nu: float) -> None:
    truth = np.array([0.15, 0.6, 2.0])
    rng = np.random.default_rng(0)
    inputs = rng.uniform(size=(45, 3))
    K = Shape(nu, additive=True).kernel(tuple(truth.tolist()), 4.0)(inputs, inputs)
    outputs = 5.0 + np.linalg.cholesky(K + 1e-9 * np.eye(45)) @ rng.standard_normal(45)
    fit = fitted(inputs, outputs)
    assert shape(fit.likely).additive
    ratios = np.exp(fit.log_scales[Shape(nu, additive=True)]) / truth
    assert np.all(np.abs(np.log(ratios[:2])) < np.log(3))
    assert ratios[2] > 0.25  # the data do not determine a lengthscale far above the range


# ---- few runs


@pytest.mark.parametrize(("n", "d"), [(0, 2), (1, 2), (2, 2), (3, 2), (5, 2), (2, 5), (5, 5)])
@pytest.mark.parametrize("function", ["waves", "parabola"])
def test_a_few_runs_show_nothing_about_interactions(function: str, d: int, n: int) -> None:
    assert not shape(fitted(*data(function, n, d, 0)).likely).additive


@pytest.mark.parametrize(
    ("function", "n", "d", "seed", "sum_"),
    [
        ("parabola", 14, 6, 2, False),
        ("kinks", 8, 2, 2, False),
        ("kinks", 10, 4, 0, False),
        ("line", 8, 2, 2, False),
        ("waves", 8, 2, 2, True),
        ("line", 14, 6, 1, True),
        ("kinks", 16, 4, 1, True),
        ("cone", 8, 2, 2, True),  # and this is wrong, as must happen now and then
    ],
)
def test_a_sum_must_be_clearly_more_likely(function: str, n: int, d: int, seed: int, sum_: bool) -> None:
    """If it is only slightly more likely it is not chosen; from a factor of e³ on it is."""
    inputs, outputs = data(function, n, d, seed)
    fit = fitted(inputs, outputs)
    low, high = (3.0, 4.0) if sum_ else (2.0, 3.0)
    assert low < ahead(fit, inputs, outputs) < high
    assert shape(fit.likely).additive == sum_


# ---- the cautious model


def check_as_without_sums(fit: Fit, general: Fit) -> None:
    """Check equality to the last digit, except for an additive likely kernel."""
    assert set(general.log_scales) <= set(fit.log_scales)
    for each, theta in general.log_scales.items():
        np.testing.assert_array_equal(fit.log_scales[each], theta)
    assert (fit.cautious.kernel, fit.cautious.offset) == (general.cautious.kernel, general.cautious.offset)
    assert not shape(fit.cautious).additive
    if not shape(fit.likely).additive:
        assert (fit.likely.kernel, fit.likely.offset) == (general.likely.kernel, general.likely.offset)


@pytest.mark.parametrize(("n", "more", "d"), [(0, 1, 2), (3, 12, 2), (18, 31, 3)])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_cautious_model_does_not_depend_on_sums(function: str, n: int, more: int, d: int) -> None:
    """Nor does it after a second fit that starts from a fit with sums."""
    inputs, outputs = data(function, more, d, 3)
    fit = fitted(inputs[:n], outputs[:n])
    again = fitted(inputs, outputs, before=fit)
    with general_only():
        general = fitted(inputs[:n], outputs[:n])
        check_as_without_sums(fit, general)
        check_as_without_sums(again, fitted(inputs, outputs, before=general))


@pytest.mark.parametrize("options", [Calibration("matern"), Calibration("matern", 1.5), Calibration("se")], ids=str)
def test_a_requested_family_is_used(options: Calibration) -> None:
    assert shape(waves().likely).additive
    fit = fitted(*data("waves", 20, 3, 2), options=options)
    assert fit.likely is fit.cautious
    assert tuple(fit.log_scales) == (shape(fit.likely),) == (Shape(options.smoothness[0]),)


# ---- later fits


@pytest.mark.parametrize("function", ["waves", "product"])
def test_the_last_fit_is_a_start_for_every_shape(function: str) -> None:
    """This includes other units: the range of a parent's output grows with the data."""
    inputs, outputs = data(function, 28, 3, 1)
    units = np.array([0.4, 1.0, 0.7])
    early = fitted(inputs[:10], outputs[:10], units)
    warm, cold = fitted(inputs, outputs, before=early), fitted(inputs, outputs)
    assert tuple(early.log_scales) == tuple(warm.log_scales) == AUTO.shapes(3)
    for one, other in models(warm, cold):
        assert shape(one) == shape(other)
        np.testing.assert_allclose(one.kernel.lengthscales(3), other.kernel.lengthscales(3), rtol=0.02)


@pytest.mark.parametrize(
    ("function", "n", "kept"), [("product", 29, True), ("product", 30, False), ("waves", 40, True)]
)
def test_unlikely_sums_are_not_tried_again(function: str, n: int, kept: bool) -> None:
    inputs, outputs = data(function, n + 10, 3, 1)
    fit = fitted(inputs[:n], outputs[:n])
    assert tuple(fit.log_scales) == (AUTO.shapes(3) if kept else tuple(map(Shape, AUTO.smoothness)))
    again = fitted(inputs, outputs, before=fit)
    with general_only():
        general = fitted(inputs, outputs, before=fitted(inputs[:n], outputs[:n]))
    assert (again.cautious.kernel, again.cautious.offset) == (general.cautious.kernel, general.cautious.offset)
    assert shape(again.likely).additive == (function == "waves")


def test_a_fit_can_change_to_a_sum_and_back() -> None:
    inputs, outputs = data("waves", 24, 3, 0)
    few = fitted(inputs[:8], outputs[:8])
    enough = fitted(inputs, outputs, before=few)
    interacting = fitted(inputs, FUNCTIONS["product"](inputs), before=enough)
    assert [shape(fit.likely).additive for fit in (few, enough, interacting)] == [False, True, False]


# ---- dropped kernels


@pytest.mark.parametrize(
    ("function", "d", "seed", "dropped"),
    [
        ("product", 2, 0, {1.5, 2.5, SE}),
        ("product", 3, 0, {1.5, 2.5, SE}),  # only just
        ("cone", 3, 1, {SE}),
        ("cone", 3, 0, set()),  # only just
        ("parabola", 2, 0, {1.5}),
        ("waves", 3, 0, set()),
    ],
)
def test_from_thirty_runs_on_unlikely_sums_are_dropped(
    monkeypatch: pytest.MonkeyPatch, function: str, d: int, seed: int, dropped: set[float]
) -> None:
    inputs, outputs = data(function, 30, d, seed)
    fit = fitted(inputs, outputs)
    monkeypatch.setattr("cascada.calibration.fit._HOPELESS", np.inf)
    whole = fitted(inputs, outputs)
    assert tuple(whole.log_scales) == AUTO.shapes(d)
    y = (outputs - outputs.mean()) / outputs.std()
    density = {each: Likelihood(inputs, y, each)(theta)[0] for each, theta in whole.log_scales.items()}
    most = max(density[each] for each in density if not each.additive)
    assert {each.nu for each in density if each.additive and density[each] < most - 20.0} == dropped
    kept = [each for each in AUTO.shapes(d) if not each.additive or each.nu not in dropped]
    assert list(fit.log_scales) == kept
    for each in kept:
        np.testing.assert_array_equal(fit.log_scales[each], whole.log_scales[each])
    for one, other in models(fit, whole):  # the choice does not depend on it
        assert (one.kernel, one.offset) == (other.kernel, other.offset)


def test_below_thirty_every_sum_is_tried_again() -> None:
    """Repeated runs count once."""
    inputs, outputs = data("product", 29, 2, 0)
    fit = fitted(np.repeat(inputs, 2, axis=0), np.repeat(outputs, 2))
    assert fit.count == 29
    assert tuple(fit.log_scales) == AUTO.shapes(2)


def test_a_dropped_sum_is_not_tried_again() -> None:
    inputs, outputs = data("product", 34, 2, 0)
    first = fitted(inputs[:29], outputs[:29])
    second = fitted(inputs[:30], outputs[:30], before=first)
    third = fitted(inputs, outputs, before=second)
    assert tuple(first.log_scales) == AUTO.shapes(2)
    assert tuple(second.log_scales) == tuple(third.log_scales) == tuple(map(Shape, AUTO.smoothness))


# ---- invariances


@cache
def waves() -> Fit:
    return fitted(*data("waves", 20, 3, 2))


CHANGES: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "rows": lambda x, y: (x[::-1], y[::-1]),
    "repeats": lambda x, y: (np.repeat(x, 2, axis=0), np.repeat(y, 2)),
    "moved inputs": lambda x, y: (x + 8.0, y),
    "mirrored inputs": lambda x, y: (-x, y),
    "moved outputs": lambda x, y: (x, y + 1e4),
    "negated outputs": lambda x, y: (x, -y),
    "scaled outputs": lambda x, y: (x, 1e8 * y),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_fit_of_a_sum_is_invariant(change: str) -> None:
    plain, other = waves(), fitted(*CHANGES[change](*data("waves", 20, 3, 2)))
    factor = 1e8 if change == "scaled outputs" else 1.0
    for one, two in models(plain, other):
        assert shape(one) == shape(two)
        np.testing.assert_allclose(two.kernel.lengthscales(3), one.kernel.lengthscales(3), rtol=0.02)
        assert two.kernel.variance == pytest.approx(factor**2 * one.kernel.variance, rel=0.05)
    assert shape(plain.likely).additive


def test_a_sum_with_reordered_or_rescaled_inputs_has_the_same_fit() -> None:
    inputs, outputs = data("parabola", 24, 3, 2)
    plain = fitted(inputs, outputs)
    order, units = [2, 0, 1], np.array([1e-6, 1e3, 7.0])
    there = fitted((inputs * units)[:, order], outputs, units[order])
    for one, two in models(plain, there):
        assert shape(one) == shape(two)
        expected = (one.kernel.lengthscales(3) * units)[order]
        np.testing.assert_allclose(two.kernel.lengthscales(3), expected, rtol=0.02)
