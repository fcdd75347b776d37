"""Leases: a worker promises signs of life, so that a trial whose worker died can be given to another one."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from cascada.errors import ArgumentError, StoreError

LONGEST_LEASE = 1e9  # seconds: thirty years


def checked_lease(lease: Any) -> float:
    """A number of seconds above 0; `ArgumentError` for anything else."""
    if isinstance(lease, bool) or not isinstance(lease, int | float) or not 0 < lease <= LONGEST_LEASE:
        raise ArgumentError(f"lease must be a number of seconds above 0, or None; got {lease!r:.100}.")
    return lease


@contextmanager
def signs_of_life(beat: Callable[[], object], lease: float) -> Iterator[None]:
    """Call `beat` three times per lease in a thread of its own, until the block ends."""
    ended = threading.Event()

    def beats() -> None:
        while not ended.wait(lease / 3):
            with suppress(StoreError):  # a store that is away comes back, or the lease runs out
                beat()

    thread = threading.Thread(target=beats, name="cascada heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def this_process() -> str:
    """A name for this process: its machine and its id."""
    return f"{_machine()}:{os.getpid()}"


def is_gone(name: str) -> bool:
    """Whether a process has surely ended, or is this one; one on another machine may always be alive."""
    machine, _, rest = name.rpartition(":")
    if machine != _machine() or not rest.isdecimal():
        return False
    number = int(rest)
    if number == os.getpid():  # or an earlier process that had its id
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # alive, and of another user
        return False
    return _is_zombie(number)


@cache
def _machine() -> str:
    """The host name with its boot and, in a container, the container: process ids are only valid within these."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid").strip("pid:[]"))
    return "/".join(parts)


def _is_zombie(number: int) -> bool:
    """Whether a process has ended, and its parent has not yet collected its exit status."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state == "Z"
