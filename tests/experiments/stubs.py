"""Quick jobs that replace the algorithms of the paper, importable by worker processes."""

import os
import time
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from cascada.algorithms import RandomSearch
from cascada.experiments import plan
from cascada.experiments.plan import Job, Settings
from cascada.experiments.reproduce import compute
from cascada.experiments.run import recommended_regret, run
from cascada.experiments.statistics import NON_ADAPTIVE
from cascada.problems import sampled_chain

cached_chain = lru_cache(sampled_chain)
TINY = Settings(horizon=5, trials=2, family=3, chains=3)


def silent(_done: int, _total: int) -> None:
    """Ignore progress."""


def random_search(settings: Settings, job: Job) -> Any:
    """Run random search for every algorithm."""
    if job.label == plan.PROFILE:
        return plan.work(settings, job)
    problem, seed = cached_chain(job.chain), [settings.seed, job.chain, len(job.label), job.trial]
    if job.label == NON_ADAPTIVE:
        return [recommended_regret(problem, RandomSearch(), T, seed) for T in settings.non_adaptive_runs]
    return run(problem, RandomSearch(), settings.horizon, seed)


def instant(settings: Settings, job: Job) -> Any:
    """Numbers without a chain, for tests of the execution of jobs."""
    rng = np.random.default_rng([settings.seed, job.chain, job.trial, *job.label.encode()])
    if job.label == plan.PROFILE:
        share = float(rng.uniform())
        return {"seed": job.chain, "maximum": 1.0, "minimum": 0.0, "near": 2, "share": share, "lead": 1 - share}
    count = len(settings.non_adaptive_runs) if job.label == NON_ADAPTIVE else settings.horizon
    return rng.uniform(size=count).tolist()


def logged(log: str, settings: Settings, job: Job) -> Any:
    """`instant`, which also writes name, process and threads of every job to a file."""
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(f"{job.name} {os.getpid()} {os.environ['OMP_NUM_THREADS']}\n")
    return instant(settings, job)


def slow(log: str, settings: Settings, job: Job) -> Any:
    """`logged`, but jobs other than profiles and cEI never end."""
    result = logged(log, settings, job)
    if job.label not in (plan.PROFILE, "cEI"):
        time.sleep(1000)
    return result


def fatal(log: str, settings: Settings, job: Job) -> Any:
    """`logged`, but one job kills its process."""
    if job.label == "EI":
        os._exit(9)
    return logged(log, settings, job)


def faulty(settings: Settings, job: Job) -> Any:
    """`instant`, but one job raises."""
    if job.label == "EI":
        raise ZeroDivisionError("a fault of this job")
    return instant(settings, job)


def slowly(out: str, log: str) -> None:
    """The main function of the process that a test interrupts."""
    compute(TINY, Path(out), 2, silent, partial(slow, log))
