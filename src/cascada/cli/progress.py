"""How commands with many runs show that they move."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from cascada.experiments.pool import Report


@contextmanager
def progress(wanted: bool) -> Iterator[Report]:
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
    if done and done * 20 // total > (done - 1) * 20 // total:
        typer.echo(f"{done} of {total} runs", err=True)
