"""Connections to a store: how they are made, when one counts as lost, and errors of databases in words."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from cascada.errors import StoreError
from cascada.store.address import without_secrets

WAIT = 600.0  # seconds for another process to release the database: a suggestion may take long
AWAY = 60.0  # seconds for a server to come back
_STARTS = "the database system is"  # starting up, shutting down, or in recovery mode
_PAUSE = 0.25  # seconds between two attempts to reach a server
#: What databases say → what it means and what to do.
_MEANINGS = {
    "disk I/O error": "the disk reported an error (disk I/O error). Check that it is mounted, healthy and not full, "
    "and repeat the command",
    "disk image is malformed": "its file is damaged (database disk image is malformed). Restore it from a backup or an "
    "export; `sqlite3 FILE .recover` may read what is left",
    "file is not a database": "this is not a cascada store: the file is not a database of SQLite. Check its name, or "
    "give that of a new file",
    "readonly database": "the file or its folder may not be written to (attempt to write a readonly database). Change "
    "their permissions, or copy the store elsewhere",
    "disk is full": "the disk is full (database or disk is full). Free some space and repeat the command; what was "
    "stored before is kept",
    "No space left on device": "the disk of the server is full (No space left on device). Free some space and repeat "
    "the command; what was stored before is kept",
    "unable to open database file": "its file cannot be opened (unable to open database file). Check that the folder "
    "exists, and that you may read and write there",
    "database is locked": "another process holds it (database is locked). Wait until it has ended, and repeat the "
    "command",
}

Found = TypeVar("Found")


def writing_engine(url: sa.URL) -> sa.Engine:
    """Connections for changes; with `cascada_reads` among its execution options, for reading."""
    if url.get_backend_name() != "sqlite":
        # A database in SQL_ASCII would return bytes; all text is ASCII anyway.
        return sa.create_engine(url, connect_args={"client_encoding": "utf8"}, pool_pre_ping=True)
    options = {"timeout": WAIT, "check_same_thread": False}
    # The same file whatever the working folder is later; a missing host in the URL is what makes it a path.
    place = url if url.host else url.set(database=os.path.abspath(url.database or ""))
    engine = sa.create_engine(place, connect_args=options)
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def use_write_ahead_log(connection: Any) -> None:
    """Let a SQLite file keep a write-ahead log, from now on: then readers never block writers.

    `connection` is that of the driver. The mode is a part of the file, so it is changed only in files of ours.
    """
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        return
    for left in range(100, -1, -1):  # unlike others, this pragma does not wait for a process that does the same
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if not left:
                raise
            time.sleep(0.05)


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun explicitly: pysqlite would begin them too late
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    reading = connection.get_execution_options().get("cascada_reads", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")  # a writer waits for others before it reads


class StoreFile:
    """The file of a SQLite store, which must stay the same one while a process writes to it."""

    def __init__(self, path: str) -> None:
        self.path = Path(os.path.abspath(path))
        self._identity = self._found()

    def check(self) -> None:
        """Raise `StoreError` if the file was deleted, moved or replaced: what is written then is lost."""
        found = self._found()
        if found is None:
            raise StoreError(f"the file {self.path} of the store is not there any more: it was deleted or moved.")
        if found != self._identity:
            raise StoreError(f"the file {self.path} of the store was replaced by another file.")

    def _found(self) -> tuple[int, int] | None:
        """What tells the file from any other: its device and inode."""
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino


# ---- lost connections


def repeated(
    engine: sa.Engine, patience: float, work: Callable[[sa.Connection], Found], *, unseen: bool = False
) -> Found:
    """What `work` returns; a server that is away for at most `patience` seconds is waited for, and it is done again.

    A connection is lost when a server restarts, say: at any statement, and also while it commits. So `work` has to see
    for itself whether it was done already. `unseen`: the server has not answered yet, and its address may be wrong; it
    is waited for only if it says that it is about to start.
    """
    until = time.monotonic() + patience
    while True:
        try:
            with _connected(engine, until, unseen) as connection:
                return work(connection)
        except sa.exc.DBAPIError as error:
            if not error.connection_invalidated or time.monotonic() >= until:
                raise
        time.sleep(_PAUSE)


def _connected(engine: sa.Engine, until: float, unseen: bool) -> sa.Connection:
    """A connection, once the server answers."""
    while True:
        try:
            return engine.connect()
        except sa.exc.OperationalError as error:
            if engine.dialect.name == "sqlite" or time.monotonic() >= until or (unseen and _STARTS not in str(error)):
                raise
            time.sleep(_PAUSE)


# ---- errors


@contextmanager
def translated_errors(what: str, folder: Path | None = None) -> Iterator[None]:
    """Translate `SQLAlchemyError`, and errors of SQLite's driver where it is used directly, into `StoreError`.

    `folder` is that of a SQLite file: if it is not there, the error says so.
    """
    try:
        yield
    except (sa.exc.SQLAlchemyError, sqlite3.Error) as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()
        said = without_secrets(cause[0]) if cause else type(error).__name__
        meant = next((text for key, text in _MEANINGS.items() if key in said), said)
        if folder is not None and not folder.is_dir():
            meant = f"there is no folder {folder}. Create it, or give another path"
        raise StoreError(f"cannot {what} the store: {meant}.") from error


def not_a_store(engine: sa.Engine, file: str | None) -> StoreError:
    """The error that says what is there instead of a store, in a file or in a database of a server."""
    with engine.connect() as connection:
        tables = sorted(sa.inspect(connection).get_table_names())
    if tables:
        others = f" and {len(tables) - 3} more" if len(tables) > 3 else ""
        found = f"it has the tables of another program ({', '.join(tables[:3])}{others})"
    else:
        empty = file is not None and Path(file).stat().st_size == 0
        found = "the file is empty" if empty else "the database has no tables"
    return StoreError(
        f"this is not a cascada store{'' if tables else ' (yet)'}: {found}. Check the address; `cascada run` creates a "
        f"store in a new file or an empty database."
    )
