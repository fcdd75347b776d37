"""Performance profiles: on how many runs an algorithm comes within a factor of the best of all algorithms.

E. Dolan and J. Moré, "Benchmarking optimization software with performance profiles", Mathematical Programming 2002.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from cascada.experiments.bench_plan import Plan
from cascada.experiments.bench_summary import Record, finished, floor_of
from cascada.tables import markdown_table

#: Factors of the smallest final regret of all algorithms on the same problem with the same seed.
FACTORS = (1.0, 2.0, 10.0, 100.0, 1000.0)


def profile(plan: Plan, records: Sequence[Record]) -> Mapping[str, tuple[float, ...]]:
    """For every algorithm, the share of pairs (problem, seed) with a final regret within each factor of the best.

    Every problem counts alike, and so does every seed of a problem. A failed run is within no factor.
    """
    shares: dict[str, list[list[float]]] = {name: [] for name in plan.algorithms}
    for problem in plan.problems:
        found = [record for record in records if record["problem"] == problem]
        floor = floor_of(found)
        ends = {(r["algorithm"], r["seed"]): max(r["regret"][-1], floor) for r in finished(found)}
        seeds = sorted({seed for _, seed in ends})
        best = {seed: min(end for (_, other), end in ends.items() if other == seed) for seed in seeds}
        for name in plan.algorithms:
            ratios = np.array([ends.get((name, seed), np.inf) / best[seed] for seed in seeds])
            shares[name].append([float(np.mean(ratios <= factor)) if seeds else 0.0 for factor in FACTORS])
    return {name: tuple(np.mean(rows, axis=0).tolist()) for name, rows in shares.items()}


def profile_table(plan: Plan, records: Sequence[Record]) -> str:
    """The profiles as a Markdown table."""
    rows = [[name, *(f"{share:.0%}" for share in shares)] for name, shares in profile(plan, records).items()]
    return markdown_table(["algorithm", *(f"within {factor:g}×" for factor in FACTORS)], rows)
