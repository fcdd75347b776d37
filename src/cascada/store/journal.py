"""A study's log and leases, behind one interface; the journal of a study in memory."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from cascada.store.event import Event

Found = TypeVar("Found")


class Transaction(Protocol):
    """A journal held by one process: what is appended counts once the change ends, and not at all if it raises."""

    def since(self, number: int) -> list[Event]:
        """The events from this number on."""

    def append(self, event: Event) -> None:
        """Append an event, whose number is the next free one."""

    def lease(self, trial: int, worker: str, seconds: float, *, lasting: bool = False) -> None:
        """Give a worker a lease of a trial; unless `lasting`, it is over when this process has ended."""

    def release(self, trial: int) -> None:
        """End the lease of a trial."""

    def alive(self, worker: str) -> list[int]:
        """The trials that a process of this name runs, as far as is known: their leases have not run out."""

    def leased(self) -> set[int]:
        """The trials under a lease: it has not run out, and its process has not ended, as far as is known."""

    def is_held_elsewhere(self, trial: int, worker: str) -> bool:
        """Whether another worker, or another live process of the same name, runs a trial under a lease."""


class Journal(Protocol):
    """The log of one study."""

    #: Whether other processes can continue the study: then its points follow from the log alone.
    shared: bool

    #: The file of the store; without one, a name in the working folder for files about it.
    place: Path

    @property
    def known(self) -> Sequence[Event]:
        """The events that were read or written here, which need no store to be read again."""

    def change(self, act: Callable[[Transaction], Found], patience: float = 0.0) -> Found:
        """What `act` returns, with the log for this process alone until then; nothing is changed if it raises.

        A store that is away is waited for, for `patience` seconds or longer, and `act` is called again.
        """

    def events(self, number: int = 0) -> list[Event]:
        """The events from this number on; readers never block writers."""

    def verify(self) -> None:
        """Raise `StoreError` unless all `known` events can be read back from the store by others."""

    def beat(self, worker: str, trial: int | None = None) -> bool:
        """A sign of life for a trial of this process, or for all of them; False if it holds no such lease."""

    def close(self) -> None:
        """Close the connection to the store; what was committed stays."""


@dataclass(frozen=True)
class _Lease:
    worker: str
    seconds: float
    until: float


class MemoryJournal:
    """The log of a study that lives as long as its process.

    `shared`: choose points as if others could continue the study, from the log alone.
    """

    def __init__(self, *, shared: bool = False) -> None:
        self.shared, self.place = shared, Path("study")
        self._lock = threading.RLock()
        self._events: tuple[Event, ...] = ()
        self._leases: dict[int, _Lease] = {}

    @property
    def known(self) -> Sequence[Event]:
        """See `Journal.known`."""
        return self._events

    def change(self, act: Callable[[Transaction], Found], patience: float = 0.0) -> Found:  # noqa: ARG002
        """See `Journal.change`; other threads wait."""
        with self._lock:
            transaction = _MemoryTransaction(list(self._events), dict(self._leases))
            found = act(transaction)
            self._events, self._leases = tuple(transaction.events), transaction.leases
            return found

    def events(self, number: int = 0) -> list[Event]:
        """See `Journal.events`."""
        return list(self._events[number:])

    def verify(self) -> None:
        """Nothing to do."""

    def beat(self, worker: str, trial: int | None = None) -> bool:
        """See `Journal.beat`."""
        with self._lock:
            mine = {n: lease for n, lease in self._leases.items() if lease.worker == worker and trial in (None, n)}
            self._leases |= {n: replace(lease, until=time.time() + lease.seconds) for n, lease in mine.items()}
            return bool(mine)

    def close(self) -> None:
        """Nothing to do."""


class _MemoryTransaction:
    """Copies of events and leases, which replace the journal's at the end."""

    def __init__(self, events: list[Event], leases: dict[int, _Lease]) -> None:
        self.events, self.leases = events, leases

    def since(self, number: int) -> list[Event]:
        return self.events[number:]

    def append(self, event: Event) -> None:
        self.events.append(event)

    def lease(self, trial: int, worker: str, seconds: float, *, lasting: bool = False) -> None:  # noqa: ARG002
        self.leases[trial] = _Lease(worker, seconds, time.time() + seconds)

    def release(self, trial: int) -> None:
        self.leases.pop(trial, None)

    def alive(self, worker: str) -> list[int]:  # noqa: ARG002
        return []  # leases of a study in memory are those of this process, which is not at work when it asks

    def leased(self) -> set[int]:
        now = time.time()
        # A clock that was set back must not prolong a lease: no lease has more time left than it was given.
        self.leases = {
            n: replace(lease, until=min(lease.until, now + lease.seconds)) for n, lease in self.leases.items()
        }
        return {trial for trial, lease in self.leases.items() if lease.until >= now}

    def is_held_elsewhere(self, trial: int, worker: str) -> bool:
        return trial in self.leased() and self.leases[trial].worker != worker
