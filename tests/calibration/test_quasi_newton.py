"""Local maxima within bounds."""

import math

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.calibration.quasi_newton import maximised

CURVATURE = np.array([[3.0, 1.0, 0.0], [1.0, 50.0, 2.0], [0.0, 2.0, 0.4]])
TOP = np.array([0.5, -1.2, 2.0])


def parabola(at: Array) -> tuple[float, Array]:
    away = at - TOP
    return -0.5 * float(away @ CURVATURE @ away), -CURVATURE @ away


@pytest.mark.parametrize("start", [[0.0, 0.0, 0.0], [3.0, 3.0, -3.0], [0.5, -1.2, 2.0]])
def test_the_maximum_of_a_parabola_is_found(start: list[float]) -> None:
    found = maximised(parabola, np.array(start), (-4.0, 4.0))
    np.testing.assert_allclose(found.theta, TOP, atol=3e-3)
    assert found.value == parabola(found.theta)[0]


def test_the_maximum_within_bounds_is_found() -> None:
    found = maximised(parabola, np.array([-9.0, 0.0, 0.0]), (-1.0, 1.0))
    assert np.abs(found.theta).max() <= 1.0
    slope = parabola(found.theta)[1]
    inside = np.abs(found.theta) < 1.0
    np.testing.assert_allclose(slope[inside], 0.0, atol=0.05)
    assert np.all(slope[~inside] * found.theta[~inside] >= 0)  # only leaving the bounds would gain anything


def test_steps_into_undefined_places_are_shortened() -> None:
    def barrier(at: Array) -> tuple[float, Array]:
        x = float(at[0])
        return (math.log(x) - x, np.array([1 / x - 1])) if x > 0 else (-math.inf, np.zeros(1))

    assert maximised(barrier, np.array([0.05]), (-5.0, 5.0)).theta == pytest.approx([1.0], abs=5e-3)
    undefined = maximised(barrier, np.array([-2.0]), (-5.0, 5.0))
    assert (undefined.theta.tolist(), undefined.value) == ([-2.0], -math.inf)
