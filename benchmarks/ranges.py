"""Runs to a proof with and without ranges: the process of examples/ceiling.py.

python -m benchmarks.ranges [--seeds 10] [--write docs/limits.md]
"""

from pathlib import Path

import numpy as np

import cascada as cd
from benchmarks.command import print_or_write_seeds
from benchmarks.environment import description
from benchmarks.markdown import table

NAME = "benchmarks.ranges"
EXAMPLE = Path(__file__).parents[1] / "examples" / "ceiling.py"
GAPS = (25.0, 10.0, 5.0, 1.0, 0.2)
BUDGET = 60


def runs_to_gaps(network: cd.Network, seed: int) -> tuple[float, list[int | None]]:
    """The bound after the first run, and after how many runs the proven gap was at most each of `GAPS`.

    The first run is at a random setting, because all others follow from it: `auto` draws no random number here.
    """
    study = cd.Study(network, seed=seed, tolerance=min(GAPS))
    low, high = network.domain.lower, network.domain.upper
    first = np.random.default_rng(seed).uniform(low, high)[None]
    study.enqueue_trial(network.domain.named(network.domain.decode(first)[0]))
    seen: list[tuple[float, float]] = []

    def after_run(study: cd.Study) -> None:
        found = study.certificate()
        if found.gap is None or found.bound is None:
            raise SystemExit(f"a run refuted the assumptions of a process that satisfies them: {found}")
        seen.append((found.bound, found.gap))

    study.optimise(budget=BUDGET, progress=False, callbacks=[after_run])
    reached = [next((runs for runs, (_, gap) in enumerate(seen, 1) if gap <= wanted), None) for wanted in GAPS]
    return seen[0][0], reached


def row(name: str, network: cd.Network, seeds: int) -> list[str]:
    found = [runs_to_gaps(network, seed) for seed in range(seeds)]
    cells = [f"{np.median([bound for bound, _ in found]):.4g}"]
    for i in range(len(GAPS)):
        runs = [reached[i] or BUDGET + 1 for _, reached in found]
        cells.append(f"{np.median(runs):g} ({min(runs)}–{max(runs)})")
    return [name, *cells]


def report(command: str, seeds: int) -> str:
    rows = [row(n, cd.load(f"{EXAMPLE}:{name}"), seeds) for n, name in (("none", "without"), ("0–100 %", "network"))]
    headings = ["ranges", "bound after the first run", *(f"runs to a gap of {gap:g}" for gap in GAPS)]
    text = f"`{command}`, medians (smallest–largest) of {seeds} random first settings; the best value is 115.6. "
    return f"{text}{description(['numpy', 'scipy'])}\n\n{table(headings, rows)}"


if __name__ == "__main__":
    print_or_write_seeds(NAME, __doc__, report, 10)
