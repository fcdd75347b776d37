"""Leases: a worker promises signs of life, so that a trial whose worker died can be given to another one."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from cascada.errors import ArgumentError, StoreError

LONGEST_LEASE = 1e9  # seconds: thirty years
_LASTING = " and after it"  # of a lease that stays in force when its process has ended


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


def this_process(*, lasting: bool = False) -> str:
    """A name for this process: its machine, its id and when it began, as ids are used again.

    `lasting`: for a lease that does not end with the process, as those of `cascada ask --lease`, which ends at once.
    """
    number = os.getpid()
    return f"{_machine()}:{number}{_begin(number)}{_LASTING if lasting else ''}"


def is_gone(name: str) -> bool:
    """Whether a process has surely ended, or is this one; one on another machine may always be alive."""
    machine, _, rest = name.removesuffix(_LASTING).rpartition(":")
    text, at, begin = rest.partition("@")
    if machine != _machine() or not text.isdecimal() or (at and not begin.isdecimal()):
        return False
    number = int(text)
    if number == os.getpid():  # or an earlier process that had its id
        return True
    if at and (now := _begin(number)) and now != f"@{begin}":
        return True  # a later process has its id
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):  # alive, and of another user
        return False
    return _stat(number)[:1] == ["Z"]  # it has ended, and its parent has not yet collected its exit status


def is_over(name: str) -> bool:
    """Whether a lease of this process need not run out to be over: the process has ended, and the lease with it."""
    return not name.endswith(_LASTING) and name != this_process() and is_gone(name)


@cache
def _machine() -> str:
    """The host name with its boot and, in a container, the container: process ids are only valid within these."""
    import socket  # slow to import

    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid").strip("pid:[]"))
    return "/".join(parts)


def _begin(number: int) -> str:
    """When a process began, in clock ticks since the boot, as "@123"; empty where it is not known."""
    stat = _stat(number)
    return f"@{stat[19]}" if len(stat) > 19 else ""


def _stat(number: int) -> list[str]:
    """What Linux says of a process after its name, its state first; empty on other systems, or if there is none."""
    try:
        return Path(f"/proc/{number}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
