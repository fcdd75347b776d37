"""`cascada reproduce`: run the paper's experiments, draw its figures and check its claims."""

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from cascada.cli.progress import progress
from cascada.cli.terminal import say
from cascada.errors import ArgumentError
from cascada.experiments.plan import QUICK, Settings
from cascada.experiments.pool import cores
from cascada.experiments.reproduce import reproduce as reproduce_paper


def reproduce(
    out: Annotated[Path, typer.Option(help="The folder for everything that is written.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and shorter trials: about a minute.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes at once; by default one per core.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Seed of the algorithms' random choices.", min=0)] = 0,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run the paper's experiments: figures, results.json, and whether each of the paper's claims holds.

    Every finished run is kept: the same command continues after an interrupt.
    """
    try:
        import_module("matplotlib")  # fail now rather than after hours of computing
    except ImportError as error:
        raise ArgumentError(f"the figures need matplotlib ({error}). Run: pip install 'cascada[paper]'.") from error
    settings = replace(QUICK if quick else Settings(), seed=seed)
    with progress(not json_output) as report:
        done = reproduce_paper(settings, out, cores() if jobs is None else jobs, report)
    figures = [str(path) for path in done.figures]
    if json_output:
        content = {"out": str(out), "results": str(done.results), "figures": figures, "claims": done.content["claims"]}
        typer.echo(json.dumps(content))
        return
    typer.echo(done.table.rstrip() + "\n")
    for path in [str(done.results), str(done.claims), *figures]:
        say(path)
