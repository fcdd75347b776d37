"""`cascada worker`: one of any number of processes, on any number of machines, that run one study."""

import os
import socket
from typing import Annotated

import typer

from cascada.cli.running import Dask, Jobs, at_work, print_result
from cascada.cli.stored import Json, Storage, StudyName, process_of, store_at
from cascada.study.catalogue import open_study

_BUDGET = 100  # as that of `cascada run`


def worker(
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help="The process, as for `cascada run`; here, where the worker runs.")
    ],
    study: StudyName,
    storage: Storage = None,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1, help="Stop when the study has so many runs.", show_default="what the study was created for, or 100"
        ),
    ] = None,
    jobs: Jobs = None,
    dask: Dask = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--worker",
            metavar="NAME",
            help="Its name in the store: one that is started again under its name first ends its open runs.",
            show_default="host and process id",
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """Run trials of a study until it has enough of them; start as many workers as there are machines and cores.

    All take part in one study: no point is run twice, and the runs of a worker that dies are taken over by others after
    a minute. A study that is not there yet is created.

    For example: cascada worker process.toml --storage postgresql://lab/studies --study alloy
    """
    process = process_of(spec)
    found = open_study(
        store_at(storage, create=True),
        study,
        process.network,
        worker=name or f"{socket.gethostname()}:{os.getpid()}",
        any_sense=True,
        planned=budget or _BUDGET,
    )
    with at_work(jobs, dask) as workers:
        budget = budget or found.horizon or _BUDGET
        print_result(found.optimise(process, budget=budget, progress=not json_output, **workers), study, json_output)
