"""Processes drawn from the runs: a function of every modelled output, under kernels that are drawn as well."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cascada.arrays import Array
from cascada.calibration.beliefs import Runs, parts_of
from cascada.calibration.fit import Fit
from cascada.calibration.kernel_draws import TEMPER, KernelDraw, kernel_draws, with_variance
from cascada.calibration.likelihood import PRIOR_COUNT
from cascada.calibration.widening import neighbourhoods, widening
from cascada.errors import ArgumentError
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


def check_probable(network: Network) -> None:
    """Raise `ArgumentError` if a probable gap is not defined for a process; the error names the feature."""
    if not network.estimated:
        raise ArgumentError(
            "a probable gap is for stages without a kernel or norm_bound; got both for every stage, so that the gap of "
            "the certificate is more: it is proven. Use certificate(), or stop_on='proven'."
        )
    uncertain = {name: network.domain.controls[name].deviation for name in network.uncertain}
    alone = next((f"{stage.name!r}" for stage in network.stages if stage.reachable != "run"), "")
    choices = [repr(network.domain.names[j]) for j in network.domain.choices]
    refused = {
        f"reachable=, which stage {alone} has,": bool(alone),
        "error=": network.noisy or network.read_with_errors,
        f"context=True, which {', '.join(network.context)} has,": bool(network.context),
        f"deviation=, which {', '.join(uncertain)} has,": bool(uncertain),
        f"the choice {', '.join(choices)}": bool(choices),
    }
    for word, given in refused.items():
        if given:
            raise ArgumentError(
                f"a probable gap is not defined with {word.rstrip(',')}; use the gap of the certificate, or leave it "
                f"out."
            )
    for stage in network.stages:
        if stage.modelled and stage.kernel is not None and not isinstance(stage.kernel, Stationary):
            raise ArgumentError(
                f"a probable gap is not defined for the joint norm of {stage.kernel!r} at stage {stage.name!r}; use a "
                f"kernel with one norm per output, or leave the kernel out."
            )


def has_probable_gap(network: Network) -> bool:
    """Whether a probable gap is defined for a process."""
    try:
        check_probable(network)
    except ArgumentError:
        return False
    return True


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
