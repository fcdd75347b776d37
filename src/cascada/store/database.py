"""Stores: the logs of studies in a database, a SQLite file or PostgreSQL, through SQLAlchemy Core.

Every change of a study is one transaction that locks the study and first reads all events of others, so that two
processes never ask for the same point and no result is lost. SQLite runs with a write-ahead log and full
synchronisation: what was committed survives a power cut.
"""

import json
import sqlite3
import time
import weakref
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from cascada.errors import ArgumentError, StoreError
from cascada.store.address import checked_url, printable_url, without_secrets
from cascada.store.event import FIRST_SCHEMA, NEWER, SCHEMA, Event, Kind, encode
from cascada.store.lease import is_gone, this_process
from cascada.store.read_only import reading_engine
from cascada.store.tables import ABOUT, EVENTS, LEASES, METADATA, STUDIES

_WAIT = 600.0  # seconds for another process to release the database: a suggestion may take long
_SHORT = 0.01  # seconds for which a file may be held without putting a lease at risk
_AWAY = 60.0  # seconds for a server to come back
_LONGEST_NAME = 200


@dataclass(frozen=True)
class Head:
    """The length of a study's log and when it began, which tells it from a later study of the same key and name."""

    study: int
    events: int
    created: float


class StoredTransaction:
    """See `Transaction`: one study's log while it is locked."""

    def __init__(self, connection: sa.Connection, study: int) -> None:
        self._connection, self._study = connection, study

    def since(self, number: int) -> list[Event]:
        """See `Transaction.since`."""
        return _read(self._connection, self._study, number)

    def append(self, event: Event) -> None:
        """See `Transaction.append`."""
        row = {"study": self._study, "number": event.number, "kind": event.kind, "trial": event.trial, "at": event.at}
        try:
            self._connection.execute(EVENTS.insert(), row | {"data": encode(event.data)})
        except sa.exc.IntegrityError as error:
            raise StoreError("the study was deleted by another process; nothing was written.") from error
        if event.kind in NEWER:
            _require(self._connection, *NEWER[event.kind])

    def lease(self, trial: int, worker: str, seconds: float) -> None:
        """See `Transaction.lease`."""
        self.release(trial)
        row = {"study": self._study, "trial": trial, "worker": worker, "process": this_process()}
        row |= {"seconds": seconds, "until": _now(self._connection) + seconds}
        self._connection.execute(LEASES.insert(), row)

    def release(self, trial: int) -> None:
        """See `Transaction.release`."""
        self._connection.execute(LEASES.delete().where(LEASES.c.study == self._study, LEASES.c.trial == trial))

    def alive(self, worker: str) -> list[int]:
        """See `Transaction.alive`."""
        theirs = sa.select(LEASES).where(LEASES.c.study == self._study, LEASES.c.worker == worker)
        rows = self._connection.execute(theirs.where(LEASES.c.until >= _now(self._connection)))
        return [int(row.trial) for row in rows if not is_gone(row.process)]

    def leased(self) -> set[int]:
        """See `Transaction.leased`."""
        now = _now(self._connection)
        held = sa.select(LEASES.c.trial).where(LEASES.c.study == self._study, LEASES.c.until >= now)
        return set(self._connection.execute(held).scalars())

    def is_held_elsewhere(self, trial: int, worker: str) -> bool:
        """See `Transaction.is_held_elsewhere`."""
        of_trial = sa.select(LEASES).where(LEASES.c.study == self._study, LEASES.c.trial == trial)
        row = self._connection.execute(of_trial.where(LEASES.c.until >= _now(self._connection))).first()
        if row is None or (row.worker, row.process) == (worker, this_process()):
            return False
        return row.process == this_process() or not is_gone(row.process)


class StoredJournal:
    """See `Journal`: the log of one study in a store."""

    shared = True

    def __init__(self, store: "Store", study: int) -> None:
        self.store, self.study = store, study

    def hold(self) -> AbstractContextManager[StoredTransaction]:
        """See `Journal.hold`."""
        return self.store.hold(self.study)

    def events(self, number: int = 0) -> list[Event]:
        """See `Journal.events`."""
        return self.store.events(self.study, number)

    def beat(self, worker: str, trial: int | None = None) -> bool:
        """See `Journal.beat`."""
        return self.store.beat(self.study, worker, trial)

    def close(self) -> None:
        """See `Journal.close`."""
        self.store.close()


