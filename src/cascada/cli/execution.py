"""Code shared by `cascada run` and `cascada worker`: options of the execution, signals and the printed result."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from cascada.cli.output import as_json, print_json, summary
from cascada.cli.terminal import say
from cascada.errors import ArgumentError, CascadaError
from cascada.study import Cost, Result

Revise = Annotated[
    bool,
    typer.Option(
        "--revise",
        help="After every stage, choose the controls of the later stages anew, and discard runs that are not worth it.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Number of runs at once, each in a process of its own.",
        show_default="1, or with --dask as many as the cluster has threads",
    ),
]
BudgetCost = Annotated[
    float | None,
    typer.Option(
        "--budget-cost",
        metavar="COST",
        help="A budget in the unit of the stages' costs, instead of a number of runs; stages are then run one at a "
        "time, if some can be run by themselves.",
    ),
]
Dask = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask cluster, as in tcp://10.0.0.1:8786.")]


def budget_of(runs: int | None, money: float | None, default: int) -> int | Cost:
    """The budget in runs or in money; `ArgumentError` if both are given."""
    if money is None:
        return default if runs is None else runs
    if runs is not None:
        raise ArgumentError("--budget counts runs and --budget-cost money; give one of them.")
    return Cost(money)


@contextmanager
def execution_options(jobs: int | None, dask: str | None, *, revise: bool) -> Iterator[dict[str, Any]]:
    """Yield the options of `optimise` that say where and how the trials run; signals end the run like Ctrl-C."""
    if revise and dask is not None:
        raise ArgumentError(
            "--revise does not work with --dask, where all stages of a run are reported at its end; use --jobs instead."
        )
    with _signals_interrupt():
        if dask is None:
            yield {"jobs": jobs, "revise": revise}
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

    That no setting satisfies the limits is a result: the exit code is 0. Raises `CascadaError` if the Dask scheduler,
    which is the only executor of the commands, was lost.
    """
    if json_output:
        print_json(as_json(result) | ({} if study is None else {"study": study}))
    else:
        say(summary(result) + ("" if study is None else f"\n\nAll of it is in the study {study!r}."))
    if result.status == "broken":
        kept = "was in memory and is lost; use --storage" if study is None else "keeps every run that had ended"
        raise CascadaError(
            f"the Dask scheduler was lost during the run; the study {kept}. Start a scheduler and repeat the command."
        )
    found = result.best is not None or result.certificate.recommended is not None
    if not (found or result.certificate.answer == "infeasible") or result.status == "refuted":
        raise typer.Exit(1)
