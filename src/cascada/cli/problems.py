"""`cascada problems`: list the built-in problems."""

import json
import sys
from typing import Annotated

import typer

from cascada.problems import PROBLEMS, by_name


def problems(
    json_output: Annotated[bool, typer.Option("--json", help="Print a JSON list with one object per problem.")] = False,
) -> None:
    """List the built-in problems: structure, dimension, and the best value with the source that it is known from."""
    rows = []
    for name in PROBLEMS:
        problem = by_name(name)
        rows.append(
            {
                "name": name,
                "structure": problem.summary,
                "dimension": problem.network.domain.dimension,
                "stages": len(problem.network.stages),
                "optimum": problem.best.value,
                "known_by": problem.best.how,
            }
        )
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
