"""Logs of studies in a real database: a SQLite file by default, PostgreSQL by URL, through SQLAlchemy Core.

All that changes a study happens in a transaction that holds the study: whoever has it sees every event before its own,
so that two processes never ask for the same point and no tell is lost. SQLite runs with a write-ahead log and full
synchronisation: what was committed survives a power cut.
"""

import json
import sqlite3
import time
import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import sqlalchemy as sa

from cascada.errors import ArgumentError, StoreError
from cascada.study.events import Event, Kind, encode
from cascada.study.processes import is_gone, this_process
from cascada.study.reading import reading_engine

SCHEMA = 1
_WAIT = 600.0  # seconds for another process to let go of the database: a suggestion may take long
_SHORT = 0.01  # seconds for which a file may be held without anybody's lease being at stake
_AWAY = 60.0  # seconds for a server to come back
_LONGEST_NAME = 200

_metadata = sa.MetaData()
_about = sa.Table(
    "cascada",
    _metadata,
    sa.Column("key", sa.String(40), primary_key=True),
    sa.Column("value", sa.String(40), nullable=False),
)
_studies = sa.Table(
    "cascada_studies",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
)
_events = sa.Table(
    "cascada_events",
    _metadata,
    sa.Column("study", sa.Integer, sa.ForeignKey("cascada_studies.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("trial", sa.Integer),
    sa.Column("data", sa.Text, nullable=False),
    sa.Column("at", sa.Float(53), nullable=False),
)
# Who runs a trial, and until when that is believed without another sign of life: no part of the log.
_leases = sa.Table(
    "cascada_leases",
    _metadata,
    sa.Column("study", sa.Integer, sa.ForeignKey("cascada_studies.id"), primary_key=True),
    sa.Column("trial", sa.Integer, primary_key=True),
    sa.Column("worker", sa.Text, nullable=False),
    sa.Column("process", sa.Text, nullable=False),  # as `this_process` names it
    sa.Column("seconds", sa.Float(53), nullable=False),
    sa.Column("until", sa.Float(53), nullable=False),
)


@dataclass(frozen=True)
class Head:
    """How far a study's log goes, and when it began: another study may come to have the same key and name."""

    study: int
    events: int
    created: float


class Log:
    """One study's log while it is held: what is appended stands once the transaction ends."""

    def __init__(self, connection: sa.Connection, study: int) -> None:
        self._connection, self._study = connection, study

    def since(self, number: int) -> list[Event]:
        """The events from this number on."""
        return _read(self._connection, self._study, number)

    def append(self, event: Event) -> None:
        """Write an event, whose number is the next free one."""
        row = {"study": self._study, "number": event.number, "kind": event.kind, "trial": event.trial, "at": event.at}
        self._connection.execute(_events.insert(), row | {"data": encode(event.data)})

    def lease(self, trial: int, worker: str, seconds: float) -> None:
        """Who runs a trial now."""
        self.release(trial)
        row = {"study": self._study, "trial": trial, "worker": worker, "process": this_process()}
        row |= {"seconds": seconds, "until": _now(self._connection) + seconds}
        self._connection.execute(_leases.insert(), row)

    def release(self, trial: int) -> None:
        """Nobody needs to give signs of life for a trial any more."""
        self._connection.execute(_leases.delete().where(_leases.c.study == self._study, _leases.c.trial == trial))

    def alive(self, worker: str) -> list[int]:
        """The trials that a live process of this name runs under a lease: not past its time, nor known to be dead."""
        theirs = sa.select(_leases).where(_leases.c.study == self._study, _leases.c.worker == worker)
        rows = self._connection.execute(theirs.where(_leases.c.until >= _now(self._connection)))
        return [int(row.trial) for row in rows if not is_gone(row.process)]

    def leased(self) -> set[int]:
        """The trials whose lease has not run out."""
        now = _now(self._connection)
        held = sa.select(_leases.c.trial).where(_leases.c.study == self._study, _leases.c.until >= now)
        return set(self._connection.execute(held).scalars())


class Store:
    """A database with the logs of any number of studies; created if it is not there, unless it is only read."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.url, self._read_only = checked_url(url), read_only
        with _said("open"):
            if read_only:
                self._engine = reading_engine(self.url)
            else:
                self._engine = sa.create_engine(self.url, connect_args=_options(self.url), pool_pre_ping=True)
        weakref.finalize(self, self._engine.dispose)  # nobody has to close a store
        self._reading = self._engine.execution_options(cascada_reads=True)
        if self._engine.dialect.name == "sqlite" and not read_only:
            sa.event.listen(self._engine, "connect", _prepare_sqlite)
            sa.event.listen(self._engine, "begin", _begin_sqlite)
        with _said("open"):
            known = self._schema() or (None if read_only else self._created())
        if known is None:
            self.close()
            raise StoreError("there is no store of cascada in this database (yet); `cascada run` creates one.")
        if known != str(SCHEMA):
            self.close()
            raise StoreError(
                f"this store has schema {known}, and this version of cascada knows schema {SCHEMA}; use the version "
                f"that wrote it, or a newer one."
            )

    def _schema(self) -> str | None:
        """The schema of the store, without waiting for whoever writes to it; None if there is none yet."""
        with self._reading.connect() as connection:
            if not sa.inspect(connection).has_table(_about.name):
                return None
            return connection.execute(sa.select(_about.c.value).where(_about.c.key == "schema")).scalar()

    def _created(self) -> str:
        """The schema of a store whose tables are created here, or by another process at the same time."""
        with self._engine.begin() as connection:
            self._lock_creation(connection)
            _metadata.create_all(connection)
            known = connection.execute(sa.select(_about.c.value).where(_about.c.key == "schema")).scalar()
            if known is None:
                connection.execute(_about.insert(), {"key": "schema", "value": str(SCHEMA)})
            return known or str(SCHEMA)

    def _lock_creation(self, connection: sa.Connection) -> None:
        """Let only one process create tables or studies; SQLite's transactions do so by themselves."""
        if self._engine.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(74027)"))

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def studies(self) -> list[str]:
        """The names of all studies, in the order of their creation."""
        with _said("read"), self._reading.connect() as connection:
            return list(connection.execute(sa.select(_studies.c.name).order_by(_studies.c.id)).scalars())

    def id_of(self, name: str) -> int | None:
        """The key of a study, or None."""
        with _said("read"), self._reading.connect() as connection:
            return connection.execute(sa.select(_studies.c.id).where(_studies.c.name == name)).scalar()

    def heads(self) -> dict[str, Head]:
        """All studies by name, in the order of their creation; quick however long their logs are."""
        of_study = _events.c.study == _studies.c.id
        last = sa.select(sa.func.max(_events.c.number)).where(of_study).scalar_subquery()
        first = sa.select(_events.c.at).where(of_study, _events.c.number == 0).scalar_subquery()
        wanted = sa.select(_studies.c.id, _studies.c.name, last, first).order_by(_studies.c.id)
        with _said("read"), self._reading.connect() as connection:
            rows = connection.execute(wanted).all()
        return {name: Head(key, 0 if end is None else end + 1, begun or 0.0) for key, name, end, begun in rows}

    @contextmanager
    def create(self, name: str) -> Iterator[Log | None]:
        """The log of a new study, in one transaction with what is appended to it; None if the name is taken."""
        checked_name(name)
        with _said("write"), self._engine.begin() as connection:
            self._lock_creation(connection)
            if connection.execute(sa.select(_studies.c.id).where(_studies.c.name == name)).scalar() is not None:
                yield None
                return
            made = connection.execute(_studies.insert().returning(_studies.c.id), {"name": name}).scalar_one()
            yield Log(connection, made)

    @contextmanager
    def hold(self, study: int) -> Iterator[Log]:
        """A study's log, for this process alone until the block ends; nothing is written if the block raises."""
        with _said("write"), self._connected(self._engine) as connection, connection.begin():
            shared = self._engine.dialect.name != "sqlite"  # SQLite holds the whole file
            if shared:
                connection.execute(sa.select(_studies.c.id).where(_studies.c.id == study).with_for_update())
            began = time.time()
            yield Log(connection, study)
            if not shared and time.time() - began > _SHORT:
                _prolong(connection, began)

    def events(self, study: int, number: int = 0, kinds: Collection[Kind] | None = None) -> list[Event]:
        """The events of a study from this number on; those of some kinds, or all."""
        with _said("read"), self._connected(self._reading) as connection:
            return _read(connection, study, number, kinds)

    def _connected(self, engine: sa.Engine) -> sa.Connection:
        """A connection; a server that was there, and is away for a moment, is waited for: a run may be at stake."""
        until = time.monotonic() + _AWAY
        while True:
            try:
                return engine.connect()
            except sa.exc.OperationalError:
                if engine.dialect.name == "sqlite" or self._read_only or time.monotonic() >= until:
                    raise
                time.sleep(0.5)

    def count(self, study: int) -> int:
        """How many events a study has."""
        with _said("read"), self._reading.connect() as connection:
            counted = sa.select(sa.func.count()).select_from(_events).where(_events.c.study == study)
            return connection.execute(counted).scalar_one()

    def beat(self, study: int, trial: int, worker: str) -> bool:
        """A sign of life of whoever runs a trial; False if the trial is somebody else's by now."""
        return self._beat(self._own(study, worker) & (_leases.c.trial == trial))

    def beat_all(self, study: int, worker: str) -> bool:
        """A sign of life for all trials that this process runs."""
        return self._beat(self._own(study, worker))

    def _own(self, study: int, worker: str) -> sa.ColumnElement[bool]:
        """Leases of this process: another one may have the same name."""
        mine = (_leases.c.worker == worker) & (_leases.c.process == this_process())
        return (_leases.c.study == study) & mine

    def _beat(self, which: sa.ColumnElement[bool]) -> bool:
        with _said("write"), self._engine.begin() as connection:
            later = _leases.update().where(which).values(until=_now(connection) + _leases.c.seconds)
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


def _read(connection: sa.Connection, study: int, number: int, kinds: Collection[Kind] | None = None) -> list[Event]:
    wanted = sa.select(_events).where(_events.c.study == study, _events.c.number >= number).order_by(_events.c.number)
    rows = connection.execute(wanted if kinds is None else wanted.where(_events.c.kind.in_(kinds))).all()
    try:
        return [Event(row.number, row.kind, row.trial, json.loads(row.data), row.at) for row in rows]
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"the log of a study in this store is damaged: {error}.") from error


def _now(connection: sa.Connection) -> float:
    """Seconds since 1970 by the clock of the database where it has one: those of several machines may differ."""
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.execute(sa.select(sa.extract("epoch", sa.func.clock_timestamp()))).scalar_one())


