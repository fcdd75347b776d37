"""Soundness of studies with more runs than a model learns from.

The histories are those of `histories`, after runs in the past that exceed the limit. The limit is small here, so that
selections are made all the time.
"""

from collections.abc import Sequence
from unittest import mock

import numpy as np

from cascada.problems import certified
from cascada.study import selection
from tests.soundness import histories
from tests.soundness.harness import Ledger

MOST = 12  # runs that a model learns from


def run(steps: int, seed: int, structures: Sequence[str] = histories.STRUCTURES) -> Ledger:
    """Check one history in memory, and one with candidates, for every structure."""
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
    return ledger
