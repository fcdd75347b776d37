"""Which process holds a lease, and whether it is surely gone: a worker that was killed need not be waited for."""

import os
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path


def this_process() -> str:
    """A name for this process: its machine and its id."""
    return f"{_machine()}:{os.getpid()}"


def is_gone(name: str) -> bool:
    """Whether a process is surely gone, or is this one; one on another machine may always be alive."""
    machine, _, rest = name.rpartition(":")
    if machine != _machine() or not rest.isdecimal():
        return False
    number = int(rest)
    if number == os.getpid():  # or an earlier one that had its id
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # alive, and somebody else's
        return False
    return _is_zombie(number)


@cache
def _machine() -> str:
    """The host's name; with its boot and, in a container, the container: process ids mean nothing outside of it."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid").strip("pid:[]"))
    return "/".join(parts)


def _is_zombie(number: int) -> bool:
    """Whether a process has ended and only its parent has not noticed."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state == "Z"
