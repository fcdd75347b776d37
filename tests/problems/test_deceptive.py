"""Tests of the deceptive processes: their optimum to many digits, and how rarely samples find it."""

import mpmath
import numpy as np
import pytest

from cascada.problems.deceptive import NARROW_POINT, NARROW_VALUE, ROUGH_POINT, ROUGH_VALUE
from tests.problems.search import practice, sobol


def test_the_narrow_peak_to_many_digits():
    with mpmath.workdps(30):
        h0, y0, width = mpmath.mpf("0.85"), mpmath.mpf("0.7"), mpmath.mpf("0.025")

        def peaks(h, y):
            broad = mpmath.exp(
                -(((h - mpmath.mpf("0.35")) / mpmath.mpf("0.3")) ** 2) - ((y - mpmath.mpf("0.4")) * 2) ** 2
            )
            narrow = mpmath.exp(-(((h - h0) / width) ** 2) - ((y - y0) / width) ** 2)
            return broad + mpmath.mpf("1.107") * narrow

        slopes = [lambda h, y: mpmath.diff(peaks, (h, y), (1, 0)), lambda h, y: mpmath.diff(peaks, (h, y), (0, 1))]
        h, y = mpmath.findroot(slopes, (h0, y0))
        x = -mpmath.log(1 - h * (1 - mpmath.exp(-2))) / 2
        assert pytest.approx((float(x), float(y)), rel=1e-14) == NARROW_POINT
        assert pytest.approx(float(peaks(h, y)), rel=1e-15) == NARROW_VALUE


def test_the_narrow_peak_is_higher_by_0_15_and_rarely_sampled():
    problem = practice("narrow-peak")
    points = sobol(problem, 14)
    near = np.abs(points - NARROW_POINT).max(axis=1) < 0.1
    elsewhere = problem.objective(points[~near]).max()
    assert problem.best.value - elsewhere == pytest.approx(0.15, abs=0.01)
    assert np.mean(problem.objective(points) > elsewhere) < 0.001


def test_the_best_ripple_to_many_digits():
    with mpmath.workdps(30):

        def r(x):
            t = 2 * x - 1
            ripples = (1 + mpmath.sin(30 * mpmath.pi * x)) / 2
            return mpmath.mpf("0.8") * mpmath.exp(-(((x - mpmath.mpf("0.2")) * 5) ** 2)) + t**2 * (3 - 2 * t) * ripples

        ends = mpmath.mpf("0.9501"), mpmath.mpf("0.9504")
        x = mpmath.findroot(lambda x: mpmath.diff(r, x), ends, solver="anderson")
        assert ROUGH_POINT[0] == pytest.approx(float(x), rel=1e-14)
        assert pytest.approx(float(r(x)), rel=1e-15) == ROUGH_VALUE


def test_one_half_is_smooth_and_the_other_has_ripples():
    stage = practice("half-rough").network.stages[0]
    assert stage.function is not None
    turns = []
    for low in (0.0, 0.5):
        slopes = np.diff(stage.function(x=np.linspace(low, low + 0.5, 10_001)))
        turns.append(int(np.sum(np.diff(np.sign(slopes[slopes != 0])) != 0)))
    assert turns[0] == 1
    assert turns[1] >= 14
