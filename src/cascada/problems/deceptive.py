"""Processes on which estimates from data are wrong: the data give no hint of the best region.

`kernel` and `norm_bound` apply to every stage; with None they are estimated from data.
"""

import math

import numpy as np

from cascada.network import Stage, chain
from cascada.problems.function_networks import Kernel
from cascada.problems.problem import Optimum, Problem
from cascada.problems.value_table import Column, ValueTable
from cascada.space import Real


def narrow_peak(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """A broad peak of height 1 and a narrow peak that is higher by 0.15, both in the second stage.

    h = (1 − e^{−2x})/(1 − e^{−2}), then two Gaussians in (h, y): the one around (0.35, 0.4) is 0.3 and 0.5 wide, the
    one around (0.85, 0.7) only 0.025 in both.
    """
    unit = Real(0.0, 1.0)
    network = chain(
        Stage("h", {"x": unit}, kernel=kernel, norm_bound=norm_bound, function=_saturating),
        Stage("peaks", {"y": unit}, kernel=kernel, norm_bound=norm_bound, function=_two_peaks),
    )
    answer = Optimum(np.array([NARROW_POINT]), NARROW_VALUE, "numerical")
    return Problem("narrow-peak", "x → h, y → peaks", network, ValueTable(network), answer)


def half_rough(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """A first stage that is smooth in one half of its range and has ripples in the other, where the best point is.

    r = 0.8·e^{−((x − 0.2)/0.2)²} + s(2x − 1)·(1 + sin 30πx)/2 with s(t) = t²(3 − 2t) for t > 0, else 0; then
    r·(1 − (y − 0.6)²).
    """
    unit = Real(0.0, 1.0)
    network = chain(
        Stage("r", {"x": unit}, kernel=kernel, norm_bound=norm_bound, function=_half_rough),
        Stage("product", {"y": unit}, kernel=kernel, norm_bound=norm_bound, function=_product),
    )
    answer = Optimum(np.array([ROUGH_POINT]), ROUGH_VALUE, "numerical")
    return Problem("half-rough", "x → r, y → product", network, ValueTable(network), answer)


NARROW_POINT, NARROW_VALUE = (0.6637245118645686, 0.6999705657483310), 1.1504134550795677
ROUGH_POINT, ROUGH_VALUE = (0.9502489821701969, 0.6), 0.9721350847816075


def _saturating(x: Column) -> Column:
    return -np.expm1(-2.0 * x) / -math.expm1(-2.0)


def _two_peaks(h: Column, y: Column) -> Column:
    broad = np.exp(-(((h - 0.35) / 0.3) ** 2) - ((y - 0.4) / 0.5) ** 2)
    return broad + 1.107 * np.exp(-(((h - 0.85) / 0.025) ** 2) - ((y - 0.7) / 0.025) ** 2)


def _half_rough(x: Column) -> Column:
    t = np.maximum(2.0 * x - 1.0, 0.0)
    return 0.8 * np.exp(-(((x - 0.2) / 0.2) ** 2)) + t**2 * (3.0 - 2.0 * t) * 0.5 * (1.0 + np.sin(30.0 * math.pi * x))


def _product(r: Column, y: Column) -> Column:
    return r * (1.0 - (y - 0.6) ** 2)
