"""Looseness of the theorems: regret of GPN-UCB and its bounds on processes that satisfy all assumptions.

    python -m benchmarks.regret_bounds [--seeds 10] [--write docs/theory.md]

Stages of exact norm B = 2, controls in [−2, 2], candidates on a grid; Σ_T is bounded over all inputs that the
candidates lead to in each layer.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.command import print_or_write_seeds
from benchmarks.environment import description
from benchmarks.markdown import table
from cascada.kernels import Matern, SquaredExponential, Stationary
from cascada.problems import certified
from cascada.space import Grid
from cascada.theory.measurement import measure
from cascada.theory.promises import layers_of
from cascada.theory.regret import per_step_bound, regret_bounds, trivial_bound
from cascada.theory.sums import sd_sum

NAME = "benchmarks.regret_bounds"
STRUCTURES = ("chain", "controls", "feed-forward", "multi-output")
KERNELS: tuple[Stationary, ...] = (SquaredExponential(1.0), Matern(1.5, 2.0))
HORIZONS = (25, 100)
HEADER = (
    "structure",
    "kernel",
    "T",
    "R_T",
    "Σ_t Σ_i w_i σ",
    "Σ_i w_i Σ⁽ⁱ⁾_T",
    "theorem",
    "2 B s T",
    "theorem over R_T",
    "broken",
)


@dataclass(frozen=True)
class Looseness:
    """One run: its regret and bounds, sharpest first, and the number of bounds below their predecessor."""

    values: tuple[float, ...]  # R_T, per step, by layer, theorem
    trivial: float
    broken: int


def loosen(structure: str, kernel: Stationary, horizon: int, seed: int) -> Looseness:
    """Run GPN-UCB on one process and compute its bounds."""
    problem = certified(structure, seed, kernel)
    network = problem.network
    side = 25 if network.domain.dimension == 2 else 8
    truth = problem.values(Grid(dict.fromkeys(network.controls, side)).points(network.domain))
    run = measure(network, truth, horizon, balls=structure == "multi-output")
    layers = layers_of(network)
    sums = []
    for node in network.nodes:
        assert node.stage.kernel is not None, "certified stages have kernels"
        sums.append(sd_sum(node.stage.kernel, np.unique(truth[:, list(node.inputs)], axis=0), horizon).upper)
    ahead = regret_bounds(layers, sums)
    values = (run.cumulative, per_step_bound(layers, run.sds).value, ahead[0].value, ahead[-1].value)
    broken = sum(a > b for a, b in pairwise(values))
    return Looseness(values, trivial_bound(layers, horizon, kernel.variance**0.5).value, broken)


def row(structure: str, kernel: Stationary, horizon: int, seeds: int) -> list[str]:
    runs = [loosen(structure, kernel, horizon, seed) for seed in range(seeds)]
    middle = np.median([run.values for run in runs], axis=0)
    ratio = float(np.median([run.values[-1] / run.values[0] for run in runs]))
    return [
        structure,
        type(kernel).__name__,
        str(horizon),
        f"{middle[0]:.2f}",
        *(f"{value:,.0f}" for value in middle[1:]),
        f"{runs[0].trivial:,.0f}",
        f"{ratio:,.0f}",
        str(sum(run.broken for run in runs)),
    ]


def report(command: str, seeds: int) -> str:
    """The section for docs/theory.md."""
    rows = [row(s, kernel, T, seeds) for s in STRUCTURES for kernel in KERNELS for T in HORIZONS]
    return "\n".join(
        [
            "## How loose the theorems are",
            "",
            f"Medians over {seeds} random processes. *broken* counts the inequalities from left to right, R_T to the",
            "theorem, that failed in any run. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(HEADER, rows),
        ]
    )


if __name__ == "__main__":
    print_or_write_seeds(NAME, __doc__, report, 10)
