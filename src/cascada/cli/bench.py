"""`cascada bench`: compare algorithms of this and other libraries on built-in problems with the same seeds."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cascada.algorithms import NAMES
from cascada.cli.progress import progress
from cascada.cli.terminal import say
from cascada.experiments.bench import Benchmark
from cascada.experiments.bench import bench as run_benchmark
from cascada.experiments.bench_plan import BenchSettings, Plan
from cascada.experiments.bench_suites import SUITES
from cascada.experiments.bench_suites import suite as problems_of_suite
from cascada.experiments.peers import PEERS
from cascada.experiments.pool import cores

_ALGORITHMS = (
    f"Separated by commas: {', '.join(NAMES)}, module:Class, or a peer ({', '.join(PEERS)}). "
    f"All are compared with the first."
)


_PROBLEMS = "Separated by commas: built-in problems (see `cascada problems`), or module:object."


def bench(
    algorithms: Annotated[str, typer.Option(help=_ALGORITHMS)],
    out: Annotated[Path, typer.Option(help="The folder for everything that is written.")],
    problems: Annotated[str, typer.Option(help=_PROBLEMS)] = "",
    suite: Annotated[
        str | None,
        typer.Option(help=f"A list of problems, to which --problems adds: {', '.join(SUITES)}. See docs/suite.md."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds: 0, 1, …", min=1)] = 10,
    budget: Annotated[int, typer.Option(help="Evaluations after the initial design.", min=1)] = 50,
    initial: Annotated[
        int | None,
        typer.Option(help="Evaluations in the random initial design; by default 2(d + 1) for d controls.", min=1),
    ] = None,
    gaps: Annotated[bool, typer.Option("--gaps", help="Compute gaps at checkpoints too; this may be slow.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes at once; by default one per core.", min=1)] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat runs that failed before.")] = False,
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="Draw the regrets (needs matplotlib).")] = True,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare algorithms on built-in problems: records, a table with paired comparisons, and figures.

    Every finished run is kept: the same command continues after an interrupt, and a command with more problems,
    algorithms or seeds adds to the folder. The exit code is 1 when every run failed.

    For example: cascada bench --problems certified-chain --algorithms auto,cei,random_search --out build/bench
    """
    # An algorithm "module:Class" may be in this folder. Worker processes inherit the path.
    sys.path.insert(0, str(Path.cwd()))
    plan = Plan(_chosen(problems, suite), _names(algorithms), seeds, BenchSettings(budget, initial, gaps))
    with progress(not json_output) as report:
        done = run_benchmark(plan, out, cores() if jobs is None else jobs, report, retry=retry, plots=plots)
    if json_output:
        typer.echo(json.dumps(_as_json(done)))
    else:
        typer.echo(done.text.rstrip() + "\n")
        for path in (done.records, done.cpu, done.table, *done.figures):
            say(str(path))
    if all(standing.failed == standing.runs for found in done.summary for standing in found.standings):
        raise typer.Exit(1)


def _chosen(problems: str, suite: str | None) -> tuple[str, ...]:
    """The problems of the plan: those of the suite, then others. What cannot be run here is named on standard error."""
    if suite is None:
        return _names(problems)
    runnable, skipped = problems_of_suite(suite)
    for reason in skipped:
        say(reason, err=True)
    return (*runnable, *_names(problems))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _as_json(done: Benchmark) -> dict[str, object]:
    return {
        "records": str(done.records),
        "cpu": str(done.cpu),
        "table": str(done.table),
        "figures": [str(path) for path in done.figures],
        "failed": sum(standing.failed for found in done.summary for standing in found.standings),
        "summary": [asdict(found) for found in done.summary],
    }
