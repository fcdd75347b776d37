"""A log that others append to as well, as far as one process has followed it.

A process keeps the trials, and an in-memory `Study` that has learned from them, and brings both up to date with what
others appended. Both follow from the log alone.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cascada.errors import ArgumentError, CascadaError, ContradictionError, StoreError
from cascada.network import Network
from cascada.study.events import Event, Kind
from cascada.study.fold import Fold
from cascada.study.replay import teach
from cascada.study.store import Log, Store
from cascada.study.study import Study
from cascada.study.trial import Trial


class Following:
    """What a process knows of a stored study, and how it adds to it."""

    def __init__(
        self,
        store: Store,
        name: str,
        network: Network,
        options: Mapping[str, Any],
        described: int,
        worker: str = "main",
    ) -> None:
        self.name, self.network, self.worker = name, network, worker
        self._store, self._options = store, dict(options)
        found = store.id_of(name)
        if found is None:
            raise StoreError(f"there is no study {name!r} in this store; it has {store.studies() or 'none'}.")
        self._id = found
        self._asking = False  # whether the engine may know of a trial that is not written yet
        self._lease: float | None = None  # of trials asked for without another one
        self._described = described  # the number of the event that says what the study is
        self._forget()
        self.refresh()

    def refresh(self) -> None:
        """Take notice of what others appended."""
        try:
            for event in self._appended():
                self._take(event)
        except BaseException:
            self._forget()
            raise

    def _appended(self) -> list[Event]:
        return self._store.events(self._id, self._fold.count)

    @contextmanager
    def _held(self) -> Iterator[Log]:
        """The log with all that others appended; what is raised inside leaves neither log nor memory changed."""
        before = None
        try:
            with self._store.hold(self._id) as log:
                for event in log.since(self._fold.count):
                    self._take(event)
                before = self._fold.count
                yield log
        except BaseException as error:
            refused = isinstance(error, CascadaError) and self._fold.count == before and not self._asking
            if not refused:
                self._forget()  # what was not written did not happen
            raise
        finally:
            self._asking = False

    def _forget(self) -> None:
        self._fold = Fold(self.network)
        self._backlog: list[Event] = []  # events that the engine has not seen
        self._made: Study | None = None
        self._outdated = False  # whether others amended the study: what is told is taken, but nothing is judged here

    def _happen(self, log: Log, kind: Kind, trial: int | None, data: dict[str, Any]) -> None:
        event = Event(self._fold.count, kind, trial, data, time.time())
        try:
            self._take(event)
        except StoreError as error:  # the user's doing, not the log's
            cause = error.__cause__
            raise cause if isinstance(cause, ArgumentError | ContradictionError) else error from None
        log.append(event)

    def _take(self, event: Event) -> None:
        self._fold.apply(event)
        self._outdated |= event.kind == "amended" and event.number > self._described
        self._backlog.append(event)

    @property
    def _engine(self) -> Study:
        """The study in memory, with all that the trials taught."""
        if self._outdated:
            raise StoreError(f"the study {self.name!r} was amended by another process; open it again.")
        if self._made is None:
            self._made = Study(self.network, **self._options, replayable=True)
        try:
            while self._backlog:
                teach(self._made, self._backlog[0], self._described)
                del self._backlog[0]
            return self._made
        except BaseException:
            self._forget()  # half taught: the log knows it all
            raise

    def _trial(self, number: int) -> Trial:
        if not 0 <= number < len(self._fold.trials):
            raise ArgumentError(f"there is no trial {number}; {len(self._fold.trials)} were asked for.")
        return self._fold.trials[number]
