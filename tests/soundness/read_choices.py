"""Soundness of bounds from readings with errors where some controls are choices.

The processes of `choices`, whose every value has a function of its own of exactly the stated norm, or all values share
one norm, are read with the errors of `readings`, with those of `scatter`, and by whole studies.
"""

from collections.abc import Sequence

import numpy as np

from cascada.problems.certified_choices import certified_choices
from tests.soundness import read_studies, readings, scatter
from tests.soundness.choices import KERNELS, STRUCTURES
from tests.soundness.harness import Ledger
from tests.soundness.readings import KINDS, Case

COUNTS = (1, 6, 25)
#: Scatter is not supported with joint norms.
SCATTERED = tuple(structure for structure in STRUCTURES if structure != "joint")


def run(
    points: int,
    seed: int,
    runs: int = 0,
    structures: Sequence[str] = STRUCTURES,
    counts: tuple[int, ...] = COUNTS,
    alikes: Sequence[bool] = (False, True),
) -> Ledger:
    """Check every structure with bounded errors at growing numbers of runs, and studies of so many `runs`."""
    ledger = Ledger()
    for s, structure in enumerate(structures):
        for alike in alikes:
            if alike and structure == "joint":
                continue
            rng = np.random.default_rng([seed, STRUCTURES.index(structure), alike, 241])
            one = case(structure, seed + s + alike, rng, alike=alike)
            name = f"{structure}, alike" if alike else structure
            if points:
                readings.check(ledger, name, one, points, rng, counts)
            if runs:
                read_studies.check_study(ledger, f"{name}, study", one, 100, runs, rng)
                limited = read_studies.limited(one, rng)
                read_studies.check_study(ledger, f"{name}, study with limits", limited, 100, runs, rng)
    return ledger


def case(structure: str, turn: int, rng: np.random.Generator, *, alike: bool) -> Case:
    """A random process with choices, with L or without; `turn` chooses its kernel and the kind of its errors."""
    kernel, slopes = KERNELS[turn % len(KERNELS)], bool(rng.random() < 0.5) and structure != "joint"
    share = float(rng.choice([0.2, 0.7, 0.95])) if alike else None
    problem = certified_choices(structure, int(rng.integers(1 << 30)), kernel, alike=share, lipschitz=slopes)
    return readings.case_of(problem, KINDS[turn % len(KINDS)], rng)


def run_scatter(
    points: int,
    seed: int,
    processes: int = 1,
    counts: tuple[int, ...] = COUNTS,
    structures: Sequence[str] = SCATTERED,
) -> list[Ledger]:
    """Check processes of every structure with scatter, by turns alike and not; a ledger for each of them."""
    ledgers = []
    for s, structure in enumerate(structures):
        for i in range(processes):
            rng, ledger = np.random.default_rng([seed, s, i, 242]), Ledger()
            plain = case(structure, seed + s + i, rng, alike=(s + i) % 2 == 1)
            one = scatter.with_scatter(plain, scatter.KINDS[i % 2], rng)
            if one.network.scattered:
                readings.check(ledger, structure, one, points, rng, counts)
            ledgers.append(ledger)
    return ledgers
