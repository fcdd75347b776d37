"""`cascada run SPEC`: optimise a process and print the best run, its gap and what it rests on."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import PurePath
from typing import Annotated

import typer

from cascada.algorithms import NAMES
from cascada.cli.running import Dask, Jobs, at_work, print_result
from cascada.cli.stored import Json, Storage, given, process_of, store_at
from cascada.errors import ArgumentError
from cascada.study import maximise
from cascada.study.catalogue import open_study


def run(
    spec: Annotated[
        str,
        typer.Argument(metavar="SPEC", help="A built-in problem, file.toml, file.py:object or package.module:object."),
    ],
    algorithm: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(NAMES)}, or module:Class.", show_default="auto, or that of the stored study"),
    ] = None,
    budget: Annotated[
        int, typer.Option(help="At most this many runs of the process, those in a store included.", min=1)
    ] = 100,
    tolerance: Annotated[float | None, typer.Option(help="Stop when the proven gap is at most this.")] = None,
    stop_on_estimated: Annotated[
        bool, typer.Option("--stop-on-estimated", help="Stop on an estimated gap, too: kernels or norms are not known.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the algorithm's random choices.", show_default="0, or that of the stored study"),
    ] = None,
    minimize: Annotated[bool, typer.Option("--minimise", help="Minimise the objective instead.")] = False,
    jobs: Jobs = None,
    dask: Dask = None,
    storage: Storage = None,
    study: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The study's name in the store; by default that of the problem or file."),
    ] = None,
    worker: Annotated[
        str, typer.Option(metavar="NAME", help="Who runs, in the store; processes side by side need a name each.")
    ] = "main",
    amend: Annotated[
        bool, typer.Option("--amend", help="Go on with other kernels, norm bounds or offsets than the stored ones.")
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show a live page while this runs (with --storage; needs the extra report).")
    ] = False,
    json_output: Json = False,
) -> None:
    """Optimise a process: print the best run, how far from the best possible it can be, and why that is so.

    With --storage every run is kept: the same command goes on after an interrupt, and one with a larger budget does
    more runs. With --serve as well, a page shows them as they arrive; `cascada serve` shows it afterwards.

    For example: cascada run my_process.py:network --tolerance 0.01 --jobs 4
    """
    process = process_of(spec)
    network = process.network
    if minimize and network.sign > 0:
        network = network.mirrored()
    if serve and storage is None:
        raise ArgumentError("a live page shows what is in a store: give --storage URL, as in sqlite:///alloy.db.")
    with at_work(jobs, dask) as workers, ExitStack() as beside:
        options = workers | {"budget": budget, "progress": not json_output}
        if storage is None:
            if study is not None:
                given(storage)
            found = maximise(
                network,
                process,
                algorithm=algorithm or "auto",
                tolerance=tolerance,
                stop_on_estimated=stop_on_estimated,
                seed=seed or 0,
                **options,
            )
            print_result(found, None, json_output)
            return
        name = study or _name(spec)
        announce = beside.enter_context(_page(storage, spec, name, json_output)) if serve else None
        opened = open_study(
            store_at(storage, create=True),
            name,
            network,
            algorithm=algorithm,
            seed=seed,
            planned=budget,  # a later budget may be larger: the first one stays
            tolerance=tolerance,
            stop_on_estimated=stop_on_estimated,
            worker=worker,
            amend=amend,
        )
        if announce is not None:
            announce()
        print_result(opened.optimise(process, **options), name, json_output)


def _page(storage: str, spec: str, name: str, quiet: bool) -> AbstractContextManager[Callable[[], None]]:
    """The live page beside this; started before the study is opened, as both take a second."""
    from cascada.cli.live import check_installed, page_beside
    from cascada.cli.serve import PORT
    from cascada.store.address import checked_url

    check_installed()
    checked_url(storage)
    return page_beside(storage, spec, name, PORT, quiet=quiet)


def _name(spec: str) -> str:
    """The name of a study of which only the process is given: the problem's, or that of the file or module."""
    place, colon, _ = spec.rpartition(":")
    if not colon:
        return PurePath(spec).stem if spec.endswith(".toml") else spec
    return PurePath(place).stem if place.endswith(".py") else place.rpartition(".")[2]
