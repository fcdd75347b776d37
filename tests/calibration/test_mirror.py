"""Calibration of a mirrored process: every number is the same, or has the other sign, to the last bit."""

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.calibration import Calibrated, Calibration, calibrate
from cascada.gp import Posterior
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.network import Network, Stage, chain
from cascada.space import Real

XY = {"x": Real(-2, 2), "y": Real(-2, 2)}
HIGH = chain(Stage("f", controls=XY, outputs=["u", "v"]), Stage("g"))
LOW = HIGH.mirrored()


def runs(count: int) -> Array:
    x, y = np.random.default_rng(5).uniform(-2, 2, (2, count))
    u, v = np.sin(2 * x) + y, 0.5 * x * np.abs(y)
    return np.stack([x, y, u, v, np.cos(u) - 0.3 * v], axis=1)


def learned(network: Network, rows: Array, first: int) -> Calibrated:
    """The calibration by the first rows, then by one more at a time."""
    found = calibrate(network, rows[:first], Calibration(), SMALLEST_JITTER)
    for n in range(first + 1, len(rows) + 1):
        found = calibrate(network, rows[:n], Calibration(), SMALLEST_JITTER, found)
    return found


@pytest.mark.parametrize(("first", "count"), [(6, 9), (12, 12), (40, 46)])
def test_a_negated_objective_has_the_same_kernels_and_negated_means(first: int, count: int) -> None:
    rows = runs(count)
    high, low = learned(HIGH, rows, first), learned(LOW, rows * np.array([1.0, 1.0, 1.0, 1.0, -1.0]), first)
    both = zip((*high.acting.stages, *high.judging.stages), (*low.acting.stages, *low.judging.stages), strict=True)
    for one, other in both:
        sign = -1.0 if one.node.stage.name == "g" else 1.0
        assert one.node.stage.kernel == other.node.stage.kernel
        np.testing.assert_array_equal(one.node.stage.offset, sign * other.node.stage.offset)
        assert one.belief is not None
        assert other.belief is not None
        assert isinstance(one.belief.posterior, Posterior)
        assert isinstance(other.belief.posterior, Posterior)
        np.testing.assert_array_equal(one.belief.posterior.whitened, sign * other.belief.posterior.whitened)
        np.testing.assert_array_equal(one.belief.norm_bound, other.belief.norm_bound)
        assert one.span is not None
        assert other.span is not None
        np.testing.assert_array_equal(one.span.lower, other.span.lower)
