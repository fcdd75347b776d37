"""`cascada problems`: list the built-in problems."""

import json
from typing import Annotated

import typer

from cascada.cli.output import print_table
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
    headings = ("problem", "structure", "controls", "stages", "best value", "known by")
    print_table(headings, [list(map(str, {**row, "optimum": f"{row['optimum']:.6f}"}.values())) for row in rows])
