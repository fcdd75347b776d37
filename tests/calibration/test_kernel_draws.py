"""Kernels drawn from their posterior, and how much wider their functions are drawn."""

import numpy as np
import pytest

from cascada.calibration import Calibration
from cascada.calibration.fit import fit_output
from cascada.calibration.kernel_draws import KernelDraw, kernel_draws, with_variance
from cascada.calibration.widening import neighbourhoods, spread_out, widening
from cascada.gp.paths import inverse_factor
from cascada.kernels import Additive, Matern, SquaredExponential

RANGES = np.array([1.0, 2.0])


def data(count: int, seed: int = 0):
    inputs = np.random.default_rng(seed).uniform(size=(count, 2)) * RANGES
    return inputs, np.sin(2 * inputs[:, 0]) * np.cos(inputs[:, 1])


def draws(inputs, outputs, count: int = 40, seed: int = 0, **options) -> list[KernelDraw]:
    fit = fit_output(inputs, outputs, RANGES, Calibration(), None)
    return kernel_draws(inputs, outputs, fit, count, np.random.default_rng(seed), **options)


def log_scales(found: list[KernelDraw]) -> np.ndarray:
    return np.log([draw.kernel.lengthscales(2) for draw in found])


def test_draws_scatter_around_the_fit_and_less_if_data_count_fully():
    inputs, outputs = data(25)
    fit = fit_output(inputs, outputs, RANGES, Calibration(), None)
    tempered, whole = (log_scales(draws(inputs, outputs, temper=t)) for t in (0.1, 1.0))
    centre = np.log(fit.likely.kernel.lengthscales(2))
    assert np.abs(np.median(whole, axis=0) - centre).max() < 0.7
    assert (tempered.std(axis=0) > 1.3 * whole.std(axis=0)).all()


@pytest.mark.parametrize(("shift", "scale"), [(1000.0, 1.0), (0.0, 2.0**20), (-3.0, -(2.0**-20))])
def test_draws_follow_a_shift_and_a_scale_of_the_outputs(shift, scale):
    inputs, outputs = data(20)
    before, after = draws(inputs, outputs), draws(inputs, shift + scale * outputs)
    np.testing.assert_allclose(log_scales(after), log_scales(before), atol=1e-4)
    np.testing.assert_allclose(
        [draw.kernel.variance for draw in after], [scale**2 * draw.kernel.variance for draw in before], rtol=1e-3
    )


def test_the_same_generator_gives_the_same_kernels():
    inputs, outputs = data(12)
    np.testing.assert_array_equal(log_scales(draws(inputs, outputs)), log_scales(draws(inputs, outputs)))


@pytest.mark.parametrize("kernel", [Matern(1.5, 0.3), SquaredExponential((1.0, 2.0)), Additive(Matern(2.5, 0.5))])
def test_another_variance_changes_nothing_else(kernel):
    wider = with_variance(kernel, 4.0)
    points = np.random.default_rng(0).uniform(size=(5, 2))
    np.testing.assert_allclose(wider(points, points), 4.0 * kernel(points, points))
    np.testing.assert_allclose(KernelDraw(kernel, 1.0).wider(2.0).kernel(points, points), wider(points, points))


def test_the_widening_is_the_largest_residual_of_fits_without_a_run_and_its_neighbours():
    """The reference leaves the runs out one block after the other and predicts each from the rest."""
    rng = np.random.default_rng(0)
    inputs = np.concatenate([rng.uniform(size=(12, 2)), 0.5 + 0.01 * rng.standard_normal((8, 2))])
    outputs, kernel = 5 * np.sin(20 * inputs[:, 0]), Matern(2.5, 1.5)
    blocks = neighbourhoods(inputs, np.ones(2))
    inverse = inverse_factor(kernel(inputs, inputs))
    away = []
    for block in blocks:
        rest = np.setdiff1d(np.arange(len(inputs)), block)
        K = kernel(inputs[rest], inputs[rest]) + 1e-10 * np.eye(len(rest))
        k = kernel(inputs[block[:1]], inputs[rest])[0]
        sd = np.sqrt(1 + 1e-10 - k @ np.linalg.solve(K, k))
        away.append(abs(outputs[block[0]] - k @ np.linalg.solve(K, outputs[rest])) / sd)
    assert len(blocks) > 10
    expected = max(away) / np.sqrt(2 * np.log(len(away)) + 1)
    assert expected > 3
    assert widening(inverse.T @ inverse, outputs, blocks) == pytest.approx(expected, rel=1e-3)


def test_functions_that_the_kernel_explains_are_not_widened_much():
    rng, kernel = np.random.default_rng(1), Matern(2.5, 0.4)
    inputs = rng.uniform(size=(30, 2))
    L = np.linalg.cholesky(kernel(inputs, inputs) + 1e-10 * np.eye(30))
    inverse = inverse_factor(kernel(inputs, inputs))
    found = [
        widening(inverse.T @ inverse, L @ rng.standard_normal(30), neighbourhoods(inputs, np.ones(2)))
        for _ in range(50)
    ]
    assert np.median(found) < 1.2
    assert min(found) == 1.0


def test_rows_that_are_spread_out_are_apart_and_stand_for_all():
    rows = np.random.default_rng(0).uniform(size=(50, 2))
    kept = rows[spread_out(rows, 0.2)]
    distances = np.linalg.norm(kept[:, None] - kept, axis=2) + np.eye(len(kept))
    assert distances.min() > 0.2
    assert np.linalg.norm(rows[:, None] - kept, axis=2).min(axis=1).max() <= 0.2