def _prolong(connection: sa.Connection, began: float) -> None:
    """Leases run on by the time for which the file was held, where that was long: nobody could give a sign of life."""
    spent = time.time() - began
    before = (_leases.c.until >= began) & (_leases.c.until - _leases.c.seconds < began)
    starved = before & (_leases.c.seconds < 4.0 * spent)
    connection.execute(_leases.update().where(starved).values(until=_leases.c.until + spent))


@contextmanager
def _said(what: str) -> Iterator[None]:
    """Errors of the database as errors of the store."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()
        raise StoreError(f"cannot {what} the store: {cause[0] if cause else type(error).__name__}.") from error


def checked_url(url: Any) -> sa.URL:
    """The URL of a store; an error that says what one looks like."""
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError, TypeError, AttributeError):
        raise ArgumentError(
            f"a store is a URL like 'sqlite:///alloy.db' or 'postgresql://host/name'; got {url!r:.300}."
        ) from None
    kind = parsed.get_backend_name()
    if kind == "sqlite":
        if not parsed.database or parsed.database == ":memory:" or parsed.query or not parsed.database.isprintable():
            raise ArgumentError(f"a SQLite store needs a file, as in 'sqlite:///alloy.db'; got {url!r:.300}.")
        return parsed.set(drivername="sqlite")
    if kind != "postgresql":
        raise ArgumentError(f"stores are SQLite or PostgreSQL; got {url!r:.300}.")
    if find_spec("psycopg") is None:
        raise StoreError("PostgreSQL needs psycopg: pip install 'cascada[postgres]'.")
    return parsed.set(drivername="postgresql+psycopg")


def _options(url: sa.URL) -> dict[str, Any]:
    if url.get_backend_name() == "sqlite":
        return {"timeout": _WAIT, "check_same_thread": False}
    return {"client_encoding": "utf8"}  # a database in SQL_ASCII would give bytes; what is written is ASCII anyway


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say so: pysqlite would begin them too late
    for left in range(100, -1, -1):  # of all pragmas, this one does not wait for another process that does the same
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
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")  # writers wait for each other at once
