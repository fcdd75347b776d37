"""`cascada new FILE.toml`: write a template of a process description."""

import shlex
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from cascada.cli.output import print_json
from cascada.cli.stored import Json
from cascada.cli.terminal import say
from cascada.errors import ArgumentError
from cascada.whole_file import unwritten, write_whole


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The file to write; it must not be there yet.")],
    json_output: Json = False,
) -> None:
    """Write a template of a process description: two stages that are commands, with a comment on every line.

    It runs as it is; replace its commands, controls and outputs by your own. --json prints the path.

    For example: cascada new process.toml
    """
    if file.suffix.lower() != ".toml":
        raise ArgumentError(
            f"FILE.toml must end with .toml, so that `cascada run` recognises its format; got {str(file)!r}."
        )
    text = files("cascada.cli").joinpath("new.toml").read_text(encoding="utf-8")
    try:
        write_whole(file, text.replace("FILE.toml", file.name), new=True)
    except FileExistsError:
        raise ArgumentError(f"{file} is already there, and is not overwritten. Give another name.") from None
    except FileNotFoundError:
        raise ArgumentError(f"there is no folder {file.parent}; create it first, or give another path.") from None
    except OSError as error:
        raise ArgumentError(unwritten(file, error)) from None
    if json_output:
        print_json({"path": str(file)})
    else:
        say(f"{file} was written, and runs as it is:\n  cascada run {shlex.quote(str(file))}")
