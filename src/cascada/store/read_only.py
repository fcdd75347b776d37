"""Read-only connections to a store: nothing is created, changed or locked, and readers never block writers."""

import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from cascada.store.connection import WAIT

_WAIT = 1.0  # seconds for a locked file; a reader can try again
_AWAY = 5  # seconds for a server to answer
_LOCKED = 2000  # milliseconds for locked tables


def reading_engine(url: sa.URL) -> sa.Engine:
    """Connections that cannot write."""
    if url.get_backend_name() == "sqlite":
        path = Path(url.database or "")
        # A connection per read: one that stays open would keep writers from checkpointing when they end.
        return sa.create_engine("sqlite://", creator=lambda: _sqlite(path), poolclass=sa.NullPool)
    options: dict[str, Any] = {"client_encoding": "utf8"}
    if "connect_timeout" not in url.query:
        options["connect_timeout"] = _AWAY
    given = url.query.get("options", "")
    options["options"] = f"{given if isinstance(given, str) else ' '.join(given)} -c lock_timeout={_LOCKED}"
    engine = sa.create_engine(url, connect_args=options, pool_pre_ping=True)
    return engine.execution_options(postgresql_readonly=True)


def fresh_engine(url: sa.URL) -> sa.Engine:
    """Connections as another process would make them now: not one of them is kept, and no file is created.

    A SQLite file that is written to at the same time is read consistently, which needs permission to write. Another
    process that holds it is waited for as long as a change would: it may write its log into the file as it ends.
    """
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, connect_args={"client_encoding": "utf8"}, poolclass=sa.NullPool)
    uri = f"{Path(url.database or '').resolve().as_uri()}?mode=rw"
    return sa.create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(uri, uri=True, timeout=WAIT), poolclass=sa.NullPool
    )


def _sqlite(path: Path) -> sqlite3.Connection:
    if not path.exists():
        raise sqlite3.OperationalError(f"there is no file {path} (yet)")
    path = path.resolve()  # SQLite keeps its write-ahead log next to the file, not next to a link to it
    # Next to a file that no process has open, SQLite would create two more, even to read it, unless the file is
    # declared immutable. If a writer begins at this moment, the rows read may be inconsistent: the numbers of the
    # events show that, and they are read again.
    used = any(path.with_name(path.name + end).exists() for end in ("-wal", "-journal"))
    uri = f"{path.absolute().as_uri()}?mode=ro{'' if used else '&immutable=1'}"
    return sqlite3.connect(uri, uri=True, timeout=_WAIT)
