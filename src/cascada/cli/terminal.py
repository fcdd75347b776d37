"""Text on the terminal: without secrets, escape sequences and endless lines; all commands print through this."""

import typer

from cascada.printable import LONGEST_LINE, one_line, printable, shortened


def say(text: str, *, err: bool = False) -> None:
    """Print some lines of text, on standard error if `err`."""
    lines = printable(_without_secrets(text)).split("\n")
    typer.echo("\n".join(shortened(line, LONGEST_LINE) for line in lines), err=err)


def message(text: str) -> str:
    """An error message as one short line."""
    return one_line(_without_secrets(text))


def _without_secrets(text: str) -> str:
    if not any(part in text for part in ("@", "=", ":/")):
        return text
    from cascada.store.address import without_secrets  # imports SQLAlchemy, which takes time

    return without_secrets(text)
