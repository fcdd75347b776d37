"""`cascada report`: write a study as one self-contained HTML page."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cascada.cli.output import print_json
from cascada.cli.stored import Json, Spec, Storage, TheOnlyOne, followed, given, one_study
from cascada.cli.terminal import say
from cascada.errors import StoreError
from cascada.whole_file import unwritten


def report(
    study: TheOnlyOne = None,
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
    from cascada.store.address import printable_url

    name = one_study(storage, study)
    found = followed(storage, name, spec)
    parts = ["cascada", "report", "--storage", printable_url(given(storage)), "--study", name]
    parts += ["-o", str(out)] + ([] if spec is None else ["--spec", spec])
    command = shlex.join(parts)
    try:
        write_report(found, name, out, command)
    except OSError as error:
        raise StoreError(unwritten(out, error)) from None
    if json_output:
        print_json({"study": name, "out": str(out)})
    else:
        say(f"The report is in {out}.")