class Store:
    """A database with the logs of any number of studies; its tables are created if missing, unless `read_only`."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.url, self._read_only = checked_url(url), read_only
        with _translated_errors("open"):
            if read_only:
                self._engine = reading_engine(self.url)
            else:
                self._engine = sa.create_engine(self.url, connect_args=_options(self.url), pool_pre_ping=True)
        weakref.finalize(self, self._engine.dispose)  # closing a store is optional
        self._reading = self._engine.execution_options(cascada_reads=True)
        if self._engine.dialect.name == "sqlite" and not read_only:
            sa.event.listen(self._engine, "connect", _prepare_sqlite)
            sa.event.listen(self._engine, "begin", _begin_sqlite)
        with _translated_errors("open"):
            known = self._schema() or (None if read_only else self._created())
        if known is None:
            self.close()
            raise StoreError("there is no store of cascada in this database (yet); `cascada run` creates one.")
        if not known.isdecimal() or int(known) > SCHEMA:
            needed = self._needed_version()
            self.close()
            raise StoreError(
                f"this store has schema {known}, and this version of cascada knows schema {SCHEMA}; use "
                f"{needed or 'the version that wrote it'}, or a newer one."
            )

    def __repr__(self) -> str:
        return f"Store({printable_url(self.url)!r})"

    def _schema(self) -> str | None:
        """The schema of the store, without waiting for writers; None if there is none yet."""
        with self._reading.connect() as connection:
            if not sa.inspect(connection).has_table(ABOUT.name):
                return None
            return _about_value(connection, "schema")

    def _needed_version(self) -> str | None:
        """The version of cascada that a store with newer events names."""
        with self._reading.connect() as connection:
            return _about_value(connection, "needs")

    def _created(self) -> str:
        """Create the tables, unless another process does so at the same time; return the schema."""
        with self._engine.begin() as connection:
            self._lock_creation(connection)
            METADATA.create_all(connection)
            known = _about_value(connection, "schema")
            if known is None:
                _set_about(connection, "schema", str(FIRST_SCHEMA))
            return known or str(FIRST_SCHEMA)

    def _lock_creation(self, connection: sa.Connection) -> None:
        """Let one process at a time create tables or studies; SQLite's transactions ensure that by themselves."""
        if self._engine.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(74027)"))

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def studies(self) -> list[str]:
        """The names of all studies, in the order of their creation."""
        with _translated_errors("read"), self._reading.connect() as connection:
            return list(connection.execute(sa.select(STUDIES.c.name).order_by(STUDIES.c.id)).scalars())

    def find(self, name: str) -> tuple[StoredJournal, list[Event]] | None:
        """The journal of the study of this name with its events so far; None if there is none."""
        with _translated_errors("read"), self._reading.connect() as connection:
            found = _id_of(connection, name)
            return None if found is None else (StoredJournal(self, found), _read(connection, found, 0))

    def get(self, name: str) -> tuple[StoredJournal, list[Event]]:
        """The same; `StoreError` if there is none."""
        found = self.find(name)
        if found is None:
            raise self.missing(name)
        return found

    def missing(self, name: str) -> StoreError:
        """The error that says that there is no study of this name, and which ones there are."""
        return StoreError(f"there is no study {name!r} in this store; it has {', '.join(self.studies()) or 'none'}.")

    def delete(self, name: str) -> None:
        """Delete a study with its log; `StoreError` if there is none, or if a live process runs one of its trials."""
        with _translated_errors("write"), self._engine.begin() as connection:
            study = self._free_study(connection, name, "delete it")
            for table, key in ((LEASES, LEASES.c.study), (EVENTS, EVENTS.c.study), (STUDIES, STUDIES.c.id)):
                connection.execute(table.delete().where(key == study))
            if study > int(_about_value(connection, "largest_deleted") or 0):
                _set_about(connection, "largest_deleted", str(study))

    def rename(self, name: str, new: str) -> None:
        """Give a study another name; `StoreError` if there is none, or if the new name is taken."""
        checked_name(new)
        with _translated_errors("write"), self._engine.begin() as connection:
            study = self._free_study(connection, name, "rename it")
            if _id_of(connection, new) is not None:
                raise StoreError(f"there is a study {new!r} in this store already; choose another name.")
            connection.execute(STUDIES.update().where(STUDIES.c.id == study).values(name=new))

    def _free_study(self, connection: sa.Connection, name: str, act: str) -> int:
        """The key of a study whose trials no live process runs."""
        self._lock_creation(connection)
        study = _id_of(connection, name)
        if study is None:
            raise self.missing(name)
        if self._engine.dialect.name != "sqlite":
            connection.execute(sa.select(STUDIES.c.id).where(STUDIES.c.id == study).with_for_update())
        rows = connection.execute(sa.select(LEASES).where(LEASES.c.study == study, LEASES.c.until >= _now(connection)))
        busy = [row for row in rows if not is_gone(row.process)]
        if busy:
            raise StoreError(
                f"the worker {busy[0].worker!r} is running trial {busy[0].trial} of the study {name!r}; "
                f"stop it first, then {act}."
            )
        return study

    def heads(self) -> dict[str, Head]:
        """All studies by name, in the order of their creation; quick however long their logs are."""
        of_study = EVENTS.c.study == STUDIES.c.id
        last = sa.select(sa.func.max(EVENTS.c.number)).where(of_study).scalar_subquery()
        first = sa.select(EVENTS.c.at).where(of_study, EVENTS.c.number == 0).scalar_subquery()
        wanted = sa.select(STUDIES.c.id, STUDIES.c.name, last, first).order_by(STUDIES.c.id)
        with _translated_errors("read"), self._reading.connect() as connection:
            rows = connection.execute(wanted).all()
        return {name: Head(key, 0 if end is None else end + 1, begun or 0.0) for key, name, end, begun in rows}

    @contextmanager
    def create(self, name: str) -> Iterator[tuple[StoredJournal, StoredTransaction] | None]:
        """A new study and the transaction that creates it; None if the name is taken."""
        checked_name(name)
        with _translated_errors("write"), self._engine.begin() as connection:
            self._lock_creation(connection)
            if _id_of(connection, name) is not None:
                yield None
                return
            row: dict[str, Any] = {"name": name}
            if self._engine.dialect.name == "sqlite":
                # SQLite would use the key of a deleted study again, and a process that still has it open would write
                # into the new one.
                largest = connection.execute(sa.select(sa.func.max(STUDIES.c.id))).scalar() or 0
                row["id"] = max(largest, int(_about_value(connection, "largest_deleted") or 0)) + 1
            made = connection.execute(STUDIES.insert().returning(STUDIES.c.id), row).scalar_one()
            yield StoredJournal(self, made), StoredTransaction(connection, made)

    @contextmanager
    def hold(self, study: int) -> Iterator[StoredTransaction]:
        """A study's log, locked until the block ends; nothing is written if the block raises."""
        with _translated_errors("write"), self._connected(self._engine) as connection, connection.begin():
            shared = self._engine.dialect.name != "sqlite"  # SQLite holds the whole file
            if shared:
                connection.execute(sa.select(STUDIES.c.id).where(STUDIES.c.id == study).with_for_update())
            began = time.time()
            yield StoredTransaction(connection, study)
            if not shared and time.time() - began > _SHORT:
                _prolong(connection, began)

    def events(self, study: int, number: int = 0, kinds: Collection[Kind] | None = None) -> list[Event]:
        """The events of a study from this number on; those of some kinds, or all."""
        with _translated_errors("read"), self._connected(self._reading) as connection:
            return _read(connection, study, number, kinds)

    def _connected(self, engine: sa.Engine) -> sa.Connection:
        """A connection; a server that does not answer for a moment is waited for, because a result may be at stake."""
        until = time.monotonic() + _AWAY
        while True:
            try:
                return engine.connect()
            except sa.exc.OperationalError:
                if engine.dialect.name == "sqlite" or self._read_only or time.monotonic() >= until:
                    raise
                time.sleep(0.5)

    def beat(self, study: int, worker: str, trial: int | None = None) -> bool:
        """See `Journal.beat`."""
        own = (LEASES.c.study == study) & (LEASES.c.worker == worker)
        own &= LEASES.c.process == this_process()  # another process may have the same name
        own = own if trial is None else own & (LEASES.c.trial == trial)
        with _translated_errors("write"), self._engine.begin() as connection:
            later = LEASES.update().where(own).values(until=_now(connection) + LEASES.c.seconds)
            return bool(connection.execute(later).rowcount)


