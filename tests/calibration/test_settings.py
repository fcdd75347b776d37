"""Settings of the calibration, and the kernels that they allow."""

import math
from typing import Any

import numpy as np
import pytest

from cascada.calibration.settings import Calibration
from cascada.calibration.shape import SE, Shape
from cascada.errors import ArgumentError
from cascada.kernels import Additive, Matern, SquaredExponential
from tests.calibration.cases import fitted, shape


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "rq"}, "family must be 'auto', 'matern' or 'se'; got 'rq'"),
        ({"nu": 0.5}, "nu must be above 1.*got 0.5"),
        ({"nu": -1.0}, "nu must be .*above 0; got -1.0"),
        ({"nu": math.inf}, "nu must be a finite number above 0; got inf"),
        ({"width": 0.0}, "width must be .*above 0; got 0.0"),
        ({"width": "wide"}, "width must be .*got 'wide'"),
        ({"safety": 1.0}, "safety must be a number above 1; got 1.0"),
        ({"safety": math.inf}, "safety must be a number above 1; got inf"),
        ({"initial": 0}, "initial must be a whole number of at least 1, or None; got 0"),
        ({"initial": True}, "initial must be a whole number"),
        ({"initial": 2.5}, "initial must be a whole number of at least 1, or None; got 2.5"),
    ],
)
def test_invalid_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Calibration(**options)


@pytest.mark.parametrize(
    ("options", "smoothness"),
    [
        ({}, (1.5, 2.5, SE)),
        ({"nu": 3.5}, (1.5, 3.5, SE)),
        ({"nu": 1.5}, (1.5, SE)),
        ({"nu": 1.2}, (1.2, 1.5, SE)),
        ({"family": "matern"}, (2.5,)),
        ({"family": "matern", "nu": 1.5}, (1.5,)),
        ({"family": "se"}, (SE,)),
        ({"family": "se", "nu": 0.5}, (SE,)),
    ],
    ids=str,
)
def test_the_family_determines_the_smoothness_to_choose_from(
    options: dict[str, Any], smoothness: tuple[float, ...]
) -> None:
    assert Calibration(**options).smoothness == smoothness


OPTIONS = [{}, {"nu": 3.5}, {"nu": 1.5}, {"nu": 1.2}]


@pytest.mark.parametrize("d", [2, 3, 20, 128])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_with_several_inputs_additive_kernels_are_tried(options: dict[str, Any], d: int) -> None:
    calibration = Calibration(**options)
    general, sums = ([Shape(nu, additive) for nu in calibration.smoothness] for additive in (False, True))
    assert calibration.shapes(d) == (*general, *sums)


@pytest.mark.parametrize("d", [1, 129, 1000])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_with_one_input_or_very_many_no_additive_kernel_is_tried(options: dict[str, Any], d: int) -> None:
    calibration = Calibration(**options)
    assert calibration.shapes(d) == tuple(Shape(nu) for nu in calibration.smoothness)


@pytest.mark.parametrize("d", [1, 2, 5, 128, 129])
def test_a_requested_family_is_used(d: int) -> None:
    assert Calibration("matern").shapes(d) == (Shape(2.5),)
    assert Calibration("matern", 3.5).shapes(d) == (Shape(3.5),)
    assert Calibration("se").shapes(d) == (Shape(SE),)


@pytest.mark.parametrize(("d", "tried"), [(1, 3), (128, 6), (129, 3)])
def test_any_number_of_inputs_can_be_fitted(d: int, tried: int) -> None:
    """An additive kernel has at most 128 inputs."""
    inputs = np.random.default_rng(0).uniform(size=(4, d))
    fit = fitted(inputs, inputs.sum(axis=1))
    assert tuple(fit.log_scales) == Calibration().shapes(d)
    assert len(fit.log_scales) == tried
    assert not shape(fit.cautious).additive


def test_a_shape_makes_its_kernel() -> None:
    assert Shape(1.5).kernel((0.5, 2.0), 3.0) == Matern(1.5, (0.5, 2.0), 3.0)
    assert Shape(2.5).kernel((0.5,)) == Matern(2.5, (0.5,), 1.0)
    assert Shape(SE).kernel((0.5, 2.0), 3.0) == SquaredExponential((0.5, 2.0), 3.0)
    assert Shape(1.5, additive=True).kernel((0.5, 2.0), 3.0) == Additive(Matern(1.5, (0.5, 2.0), 3.0))
    assert Shape(SE, additive=True).kernel((0.5, 2.0)) == Additive(SquaredExponential((0.5, 2.0), 1.0))
