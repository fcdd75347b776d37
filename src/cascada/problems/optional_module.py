"""Import of a library that one problem needs and that is not installed with cascada."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from cascada.errors import ArgumentError


@cache
def optional_module(module: str, problem: str, extra: str) -> ModuleType:
    """Import a library at its first use; raise `ArgumentError` with the command that installs it if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise ArgumentError(
            f"the {problem} problem needs {library} ({error}). Run: pip install 'cascada[{extra}]'."
        ) from error


def unless_installed(module: str, extra: str) -> str:
    """What a summary says of a missing library; nothing if it is installed, which is found out without importing it."""
    if find_spec(module) is not None:
        return ""
    return f" (cannot be run here: it needs pip install 'cascada[{extra}]')"
