"""The plan of the reproduction: its runs as data, and the execution of one run.

A run is an algorithm on a chain of the family. It depends only on the settings and its three fields, so it can be done
in any process, in any order, and repeated.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any

from cascada import __version__
from cascada.algorithms import (
    CUCB,
    GPUCB,
    Algorithm,
    CascadedEI,
    ExpectedImprovement,
    NonAdaptive,
    OptimisticImprovement,
)
from cascada.arrays import as_whole_number
from cascada.errors import ArgumentError
from cascada.experiments.family import profile
from cascada.experiments.paper_grid import PaperGrid
from cascada.experiments.run import JITTER, outcomes, recommended_regret, run
from cascada.experiments.statistics import COMPARED, FACTORS, NON_ADAPTIVE, OURS, SWEEP, squares
from cascada.problems import Problem
from cascada.problems.sampled_chain import POINTS, sampled_chain

ALL = (*COMPARED, *(label for label in SWEEP if label not in COMPARED))  # run on g1 and g2
PROFILE = "profile"

# Rough relative costs: the longest runs start first, so that no core idles at the end.
_COSTS = {"cEI": 30.0, OURS: 2.0, NON_ADAPTIVE: 2.0}


@dataclass(frozen=True)
class Settings:
    """The numbers of the paper and the size of the family.

    The rule in `family` selects g1 and g2 from `family` chains; `chains` of them are run, including g1 and g2.
    """

    horizon: int = 200  # T
    trials: int = 10
    family: int = 20
    chains: int = 20
    samples: int = 1000  # S of cEI
    seed: int = 0
    jitter: float = JITTER  # λ
    norm_bound: float = 2.0  # B
    lipschitz: float = 2.0  # L

    def __post_init__(self) -> None:
        for name, least in (("horizon", 4), ("trials", 1), ("family", 2), ("chains", 2), ("samples", 1), ("seed", 0)):
            object.__setattr__(self, name, as_whole_number(getattr(self, name), name, least))
        if self.chains > self.family:
            raise ArgumentError(f"chains must be at most the size of the family, {self.family}; got {self.chains}.")

    @property
    def non_adaptive_runs(self) -> tuple[int, ...]:
        """The values of T for NonAda in the paper, 2², …, 14², up to the horizon."""
        return squares(self.horizon)

    def as_json(self) -> dict[str, Any]:
        """All settings and the version of the library, because a new version may change every number."""
        return {**asdict(self), "version": __version__}


#: The same g1 and g2 with fewer and shorter trials, and three other chains.
QUICK = Settings(horizon=60, trials=3, chains=5)


@dataclass(frozen=True)
class Job:
    """One run: an algorithm (or `NonAda`, or the profile) on a chain."""

    chain: int
    label: str
    trial: int = 0

    @property
    def name(self) -> str:
        """The file name of its result."""
        return f"chain-{self.chain:03d}-{re.sub('[^A-Za-z0-9.]+', '-', self.label)}-{self.trial:02d}"

    @property
    def cost(self) -> float:
        """Its relative cost."""
        return _COSTS.get(self.label, 1.0)


def profiles(settings: Settings) -> list[Job]:
    """The jobs that compute the profiles, from which g1 and g2 are selected."""
    return [Job(seed, PROFILE) for seed in range(settings.family)]


def chosen(settings: Settings, g1: int, g2: int) -> list[int]:
    """The seeds of the chains that are run: g1, g2 and the first others, sorted."""
    others = [seed for seed in range(settings.family) if seed not in (g1, g2)]
    return sorted([g1, g2, *others[: settings.chains - 2]])


def runs(settings: Settings, chains: Sequence[int], g1: int, g2: int) -> list[Job]:
    """The sequential runs: all algorithms and trials on g1 and g2, one trial of the compared algorithms elsewhere."""
    return [
        Job(chain, label, trial)
        for chain in chains
        for label in (ALL if chain in (g1, g2) else COMPARED)
        for trial in range(settings.trials if chain in (g1, g2) else 1)
    ]


def non_adaptive(chains: Sequence[int]) -> list[Job]:
    """NonAda on every chain, with all T in one job; it is fast and not random."""
    return [Job(chain, NON_ADAPTIVE) for chain in chains]


def work(settings: Settings, job: Job) -> Any:
    """Do a job and return the regrets t = 1, …, T; for `NonAda` the regret for every T; for a profile its fields."""
    problem = _chain(job.chain, settings.norm_bound, settings.lipschitz)
    if job.label == PROFILE:
        return asdict(profile(job.chain, outcomes(problem).objective.reshape(POINTS, POINTS)))
    # The same seed for all algorithms, so that they break ties equally, for example before the first run.
    seed = [settings.seed, job.chain, job.trial]
    if job.label == NON_ADAPTIVE:
        counts = settings.non_adaptive_runs
        made = [(algorithm(settings, job.label, count), count) for count in counts]
        return [recommended_regret(problem, each, count, seed, settings.jitter) for each, count in made]
    return run(problem, algorithm(settings, job.label), settings.horizon, seed, settings.jitter)


def algorithm(settings: Settings, label: str, count: int | None = None) -> Algorithm:
    """The algorithm with a label; `count` is the T of NonAda."""
    made: Mapping[str, Callable[[], Algorithm]] = {
        OURS: PaperGrid,
        NON_ADAPTIVE: lambda: NonAdaptive(runs=count),
        "cUCB": CUCB,
        "cEI": lambda: CascadedEI(samples=settings.samples),
        "GP-UCB": GPUCB,
        "EI": ExpectedImprovement,
        **{label: partial(OptimisticImprovement, b=b) for label, b in zip(SWEEP, FACTORS, strict=True)},
    }
    return made[label]()


@lru_cache(maxsize=32)  # a worker makes many runs of few chains
def _chain(seed: int, norm_bound: float, lipschitz: float) -> Problem:
    return sampled_chain(seed, norm_bound, lipschitz)
