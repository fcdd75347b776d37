"""Code shared by `cascada run` and `cascada worker`: options of the execution, signals and the printed result."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from cascada.cli.output import as_json, print_json, summary
from cascada.cli.terminal import say
from cascada.study import Result

Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Number of runs at once, each in a process of its own.",
        show_default="1, or with --dask as many as the cluster has threads",
    ),
]
Dask = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask cluster, as in tcp://10.0.0.1:8786.")]


@contextmanager
def execution_options(jobs: int | None, dask: str | None) -> Iterator[dict[str, Any]]:
    """Yield the options of `optimise` that say where the trials run; meanwhile signals end the run like Ctrl-C."""
    with _signals_interrupt():
        if dask is None:
            yield {"jobs": jobs}
            return
        from cascada.integrations.dask import dask_executor  # imports Dask, which is optional

        with dask_executor(dask) as (executor, capacity):
            yield {"jobs": jobs or capacity, "executor": executor}


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Raise `KeyboardInterrupt` on SIGTERM and SIGHUP, so that `kill` or a closed terminal loses no result.

    A signal that is ignored stays ignored: a run started by `nohup` outlives its terminal.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    numbers = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    numbers = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def print_result(result: Result, study: str | None, json_output: bool) -> None:
    """Print a result; exit with 1 if it has no setting to use, or the data refute an assumption.

    That no setting satisfies the limits is a result: the exit code is 0.
    """
    if json_output:
        print_json(as_json(result) | ({} if study is None else {"study": study}))
    else:
        say(summary(result) + ("" if study is None else f"\n\nAll of it is in the study {study!r}."))
    found = result.best is not None or result.certificate.recommended is not None
    if not (found or result.certificate.answer == "infeasible") or result.status == "refuted":
        raise typer.Exit(1)
