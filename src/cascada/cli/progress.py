"""Progress display of commands with many runs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from cascada.cli.terminal import say
from cascada.experiments.pool import Report


@contextmanager
def progress(wanted: bool) -> Iterator[Report]:
    """Yield a function to call after every run: it shows a bar on a terminal, else up to twenty lines.

    If not wanted, the function does nothing.
    """
    if not wanted:
        yield lambda _done, _total: None
        return
    if not sys.stderr.isatty():
        yield _occasional_line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _occasional_line(done: int, total: int) -> None:
    """Print at most twenty lines in all, so that a log file shows progress but stays short."""
    if done and done * 20 // total > (done - 1) * 20 // total:
        say(f"{done} of {total} runs", err=True)
