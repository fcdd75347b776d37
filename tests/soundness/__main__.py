"""`python -m tests.soundness [--checks N] [--seed S] [--write FILE]`: the whole soundness run, as a Markdown table."""

import argparse
import sys
from pathlib import Path

from tests.soundness.foundation import run
from tests.soundness.harness import Ledger

TEXT = """# Soundness

Functions of exact norm B = 2 (30 random centres in [−2, 2]^d, N(0, 1) coefficients, scaled), scalar and vector-valued,
d = 1 to 4, squared exponential and Matérn kernels (ν = 1/2, 1, 3/2, 5/2, 3.7), 1 to 60 observations: spread out, nearly
coinciding, and such that they use up all of B². Every bound must contain the truth at every query; the margin is the
smallest distance from the truth to the end of a bound. Written by

    make soundness

which checked {checks:,} values with {violations} violations.

{table}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=1_000_000, help="go on until every bound is checked this often")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="write the table to this file")
    arguments = parser.parse_args()
    ledger, round_ = Ledger(), 0
    while not ledger.tallies or min(tally.checks for tally in ledger.tallies) < arguments.checks:
        ledger.merge(run(points=400, seed=arguments.seed + round_).tallies)
        round_ += 1
        print(f"round {round_}: {ledger.checks:,} checks, {ledger.violations} violations", file=sys.stderr, flush=True)
    text = TEXT.format(checks=ledger.checks, violations=ledger.violations, table=ledger.table())
    print(text)
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")
    return 1 if ledger.violations else 0


if __name__ == "__main__":
    sys.exit(main())
