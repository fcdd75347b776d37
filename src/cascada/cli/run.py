"""`cascada run SPEC`: optimise a process and print the best run, its gap and what it rests on."""

import json
import sys
from typing import Annotated

import typer

from cascada.algorithms import NAMES
from cascada.cli.output import as_json, summary
from cascada.cli.spec import load
from cascada.study import maximise, minimise


def run(
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help="A built-in problem, package.module:object, or file.py:object.")
    ],
    algorithm: Annotated[str, typer.Option(help=f"{', '.join(NAMES)}, or module:Class.")] = "auto",
    budget: Annotated[int, typer.Option(help="At most this many runs of the process.", min=1)] = 100,
    tolerance: Annotated[float | None, typer.Option(help="Stop when the proven gap is at most this.")] = None,
    stop_on_estimated: Annotated[
        bool, typer.Option("--stop-on-estimated", help="Stop on an estimated gap, too: kernels or norms are not known.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the algorithm's random choices.")] = 0,
    minimize: Annotated[bool, typer.Option("--minimise", help="Minimise the objective instead.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Optimise a process: print the best run, how far from the best possible it can be, and why that is so.

    For example: cascada run my_process.py:network --tolerance 0.01
    """
    sys.path.insert(0, "")  # an algorithm "module:Class" may live in this folder
    optimise = minimise if minimize else maximise
    result = optimise(
        load(spec),
        budget=budget,
        algorithm=algorithm,
        tolerance=tolerance,
        stop_on_estimated=stop_on_estimated,
        seed=seed,
        progress=not json_output,
    )
    typer.echo(json.dumps(as_json(result)) if json_output else summary(result))
    if result.best is None or result.status == "refuted":
        raise typer.Exit(1)
