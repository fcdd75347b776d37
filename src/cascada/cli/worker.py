"""`cascada worker`: one of several processes, possibly on several machines, that run one study."""

import os
import socket
from typing import Annotated

import typer

from cascada.cli.default_tolerance import stored_tolerance
from cascada.cli.execution import BudgetCost, Dask, Jobs, Revise, budget_of, execution_options, print_result
from cascada.cli.stored import Algorithm, Confidence, Json, Storage, StudyName, process_of, store_at
from cascada.study.catalogue import open_study

_BUDGET = 100  # the default of `cascada run`


def worker(
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help="The process, as for `cascada run`; it runs on this machine.")
    ],
    study: StudyName,
    storage: Storage = None,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1, help="Stop when the study has this many runs.", show_default="what the study was created for, or 100"
        ),
    ] = None,
    budget_cost: BudgetCost = None,
    algorithm: Algorithm = None,
    confidence: Confidence = None,
    jobs: Jobs = None,
    dask: Dask = None,
    revise: Revise = False,
    name: Annotated[
        str | None,
        typer.Option(
            "--worker",
            metavar="NAME",
            help="The worker's name in the store: a worker restarted under its name first resumes its open runs.",
            show_default="host and process id",
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """Run trials of a study until it has enough of them; start as many workers as there are machines and cores.

    All workers share one study: no point is run twice, and others take over the runs of a dead worker after a minute.
    The study is created if it does not exist yet.

    For example: cascada worker process.toml --storage postgresql://lab/studies --study alloy
    """
    process = process_of(spec, algorithm)
    found = open_study(
        store_at(storage, create=True),
        study,
        process.network,
        algorithm=algorithm,
        confidence=confidence,
        worker=name or f"{socket.gethostname()}:{os.getpid()}",
        any_sense=True,
        planned=(budget or _BUDGET) if budget_cost is None else None,
    )
    with execution_options(jobs, dask, revise=revise) as options:
        stored = stored_tolerance(found)
        if stored is not None:
            found.stop_at(stored)
        most = budget_of(budget, budget_cost, found.horizon or _BUDGET)
        print_result(found.optimise(process, budget=most, progress=not json_output, **options), study, json_output)