def checked_name(name: Any) -> str:
    """The name of a study: text of one line."""
    fine = isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable() and name == name.strip()
    if not fine:
        raise ArgumentError(
            f"a study's name must be printable text of 1 to {_LONGEST_NAME} characters without spaces at its ends; "
            f"got {name!r:.300}."
        )
    return name


def _about_value(connection: sa.Connection, key: str) -> str | None:
    return connection.execute(sa.select(ABOUT.c.value).where(ABOUT.c.key == key)).scalar()


def _set_about(connection: sa.Connection, key: str, value: str) -> None:
    connection.execute(ABOUT.delete().where(ABOUT.c.key == key))
    connection.execute(ABOUT.insert(), {"key": key, "value": value})


def _require(connection: sa.Connection, schema: int, version: str) -> None:
    """Mark the store as one that only this schema, and so this version or a newer one, can read."""
    if int(_about_value(connection, "schema") or FIRST_SCHEMA) < schema:
        _set_about(connection, "schema", str(schema))
        _set_about(connection, "needs", version)


def _id_of(connection: sa.Connection, name: str) -> int | None:
    if not name.isprintable():
        return None  # no study has such a name, which a driver may be unable to encode
    return connection.execute(sa.select(STUDIES.c.id).where(STUDIES.c.name == name)).scalar()


