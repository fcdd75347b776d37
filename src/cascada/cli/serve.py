"""`cascada serve`: show the studies of a store as a live page on this machine."""

from typing import Annotated

import typer

from cascada.cli.output import print_json
from cascada.cli.stored import Json, Spec, Storage, given, missing_file
from cascada.cli.terminal import say

PORT = 8765


def serve(
    storage: Storage = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="The page's port; 0 means any free port.")
    ] = PORT,
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Show the studies of a store as a live page, until Ctrl-C.

    The page is that of `cascada report`, updated as runs arrive. It is read-only, and only browsers on this machine can
    reach it. Needs the extra `report`.

    For example: cascada serve --storage sqlite:///alloy.db
    """
    from cascada.cli.live import serve_here

    missing = missing_file(given(storage))

    def ready(address: str) -> None:
        if json_output:
            print_json({"url": address})
        else:
            say(f"The live page is at {address} (Ctrl-C ends it).")
            if missing is not None:
                say(f"There is no {missing} yet: the page waits for it.", err=True)

    serve_here(given(storage), spec, port, ready)
