"""Stores: the logs of studies in a database, a SQLite file or PostgreSQL, through SQLAlchemy Core.

Every change of a study is one transaction that locks the study and first reads all events of others, so that two
processes never ask for the same point and no result is lost. SQLite runs with a write-ahead log and full
synchronisation: what was committed survives a power cut. A change whose connection is lost is made again, unless the
log shows that it was committed.
"""

import time
import weakref
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from cascada.errors import StoreError
from cascada.store.address import checked_url, printable_url
from cascada.store.connection import (
    AWAY,
    StoreFile,
    not_a_store,
    repeated,
    translated_errors,
    use_write_ahead_log,
    writing_engine,
)
from cascada.store.event import FIRST_SCHEMA, SCHEMA, Event, Kind, same_events
from cascada.store.lease import is_gone
from cascada.store.read_only import fresh_engine, reading_engine
from cascada.store.study_name import checked_name
from cascada.store.tables import ABOUT, EVENTS, LEASES, METADATA, STUDIES
from cascada.store.transaction import StoredTransaction, about_value, beat, leases, read_events, set_about

_BEAT = 5.0  # seconds for which a sign of life waits for a server: the next one follows soon

Found = TypeVar("Found")


@dataclass(frozen=True)
class Head:
    """The length of a study's log and when it began, which tells it from a later study of the same key and name."""

    study: int
    events: int
    created: float


class StoredJournal:
    """See `Journal`: the log of one study in a store. `known`: the events that were read or written here."""

    shared = True

    def __init__(self, store: "Store", study: int, known: Sequence[Event] = ()) -> None:
        self.store, self.study, self.known = store, study, list(known)
        self.place = Path(store.url.database or "store").absolute()
        if store.url.get_backend_name() != "sqlite":
            self.place = Path.cwd() / self.place.name

    def change(self, act: Callable[[StoredTransaction], Found], patience: float = AWAY) -> Found:
        """See `Journal.change`."""
        found, seen = self.store.change(self.study, act, patience)
        self._remember(seen)
        return found

    def events(self, number: int = 0) -> list[Event]:
        """See `Journal.events`."""
        found = self.store.events(self.study, number)
        self._remember(found)
        return found

    def verify(self) -> None:
        """See `Journal.verify`."""
        self.store.verify(self.study, self.known)

    def beat(self, worker: str, trial: int | None = None) -> bool:
        """See `Journal.beat`."""
        return self.store.beat(self.study, worker, trial)

    def close(self) -> None:
        """See `Journal.close`."""
        self.store.close()

    def _remember(self, events: Sequence[Event]) -> None:
        """Keep new events, if they continue the log as it is known."""
        start = events[0].number if events else len(self.known)
        if all(old.is_same(new) for old, new in zip(self.known[start:], events, strict=False)):
            self.known += events[len(self.known) - start :]


