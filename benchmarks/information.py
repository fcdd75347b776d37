"""Speed of Σ_T on a finite domain with stored rows, relative to a posterior recomputed at every step.

python -m benchmarks.information [--rounds 3] [--write docs/theory.md]
"""

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import duration, table, times, write_section
from benchmarks.timing import Contestant, Effort, race
from cascada.arrays import Array
from cascada.kernels import Matern, SquaredExponential, Stationary
from cascada.theory.information import greedy_sds
from cascada.theory.sums import sd_sum

NAME = "benchmarks.information"
HORIZON, SIDE, NOISE = 200, 50, 0.01
KERNELS: tuple[Stationary, ...] = (SquaredExponential(0.2), Matern(2.5, 0.5), Matern(1.5, 0.2))


def naive(kernel: Stationary, points: Array, steps: int, noise: float) -> list[int]:
    """The same greedy steps, each with a new factor of all chosen points."""
    chosen = [0]
    for _ in range(steps - 1):
        seen = points[chosen]
        gram = kernel(seen, seen) + noise * kernel.variance * np.eye(len(seen))
        half = np.linalg.solve(np.linalg.cholesky(gram), kernel(seen, points))
        chosen.append(int((kernel.variance - (half * half).sum(axis=0)).argmax()))
    return chosen


def row(kernel: Stationary, rounds: int) -> list[str]:
    axis = (np.arange(SIDE) + 0.5) / SIDE
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    contestants = [
        Contestant("kept", lambda: greedy_sds(kernel, points, HORIZON, NOISE)),
        Contestant("anew", lambda: naive(kernel, points, HORIZON, NOISE)),
    ]
    timed = race(contestants, Effort(rounds, 0.05, clock=time.process_time))
    started = time.process_time()
    found = sd_sum(kernel, points, HORIZON)
    whole = time.process_time() - started
    ratio = timed["anew"].over(timed["kept"])
    return [
        str(kernel),
        duration(timed["kept"].median),
        duration(timed["anew"].median),
        times(ratio),
        duration(whole),
        f"{found.greedy:.1f}",
        f"{found.upper:.1f}",
        f"{found.cauchy_schwarz:.1f}",
    ]


def report(command: str, rounds: int) -> str:
    """The section for docs/theory.md."""
    header = (
        "kernel",
        "greedy steps",
        "each step anew",
        "ratio",
        "all of `sd_sum`",
        "greedy ≤ Σ_T",
        "Σ_T ≤",
        "paper's form",
    )
    return "\n".join(
        [
            "## Σ_T in a second",
            "",
            f"T = {HORIZON} rounds over {SIDE * SIDE} points of [0, 1]²; `sd_sum` takes the greedy steps once for",
            "every noise that it tries. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(header, [row(kernel, rounds) for kernel in KERNELS]),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog=f"python -m {NAME}", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    require_one_thread()
    text = report(f"python -m {NAME} --rounds {given.rounds}", given.rounds)
    print(text)
    if given.write:
        write_section(given.write, NAME, text)


if __name__ == "__main__":
    main()
