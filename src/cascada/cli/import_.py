"""`cascada import`: a study from an exported log."""

from pathlib import Path
from typing import Annotated

import typer

from cascada.cli.output import print_json
from cascada.cli.stored import Json, Spec, Storage, network_of, store_at, text_of
from cascada.errors import ArgumentError


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `cascada export` wrote; - reads standard input.")],
    study: Annotated[
        str | None, typer.Option("--study", metavar="NAME", help="Its name here; by default that of the file.")
    ] = None,
    storage: Storage = None,
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Make a study of an exported log, all of it or, if a line is wrong, nothing; it goes on as the old one would.

    The store is created if it is not there.
    """
    from cascada.store.database import checked_name
    from cascada.study.log_file import import_log

    if study is None and str(file) == "-":
        raise ArgumentError("give --study NAME: standard input has no name.")
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
        typer.echo(f"The study {name!r} was imported: {events} events.")