class Store:
    """A database with the logs of any number of studies.

    Its tables are created if they are missing, unless `read_only` or not `create`: then `StoreError` says what there is
    instead, and nothing is written.
    """

    def __init__(self, url: str, *, read_only: bool = False, create: bool = True) -> None:
        self.url, self._read_only, self._away = checked_url(url), read_only, False
        file = self.url.database if self.url.get_backend_name() == "sqlite" and not self.url.host else None
        if file is not None and not (read_only or create) and not Path(file).exists():
            raise StoreError(f"cannot open the store: there is no file {file} (yet); `cascada run` creates one.")
        with translated_errors("open"):
            self._engine = reading_engine(self.url) if read_only else writing_engine(self.url)
        weakref.finalize(self, self._engine.dispose)  # closing a store is optional
        self._reading = self._engine.execution_options(cascada_reads=True)
        with translated_errors("open", None if file is None else Path(file).absolute().parent):
            known = self._schema()
            if known is None and (read_only or not create):
                error = not_a_store(self._reading, file)
                self.close()
                raise error
            if known is None or (known.isdecimal() and int(known) <= SCHEMA):
                self._prepare()
                known = known or self._created()
        if not known.isdecimal() or int(known) > SCHEMA:
            needed = self._needed_version()
            self.close()
            raise StoreError(
                f"this store has schema {known}, and this version of cascada knows schema {SCHEMA}; use "
                f"{needed or 'the version that wrote it'}, or a newer one."
            )
        self._file = None if read_only or file is None else StoreFile(file)

    def _prepare(self) -> None:
        """Let the file of a store that is written to keep a write-ahead log."""
        if self._engine.dialect.name == "sqlite" and not self._read_only:
            connection = self._engine.raw_connection()
            try:
                use_write_ahead_log(connection)
            finally:
                connection.close()

    def __repr__(self) -> str:
        return f"Store({printable_url(self.url)!r})"

    def _schema(self) -> str | None:
        """The schema of the store, without waiting for writers; None if there is none yet."""

        def look(connection: sa.Connection) -> str | None:
            if not sa.inspect(connection).has_table(ABOUT.name):
                return None
            return about_value(connection, "schema")

        return repeated(self._reading, 0.0 if self._read_only else AWAY, look, unseen=True)

    def _needed_version(self) -> str | None:
        """The version of cascada that a store with newer events names."""
        with self._reading.connect() as connection:
            return about_value(connection, "needs")

    def _created(self) -> str:
        """Create the tables, unless another process does so at the same time; return the schema."""

        def create(connection: sa.Connection) -> str:
            with connection.begin():
                self._lock_creation(connection)
                METADATA.create_all(connection)
                known = about_value(connection, "schema")
                if known is None:
                    set_about(connection, "schema", str(FIRST_SCHEMA))
                return known or str(FIRST_SCHEMA)

        return repeated(self._engine, AWAY, create)

    def _lock_creation(self, connection: sa.Connection) -> None:
        """Let one process at a time create tables or studies; SQLite's transactions ensure that by themselves."""
        if self._engine.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(74027)"))

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _waited(self, engine: sa.Engine, patience: float, work: Callable[[sa.Connection], Found]) -> Found:
        """See `repeated`; a server that was waited for in vain is not waited for again until it answers."""
        began = time.monotonic()
        try:
            found = repeated(engine, 0.0 if self._away else patience, work)
        except sa.exc.OperationalError:
            self._away = self._away or time.monotonic() - began >= patience > 0.0
            raise
        self._away = False
        return found

    # ---- reading

    def _read(self, look: Callable[[sa.Connection], Found]) -> Found:
        """What `look` returns; a server that is away is waited for, unless the store is read-only."""
        with translated_errors("read"):
            return self._waited(self._reading, 0.0 if self._read_only else AWAY, look)

    def studies(self) -> list[str]:
        """The names of all studies, in the order of their creation."""
        wanted = sa.select(STUDIES.c.name).order_by(STUDIES.c.id)
        return self._read(lambda connection: list(connection.execute(wanted).scalars()))

    def find(self, name: str) -> tuple[StoredJournal, list[Event]] | None:
        """The journal of the study of this name with its events so far; None if there is none."""

        def look(connection: sa.Connection) -> tuple[int, list[Event]] | None:
            found = _id_of(connection, name)
            return None if found is None else (found, read_events(connection, found))

        found = self._read(look)
        return None if found is None else (StoredJournal(self, *found), found[1])

    def get(self, name: str) -> tuple[StoredJournal, list[Event]]:
        """The same; `StoreError` if there is none."""
        found = self.find(name)
        if found is None:
            raise self.missing(name)
        return found

    def missing(self, name: str) -> StoreError:
        """The error that says that there is no study of this name, and which ones there are."""
        return StoreError(f"there is no study {name!r} in this store; it has {', '.join(self.studies()) or 'none'}.")

    def heads(self) -> dict[str, Head]:
        """All studies by name, in the order of their creation; quick however long their logs are."""
        of_study = EVENTS.c.study == STUDIES.c.id
        last = sa.select(sa.func.max(EVENTS.c.number)).where(of_study).scalar_subquery()
        first = sa.select(EVENTS.c.at).where(of_study, EVENTS.c.number == 0).scalar_subquery()
        wanted = sa.select(STUDIES.c.id, STUDIES.c.name, last, first).order_by(STUDIES.c.id)
        rows = self._read(lambda connection: connection.execute(wanted).all())
        return {name: Head(key, 0 if end is None else end + 1, begun or 0.0) for key, name, end, begun in rows}

    def events(self, study: int, number: int = 0, kinds: Collection[Kind] | None = None) -> list[Event]:
        """The events of a study from this number on; those of some kinds, or all."""
        return self._read(lambda connection: read_events(connection, study, number, kinds))

    def verify(self, study: int, events: Sequence[Event]) -> None:
        """Raise `StoreError` unless these events are in the store, as another process would read them."""
        self.close()  # which also moves what is in a write-ahead log into the file
        if self._file is not None:
            self._file.check()
        engine = fresh_engine(self.url)
        with translated_errors("read"):
            found = self._waited(engine, AWAY, lambda connection: read_events(connection, study))
        if not same_events(found[: len(events)], events):
            pairs = zip(found, events, strict=False)
            kept = next((i for i, (old, new) in enumerate(pairs) if not same_events([old], [new])), len(found))
            raise StoreError(
                f"the store does not hold what was written to it: of {len(events)} events of the study, the first "
                f"{kept} are there. Its file or database was overwritten, or the study was deleted."
            )

    # ---- writing

    def _write(
        self,
        act: Callable[[sa.Connection], Found],
        is_there: Callable[[sa.Connection, Found], bool],
        patience: float = AWAY,
    ) -> Found:
        """What `act` returns, in a transaction that is committed when this returns.

        If the connection is lost, all is done again. Whether a commit was lost with it or made, `is_there` sees, given
        what `act` returned.
        """
        done: list[Found] = []  # what an attempt returned whose commit was lost: nothing, or one entry

        def attempt(connection: sa.Connection) -> Found:
            with connection.begin():
                if done and is_there(connection, done[0]):
                    return done[0]
                done.clear()
                done.append(act(connection))
                if self._file is not None:
                    self._file.check()
            return done[0]

        with translated_errors("write"):
            return self._waited(self._engine, patience, attempt)

    def change(
        self, study: int, act: Callable[[StoredTransaction], Found], patience: float = AWAY
    ) -> tuple[Found, list[Event]]:
        """What `act` returns for a study's log, locked until it has returned; and the events that it read and appended.

        Nothing is written if `act` raises. It is called again if the connection is lost.
        """

        def attempt(connection: sa.Connection) -> tuple[Found, StoredTransaction]:
            self._lock_study(connection, study)
            log = StoredTransaction(connection, study)
            found = act(log)
            if self._engine.dialect.name == "sqlite":
                log.prolong_leases()
            return found, log

        def is_there(connection: sa.Connection, done: tuple[Found, StoredTransaction]) -> bool:
            self._lock_study(connection, study)  # a server may still be committing what we sent
            wanted = done[1].appended
            if not wanted:
                return False
            return same_events(read_events(connection, study, wanted[0].number)[: len(wanted)], wanted)

        found, log = self._write(attempt, is_there, max(patience, AWAY))
        return found, log.seen

    def _lock_study(self, connection: sa.Connection, study: int) -> None:
        """Let one process at a time change a study; SQLite's transactions hold the whole file."""
        if self._engine.dialect.name != "sqlite":
            connection.execute(sa.select(STUDIES.c.id).where(STUDIES.c.id == study).with_for_update())

    def create(self, name: str, events: Sequence[Event]) -> StoredJournal | None:
        """A new study with these events, all of them or none; None if the name is taken."""
        checked_name(name)

        def attempt(connection: sa.Connection) -> int | None:
            self._lock_creation(connection)
            if _id_of(connection, name) is not None:
                return None
            row: dict[str, Any] = {"name": name}
            if self._engine.dialect.name == "sqlite":
                # SQLite would use the key of a deleted study again, and a process that still has it open would write
                # into the new one.
                largest = connection.execute(sa.select(sa.func.max(STUDIES.c.id))).scalar() or 0
                row["id"] = max(largest, int(about_value(connection, "largest_deleted") or 0)) + 1
            made: int = connection.execute(STUDIES.insert().returning(STUDIES.c.id), row).scalar_one()
            log = StoredTransaction(connection, made)
            for event in events:
                log.append(event)
            return made

        def is_there(connection: sa.Connection, made: int | None) -> bool:
            self._lock_creation(connection)
            return made is not None and _id_of(connection, name) == made

        study = self._write(attempt, is_there)
        return None if study is None else StoredJournal(self, study, events)

    def delete(self, name: str) -> None:
        """Delete a study with its log; `StoreError` if there is none, or if a live process runs one of its trials."""

        def attempt(connection: sa.Connection) -> int:
            study = self._free_study(connection, name, "delete it")
            for table, key in ((LEASES, LEASES.c.study), (EVENTS, EVENTS.c.study), (STUDIES, STUDIES.c.id)):
                connection.execute(table.delete().where(key == study))
            if study > int(about_value(connection, "largest_deleted") or 0):
                set_about(connection, "largest_deleted", str(study))
            return study

        def is_there(connection: sa.Connection, study: int) -> bool:
            self._lock_creation(connection)
            return connection.execute(sa.select(STUDIES.c.id).where(STUDIES.c.id == study)).scalar() is None

        self._write(attempt, is_there)

    def rename(self, name: str, new: str) -> None:
        """Give a study another name; `StoreError` if there is none, or if the new name is taken."""
        checked_name(new)

        def attempt(connection: sa.Connection) -> int:
            study = self._free_study(connection, name, "rename it")
            if _id_of(connection, new) is not None:
                raise StoreError(f"there is a study {new!r} in this store already; choose another name.")
            connection.execute(STUDIES.update().where(STUDIES.c.id == study).values(name=new))
            return study

        def is_there(connection: sa.Connection, study: int) -> bool:
            self._lock_creation(connection)
            return _id_of(connection, new) == study

        self._write(attempt, is_there)

    def _free_study(self, connection: sa.Connection, name: str, act: str) -> int:
        """The key of a study whose trials no live process runs."""
        self._lock_creation(connection)
        study = _id_of(connection, name)
        if study is None:
            raise self.missing(name)
        self._lock_study(connection, study)
        busy = [row for row in leases(connection, study) if not is_gone(row.process)]
        if busy:
            raise StoreError(
                f"the worker {busy[0].worker!r} is running trial {busy[0].trial} of the study {name!r}; "
                f"stop it first, then {act}."
            )
        return study

    def beat(self, study: int, worker: str, trial: int | None = None) -> bool:
        """See `Journal.beat`."""

        def attempt(connection: sa.Connection) -> bool:
            with connection.begin():
                return beat(connection, study, worker, trial)

        with translated_errors("write"):
            return repeated(self._engine, _BEAT, attempt)


def _id_of(connection: sa.Connection, name: str) -> int | None:
    if not name.isprintable():
        return None  # no study has such a name, which a driver may be unable to encode
    return connection.execute(sa.select(STUDIES.c.id).where(STUDIES.c.name == name)).scalar()
