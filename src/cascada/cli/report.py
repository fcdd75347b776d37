"""`cascada report`: a study as one page that needs nothing else, for people who were not there."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cascada.cli.output import print_json
from cascada.cli.stored import Json, Spec, Storage, StudyName, given, opened, without_password
from cascada.errors import StoreError


def report(
    study: StudyName,
    storage: Storage = None,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE.html", help="The file to write.")] = Path(
        "report.html"
    ),
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Write a page about a study: what was found, how good it is and why, figures, all runs.

    The page loads nothing from elsewhere: it can be mailed, printed and kept. Figures need plotly, the extra `report`.

    For example: cascada report --storage sqlite:///alloy.db --study alloy -o alloy.html
    """
    from cascada.report import write_report

    found = opened(storage, study, spec)
    command = f"cascada report --storage {without_password(given(storage))} --study {shlex.quote(study)}"
    try:
        write_report(found, study, out, command)
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror or error}.") from None
    if json_output:
        print_json({"study": study, "out": str(out)})
    else:
        typer.echo(f"The report is in {out}.")
