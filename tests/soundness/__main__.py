"""`python -m tests.soundness [--checks N] [--seed S] [--write FILE]`: the whole soundness run, as Markdown tables."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tests.soundness import foundation, networks
from tests.soundness.harness import Ledger, Tally

TEXT = """# Soundness

Every assumption is true by construction here, so every bound must contain the truth at every query; the margin is the
smallest distance from the truth to the end of a bound. Written by

    make soundness

which checked {checks:,} values with {violations} violations.

## Stages

Functions of exact norm B = 2 (30 random centres in [−2, 2]^d, N(0, 1) coefficients, scaled), scalar and vector-valued,
d = 1 to 4, squared exponential and Matérn kernels (ν = 1/2, 1, 3/2, 5/2, 3.7), radial and additive, 1 to 60
observations: spread out, nearly coinciding, and such that they use up all of B².

{stages}

## Networks

Stages of exact norm, squared exponential and Matérn kernels (ν = 3/2, 5/2, 3.7), radial and additive, 0 to 40 runs of
which a third are partial: every output over points and over cells of all sizes, in both forms; then optimisations by
GPN-UCB, whose proven gap after each run must be at least the true regret.

{networks}
"""


def until(enough: int, one_round: Callable[[int], Ledger], group: Callable[[Tally], str], name: str) -> Ledger:
    """Rounds until every group of tallies has enough checks."""
    ledger, number, fewest = Ledger(), 0, 0
    while fewest < enough:
        ledger.merge(one_round(number).tallies)
        number += 1
        counts: dict[str, int] = {}
        for tally in ledger.tallies:
            counts[group(tally)] = counts.get(group(tally), 0) + tally.checks
        fewest = min(counts.values())
        text = f"{name}, round {number}: {ledger.checks:,} checks, {ledger.violations} violations"
        print(text, file=sys.stderr, flush=True)
    return ledger


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=1_000_000, help="of every bound of a stage, and every structure")
    parser.add_argument("--gap-steps", type=int, default=12, help="runs of every optimisation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="write the tables to this file")
    given = parser.parse_args()
    stages = until(given.checks, lambda i: foundation.run(points=400, seed=given.seed + i), lambda t: t.name, "stages")
    whole = until(
        given.checks,
        lambda i: networks.run(points=2000, seed=given.seed + i),
        lambda t: t.name.split(":")[0],
        "networks",
    )
    networks.run_gaps(whole, given.seed, given.gap_steps)
    violations = stages.violations + whole.violations
    text = TEXT.format(
        checks=stages.checks + whole.checks, violations=violations, stages=stages.table(), networks=whole.table()
    )
    print(text)
    if given.write:
        given.write.write_text(text, encoding="utf-8")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
