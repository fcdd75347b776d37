"""Errors in a user's own file: the last lines of it that ran, and the message, instead of a whole traceback."""

import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

import cascada
from cascada.printable import one_line

_MOST_FRAMES = 4
#: Folders of code that is not the user's.
_INSTALLED = tuple(
    str(Path(folder).resolve())
    for folder in {
        str(Path(cascada.__file__).parent),
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")),
    }
)


def own_lines(error: BaseException) -> list[str]:
    """The user's own lines that led to an error or to its cause, the last of them last; empty if there are none."""
    for one in _causes(error):
        if isinstance(one, SyntaxError) and one.filename and _is_own(one.filename):
            return [f"  {_shown(one.filename)}, line {one.lineno}", f"    {one_line(one.text or '')}"]
        frames = [frame for frame in traceback.extract_tb(one.__traceback__) if _is_own(frame.filename)]
        if frames:
            return [
                line
                for frame in frames[-_MOST_FRAMES:]
                for line in (
                    f"  {_shown(frame.filename)}, line {frame.lineno}"
                    + ("" if frame.name == "<module>" else f", in {frame.name}"),
                    f"    {one_line(frame.line or '')}",
                )
            ]
    return []


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, then what it was raised from."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__


def _is_own(file: str) -> bool:
    """Whether a file is neither of cascada, nor of Python, nor of an installed package."""
    if file.startswith("<"):
        return False
    path = str(Path(file).resolve())
    return not any(path == folder or path.startswith(f"{folder}/") for folder in _INSTALLED)


def _shown(file: str) -> str:
    """The path of a file, from the working folder if it is in there."""
    path = Path(file).resolve()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
