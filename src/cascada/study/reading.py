"""A database that is only looked at: nothing is created, changed or held, and nobody waits for whoever looks."""

import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sa

_WAIT = 1.0  # seconds for a file that somebody holds; whoever looks can look again
_AWAY = 5  # seconds for a server to answer
_LOCKED = 2000  # milliseconds for tables that somebody holds


def reading_engine(url: sa.URL) -> sa.Engine:
    """Connections that cannot write."""
    if url.get_backend_name() == "sqlite":
        path = Path(url.database or "")
        # A connection for every look: one that stays would keep writers from tidying up when they end.
        return sa.create_engine("sqlite://", creator=lambda: _sqlite(path), poolclass=sa.NullPool)
    options: dict[str, Any] = {"client_encoding": "utf8"}
    if "connect_timeout" not in url.query:
        options["connect_timeout"] = _AWAY
    given = url.query.get("options", "")
    options["options"] = f"{given if isinstance(given, str) else ' '.join(given)} -c lock_timeout={_LOCKED}"
    engine = sa.create_engine(url, connect_args=options, pool_pre_ping=True)
    return engine.execution_options(postgresql_readonly=True)


def _sqlite(path: Path) -> sqlite3.Connection:
    if not path.exists():
        raise sqlite3.OperationalError(f"there is no file {path} (yet)")
    path = path.resolve()  # what SQLite keeps beside a file is beside the file, not beside a link to it
    # Beside a file that nobody has open, SQLite would make two more, also to read it, unless it is told that the file
    # does not change. Should somebody begin to write just now, what is read may not fit together: the log's numbers
    # show it, and it is read again.
    used = any(path.with_name(path.name + end).exists() for end in ("-wal", "-journal"))
    uri = f"{path.absolute().as_uri()}?mode=ro{'' if used else '&immutable=1'}"
    return sqlite3.connect(uri, uri=True, timeout=_WAIT)
