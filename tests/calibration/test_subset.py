"""The observations of a fit, where there are many."""

from typing import Any

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.calibration import Calibration, Fit, calibrate, kept
from cascada.calibration.fit import fit_output
from cascada.calibration.shape import SE, Shape
from cascada.calibration.subset import MOST_FITTED, fitted_rows
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.kernels import SquaredExponential
from cascada.network import Stage, chain
from cascada.space import Real


@pytest.mark.parametrize("count", [0, 1, MOST_FITTED])
def test_a_fit_uses_all_of_few_observations(count: int) -> None:
    assert fitted_rows(count).tolist() == list(range(count))


@pytest.mark.parametrize("count", [MOST_FITTED + 1, 317, 1000])
def test_a_fit_uses_the_newest_and_evenly_spaced_earlier_observations(count: int) -> None:
    rows = fitted_rows(count)
    assert len(set(rows.tolist())) == len(rows) == MOST_FITTED
    assert rows[0] == 0
    assert rows[-50:].tolist() == list(range(count - 50, count))
    assert np.ptp(np.diff(rows[:-50])) <= 1


def test_the_posterior_contains_observations_that_the_fit_does_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def counted(inputs: Array, *others: Any) -> Fit:
        sizes.append(len(inputs))
        return fit_output(inputs, *others)

    monkeypatch.setattr(kept, "fit_output", counted)
    x = np.random.default_rng(3).uniform(size=MOST_FITTED + 60)
    found = calibrate(
        chain(Stage("f", controls={"x": Real(0, 1)})),
        np.stack([x, np.sin(9 * x)], axis=1),
        Calibration("matern"),
        SMALLEST_JITTER,
    )
    assert sizes == [MOST_FITTED]
    belief = found.judging.stages[0].per_output
    assert belief is not None
    assert belief.posterior.count == found.fits["f", "f"].count == MOST_FITTED + 60


def test_kernels_that_are_far_behind_are_not_fitted_again_to_many_observations() -> None:
    rng = np.random.default_rng(0)
    inputs, ranges = rng.uniform(size=(120, 2)), np.ones(2)
    outputs = np.sin(5 * inputs[:, 0]) * np.cos(4 * inputs[:, 1])
    few = fit_output(inputs[:20], outputs[:20], ranges, Calibration(), None)
    many = fit_output(inputs, outputs, ranges, Calibration(), few)
    assert not any(shape.additive for shape in many.log_scales)
    best = Shape(SE)
    assert isinstance(many.likely.kernel, SquaredExponential)
    whole = fit_output(inputs, outputs, ranges, Calibration("se"), None)
    np.testing.assert_allclose(many.log_scales[best], whole.log_scales[best], atol=1e-3)
    np.testing.assert_array_equal(many.log_scales[Shape(1.5)], few.log_scales[Shape(1.5)])


def test_a_fit_to_many_observations_with_noise_follows_the_last_one() -> None:
    rng = np.random.default_rng(1)
    inputs, ranges = rng.uniform(size=(120, 1)), np.ones(1)
    outputs = np.sin(5 * inputs[:, 0]) + 0.1 * rng.normal(size=120)
    few = fit_output(inputs[:30], outputs[:30], ranges, Calibration("se"), None, True)
    many = fit_output(inputs, outputs, ranges, Calibration("se"), few, True)
    assert many.likely.noise == pytest.approx(0.1, rel=0.2)
    whole = fit_output(inputs, outputs, ranges, Calibration("se"), None, True)
    np.testing.assert_allclose(many.log_scales[Shape(SE)], whole.log_scales[Shape(SE)], atol=1e-2)
