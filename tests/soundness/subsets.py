"""Soundness of studies with more runs than a model learns from.

The histories are those of `histories`, after runs in the past that exceed the largest number that a model learns from.
That number is small here, so that selections are made all the time. Searches with limits, as in `limits`, follow.
"""

from collections.abc import Sequence
from unittest import mock

import numpy as np

from cascada.problems import certified
from cascada.problems.limited_problem import LIMITED, limited
from cascada.study import selection
from tests.soundness import histories, limits
from tests.soundness.harness import Ledger

MOST = 12  # runs that a model learns from


def run(steps: int, seed: int, structures: Sequence[str] = histories.STRUCTURES) -> Ledger:
    """Check one history in memory, one with candidates, and a search with limits, for every structure."""
    ledger = Ledger()
    with mock.patch.object(selection, "MOST_RUNS", MOST):
        for s, structure in enumerate(structures):
            rng = np.random.default_rng([seed, s, 11])
            kernel = histories.KERNELS[(seed + s) % len(histories.KERNELS)]
            problem = certified(structure, int(rng.integers(1 << 30)), kernel)
            if rng.uniform() < 0.5:
                problem = histories.minimised(problem)
            for history in (histories.InMemory(problem, rng), histories.Listed(problem, rng)):
                with history.opened():
                    for _ in range(3 * MOST):
                        history.add()
                    histories.play(ledger, history, steps)
                    ledger[f"{history.kind}: some runs not learned"].verdict(
                        history.study.model.runs is not None and history.study.model.runs <= MOST, problem.name
                    )
            if structure in LIMITED:
                _check_limits(ledger, structure, seed, steps, rng)
    return ledger


def _check_limits(ledger: Ledger, structure: str, seed: int, steps: int, rng: np.random.Generator) -> None:
    """Check a search with a limit after many runs, most of which break it."""
    problem = limited(structure, seed, ("cut", "band")[seed % 2])
    study = limits.check_search(ledger, f"{structure} with limits, seed {seed}", problem, steps, rng, 3 * MOST)
    ledger["limits: some runs not learned"].verdict(
        study.model.runs is not None and study.model.runs <= MOST, problem.problem.name
    )
    best = study.best_trial
    ledger["limits: the best feasible run is learned"].verdict(
        best is None or bool((study.model.data == study.model.pending([best])).all(axis=1).any()), problem.problem.name
    )
