"""Cells around settings of logarithmic controls, whose coordinates are rounded."""

import mpmath
import numpy as np

import cascada as cd
from cascada.network import prior_beliefs
from cascada.network.slack import around_setting


def test_the_cell_around_a_point_contains_the_setting_that_the_point_is_decoded_to() -> None:
    kernel = cd.SquaredExponential(1.0)
    network = cd.chain(cd.Stage("f", {"x": cd.Real(1e-3, 1e3, log=True)}, kernel=kernel, norm_bound=1.0))
    rng = np.random.default_rng(0)
    # Near x = 1 the logarithm is small, and the exponential is rounded by much more than a part of it.
    scale = 10.0 ** rng.uniform(-18, 0.8, (500, 1))
    points = scale * rng.choice([-1.0, 1.0], (500, 1))
    cells = around_setting(prior_beliefs(network), points)
    settings = network.domain.decode(points)
    with mpmath.workdps(40):
        for low, setting, high in zip(cells.lower[:, 0], settings[:, 0], cells.upper[:, 0], strict=True):
            assert low <= mpmath.log(mpmath.mpf(float(setting))) <= high
