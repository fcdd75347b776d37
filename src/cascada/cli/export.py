"""`cascada export`: print the whole log of a study as JSON lines."""

import json
from pathlib import Path
from typing import Annotated

import typer

from cascada.cli.output import print_json
from cascada.cli.stored import Json, Storage, StudyName, store_at
from cascada.cli.terminal import say
from cascada.errors import StoreError
from cascada.whole_file import unwritten, write_whole


def export(
    study: StudyName,
    storage: Storage = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file instead.")] = None,
    json_output: Json = False,
) -> None:
    """Print the log of a study, one JSON object per line; `cascada import` recreates the study from it in any store.

    --json prints the lines as one array or, with --out, their number.
    """
    from cascada.study.log_file import exported

    store = store_at(storage, read_only=True)
    try:
        lines = exported(store, study)
    finally:
        store.close()
    if out is None:
        if json_output:
            print_json([json.loads(line) for line in lines])
        else:
            typer.echo("\n".join(lines))
        return
    try:
        write_whole(out, "\n".join(lines) + "\n")
    except OSError as error:
        raise StoreError(unwritten(out, error)) from None
    if json_output:
        print_json({"study": study, "events": len(lines), "out": str(out)})
    else:
        say(f"{len(lines)} events were written to {out}.")
