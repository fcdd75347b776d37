"""Throughput of parallel runs: a stage of 0.2 s with `jobs=2` relative to one run at a time.

    python -m benchmarks.parallel [--write FILE.md]

The process waits, as it would for a simulator on another machine or a licence. Both variants choose points by GPN-UCB
and include the start-up time of Python. The first line is the ratio; below it is a breakdown of the time.
"""

import math
import time

import cascada as cd
from benchmarks.command import print_or_write
from benchmarks.environment import description
from benchmarks.markdown import table

SECONDS, RUNS = 0.2, 100


def network() -> cd.Network:
    """Two stages with one control each; the first one is slow."""
    kernel = cd.SquaredExponential(1.0)
    mix = cd.Stage("mix", controls={"dose": cd.Real(-2, 2)}, kernel=kernel, norm_bound=2.0, function=slow)
    cure = cd.Stage("cure", controls={"heat": cd.Real(-2, 2)}, kernel=kernel, norm_bound=2.0, function=quick)
    return cd.chain(mix, cure)


def slow(dose: float) -> float:
    """A stage that waits."""
    time.sleep(SECONDS)
    return 1.5 * math.exp(-0.5 * (dose - 0.4) ** 2)


def quick(mix: float, heat: float) -> float:
    """A stage that returns at once."""
    return 1.8 * math.exp(-0.5 * ((mix - 0.9) ** 2 + (heat + 0.3) ** 2))


def measured(jobs: int) -> tuple[float, float]:
    """Seconds of wall clock, and of CPU in this process, which chooses the points."""
    started, cpu = time.perf_counter(), time.process_time()
    result = cd.maximise(network(), budget=RUNS, jobs=jobs, progress=False)
    assert len(result.trials) == RUNS, result
    return time.perf_counter() - started, time.process_time() - cpu


def report(command: str) -> str:
    """The ratio and a table as Markdown."""
    found = {jobs: measured(jobs) for jobs in (1, 2)}
    rows = [
        [f"jobs={jobs}", f"{wall:.1f} s", f"{RUNS / wall:.2f}", f"{1000 * cpu / RUNS:.0f} ms"]
        for jobs, (wall, cpu) in found.items()
    ]
    head = ["", f"{RUNS} runs", "runs a second", "CPU to suggest and learn, a run"]
    ratio = found[1][0] / found[2][0]
    said = f"**{ratio:.2f} times** the throughput with `jobs=2`, for a stage of {SECONDS:g} s. "
    return f"    {command}\n\n{said}{description(['numpy'])}\n\n{table(head, rows)}"


if __name__ == "__main__":
    print_or_write("benchmarks.parallel", __doc__, report)
