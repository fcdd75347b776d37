"""Text on the terminal: without secrets, escape sequences and endless lines; all commands print through this."""

import typer

from cascada.printable import LONGEST_LINE, LONGEST_MESSAGE, one_line, printable, shortened


def say(text: str, *, err: bool = False) -> None:
    """Print some lines of text, on standard error if `err`."""
    typer.echo("\n".join(shown(line, LONGEST_LINE) for line in text.split("\n")), err=err)


def shown(text: str, most: int) -> str:
    """A text as it is printed, with at most so many characters."""
    return shortened(printable(_without_secrets(text, most)), most)


def message(text: str) -> str:
    """An error message as one short line."""
    return one_line(_without_secrets(text, LONGEST_MESSAGE))


def _without_secrets(text: str, most: int) -> str:
    """The text without secrets. Of a long one, only a part that is longer than what will be shown of it."""
    text = shortened(text, 10 * most)
    if not any(part in text for part in ("@", "=", ":/")):
        return text
    from cascada.store.address import without_secrets  # imports SQLAlchemy, which takes time

    return without_secrets(text)
