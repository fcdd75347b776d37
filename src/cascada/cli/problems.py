"""`cascada problems`: list the built-in problems."""

import json
import sys
from typing import Annotated

import typer

from cascada.problems.listing import listed


def problems(
    json_output: Annotated[bool, typer.Option("--json", help="Print a JSON list with one object per problem.")] = False,
) -> None:
    """List the built-in problems: structure, dimension, and the best value with the source that it is known from."""
    rows = [
        {
            "name": problem.name,
            "structure": problem.structure,
            "dimension": problem.dimension,
            "stages": problem.stages,
            "optimum": problem.optimum.value,
            "known_by": problem.optimum.how,
        }
        for problem in listed()
    ]
    if json_output:
        typer.echo(json.dumps(rows))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("problem", no_wrap=True)
    for heading in ("structure", "controls", "stages", "best value", "known by"):
        table.add_column(heading)
    for row in rows:
        shown = {**row, "optimum": f"{row['optimum']:.6f}"}
        table.add_row(*map(str, shown.values()))
    Console(width=None if sys.stdout.isatty() else 160).print(table)
