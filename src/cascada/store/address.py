"""Addresses of stores: validated, and in a form that may be printed."""

from importlib.util import find_spec
from typing import Any

import sqlalchemy as sa

from cascada.errors import ArgumentError, StoreError


def checked_url(url: Any) -> sa.URL:
    """The URL of a store; `ArgumentError` with an example if it is invalid."""
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


def printable_url(url: str) -> str:
    """The URL of a store without its password."""
    return sa.make_url(url).render_as_string(hide_password=True)
