"""`cascada add`: runs of the past, from a CSV file."""

from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from cascada.cli.output import print_json
from cascada.cli.stored import Json, Spec, Storage, StudyName, opened, text_of


def add(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="The runs; - reads standard input.")],
    study: StudyName,
    storage: Storage = None,
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Add runs of the past, all of them or, if a line is wrong, none.

    The first line names the columns: the controls, and outputs as "stage.output", or "stage" where it has one output.
    An empty cell was not observed. With --spec, a study that is not there yet is created.
    """
    from cascada.study.transfer import add_runs

    lines = StringIO(text_of(file), newline="")
    added = add_runs(opened(storage, study, spec, create=True), lines)
    if json_output:
        print_json({"study": study, "added": added})
    else:
        typer.echo("One run was added." if added == 1 else f"{added} runs were added.")
