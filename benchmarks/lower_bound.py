"""Regret of every algorithm on all members of a hard family, compared with the lower bound (docs/lower-bounds.md).

    python -m benchmarks.lower_bound [--cells 12] [--points 61] [--seed 0] [--write docs/lower-bounds.md]

Each member is a chain of two layers on [0, 1], a needle and an amplifier (ν = 1.5, B = 5, u = 0.5, ũ = 0.3); T is the
largest horizon up to M/2 − 1, and candidates are a grid.
"""

import argparse
from pathlib import Path

import numpy as np

import cascada as cd
from benchmarks.markdown import table, write_section
from cascada.algorithms import NAMES
from cascada.kernels import Matern
from cascada.problems.hard import hard_problems
from cascada.theory.hard import HardFamily, family_of_cells
from cascada.theory.lower import average_cumulative_regret, average_simple_regret, longest_horizon

NAME = "benchmarks.lower_bound"
LEAST = "*no algorithm less than*"


def averages(family: HardFamily, algorithm: str, points: int, seed: int) -> tuple[float, float]:
    """The average simple and cumulative regret over all members."""
    horizon, runs = longest_horizon(family), []
    for problem in hard_problems(family):
        grid = cd.Grid(dict.fromkeys(problem.network.controls, points))
        result = cd.maximise(
            problem.network, budget=horizon, algorithm=algorithm, candidates=grid, seed=seed, progress=False
        )
        assert result.best is not None
        answer = result.recommended or result.best.controls
        best, value = (
            problem.best.value,
            problem.objective(np.array([[answer[name] for name in problem.network.controls]]))[0],
        )
        runs.append((best - value, sum(best - (trial.value or 0.0) for trial in result.trials)))
    simple, cumulative = np.mean(runs, axis=0)
    return float(simple), float(cumulative)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    for name, default in (("--cells", 12), ("--points", 61), ("--seed", 0)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    family = family_of_cells(Matern(1.5), 5.0, given.cells, dims=(1, 1), u=0.5, u_tilde=0.3)
    horizon = longest_horizon(family)
    least = (average_simple_regret(family, horizon).value, average_cumulative_regret(family, horizon).value)
    found = {name: averages(family, name, given.points, given.seed) for name in NAMES if name != "auto"}
    rows = [
        (name, *(f"{value / family.epsilon:.3f}" for value in pair)) for name, pair in {LEAST: least, **found}.items()
    ]
    title = f"M = {family.members}, T = {horizon}, ε = {family.epsilon:.6g}; averages over all members, in units of ε:"
    body = f"{title}\n\n{table(('algorithm', 'simple regret', 'cumulative regret'), rows)}\n"
    print(body)
    if given.write is not None:
        write_section(given.write, NAME, body)


if __name__ == "__main__":
    main()
