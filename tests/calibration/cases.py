"""Shared helpers of the calibration tests: fits of one output, and the shapes of their kernels."""

from collections.abc import Callable

import numpy as np

from cascada.arrays import Array
from cascada.calibration.fit import Fit, Model, fit_output
from cascada.calibration.settings import Calibration
from cascada.calibration.shape import SE, Shape
from cascada.gp import Posterior
from cascada.kernels import Additive, Matern

AUTO = Calibration()
ONE_FAMILY = {1.5: Calibration("matern", 1.5), 2.5: Calibration("matern", 2.5), SE: Calibration("se")}
Function = Callable[[Array], Array]


def fitted(
    inputs: Array,
    outputs: Array,
    ranges: Array | None = None,
    before: Fit | None = None,
    options: Calibration = AUTO,
) -> Fit:
    return fit_output(inputs, outputs, np.ones(inputs.shape[1]) if ranges is None else ranges, options, before)


def models(*fits: Fit) -> list[tuple[Model, ...]]:
    """The likely models of the fits, and the cautious ones."""
    return [tuple(fit.likely for fit in fits), tuple(fit.cautious for fit in fits)]


def shape(model: Model) -> Shape:
    """The shape of a model's kernel."""
    additive = isinstance(model.kernel, Additive)
    profile = model.kernel.kernel if isinstance(model.kernel, Additive) else model.kernel
    return Shape(profile.nu if isinstance(profile, Matern) else SE, additive)


def smoothness(model: Model) -> float:
    return shape(model).nu


def without_sums(self: Calibration, dimension: int, codes: tuple[int, ...] = ()) -> tuple[Shape, ...]:
    """A replacement of `Calibration.shapes` without additive kernels."""
    assert dimension >= 1
    assert not codes, "no input is a choice"
    return tuple(Shape(nu) for nu in self.smoothness)


def error(model: Model, inputs: Array, outputs: Array, at: Array, truth: Array) -> float:
    """The root mean square error of predictions, divided by the standard deviation of the truth."""
    posterior = Posterior.fit(model.kernel, inputs, (outputs - model.offset)[:, None])
    away = posterior.mean(at)[:, 0] + model.offset - truth
    return float(np.sqrt((away**2).mean()) / truth.std())
