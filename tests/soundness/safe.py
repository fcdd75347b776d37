"""Soundness of safe mode: no run of a process whose assumptions are true breaks a limit.

The searches start at a setting well inside the limits. Two or three trials are under way at a time in half of them, so
that points are chosen with pending ones, and some studies have candidates.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from cascada.network.limits import margins
from cascada.problems.limited_problem import LIMITED, LimitedProblem, limited
from cascada.study import Study, Trial
from tests.soundness.harness import Ledger
from tests.soundness.limits import TOLERANCE, Kind, check_certificate, minimised, several

KINDS: tuple[Kind, ...] = ("cut", "several")
_CANDIDATES = 400


def run(steps: int, seed: int, structures: Sequence[str] = tuple(LIMITED), kinds: Sequence[Kind] = KINDS) -> Ledger:
    """Check one safe search of at most `steps` runs for every structure and kind of limit; some are minimised."""
    ledger = Ledger()
    for s, structure in enumerate(structures):
        for k, kind in enumerate(kinds):
            rng = np.random.default_rng([seed, s, k, 13])
            problem = several(structure, seed) if kind == "several" else limited(structure, seed, kind)
            if (seed + s + k) % 3 == 2:
                problem = minimised(problem)
            listed = (seed + s + k) % 4 == 3
            most = 1 + 2 * ((seed + s) % 2)
            check_search(ledger, f"{structure}, {kind}, seed {seed}", problem, steps, rng, listed=listed, most=most)
    return ledger


def check_search(
    ledger: Ledger, name: str, problem: LimitedProblem, steps: int, rng: np.random.Generator, *, listed: bool, most: int
) -> None:
    """Check the outputs of every run of one safe search, with at most so many under way, and its certificates."""
    domain = problem.network.domain
    candidates = rng.uniform(domain.lower, domain.upper, (_CANDIDATES, domain.dimension)) if listed else None
    study = Study(problem.network, tolerance=TOLERANCE, safe=True, candidates=candidates)
    controls = start(problem)
    if controls is None:  # no setting satisfies the limits of this process
        return
    study.add_trial(controls, outputs(problem, controls))
    under_way: list[Trial] = []
    for step in range(steps):
        note = f"{name}, run {step}"
        room = int(rng.integers(1, most + 1)) - len(under_way)
        if room > 0:
            under_way += ledger["suggestion"].attempt(partial(_asked, study, room), note) or []
        if not under_way:
            break
        trial = under_way.pop(int(rng.integers(len(under_way))))
        row = domain.row(trial.controls)[None]
        ledger["run is feasible"].verdict(bool(problem.feasible(row)[0]), f"{note}: {trial.controls}")
        study.tell(trial, outputs(problem, dict(trial.controls)))
        certificate = ledger["certificate"].attempt(study.certificate, note)
        if certificate is not None and not listed:
            check_certificate(ledger, problem, certificate, note)


def start(problem: LimitedProblem) -> dict[str, float | int] | None:
    """The controls of the setting whose margin is largest among many; None if it satisfies no limit."""
    domain = problem.network.domain
    points = np.random.default_rng(3).uniform(domain.lower, domain.upper, (20_000, domain.dimension))
    margin = margins(problem.network.limits, problem.problem.values(points)).min(axis=1)
    return domain.named(domain.decode(points[[margin.argmax()]])[0]) if margin.max() > 0 else None


def outputs(problem: LimitedProblem, controls: dict[str, float | int]) -> dict[str, list[float]]:
    """What the process gives at these controls, by stage."""
    values = problem.problem.values(problem.network.domain.row(controls)[None])[0]
    return {node.stage.name: values[list(node.columns)].tolist() for node in problem.network.nodes}


def _asked(study: Study, count: int) -> list[Trial]:
    return study.ask(count)
