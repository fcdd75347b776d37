"""The summary of a benchmark: quartiles of the simple regret, CPU seconds, and comparisons seed by seed.

Comparisons are paired: two algorithms with the same seed start with the same points. The ratio of their final regrets
is summarised by its median and the interval of the sign test between two order statistics, which is exact for any
distribution and needs no random numbers. At least six pairs are needed.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cascada.arrays import Array
from cascada.experiments.bench_plan import Plan

CONFIDENCE = 0.95
#: Final regrets are raised to this fraction of the problem's scale (optimum − median value of the initial designs), so
#: that ratios and logarithms exist. Optima are known to about nine digits.
FLOOR = 1e-9
_LAST = 10  # the number of last asks whose CPU seconds count; they have most data and are the most expensive

Record = Mapping[str, Any]
Verdict = Literal["better", "worse", "undecided"]


@dataclass(frozen=True)
class Quartiles:
    """Quartiles over seeds of the simple regret after `evaluations` beyond the initial design."""

    evaluations: int
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Standing:
    """The results of one algorithm on one problem; quartiles are over the runs that did not fail."""

    algorithm: str
    runs: int
    failed: int
    message: str | None  # of the first failed run
    replaced: int  # repeated points that were replaced by random ones
    quartiles: tuple[Quartiles, ...]
    cpu: float | None  # the median of the seconds of an ask and its tell
    gap: float | None  # the median of the final gaps
    gap_kinds: Mapping[str, int]


@dataclass(frozen=True)
class PairedComparison:
    """Ratios of the final regrets of an algorithm to those of a reference with the same seeds; below 1 is better."""

    algorithm: str
    reference: str
    better: int
    equal: int
    worse: int
    ratio: float | None  # the median
    low: float | None
    high: float | None
    verdict: Verdict  # according to the interval


@dataclass(frozen=True)
class OnProblem:
    """All algorithms on one problem."""

    problem: str
    optimum: float
    initial: int
    cost: float  # of one run, all stages together
    floor: float
    beyond: float  # by how much the best run exceeds the recorded optimum, if by more than the floor; else 0
    standings: tuple[Standing, ...]
    comparisons: tuple[PairedComparison, ...]


def summarise(plan: Plan, records: Sequence[Record], cpu: Sequence[Record]) -> tuple[OnProblem, ...]:
    """The summary of all records, problem by problem in the order of the plan."""
    return tuple(_on_problem(plan, name, [r for r in records if r["problem"] == name], cpu) for name in plan.problems)


def regrets_at(records: Sequence[Record], evaluations: Sequence[int]) -> Array:
    """The simple regrets (runs, n) after the given numbers of evaluations beyond the initial design; never below 0.

    A run that ended early keeps its last regret.
    """
    rows = [[r["regret"][min(r["initial"] + n, len(r["regret"])) - 1] for n in evaluations] for r in records]
    return np.maximum(np.array(rows, dtype=np.float64).reshape(-1, len(evaluations)), 0.0)


def finished(records: Sequence[Record]) -> list[Record]:
    """The records of runs that did not fail."""
    return [record for record in records if record["status"] != "failed"]


def floor_of(records: Sequence[Record]) -> float:
    """The smallest meaningful regret on one problem; the same for all algorithms."""
    begun = {r["seed"]: r["values"][: r["initial"]] for r in records if len(r["values"]) >= r["initial"]}
    values = [value for seed in begun.values() for value in seed]
    scale = abs(records[0]["optimum"] - float(np.median(values))) if values else 0.0
    return FLOOR * (scale if scale > 0 else 1.0)


def median_ratio(ratios: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """The median (on a logarithmic scale) and the sign test's interval of at least 95 %, None with too few ratios.

    >>> median_ratio([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    (8.0, 1.0, 64.0)
    """
    if not ratios:
        return None, None, None
    ordered = np.sort(np.asarray(ratios, dtype=np.float64))
    median = float(np.exp2(np.median(np.log2(ordered))))
    k = sign_test_rank(len(ordered))
    return (median, None, None) if k == 0 else (median, float(ordered[k - 1]), float(ordered[-k]))


def sign_test_rank(count: int) -> int:
    """The largest k for which the k-th smallest and k-th largest of `count` values enclose the median; 0 if none does.

    They do not if fewer than k values lie on one side of it: 2 P(Bin(n, 1/2) < k) must be at most 5 %.
    """
    outside, rank = 0.0, 0
    for k in range(count // 2):
        outside += 2.0 * math.comb(count, k) / 2.0**count
        if outside > 1.0 - CONFIDENCE:
            break
        rank = k + 1
    return rank


def _on_problem(plan: Plan, problem: str, records: list[Record], cpu: Sequence[Record]) -> OnProblem:
    by_algorithm = {name: [r for r in records if r["algorithm"] == name] for name in plan.algorithms}
    seconds = {(r["problem"], r["algorithm"], r["seed"]): r for r in cpu}
    floor = floor_of(records)
    lowest = min((r["regret"][-1] for r in records if r["regret"]), default=0.0)
    first, *others = plan.algorithms
    return OnProblem(
        problem,
        records[0]["optimum"],
        records[0]["initial"],
        records[0]["cost"],
        floor,
        -lowest if lowest < -floor else 0.0,
        tuple(_standing(plan, name, found, seconds) for name, found in by_algorithm.items()),
        tuple(_comparison(other, first, by_algorithm[other], by_algorithm[first], floor) for other in others),
    )


def _standing(
    plan: Plan, algorithm: str, records: list[Record], seconds: Mapping[tuple[str, str, int], Record]
) -> Standing:
    good = finished(records)
    checkpoints = plan.settings.checkpoints
    quartiles: tuple[Quartiles, ...] = ()
    if good:
        found = np.quantile(regrets_at(good, checkpoints), (0.25, 0.5, 0.75), axis=0)
        quartiles = tuple(Quartiles(n, *column) for n, column in zip(checkpoints, found.T.tolist(), strict=True))
    steps = [
        ask + tell
        for r in good
        for ask, tell in list(_steps(seconds[r["problem"], algorithm, r["seed"]], r["initial"]))[-_LAST:]
    ]
    last = [r["gaps"][-1] for r in good if r.get("gaps")]
    gaps = [found["gap"] for found in last if found["gap"] is not None]
    return Standing(
        algorithm,
        len(records),
        len(records) - len(good),
        next((r["message"] for r in records if r["status"] == "failed"), None),
        sum(r["replaced"] for r in good),
        quartiles,
        float(np.median(steps)) if steps else None,
        float(np.median(gaps)) if gaps else None,
        dict(Counter(found["kind"] for found in last)),
    )


def _steps(cpu: Record, initial: int) -> "zip[tuple[float, float]]":
    """The seconds of every ask and the following tell; an ask without a point has no tell."""
    return zip(cpu["ask"], cpu["tell"][initial:], strict=False)


def _comparison(
    algorithm: str, reference: str, ours: list[Record], theirs: list[Record], floor: float
) -> PairedComparison:
    end, against = ({r["seed"]: max(r["regret"][-1], floor) for r in finished(found)} for found in (ours, theirs))
    ratios = [end[seed] / against[seed] for seed in sorted(end.keys() & against.keys())]
    signs = Counter(float(np.sign(np.log(ratio))) for ratio in ratios)
    median, low, high = median_ratio(ratios)
    verdict = _verdict(low, high)
    return PairedComparison(algorithm, reference, signs[-1.0], signs[0.0], signs[1.0], median, low, high, verdict)


def _verdict(low: float | None, high: float | None) -> Verdict:
    if low is None or high is None or low <= 1.0 <= high:
        return "undecided"
    return "better" if high < 1.0 else "worse"
