"""`cascada add`: runs of the past, from a CSV file."""

from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from cascada.cli.output import print_json
from cascada.cli.stored import Confidence, Json, Safe, Spec, Storage, StudyName, network_of, opened, text_of
from cascada.cli.terminal import say


def add(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="The runs; - reads standard input.")],
    study: StudyName,
    storage: Storage = None,
    spec: Spec = None,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Leave out columns that are neither controls nor outputs.")
    ] = False,
    safe: Safe = False,
    confidence: Confidence = None,
    json_output: Json = False,
) -> None:
    """Add runs of the past, all of them or, if a line is wrong, none.

    The first line names the columns: the controls, and outputs as "stage.output", or "stage" where it has one output.
    An empty cell was not observed. Cells are separated by commas, or by semicolons or tabs; then numbers may have
    decimal commas. `cascada trials --csv` writes such a file. With --spec, a study that is not there yet is created;
    with --safe as well, it is one that asks only for settings that are proven to satisfy the limits.
    """
    from cascada.study.tabular import add_runs, read_runs

    lines = list(StringIO(text_of(file), newline=""))
    if spec is not None:
        read_runs(network_of(spec), lines, ignore_unknown=ignore_unknown)  # an invalid file creates no study
    found = opened(storage, study, spec, create=True, safe=safe, confidence=confidence)
    added = add_runs(found, lines, ignore_unknown=ignore_unknown)
    if json_output:
        print_json({"study": study, "added": added})
    else:
        say("One run was added." if added == 1 else f"{added} runs were added.")
