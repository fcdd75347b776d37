"""Number of runs needed for a gap that holds with probability 95 % when every stage is read with normal scatter.

    python -m benchmarks.scatter [--seeds 3] [--records scatter.jsonl] [--write docs/performance.md]

The chains and the search are those of `benchmarks.read_search`: stages of exact norm B = 2, two controls in [−2, 2] at
the first one. The errors of the readings are normal with standard deviation R, which is given as SubGaussian(R).
"""

from collections.abc import Sequence

import numpy as np

from benchmarks.environment import description
from benchmarks.markdown import NONE, table
from benchmarks.proof_records import Records, print_or_write_proofs
from benchmarks.read_search import GAPS, Proof, gaps, problem_of, proof
from cascada.arrays import Array
from cascada.network import SubGaussian

NAME = "benchmarks.scatter"
BUDGET = 60
CASES = ((2, 0.01), (3, 0.01), (2, 0.05))


def prove(case: tuple[int, float], seed: int) -> Proof:
    """Optimise one process until the smallest of the gaps is shown, or the budget is used up."""
    stages, scale = case
    problem, rng = problem_of(stages, seed), np.random.default_rng([seed, 1])

    def read(values: Array) -> Array:
        return values + scale * rng.standard_normal(len(values))

    return proof(problem, gaps(problem, SubGaussian(scale), read, seed, min(GAPS), BUDGET))


def row(stages: int, scale: float, proofs: Sequence[Proof]) -> list[str]:
    needed = [[found.runs_to(gap) for found in proofs] for gap in GAPS]
    return [
        str(stages),
        f"{scale:g}",
        *(", ".join(NONE if runs is None else str(runs) for runs in counts) for counts in needed),
        ", ".join(f"{found.gaps[-1]:.3f}" for found in proofs),
        f"{max(found.regret for found in proofs):.4f}",
        f"{np.median([found.seconds / len(found.gaps) for found in proofs]):.2f}",
    ]


HEADER = (
    "stages",
    "R",
    *(f"runs to {gap:g}" for gap in GAPS),
    f"gap at the end, or after {BUDGET} runs",
    "largest true regret",
    "seconds per run",
)


def report(command: str, seeds: int, records: Records, _tables: Sequence[str]) -> str:
    """The section for docs/performance.md."""
    rows = [row(*case, proofs) for case, proofs in zip(CASES, records.proofs(CASES, seeds, prove), strict=True)]
    return "\n".join(
        [
            "## Runs to a gap from readings with scatter",
            "",
            f"{seeds} random chains each, all stages of exact norm 2, two controls; all readings have normal scatter",
            "of standard deviation R, confidence 95 %. Seconds are of computation, on one core. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(HEADER, rows),
        ]
    )


if __name__ == "__main__":
    print_or_write_proofs(NAME, __doc__, report, 3)