def _read(connection: sa.Connection, study: int, number: int, kinds: Collection[Kind] | None = None) -> list[Event]:
    wanted = sa.select(EVENTS).where(EVENTS.c.study == study, EVENTS.c.number >= number).order_by(EVENTS.c.number)
    rows = connection.execute(wanted if kinds is None else wanted.where(EVENTS.c.kind.in_(kinds))).all()
    try:
        return [Event(row.number, row.kind, row.trial, json.loads(row.data), row.at) for row in rows]
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"the log of a study in this store is damaged: {error}.") from error


def _now(connection: sa.Connection) -> float:
    """Seconds since 1970, by the clock of the database where it has one: the clocks of machines may differ."""
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.execute(sa.select(sa.extract("epoch", sa.func.clock_timestamp()))).scalar_one())


def _prolong(connection: sa.Connection, began: float) -> None:
    """Extend leases by the time for which the file was held, where that was long: no sign of life could be written."""
    spent = time.time() - began
    before = (LEASES.c.until >= began) & (LEASES.c.until - LEASES.c.seconds < began)
    starved = before & (LEASES.c.seconds < 4.0 * spent)
    connection.execute(LEASES.update().where(starved).values(until=LEASES.c.until + spent))


@contextmanager
def _translated_errors(what: str) -> Iterator[None]:
    """Translate `SQLAlchemyError` into `StoreError`."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()
        said = without_secrets(cause[0]) if cause else type(error).__name__
        raise StoreError(f"cannot {what} the store: {said}.") from error


def _options(url: sa.URL) -> dict[str, Any]:
    if url.get_backend_name() == "sqlite":
        return {"timeout": _WAIT, "check_same_thread": False}
    return {"client_encoding": "utf8"}  # a database in SQL_ASCII would return bytes; all text is ASCII anyway


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun explicitly: pysqlite would begin them too late
    for left in range(100, -1, -1):  # unlike the others, this pragma does not wait for a process that does the same
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError:
            if not left:
                raise
            time.sleep(0.05)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    reading = connection.get_execution_options().get("cascada_reads", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")  # a writer waits for others before it reads
