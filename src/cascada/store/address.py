"""Addresses of stores: validated, and in the only form in which they may be printed."""

import re
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from cascada.errors import ArgumentError, CascadaError, StoreError
from cascada.printable import one_line, printable, shortened

_HIDDEN = "***"
_LONGEST = 200  # characters of a printed address
#: Parameters of a connection whose values may be printed. All others may be secrets: `password`, `sslpassword`, and
#: whatever a mistyped or future key is.
_PUBLIC = frozenset(
    [
        "application_name",
        "channel_binding",
        "client_encoding",
        "connect_timeout",
        "dbname",
        "gssencmode",
        "host",
        "hostaddr",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "mode",
        "port",
        "sslmode",
        "target_session_attrs",
        "tcp_user_timeout",
        "timeout",
        "uri",
        "user",
    ]
)
# The beginning of an address. One slash: an address that was taken for the path of a file.
_BEGIN = re.compile(r"(?<![A-Za-z0-9+.\-])[A-Za-z0-9+.\-]{2,}:/")
_END = re.compile(r"[^\s'\"`<>]*")
# What a driver or a user may write without a scheme: user:password@host, and password=… of a connection.
_USER = re.compile(r"(?<![\w.%+\-])([\w.%+\-]+):[^\s@/:]+@")
_PASSWORD = re.compile(
    r"(?i)((?:\b\w*(?:password|passwd|pwd)\s*|[?&]\w*(?:pass|secret|token|key)\w*)=\s*)"
    r"(?:'(?:[^'\\\n]|\\.)*'|\"[^\"\n]*\"|[^\s&'\")]+)"
)
_DOUBTFUL = frozenset("@=:?&")  # in a parameter: another one, or a password, may begin there
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*(?=:)")


def checked_url(url: Any) -> sa.URL:
    """The URL of a store; `ArgumentError` with an example if it is invalid."""
    parsed = _parsed(url)
    if parsed is None:
        raise ArgumentError(
            f"a store is a URL like 'sqlite:///alloy.db' or 'postgresql://host/name'; got {printable_url(url)!r}."
        )
    kind = parsed.get_backend_name()
    if kind == "sqlite":
        if not parsed.database or parsed.database == ":memory:" or parsed.query or not parsed.database.isprintable():
            raise ArgumentError(f"a SQLite store needs a file, as in 'sqlite:///alloy.db'; got {printable_url(url)!r}.")
        return parsed.set(drivername="sqlite")
    if kind != "postgresql":
        raise ArgumentError(f"stores are SQLite or PostgreSQL; got {printable_url(url)!r}.")
    if "@" in (parsed.host or ""):
        raise ArgumentError(
            f"an address has one @, between the password and the host; got {printable_url(url)!r}. Write @ in a "
            f"password as %40."
        )
    if find_spec("psycopg") is None:
        raise StoreError("PostgreSQL needs psycopg: pip install 'cascada[postgres]'.")
    return parsed.set(drivername="postgresql+psycopg")


def printable_url(url: Any) -> str:
    """An address, valid or not, without anything that may be a secret, for people; of limited length.

    Shown are the user, the host, the port, the database and parameters that are known to be public. Of an address that
    cannot be divided into these with certainty, only the scheme is shown.

    >>> printable_url("postgresql://lab:secret@db/studies?sslmode=require&password=secret")
    'postgresql://lab:***@db/studies?sslmode=require&password=***'
    """
    if not isinstance(url, str | sa.URL):
        return type(url).__name__
    text = url if isinstance(url, str) else url.render_as_string(hide_password=False)
    parsed = _parsed(text)
    if parsed is None:
        return _scheme_of(text) if any(c in text for c in "@:=?&%") else _short(text)
    if parsed.drivername in ("http", "https"):  # pages, whose parameters are public unless their names say otherwise
        return _short(_PASSWORD.sub(rf"\1{_HIDDEN}", text)) if "@" not in text else _scheme_of(text)
    if _is_doubtful(parsed):
        return _scheme_of(text)
    shown = [
        f"{key}={quote(value) if key in _PUBLIC and not _DOUBTFUL & set(value) else _HIDDEN}"
        for key, values in parsed.query.items()
        for value in ((values,) if isinstance(values, str) else values)
    ]
    if parsed.password is None and not any(one.endswith(f"={_HIDDEN}") for one in shown):
        # A parameter without a value is left out by SQLAlchemy: "?password:secret" is not seen as one.
        whole = all("=" in one for one in text.partition("?")[2].split("&") if one)
        return _short(text) if whole else _scheme_of(text)
    bare = parsed.set(query={}).render_as_string(hide_password=True)
    return _short(f"{bare}?{'&'.join(shown)}" if shown else bare)


def without_secrets(text: str) -> str:
    """A text in which every address is as `printable_url` prints it, and parts of one have no password."""
    if ":/" in text:
        text = "\n".join(map(_printed_line, text.split("\n")))
    return _PASSWORD.sub(rf"\1{_HIDDEN}", _USER.sub(rf"\1:{_HIDDEN}@", text))


def error_text(error: BaseException) -> str:
    """What an error says, as one line without secrets; an error that is not one of cascada with its type."""
    text = str(error) if isinstance(error, CascadaError) else f"{type(error).__name__}: {error}"
    return one_line(without_secrets(text))


def _printed_line(line: str) -> str:
    """A line with its addresses as they may be printed, in time in proportion to its length."""
    parts, at = [], 0
    last = line.rfind("@")
    while (found := _BEGIN.search(line, at)) is not None:
        # A password may hold spaces and quotation marks: up to the last @ of a line everything may belong to it.
        begin = max(found.end(), last + 1)
        end = begin + len(_END.match(line, begin)[0])  # type: ignore[index]  # it matches anything
        parts += [line[at : found.start()], _printed(line[found.start() : end])]
        at = end
    return "".join([*parts, line[at:]])


def _printed(text: str) -> str:
    address = text.rstrip(".,;:)]}")
    whole = address if "://" in address else address.replace(":/", "://", 1)
    shown = printable_url(whole)
    return (address if shown == whole else shown) + text[len(address) :]


def _parsed(url: Any) -> sa.URL | None:
    try:
        return sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError, TypeError, AttributeError):
        return None


def _is_doubtful(url: sa.URL) -> bool:
    """Whether a part of an address other than its password may hold the password."""
    if url.get_backend_name() == "sqlite" and url.host is None and url.username is None:
        return (
            "@" in (path := url.database or "") and ":/" in path
        )  # a path, or a text in which another address follows
    user, host, database = url.username or "", url.host or "", url.database or ""
    return "@" in host or any(c in user for c in "@:/") or any(c in database for c in "@=:")


def _scheme_of(text: str) -> str:
    found = _SCHEME.match(text)
    return _HIDDEN if found is None else f"{_short(found[0])}://{_HIDDEN}"


def _short(text: str) -> str:
    return shortened(printable(text), _LONGEST)
