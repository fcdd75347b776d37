"""What `cascada run` and `cascada worker` share: who runs the process, and how what was found is printed."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from cascada.cli.output import as_json, print_json, summary
from cascada.study import Result

Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="So many runs at once, in processes of their own.",
        show_default="1, or with --dask as many as the cluster has threads",
    ),
]
Dask = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask cluster, as in tcp://10.0.0.1:8786.")]


@contextmanager
def at_work(jobs: int | None, dask: str | None) -> Iterator[dict[str, Any]]:
    """Whoever runs the trials, as options of `optimise`."""
    with _ended_like_an_interrupt():
        if dask is None:
            yield {"jobs": jobs}
            return
        from cascada.integrations.dask import dask_executor  # the cluster's client: only where one is wanted

        with dask_executor(dask) as (executor, capacity):
            yield {"jobs": jobs or capacity, "executor": executor}


@contextmanager
def _ended_like_an_interrupt() -> Iterator[None]:
    """Let what ends a process do what Ctrl-C does, and lose nothing: `kill`, a scheduler, a closed terminal.

    A signal that is ignored stays ignored: a run that `nohup` started outlives its terminal.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    ends = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    ends = [number for number in ends if signal.getsignal(number) is not signal.SIG_IGN]
    before = [signal.signal(number, interrupt) for number in ends]
    try:
        yield
    finally:
        for number, handler in zip(ends, before, strict=True):
            signal.signal(number, handler)


def print_result(result: Result, study: str | None, json_output: bool) -> None:
    """Print what was found, and exit with 1 where that is nothing, or nothing to rely on."""
    if json_output:
        print_json(as_json(result) | ({} if study is None else {"study": study}))
    else:
        typer.echo(summary(result) + ("" if study is None else f"\n\nAll of it is in the study {study!r}."))
    if result.best is None or result.status == "refuted":
        raise typer.Exit(1)
