"""Frequency of wrong stops by an estimated gap, where the true regret exceeds the reported gap.

    python -m benchmarks.estimated_stops [--seeds 20] [--budget 60] [--jobs 2] [--cases alpine2:100,ageing:5%]
        [--out FILE.md]

Runs `maximise(network, budget=…, tolerance=…, stop_on_estimated=True)` with every seed. A case is a problem with a
tolerance, in units of its objective or, with %, of its range (optimum − the smallest value at 10,000 uniform random
points). Prints one row for each case: how many studies stopped within the budget, after how many runs, and how many of
them wrongly; then every wrong stop.
"""

import argparse
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median

import cascada as cd
from benchmarks.coverage import ACCURACY, unknown, value_range
from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import table, write_section
from cascada.experiments.pool import cores, processes
from cascada.problems import PRACTICE

NAME = "benchmarks.estimated_stops"
CASES = (
    "alpine2:100",
    *(f"{name}:{share}%" for name in ("drop-wave", "rosenbrock-3", "ackley", "ageing") for share in (20, 5)),
    *(f"{name}:{share}%" for name in ("narrow-peak", "half-rough") for share in (20, 5)),
)


@dataclass(frozen=True)
class Stop:
    """The end of one study."""

    case: str
    seed: int
    status: str
    runs: int
    gap: float | None
    regret: float
    accuracy: float  # accuracy of the regret

    @property
    def stopped(self) -> bool:
        """Whether the gap ended the study."""
        return self.status == "tolerance"

    @property
    def wrong(self) -> bool:
        """Whether it stopped with a regret above the reported gap."""
        return self.stopped and (self.gap is None or self.regret > self.gap + self.accuracy)


def tolerance_of(case: str) -> tuple[str, float]:
    """The problem of a case, and its tolerance in units of the objective."""
    name, _, amount = case.partition(":")
    if amount.endswith("%"):
        return name, float(amount[:-1]) / 100 * value_range(name, 0)
    return name, float(amount)


def run(case: str, seed: int, budget: int) -> Stop:
    """Run a study until the gap or the budget ends it."""
    name, tolerance = tolerance_of(case)
    problem = unknown(name, 0)
    result = cd.maximise(
        problem.network, budget=budget, tolerance=tolerance, stop_on_estimated=True, seed=seed, progress=False
    )
    assert result.best is not None, "built-in problems do not fail"
    assert result.best.value is not None, "a best run is complete"
    regret = problem.optimum[1] - result.best.value
    accuracy = ACCURACY * value_range(name, 0)
    return Stop(case, seed, result.status, len(result.trials), result.gap, regret, accuracy)


def report(command: str, stops: list[Stop]) -> str:
    """The table and all wrong stops."""
    rows = []
    for case in dict.fromkeys(stop.case for stop in stops):
        same = [stop for stop in stops if stop.case == case]
        ended = [stop.runs for stop in same if stop.stopped]
        runs = f"{median(ended):g}" if ended else "–"
        rows.append([*case.split(":"), str(len(same)), str(len(ended)), runs, str(sum(stop.wrong for stop in same))])
    wrong = [
        f"- {stop.case}, seed {stop.seed}, after {stop.runs} runs: gap {stop.gap:.3g}, regret {stop.regret:.3g}"
        for stop in stops
        if stop.wrong
    ]
    return "\n".join(
        [
            "## How often an estimated gap stops a study wrongly",
            "",
            "A wrong stop has a regret above the gap that it reports. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(["problem", "tolerance", "studies", "stopped", "runs (median)", "wrong"], rows),
            "",
            *(["Wrong:", "", *wrong] if wrong else ["No study stopped wrongly."]),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog=f"python -m {NAME}", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    cases = given.cases.split(",")
    for case in cases:
        name, _, amount = case.partition(":")
        if name not in PRACTICE or not amount.rstrip("%").replace(".", "", 1).isdigit():
            parser.error(
                f"a case is problem:tolerance or problem:percent%; got {case!r}. Problems: {', '.join(PRACTICE)}"
            )
    require_one_thread()
    wanted = list(product(cases, range(given.seeds), [given.budget]))
    with processes(given.jobs) as pool:
        stops = [future.result() for future in [pool.submit(run, *which) for which in wanted]]
    changed = "" if given.cases == parser.get_default("cases") else f" --cases {given.cases}"
    text = report(f"python -m {NAME} --seeds {given.seeds} --budget {given.budget}{changed}", stops)
    print(text)
    if given.out:
        write_section(given.out, NAME, text)


if __name__ == "__main__":
    main()
