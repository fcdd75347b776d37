"""Synthetic results of experiments with known properties."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cascada.experiments.statistics import BASELINES, COMPARED, NON_ADAPTIVE, OURS, SWEEP, squares

Regret = Callable[[int, str, int], Sequence[float]]

#: Constant regrets as shares of the range: R_T is T times the level, and every simple regret equals it.
LEVELS: Mapping[str, float] = {OURS: 0.02, NON_ADAPTIVE: 0.025, **dict.fromkeys(BASELINES, 0.10)}


def spread(seed: int) -> float:
    return 3.0 + seed


def level_of(levels: Mapping[str, float], label: str) -> float:
    """The level of a label; OI has the same level for every b."""
    return levels.get(label, levels["OI b=1"])


def constant(levels: Mapping[str, float], horizon: int) -> Regret:
    """Runs with constant regret."""
    return lambda seed, label, _: [level_of(levels, label) * spread(seed)] * horizon


def synthetic(
    levels: Mapping[str, float] | None = None,
    *,
    regret: Regret | None = None,
    horizon: int = 60,
    trials: int = 3,
    family: int = 4,
    samples: int = 1000,
    exceptions: Mapping[int, Mapping[str, float]] | None = None,
) -> dict[str, Any]:
    """Results on chains 0, 1, …, where g1 is the first and g2 the second (or also the first if there is only one).

    `levels` replaces some of `LEVELS` on every chain, `exceptions` on single chains. `regret(seed, label, trial)`
    returns the regrets of a run in units of the objective instead.
    """
    seeds = range(family)
    g1, g2 = 0, min(1, family - 1)
    by_chain = {seed: {**LEVELS, **(levels or {}), **(exceptions or {}).get(seed, {})} for seed in seeds}
    runs = []
    for seed in seeds:
        chosen = regret or constant(by_chain[seed], horizon)
        everything = seed in (g1, g2)
        for label in dict.fromkeys((*COMPARED, *SWEEP)) if everything else COMPARED:
            for trial in range(trials if everything else 1):
                record = {"chain": seed, "algorithm": label, "trial": trial}
                runs.append({**record, "regret": list(chosen(seed, label, trial))})
    return {
        "settings": {"horizon": horizon, "trials": trials, "family": family, "samples": samples},
        "chains": [
            {"seed": s, "maximum": 2.0 + s, "minimum": -1.0, "near": 3 - s % 2, "lead": 0.1 + s % 2} for s in seeds
        ],
        "g1": g1,
        "g2": g2,
        "runs": runs,
        "non_adaptive": [
            {"chain": seed, "runs": T, "regret": by_chain[seed][NON_ADAPTIVE] * spread(seed)}
            for seed in seeds
            for T in squares(horizon)
        ],
    }
