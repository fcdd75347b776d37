"""Statistics of runs, and confidence intervals of means over chains.

All numbers are shares of the chain's range (its maximum minus its minimum over the candidates) unless stated otherwise,
because chains of different ranges are averaged.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.errors import ArgumentError

Results = Mapping[str, Any]

OURS, NON_ADAPTIVE = "GPN-UCB", "NonAda"
FACTORS = tuple(10.0**k for k in range(-4, 5))  # the paper's b
SWEEP = tuple(f"OI b={b:g}" for b in FACTORS)
OI = "OI b=1"
BASELINES = ("cUCB", OI, "cEI", "GP-UCB", "EI")
COMPARED = (OURS, *BASELINES)  # run on every chain of the family

CONFIDENCE = 0.95
REGRET_FLOOR = 1e-3  # cumulative regrets are raised to this, so that ratios and logarithms exist


def squares(horizon: int) -> tuple[int, ...]:
    """The values of T for NonAda and its figure, 2², 3², …, 14², up to the horizon."""
    return tuple(k * k for k in range(2, 15) if k * k <= horizon)


def simple_regret(regret: Array) -> Array:
    """The regret of the best observed point so far, along the last axis."""
    return np.minimum.accumulate(regret, axis=-1)


@dataclass(frozen=True, eq=False)
class ChainRuns:
    """All runs on one chain: `regret[label]` is (trials, T) and instantaneous, `non_adaptive[T]` a simple regret.

    The fields are in units of the objective; the methods return shares of `spread` (the range).
    """

    seed: int
    spread: float
    regret: Mapping[str, Array]
    non_adaptive: Mapping[int, float]

    @property
    def horizon(self) -> int:
        """T, the length of every run."""
        return self.regret[OURS].shape[1]

    def first_trial(self) -> "ChainRuns":
        """Only the first trial of the compared algorithms, which every chain of the family has."""
        return replace(self, regret={label: self.regret[label][:1] for label in COMPARED})

    def cumulative(self, label: str) -> float:
        """R_T, averaged over trials."""
        return float(self.regret[label].sum(axis=1).mean() / self.spread)

    def regret_ratio(self, label: str) -> float:
        """R_T of an algorithm over that of GPN-UCB, each at least `REGRET_FLOOR`."""
        return max(self.cumulative(label), REGRET_FLOOR) / max(self.cumulative(OURS), REGRET_FLOOR)

    def curves(self, label: str) -> Array:
        """The simple regret of the best observed point after 1, …, T runs, (trials, T)."""
        return simple_regret(self.regret[label]) / self.spread

    def simple(self, label: str, runs: int) -> float:
        """The simple regret after `runs` runs, averaged over trials; for NonAda at the largest square ≤ `runs`."""
        if label == NON_ADAPTIVE:
            return self.non_adaptive[max(T for T in self.non_adaptive if runs >= T)] / self.spread
        return float(self.curves(label)[:, runs - 1].mean())

    def performance(self, label: str) -> float:
        """The mean of the simple regret over T = 2², …, 14²: the area under the curve in the paper."""
        return self._performances[label]

    @cached_property
    def _performances(self) -> Mapping[str, float]:
        chosen = squares(self.horizon)
        return {
            label: float(np.mean([self.simple(label, T) for T in chosen])) for label in (*self.regret, NON_ADAPTIVE)
        }


@dataclass(frozen=True, eq=False)
class Sample:
    """The runs of g1 and g2 with all their trials, and of every chain of the family with one."""

    g1: ChainRuns
    g2: ChainRuns
    family: tuple[ChainRuns, ...]
    samples: int  # S of cEI


def read(results: Results) -> Sample:
    """The runs in `results` by chain and algorithm; raises `ArgumentError` if some are missing."""
    horizon = int(results["settings"]["horizon"])
    if not squares(horizon):
        raise ArgumentError(f"runs must have at least 4 steps; got the horizon {horizon}.")
    runs = _runs(results["runs"], horizon)
    points: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in results["non_adaptive"]:
        points[record["chain"]][record["runs"]].append(float(record["regret"]))
    spreads = {chain["seed"]: float(chain["maximum"]) - float(chain["minimum"]) for chain in results["chains"]}
    chains = {}
    for seed, spread in spreads.items():
        if not spread > 0:
            raise ArgumentError(
                f"chain {seed} is constant: regrets need a range above 0 as their unit; got {spread:g}."
            )
        everything = seed in (results["g1"], results["g2"])
        _check_complete(seed, (*COMPARED, *SWEEP) if everything else COMPARED, runs[seed], "a run of")
        _check_complete(seed, squares(horizon), points[seed], f"{NON_ADAPTIVE} with T =")
        mean_points = {T: float(np.mean(values)) for T, values in points[seed].items()}
        chains[seed] = ChainRuns(seed, spread, runs[seed], mean_points)
    _check_complete("the family", (results["g1"], results["g2"]), chains, "chain")
    family = tuple(chain.first_trial() for chain in chains.values())
    return Sample(chains[results["g1"]], chains[results["g2"]], family, int(results["settings"]["samples"]))


def _runs(records: Sequence[Mapping[str, Any]], horizon: int) -> Mapping[int, Mapping[str, Array]]:
    trials: dict[int, dict[str, dict[int, Array]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        chain, label, trial = record["chain"], record["algorithm"], record["trial"]
        regret = np.asarray(record["regret"], dtype=np.float64)
        if regret.shape != (horizon,) or not np.isfinite(regret).all():
            raise ArgumentError(
                f"trial {trial} of {label} on chain {chain} must have {horizon} finite regrets, one per step; "
                f"got shape {regret.shape}. Run it again."
            )
        trials[chain][label][trial] = regret
    stacked: dict[int, Mapping[str, Array]] = defaultdict(dict)
    for chain, labels in trials.items():
        stacked[chain] = {label: np.stack([found[k] for k in sorted(found)]) for label, found in labels.items()}
    return stacked


def _check_complete(where: int | str, wanted: Sequence[Any], got: Mapping[Any, Any], what: str) -> None:
    missing = [str(name) for name in wanted if name not in got]
    if missing:
        place = f"chain {where}" if isinstance(where, int) else where
        raise ArgumentError(f"{place} lacks {what} {', '.join(missing)}. Run it before judging the claims.")


@dataclass(frozen=True)
class Interval:
    """A mean over chains and its 95 % confidence interval; None for a single chain."""

    mean: float
    low: float | None
    high: float | None


def mean_interval(values: Sequence[float]) -> Interval:
    """Student's interval of the mean; for paired differences it is the paired interval.

    >>> interval = mean_interval([1.0, 2.0, 3.0])
    >>> f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
    '2.000 [-0.484, 4.484]'
    """
    from scipy.stats import t

    data = np.asarray(values, dtype=np.float64)
    mean = float(data.mean())
    if len(data) < 2:
        return Interval(mean, None, None)
    quantile = float(t.ppf((1 + CONFIDENCE) / 2, len(data) - 1))
    half = quantile * float(data.std(ddof=1)) / len(data) ** 0.5
    return Interval(mean, mean - half, mean + half)


def ratio_interval(ratios: Sequence[float]) -> Interval:
    """The geometric mean and Student's interval of the logarithms."""
    logs = mean_interval([float(np.log(ratio)) for ratio in ratios])
    low, high = (None if end is None else float(np.exp(end)) for end in (logs.low, logs.high))
    return Interval(float(np.exp(logs.mean)), low, high)


def share_interval(count: int, total: int) -> Interval:
    """The share of independent cases in which something happened, and its exact (Clopper–Pearson) interval."""
    from scipy.stats import binomtest

    found = binomtest(count, total).proportion_ci(confidence_level=CONFIDENCE, method="exact")
    return Interval(count / total, float(found.low), float(found.high))
