"""Which runs the reproduction consists of, as data, and what one of them does.

A run is an algorithm on a chain of the family; all that it needs is in the settings and its own three fields, so it can
be done in any process, in any order, and again.
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

# Compared with the quick ones, roughly: the longest come first, so that no core idles at the end.
_COSTS = {"cEI": 30.0, OURS: 2.0, NON_ADAPTIVE: 2.0}


@dataclass(frozen=True)
class Settings:
    """The paper's numbers, and the size of the family.

    The rule of `family` picks g1 and g2 among `family` chains; `chains` of them are run, g1 and g2 included.
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
            raise ArgumentError(f"chains must be at most the family's {self.family}; got {self.chains}.")

    @property
    def non_adaptive_runs(self) -> tuple[int, ...]:
        """The paper's T of NonAda, 2², …, 14², as far as the horizon goes."""
        return squares(self.horizon)

    def as_json(self) -> dict[str, Any]:
        """All settings, and the version of the library, which may change every number."""
        return {**asdict(self), "version": __version__}


#: The same g1 and g2 with fewer and shorter trials, and three chains beside them.
QUICK = Settings(horizon=60, trials=3, chains=5)


@dataclass(frozen=True)
class Job:
    """One run: an algorithm (or `NonAda`, or the profile) on a chain."""

    chain: int
    label: str
    trial: int = 0

    @property
    def name(self) -> str:
        """Its name as a file."""
        return f"chain-{self.chain:03d}-{re.sub('[^A-Za-z0-9.]+', '-', self.label)}-{self.trial:02d}"

    @property
    def cost(self) -> float:
        """How long it takes, compared with others."""
        return _COSTS.get(self.label, 1.0)


def profiles(settings: Settings) -> list[Job]:
    """What is looked at before g1 and g2 are known."""
    return [Job(seed, PROFILE) for seed in range(settings.family)]


def chosen(settings: Settings, g1: int, g2: int) -> list[int]:
    """The seeds of the chains that are run: g1, g2 and the first others, in order."""
    others = [seed for seed in range(settings.family) if seed not in (g1, g2)]
    return sorted([g1, g2, *others[: settings.chains - 2]])


def runs(settings: Settings, chains: Sequence[int], g1: int, g2: int) -> list[Job]:
    """The sequential runs: all algorithms and trials on g1 and g2, one trial of the compared ones on the others."""
    return [
        Job(chain, label, trial)
        for chain in chains
        for label in (ALL if chain in (g1, g2) else COMPARED)
        for trial in range(settings.trials if chain in (g1, g2) else 1)
    ]


def non_adaptive(chains: Sequence[int]) -> list[Job]:
    """NonAda on every chain, once for every T in one job: it has no randomness and is soon done."""
    return [Job(chain, NON_ADAPTIVE) for chain in chains]


def work(settings: Settings, job: Job) -> Any:
    """Do a job: regrets t = 1, …, T; for `NonAda` the regret for every T; for the profile, its fields."""
    problem = _chain(job.chain, settings.norm_bound, settings.lipschitz)
    if job.label == PROFILE:
        return asdict(profile(job.chain, outcomes(problem).objective.reshape(POINTS, POINTS)))
    # The same for all algorithms: where all points tie, as before the first run, they are led to choose the same one.
    seed = [settings.seed, job.chain, job.trial]
    if job.label == NON_ADAPTIVE:
        counts = settings.non_adaptive_runs
        made = [(algorithm(settings, job.label, count), count) for count in counts]
        return [recommended_regret(problem, each, count, seed, settings.jitter) for each, count in made]
    return run(problem, algorithm(settings, job.label), settings.horizon, seed, settings.jitter)


def algorithm(settings: Settings, label: str, count: int | None = None) -> Algorithm:
    """The algorithm of a label; `count` is NonAda's T."""
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
