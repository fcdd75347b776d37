"""Commands as stages: any program that reads one JSON object of inputs and prints one of outputs."""

import errno
import json
import math
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from cascada.errors import ArgumentError
from cascada.literals import json_from
from cascada.network.outputs import StageFailure
from cascada.printable import printable
from cascada.process.process_group import Ended, run_group, stop_all

__all__ = ["Command", "CommandError", "stop_all"]

MOST_OUTPUT = 1 << 20  # bytes; outputs are a few numbers

# Limits of what an error message quotes: characters of standard output, characters and lines of standard error.
_SHOWN = 200
_SHOWN_ERRORS = 2000
_SHOWN_LINES = 10


class CommandError(StageFailure):
    """A command could not be run, failed, or printed something that is not one JSON object."""

    def __init__(self, command: str, reason: str, stderr: str = "") -> None:
        quoted = f'; the end of its standard error: "{stderr}"' if stderr else ""
        super().__init__(f"the command `{command}` {reason}{quoted}")
        self.command = command
        self.reason = reason
        self.stderr = stderr

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception is pickled as its message alone, from which this one cannot be created again.
        return type(self), (self.command, self.reason, self.stderr)


@dataclass(frozen=True)
class Command:
    """A program as the function of a stage: called with the inputs by name, it returns a dict of outputs.

    * `argv`: the program and its arguments, a list of words; no shell interprets them. A program with a slash in its
      name is a path relative to `folder`; any other is searched for in PATH.
    * `folder`: its working folder; by default that of this process when the command is called.
    * `timeout`: seconds after which it is killed, with all processes that it started.

    The command receives the inputs as one JSON object on one line of standard input, and must print exactly one JSON
    object of outputs on standard output. Error messages quote the end of standard error.

    >>> Command(["sed", "s/hot/warm/"])(hot=1.25)
    {'warm': 1.25}
    """

    argv: tuple[str, ...]
    folder: str | None
    timeout: float | None

    def __init__(
        self, argv: Sequence[str], folder: str | os.PathLike[str] | None = None, timeout: float | None = None
    ) -> None:
        if isinstance(argv, str | bytes) or not isinstance(argv, Sequence) or not argv:
            raise ArgumentError(
                f'a command must be a list of words such as ["awk", "-f", "melt.awk"]: no shell reads it; got {argv!r}.'
            )
        for word in argv:
            if not isinstance(word, str) or not _passable(word):
                raise ArgumentError(f"every word of a command must be a text without NUL; got {word!r} in {argv!r}.")
        if not argv[0]:
            raise ArgumentError(f"the first word of a command must name a program; got {argv!r}.")
        number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if timeout is not None and not (number and 0 < timeout <= sys.float_info.max):
            raise ArgumentError(f"timeout must be a number of seconds above 0, or None; got {timeout!r}.")
        object.__setattr__(self, "argv", tuple(argv))
        # Absolute, because another process may have another working folder.
        object.__setattr__(self, "folder", None if folder is None else os.path.abspath(folder))
        object.__setattr__(self, "timeout", None if timeout is None else float(timeout))

    def __call__(self, /, **inputs: float | str) -> dict[str, Any]:
        """Run the command and return its outputs by name, as printed; `CommandError` if it or its output is invalid."""
        if os.name != "posix":
            self._fail("was not run: commands as stages need Linux, macOS or another POSIX system")
        try:
            numbers = {name: _plain(value) for name, value in inputs.items()}
            text = json.dumps(numbers, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except (TypeError, ValueError) as error:
            self._fail(f"was not run: its inputs must be finite numbers ({error})")
        try:
            ended = run_group(self.argv, self.folder, text, self.timeout, MOST_OUTPUT)
        except OSError as error:
            raise CommandError(str(self), f"could not be started: {self._obstacle(error)}") from error
        self._check(ended)
        return self._outputs(ended)

    def check_program(self) -> None:
        """Raise `CommandError` if the folder or the program does not exist, or the program is not executable."""
        program, folder = self.argv[0], self.folder or "."
        # As the operating system searches for it: relative to the folder, which is ignored for absolute paths.
        places = [program] if os.sep in program else [os.path.join(entry, program) for entry in os.get_exec_path()]
        files = [place for entry in places if os.path.isfile(place := os.path.join(folder, entry))]
        if not os.path.isdir(folder) or not files:
            number = errno.ENOENT
        elif not any(os.access(file, os.X_OK) for file in files):
            number = errno.EACCES
        else:
            return
        self._fail(f"cannot be started: {self._obstacle(OSError(number, os.strerror(number)))}")

    def __str__(self) -> str:
        return _shortened(shlex.join(self.argv), 100)

    def _check(self, ended: Ended) -> None:
        """Raise `CommandError` unless the command ended by itself with exit code 0."""
        if ended.how == "too long":
            self._fail(f"timed out after {self.timeout:g} s, and was killed", ended)
        if ended.how == "too much":
            self._fail(
                f"printed more than {MOST_OUTPUT} bytes, and was killed: it must print one JSON object, and anything "
                f"else on standard error. It began with {_text(ended.output)}",
                ended,
            )
        if not ended.code:
            return
        how = f"ended with exit code {ended.code}" if ended.code > 0 else f"was killed by {_signal(-ended.code)}"
        self._fail(how if ended.errors or not ended.output else f"{how}, and printed {_text(ended.output)}", ended)

    def _outputs(self, ended: Ended) -> dict[str, Any]:
        if not ended.output.strip():
            self._fail("printed nothing: it must print one JSON object of its outputs", ended)
        try:
            found = json_from(ended.output.decode("utf-8-sig"))
            if not isinstance(found, dict):
                raise ValueError(f"this is {_KINDS[type(found)]}")
            for name, value in found.items():
                if not name.isprintable():
                    raise ValueError(f"{_shortened(name, 50)!r} is no name")
                if isinstance(value, bool) or not isinstance(value, int | float) or value in (math.inf, -math.inf):
                    raise ValueError(f"{_shortened(name, 50)!r} is not a finite number")
        except ValueError as error:  # a UnicodeDecodeError is a ValueError, too
            self._fail(
                f"must print exactly one JSON object, and anything else on standard error ({error}); it printed "
                f"{_text(ended.output)}",
                ended,
            )
        return found

    def _obstacle(self, error: OSError) -> str:
        """Return why the command could not be started, and what to do."""
        program, folder = self.argv[0], self.folder or "."
        if not os.path.isdir(folder):
            return f"there is no folder {folder}"
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            if os.sep not in program:
                return f"the program {program!r} is not in PATH; if it is in {folder}, call it './{program}'"
            if not os.path.isfile(os.path.join(folder, program)):
                return f"there is no file {program!r} in {folder}"
            return f"the interpreter that the first line of {program!r} names is not found"
        if error.errno == errno.EACCES:
            return f"{program!r} is not executable; try chmod +x"
        if error.errno == errno.ENOEXEC:
            return f"{program!r} is no program of this machine; a script needs a first line such as #!/bin/sh"
        return error.strerror or str(error)

    def _fail(self, reason: str, ended: Ended | None = None) -> NoReturn:
        raise CommandError(str(self), reason, "" if ended is None else _end_of(ended.errors))


_KINDS = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true or false", type(None): "null"}


def _passable(word: str) -> bool:
    try:
        return b"\0" not in os.fsencode(word)
    except UnicodeEncodeError:
        return False


def _plain(value: Any) -> float | str:
    """Return a number, also one of NumPy, as a Python number, and the value of a choice as it is; else `TypeError`."""
    if isinstance(value, str):
        return value
    value = value.item() if getattr(value, "size", None) == 1 else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"got {_shortened(repr(value), 50)}")
    return value


def _signal(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # a signal without a name
        return f"signal {number}"


def _text(output: bytes) -> str:
    """Return the beginning of the output in quotation marks, with control characters escaped."""
    return repr(_shortened(output[: 4 * _SHOWN].decode(errors="replace"), _SHOWN))


def _end_of(errors: bytes) -> str:
    """Return the last lines of standard error, with control characters escaped."""
    text = printable(errors.decode(errors="replace").strip())
    return "\n".join(text.splitlines()[-_SHOWN_LINES:])[-_SHOWN_ERRORS:]


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
