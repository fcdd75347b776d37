"""Processes drawn from the runs: a function of every modelled output, under kernels that are drawn as well."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cascada.arrays import Array
from cascada.calibration.beliefs import parts_of
from cascada.calibration.fit import Fit
from cascada.calibration.kernel_draws import TEMPER, KernelDraw, kernel_draws, with_variance
from cascada.calibration.likelihood import PRIOR_COUNT
from cascada.calibration.runs import Runs
from cascada.calibration.widening import neighbourhoods, widening
from cascada.gp.paths import Paths, inverse_factor
from cascada.kernels import Stationary
from cascada.network import Network
from cascada.network.drawn import DrawnNetwork

#: Kernels that are drawn for every output, and functions under each of them.
KERNELS, EACH = 16, 4


class ProcessDraws(NamedTuple):
    """`KERNELS * EACH` drawn processes."""

    process: DrawnNetwork
    widened: float  # the largest factor by which functions are wider than their kernels say


def process_draws(
    network: Network, data: Array, fits: Mapping[tuple[str, str], Fit], rng: np.random.Generator
) -> ProcessDraws:
    """Processes that agree with exact runs (t, V); `fits` are those of the outputs without a kernel."""
    runs, widest = Runs(data, np.arange(len(data))), 1.0
    paths: dict[tuple[str, str], Paths] = {}
    for node in network.nodes:
        for part in parts_of(node):
            inputs, outputs = runs.of(part)
            for j, output in enumerate(part.stage.modelled):
                column, fit = outputs[:, j], fits.get((node.stage.name, output))
                if fit is not None:
                    draws, ranges = kernel_draws(inputs, column, fit, KERNELS, rng), fit.ranges
                else:
                    draws = _with_given_kernel(part.stage.kernel, part.stage.offset[j], inputs, column, rng)
                    ranges = np.ptp(inputs, axis=0)
                draws, factor = _widened(draws, inputs, column, np.where(ranges > 0, ranges, 1.0))
                kernels, means = [draw.kernel for draw in draws], [draw.mean for draw in draws]
                paths[node.stage.name, output] = Paths(inputs, column, kernels, means, EACH, rng)
                widest = max(widest, factor)
    return ProcessDraws(DrawnNetwork(network, paths), widest)


def _widened(draws: list[KernelDraw], inputs: Array, outputs: Array, ranges: Array) -> tuple[list[KernelDraw], float]:
    """The draws with the sd that the runs ask for, and the largest factor."""
    blocks, found, widest = neighbourhoods(inputs, ranges), [], 1.0
    for draw in draws:
        inverse = inverse_factor(draw.kernel(inputs, inputs))
        factor = widening(inverse.T @ inverse, outputs - draw.mean, blocks)
        found.append(draw.wider(factor))
        widest = max(widest, factor)
    return found, widest


def _with_given_kernel(
    kernel: object, offset: float, inputs: Array, outputs: Array, rng: np.random.Generator
) -> list[KernelDraw]:
    """Draws of the variance alone, for a kernel that was given, with the given variance as the prior's."""
    assert isinstance(kernel, Stationary), "checked before"
    inverse, rest = inverse_factor(kernel(inputs, inputs)), outputs - offset
    spent = float(np.sum((inverse @ rest) ** 2)) + PRIOR_COUNT
    n = len(outputs) + PRIOR_COUNT
    variances = kernel.variance * spent * TEMPER / rng.chisquare(TEMPER * n, KERNELS)
    return [KernelDraw(with_variance(kernel, float(variance)), float(offset)) for variance in variances]
