"""Number of runs needed for a *proven* gap, and for a certificate from Lipschitz constants alone.

    python -m benchmarks.proof [--seeds 10] [--write docs/performance.md]

Stages of exact norm B = 2, squared exponential kernel of lengthscale 1, controls in [−2, 2].
"""

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.command import print_or_write_seeds
from benchmarks.environment import description
from benchmarks.markdown import NONE, Target, table
from cascada.problems import Problem, certified
from cascada.problems.certified_problem import StagePlan, Wiring
from cascada.study import maximise

NAME = "benchmarks.proof"
MOST_SECONDS = 600.0  # of computation for one optimisation
MOST_LIPSCHITZ_EVALUATIONS = 4_000_000
REACH_RUNS = 300  # of one optimisation in the table of how far proofs reach


@dataclass(frozen=True)
class Case:
    """A structure, the gap to prove, and the limit of the median number of runs (None: no limit)."""

    structure: str | Wiring
    tolerance: float
    most_runs: int | None
    lipschitz_stages: int | None = None  # number of stages m of the comparison with L^m
    most_seconds: float = MOST_SECONDS  # of computation for one optimisation
    budget: int = 100  # of runs

    @property
    def name(self) -> str:
        return self.structure.summary if isinstance(self.structure, Wiring) else self.structure


CASES = (
    Case("chain", 0.01, 12, 3),
    Case("chain-3d", 0.01, 40, 3),
    Case("controls", 0.01, 22),
    Case("feed-forward", 0.02, 18),
    Case("feed-forward-3", 0.02, 25),
    Case("multi-output", 0.02, 22),
    Case("join", 0.02, None),
    Case("controls-4d", 0.02, None),
)


@dataclass(frozen=True)
class Proof:
    """One optimisation: runs, seconds of computation, cells, and whether the gap was proven."""

    runs: int
    seconds: float
    cells: int
    proven: bool


def prove(case: Case, seed: int) -> Proof:
    """Optimise one process until the gap is proven, for at most the seconds and the runs of the case."""
    problem = certified(case.structure, seed)
    started = time.process_time()
    result = maximise(
        problem.network,
        budget=case.budget,
        tolerance=case.tolerance,
        callbacks=[lambda _: time.process_time() - started > case.most_seconds],
        progress=False,
    )
    return Proof(
        len(result.trials), time.process_time() - started, result.certificate.cells, result.status == "tolerance"
    )


def lipschitz_evaluations(problem: Problem, constant: float, tolerance: float) -> int | None:
    """The number of evaluations that prove the gap from |g(x) − g(x')| ≤ constant·‖x − x'‖ alone; None if too many.

    Cells are halved along their longest side while their bound, the value at the centre plus constant·(half-diagonal),
    exceeds the best value by more than the tolerance.
    """
    domain = problem.network.domain
    lower, upper = domain.lower[None].copy(), domain.upper[None].copy()
    best, evaluations = -np.inf, 0
    while len(lower):
        centre = 0.5 * (lower + upper)
        values = np.concatenate(
            [problem.objective(block) for block in np.array_split(centre, 1 + len(centre) // 50_000)]
        )
        evaluations += len(values)
        best = max(best, float(values.max()))
        if evaluations > MOST_LIPSCHITZ_EVALUATIONS:
            return None
        alive = values + constant * np.linalg.norm(upper - centre, axis=1) > best + tolerance
        lower, upper, centre = lower[alive], upper[alive], centre[alive]
        rows, side = np.arange(len(lower)), (upper - lower).argmax(axis=1)
        left, right = upper.copy(), lower.copy()
        left[rows, side] = right[rows, side] = centre[rows, side]
        lower, upper = np.concatenate([lower, right]), np.concatenate([left, upper])
    return evaluations


def compare(case: Case, seed: int) -> int | None:
    """The number of evaluations of a Lipschitz-only certificate for one process; every stage has L = B = 2."""
    assert case.lipschitz_stages is not None, "only asked where the composite constant is L^m"
    return lipschitz_evaluations(certified(case.structure, seed), 2.0**case.lipschitz_stages, case.tolerance)


def row(case: Case, seeds: int, pool: ProcessPoolExecutor) -> list[str]:
    proofs = list(pool.map(partial(prove, case), range(seeds)))
    runs = float(np.median([proof.runs for proof in proofs]))
    others = list(pool.map(partial(compare, case), range(min(seeds, 3)))) if case.lipschitz_stages else []
    most = f"more than {MOST_LIPSCHITZ_EVALUATIONS:,}"
    return [
        case.name,
        f"{case.tolerance:g}",
        f"{sum(proof.proven for proof in proofs)} of {seeds}",
        f"{runs:g}",
        f"{min(proof.runs for proof in proofs)}–{max(proof.runs for proof in proofs)}",
        NONE if case.most_runs is None else Target(case.most_runs, at_least=False).verdict(runs).replace("×", ""),
        f"{np.median([proof.seconds for proof in proofs]):.1f}",
        f"{max(proof.seconds for proof in proofs):.1f}",
        f"{np.median([proof.cells for proof in proofs]):,.0f}",
        ", ".join(most if other is None else f"{other:,}" for other in others) or NONE,
    ]


HEADER = (
    "structure",
    "gap",
    "proven",
    "runs (median)",
    "range",
    "target",
    "seconds (median)",
    "most",
    "cells (median)",
    "evaluations by L alone (seeds 0–2)",
)


def reach_cases() -> list[Case]:
    """Cases with increasing numbers of controls, stages and outputs."""
    letters = "abcdefgh"
    chains = [(d, 3) for d in (2, 3, 4, 5)] + [(2, m) for m in (2, 4, 6, 8)]
    structures = [
        Wiring(
            f"chain, d = {d}, m = {m}", (StagePlan(tuple(letters[:d])), *(StagePlan((), (i,)) for i in range(m - 1)))
        )
        for d, m in chains
    ]
    structures += [
        Wiring(f"feed-forward 2 → {w} → 1", (StagePlan(("a", "b"), (), w), StagePlan((), (0,)))) for w in (2, 4, 6)
    ]
    structures += [
        Wiring(
            f"one control at each of {m} stages",
            (StagePlan(("a",)), *(StagePlan((letters[i + 1],), (i,)) for i in range(m - 1))),
        )
        for m in (2, 3, 4, 5, 6)
    ]
    return [Case(structure, 0.05, None, budget=REACH_RUNS) for structure in structures]


def report(command: str, seeds: int) -> str:
    """The section for docs/performance.md."""
    with ProcessPoolExecutor(2) as pool:
        rows = [row(case, seeds, pool) for case in CASES]
        reach = [row(case, 4, pool)[:-1] for case in reach_cases()]
    return "\n".join(
        [
            "## Runs to a proven gap",
            "",
            f"{seeds} random processes each, all stages of exact norm 2; seconds are of computation for the whole",
            "optimisation, on one core. The last column is what a certificate from the composite's Lipschitz constant",
            "L^m alone would take. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(HEADER, rows),
            "",
            f"How far it reaches: four processes each, gap 0.05, at most {MOST_SECONDS:g} s of computation and",
            f"{REACH_RUNS} runs.",
            "",
            table(HEADER[:-1], reach),
        ]
    )


if __name__ == "__main__":
    print_or_write_seeds(NAME, __doc__, report, 10)
