"""`cascada import`: recreate a study from an exported log."""

from pathlib import Path
from typing import Annotated

import typer

from cascada.cli.output import print_json
from cascada.cli.stored import Json, Spec, Storage, network_of, store_at, text_of
from cascada.cli.terminal import say
from cascada.errors import ArgumentError


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `cascada export` wrote; - reads standard input.")],
    study: Annotated[
        str | None, typer.Option("--study", metavar="NAME", help="The study's name; by default that of the file.")
    ] = None,
    storage: Storage = None,
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Recreate a study from an exported log; it continues exactly as the exported study would.

    If any line is invalid, nothing is imported. The store is created if it does not exist.
    """
    from cascada.store.study_name import checked_name
    from cascada.study.log_file import import_log

    if study is None and str(file) == "-":
        raise ArgumentError("standard input has no name to give to the study; give --study NAME.")
    name = checked_name(file.stem if study is None else study)
    network = None if spec is None else network_of(spec)
    lines = text_of(file).splitlines()
    store = store_at(storage, create=True)
    try:
        events = import_log(store, name, lines, network)
    finally:
        store.close()
    if json_output:
        print_json({"study": name, "events": events})
    else:
        say(f"The study {name!r} was imported: {events} events.")
