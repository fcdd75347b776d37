"""`cascada run SPEC`: optimise a process and print the best run, its gap and the assumptions behind it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import PurePath
from typing import Annotated

import typer

from cascada.algorithms import NAMES
from cascada.cli.completion import algorithms_beginning_with, specs_beginning_with
from cascada.cli.default_tolerance import DefaultTolerance, announced
from cascada.cli.enqueue import controls_from, enqueue_start
from cascada.cli.execution import BudgetCost, Dask, Jobs, Revise, budget_of, execution_options, print_result
from cascada.cli.stored import Amend, Confidence, Json, Safe, Start, Storage, given, process_of, store_at
from cascada.errors import ArgumentError
from cascada.study import Study
from cascada.study.catalogue import open_study
from cascada.study.settings import as_stop_on

_BUDGET = 100  # runs


def run(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            help="A built-in problem, file.toml, file.py:object or package.module:object.",
            autocompletion=specs_beginning_with,
        ),
    ],
    algorithm: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(NAMES)}, or module:Class.",
            show_default="auto, or that of the stored study",
            autocompletion=algorithms_beginning_with,
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            help="At most this many runs of the process, those in a store included.", min=1, show_default=str(_BUDGET)
        ),
    ] = None,
    budget_cost: BudgetCost = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Stop when the proven gap is at most this; 0: do not stop before the budget is used up.",
            show_default="1 % of the spread of the first 2(d + 1) runs",
        ),
    ] = None,
    stop_on: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="If kernels or norms are not known, stop on a gap of this kind as well: probable or estimated.",
            show_default="proven",
        ),
    ] = None,
    stop_on_estimated: Annotated[
        bool, typer.Option("--stop-on-estimated", help="The same as --stop-on estimated.")
    ] = False,
    safe: Safe = False,
    start: Start = None,
    confidence: Confidence = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the algorithm's random choices.", show_default="0, or that of the stored study"),
    ] = None,
    minimize: Annotated[bool, typer.Option("--minimise", help="Minimise the objective instead.")] = False,
    jobs: Jobs = None,
    dask: Dask = None,
    revise: Revise = False,
    storage: Storage = None,
    study: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The study's name in the store; by default that of the problem or file."),
    ] = None,
    worker: Annotated[
        str, typer.Option(metavar="NAME", help="This worker's name in the store; each parallel process needs its own.")
    ] = "main",
    amend: Amend = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show a live page while this runs (with --storage; needs the extra report).")
    ] = False,
    json_output: Json = False,
) -> None:
    """Optimise a process: print the best run, how far from the best possible it can be, and why.

    It ends when the proven gap is at most the tolerance; where norms are not given, nothing is proven, and the budget
    decides. With --storage every run is kept: the same command continues after an interrupt, and one with a larger
    budget adds runs. With --serve as well, a live page shows runs as they arrive; `cascada serve` shows it afterwards.

    For example: cascada run my_process.py:network --tolerance 0.01 --jobs 4
    """
    process = process_of(spec, algorithm)
    network = process.network
    if minimize and network.sign > 0:
        network = network.mirrored()
    if serve and storage is None:
        raise ArgumentError("--serve needs a store, and got none; give --storage URL, as in sqlite:///alloy.db.")
    first, most = None if start is None else controls_from(start), budget_of(budget, budget_cost, _BUDGET)
    with execution_options(jobs, dask, revise=revise) as execution, ExitStack() as stack:
        options = execution | {"budget": most, "progress": not json_output}
        wanted = tolerance or None  # 0 switches it off
        if storage is None:
            if study is not None:
                given(storage)
            in_memory = Study(
                network,
                algorithm=algorithm or "auto",
                tolerance=wanted,
                stop_on=as_stop_on(stop_on),
                stop_on_estimated=stop_on_estimated,
                safe=safe,
                confidence=confidence,
                seed=seed or 0,
                horizon=most if isinstance(most, int) else None,
            )
            if first is not None:
                in_memory.enqueue_trial(first, known_safe=True)
            callbacks = [DefaultTolerance(in_memory, tolerance, announced(json_output))]
            print_result(in_memory.optimise(process, callbacks=callbacks, **options), None, json_output)
            return
        name = study or _name(spec)
        announce = stack.enter_context(_page(storage, spec, name, json_output)) if serve else None
        opened = open_study(
            store_at(storage, create=True),
            name,
            network,
            algorithm=algorithm,
            seed=seed,
            planned=most if isinstance(most, int) else None,  # stored by the first call only; a later one may have more
            tolerance=wanted,
            stop_on=as_stop_on(stop_on),
            stop_on_estimated=stop_on_estimated,
            safe=safe or None,  # without --safe it is as stored
            confidence=confidence,
            worker=worker,
            amend=amend,
        )
        if first is not None:
            enqueue_start(opened, first)
        if announce is not None:
            announce()
        callbacks = [DefaultTolerance(opened, tolerance, announced(json_output))]
        print_result(opened.optimise(process, callbacks=callbacks, **options), name, json_output)


def _page(storage: str, spec: str, name: str, quiet: bool) -> AbstractContextManager[Callable[[], None]]:
    """Start the live page in the background; before the study is opened, as each of the two takes a second."""
    from cascada.cli.live import background_page, check_installed
    from cascada.cli.serve import PORT
    from cascada.store.address import checked_url

    check_installed()
    checked_url(storage)
    return background_page(storage, spec, name, PORT, quiet=quiet)


def _name(spec: str) -> str:
    """Return the default name of a study: that of its problem, file or module."""
    place, colon, _ = spec.rpartition(":")
    if not colon:
        return PurePath(spec).stem if spec.endswith(".toml") else spec
    return PurePath(place).stem if place.endswith(".py") else place.rpartition(".")[2]
