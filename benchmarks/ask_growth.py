"""Cost of one ask and tell by the number of runs, with estimated kernels and norms.

python -m benchmarks.ask_growth [--write docs/performance.md]

Prints one row for each problem and number of runs t: the median CPU seconds of an ask and tell, and those of the
slowest tell so far, which refits the kernels; each also as a multiple of its value at the smallest t. Kernels are
refitted with every run at first and later after a tenth more runs, which is too rare to affect the median.
"""

from dataclasses import dataclass
from statistics import median

from benchmarks.command import print_or_write
from benchmarks.environment import description
from benchmarks.markdown import duration, table, times
from cascada.experiments.bench_run import initial_points, run
from cascada.experiments.contestants import StudyContestant
from cascada.problems import by_name

NAME = "benchmarks.ask_growth"
PROBLEMS = ("drop-wave", "ackley", "ageing")
SIZES = (50, 100, 200, 350, 500)
STEPS = 5  # number of steps after t runs whose median is reported


@dataclass(frozen=True)
class Cost:
    """CPU seconds of one step and of the slowest tell so far."""

    step: float
    fit: float


def cost(name: str, size: int, seed: int = 0) -> Cost:
    """The cost of a step after `size` uniform random runs; larger sizes contain the runs of smaller ones."""
    problem = by_name(name)
    design = initial_points(problem, size, seed)
    course = run(problem, lambda: StudyContestant(problem.network, "auto", seed, size + STEPS), design, STEPS, seed)
    if course.status != "budget":
        raise SystemExit(f"{name}, t = {size}: {course.status}. {course.message or ''}")
    steps = [ask + tell for ask, tell in zip(course.ask, course.tell[size:], strict=True)]
    return Cost(median(steps), max(course.tell))


def rows(name: str, sizes: tuple[int, ...] = SIZES) -> list[list[str]]:
    """The rows of the table for a problem."""
    found = {size: cost(name, size) for size in sizes}
    first = found[sizes[0]]
    label = f"{name} (d = {by_name(name).network.domain.dimension})"
    return [
        [label, str(size), duration(at.step), times(at.step / first.step), duration(at.fit), times(at.fit / first.fit)]
        for size, at in found.items()
    ]


def report(command: str) -> str:
    """The section for docs/performance.md."""
    ratio = f"to t = {SIZES[0]}"
    return "\n".join(
        [
            "## What an ask costs as runs add up",
            "",
            'CPU seconds of one ask with its tell (`algorithm="auto"`, no kernels and no norms given) after t uniform',
            f"random runs, median of {STEPS}; and the slowest tell up to there, one that fits kernels anew. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(
                ["problem", "t", "ask and tell", ratio, "slowest tell", ratio],
                [row for name in PROBLEMS for row in rows(name)],
            ),
        ]
    )


if __name__ == "__main__":
    print_or_write(NAME, __doc__, report)
