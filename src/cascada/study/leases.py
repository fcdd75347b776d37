"""Leases: a promise to give signs of life, so that a trial whose worker died can be given to another one."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from cascada.errors import ArgumentError, StoreError

_LONGEST = 1e9  # seconds: thirty years


def checked_lease(lease: Any) -> float:
    """A number of seconds above 0."""
    if isinstance(lease, bool) or not isinstance(lease, int | float) or not 0 < lease <= _LONGEST:
        raise ArgumentError(f"lease must be a number of seconds above 0, or None; got {lease!r:.100}.")
    return lease


@contextmanager
def signs_of_life(beat: Callable[[], object], lease: float) -> Iterator[None]:
    """Beat three times a lease while this lasts, in a thread of its own."""
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
