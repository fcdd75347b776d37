"""`cascada problems`: the built-in problems."""

import json
from typing import Annotated

import typer

from cascada.problems import PROBLEMS, by_name


def problems(
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object a problem, as a list.")] = False,
) -> None:
    """List the built-in problems: structure, dimension, and the best value (by a dense search)."""
    rows = []
    for name in PROBLEMS:
        problem = by_name(name)
        rows.append(
            {
                "name": name,
                "structure": problem.summary,
                "dimension": problem.network.domain.dimension,
                "stages": len(problem.network.stages),
                "optimum": problem.optimum[1],
            }
        )
    if json_output:
        typer.echo(json.dumps(rows))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("problem", no_wrap=True)
    for heading in ("structure", "controls", "stages", "best value"):
        table.add_column(heading)
    for row in rows:
        table.add_row(
            str(row["name"]), str(row["structure"]), str(row["dimension"]), str(row["stages"]), f"{row['optimum']:.6f}"
        )
    Console().print(table)
