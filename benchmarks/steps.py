"""Cost of one step of every algorithm in the paper's setting: 2,500 candidates of a sampled chain, S = 1000.

python -m benchmarks.steps [--write docs/performance.md]
"""

import time
from statistics import median
from typing import Any

import numpy as np

from benchmarks.command import print_or_write
from benchmarks.environment import description
from benchmarks.markdown import duration, table, times
from cascada.algorithms import (
    CUCB,
    GPUCB,
    Algorithm,
    CascadedEI,
    ExpectedImprovement,
    OptimisticImprovement,
    RandomSearch,
    Situation,
)
from cascada.experiments.paper_grid import PaperGrid
from cascada.network import Beliefs, composite_mean, prior_beliefs
from cascada.problems.sampled_chain import PAPER_GRID, sampled_chain

NAME = "benchmarks.steps"
BASELINE = "GPN-UCB"
SIZES = (50, 100, 200)
STEPS = 15  # number of steps around each size whose median is reported

ALGORITHMS: dict[str, Algorithm] = {
    BASELINE: PaperGrid(),
    "cUCB": CUCB(),
    "OI": OptimisticImprovement(),
    "cEI": CascadedEI(),
    "GP-UCB": GPUCB(),
    "EI": ExpectedImprovement(),
    "random search": RandomSearch(),
}


def seconds(size: int) -> dict[str, float]:
    """Median seconds of one suggestion after about `size` distinct random runs, by algorithm.

    All algorithms use the same runs and take turns at every step, each with the cache of its last suggestion.
    """
    problem = sampled_chain(0, norm_bound=2.0, lipschitz=2.0)
    network = problem.network
    points = PAPER_GRID.points(network.domain)
    candidates, values = network.domain.encode(points), problem.values(points)
    order = np.random.default_rng(size).permutation(len(points))
    start = size - STEPS // 2
    data = values[order[:start]]
    beliefs = prior_beliefs(network, jitter=1e-7).append(data)
    caches: dict[str, Any] = dict.fromkeys(ALGORITHMS)
    spent: dict[str, list[float]] = {name: [] for name in [*ALGORITHMS, "NonAda"]}
    for step in range(STEPS + 1):
        for name, algorithm in ALGORITHMS.items():
            situation = Situation(
                beliefs=beliefs,
                data=data,
                pending=np.empty((0, 2)),
                candidates=candidates,
                best=float(data[:, network.objective_column].max()),
                trial=len(data),
                cache=caches[name],
            )
            started = time.perf_counter()
            suggestion = algorithm.suggest(situation, np.random.default_rng(step))
            spent[name].append(time.perf_counter() - started)
            caches[name] = suggestion.cache
        spent["NonAda"].append(_composite_mean_maximised(beliefs, candidates))
        row = values[order[start + step], None]
        data, beliefs = np.concatenate([data, row]), beliefs.append(row)
    return {name: median(turns[1:]) for name, turns in spent.items()}  # the first turn had no cache


def _composite_mean_maximised(beliefs: Beliefs, candidates: np.ndarray) -> float:
    """Seconds of the final step of NonAda, its only computation."""
    started = time.perf_counter()
    composite_mean(beliefs, candidates)[:, -1].argmax()
    return time.perf_counter() - started


def report(command: str) -> str:
    """The section for docs/performance.md."""
    found = {size: seconds(size) for size in SIZES}
    names = [*ALGORITHMS, "NonAda"]
    rows = []
    for name in names:
        label = {"NonAda": "NonAda (once, at the end)"}.get(name, name)
        ratios = [times(found[size][name] / found[size][BASELINE]) for size in SIZES]
        rows.append([label, *ratios, duration(found[SIZES[-1]][name])])
    return "\n".join(
        [
            "## What one step of each algorithm costs in the paper's setting",
            "",
            "One suggestion over the 2,500 candidates of a sampled chain (d = 2, m = 3, SE kernel, λ = 1e-7) after t",
            "distinct random runs, as a multiple of what GPN-UCB (the paper's grid variant) takes; cEI",
            "with S = 1000 samples. The last column is the time on this machine. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(["algorithm", *(f"t = {size}" for size in SIZES), f"seconds at t = {SIZES[-1]}"], rows),
        ]
    )


if __name__ == "__main__":
    print_or_write(NAME, __doc__, report)
