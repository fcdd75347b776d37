"""Validation of the names of studies and workers."""

from typing import Any

from cascada.errors import ArgumentError

_LONGEST_NAME = 200


def checked_name(name: Any) -> str:
    """The name of a study: text of one line."""
    fine = isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable() and name == name.strip()
    if not fine:
        raise ArgumentError(
            f"a study's name must be printable text of 1 to {_LONGEST_NAME} characters without spaces at its ends; "
            f"got {name!r:.300}."
        )
    return name
