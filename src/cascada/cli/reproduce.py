"""`cascada reproduce`: the paper's experiments, with its figures and what became of its claims."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from cascada.errors import ArgumentError
from cascada.experiments.plan import QUICK, Settings
from cascada.experiments.pool import Report, cores
from cascada.experiments.reproduce import reproduce as reproduce_paper


def reproduce(
    out: Annotated[Path, typer.Option(help="The folder for everything that is written.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and shorter trials, for a first look.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes at once; by default one a core.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Seed of the algorithms' random choices.", min=0)] = 0,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run the paper's experiments: figures, results.json, and whether each of the paper's claims holds.

    Every finished run is kept: the same command continues after an interrupt.
    """
    try:
        import_module("matplotlib")  # before hours of computing, not after
    except ImportError as error:
        raise ArgumentError(f'the figures need matplotlib ({error}). Run: pip install "cascada[paper]".') from error
    settings = replace(QUICK if quick else Settings(), seed=seed)
    with _progress(not json_output) as report:
        done = reproduce_paper(settings, out, cores() if jobs is None else jobs, report)
    figures = [str(path) for path in done.figures]
    if json_output:
        content = {"out": str(out), "results": str(done.results), "figures": figures, "claims": done.content["claims"]}
        typer.echo(json.dumps(content))
        return
    typer.echo(done.table.rstrip() + "\n")
    for path in [str(done.results), str(done.claims), *figures]:
        typer.echo(path)


@contextmanager
def _progress(wanted: bool) -> Iterator[Report]:
    """A function to call after every run: a bar on a terminal, else a line now and then; nothing if not wanted."""
    if not wanted:
        yield lambda _done, _total: None
        return
    if not sys.stderr.isatty():
        yield _line_now_and_then
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _line_now_and_then(done: int, total: int) -> None:
    """Twenty lines in all, so that a log shows that it moves."""
    if done * 20 // total > (done - 1) * 20 // total:
        typer.echo(f"{done} of {total} runs", err=True)
