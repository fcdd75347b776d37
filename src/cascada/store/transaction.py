"""One study's log and leases in a database, while a process holds them."""

import json
import time
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from cascada.errors import StoreError
from cascada.store.event import FIRST_SCHEMA, NEWER, Event, Kind, encode
from cascada.store.lease import is_gone, is_over, this_process
from cascada.store.tables import ABOUT, EVENTS, LEASES

_SHORT = 0.01  # seconds for which a file may be held without putting a lease at risk


class StoredTransaction:
    """See `Transaction`: one study's log while it is locked. `seen`: the events read last, and those appended."""

    def __init__(self, connection: sa.Connection, study: int) -> None:
        self._connection, self._study = connection, study
        self._began = time.time()
        self.seen: list[Event] = []
        self.appended: list[Event] = []

    def since(self, number: int) -> list[Event]:
        """See `Transaction.since`."""
        found = read_events(self._connection, self._study, number)
        self.seen = list(found)
        return found

    def append(self, event: Event) -> None:
        """See `Transaction.append`."""
        row = {"study": self._study, "number": event.number, "kind": event.kind, "trial": event.trial, "at": event.at}
        try:
            self._connection.execute(EVENTS.insert(), row | {"data": encode(event.data)})
        except sa.exc.IntegrityError as error:
            raise StoreError("the study was deleted by another process; nothing was written.") from error
        if event.kind in NEWER:
            _require(self._connection, *NEWER[event.kind])
        self.seen.append(event)
        self.appended.append(event)

    def lease(self, trial: int, worker: str, seconds: float, *, lasting: bool = False) -> None:
        """See `Transaction.lease`."""
        self.release(trial)
        process = this_process(lasting=True) if lasting else this_process()
        row = {"study": self._study, "trial": trial, "worker": worker, "process": process}
        row |= {"seconds": seconds, "until": now(self._connection) + seconds}
        self._connection.execute(LEASES.insert(), row)

    def release(self, trial: int) -> None:
        """See `Transaction.release`."""
        self._connection.execute(LEASES.delete().where(LEASES.c.study == self._study, LEASES.c.trial == trial))

    def alive(self, worker: str) -> list[int]:
        """See `Transaction.alive`."""
        rows = leases(self._connection, self._study)
        return [int(row.trial) for row in rows if row.worker == worker and not is_gone(row.process)]

    def leased(self) -> set[int]:
        """See `Transaction.leased`."""
        return {int(row.trial) for row in leases(self._connection, self._study) if not is_over(row.process)}

    def is_held_elsewhere(self, trial: int, worker: str) -> bool:
        """See `Transaction.is_held_elsewhere`."""
        row = next((row for row in leases(self._connection, self._study) if row.trial == trial), None)
        if row is None or (row.worker, row.process) == (worker, this_process()):
            return False
        return row.process == this_process() or not is_gone(row.process)

    def prolong_leases(self) -> None:
        """Extend leases by the time for which the file was held, if long: no sign of life could be written."""
        spent = time.time() - self._began
        if spent <= _SHORT:
            return
        before = (LEASES.c.until >= self._began) & (LEASES.c.until - LEASES.c.seconds < self._began)
        starved = before & (LEASES.c.seconds < 4.0 * spent)
        self._connection.execute(LEASES.update().where(starved).values(until=LEASES.c.until + spent))


def leases(connection: sa.Connection, study: int) -> list[sa.Row[Any]]:
    """The leases of a study that have not run out, as rows of `LEASES`.

    No lease has more time left than it was given. One that seems to was written by a clock that was ahead: from now on
    it has as much as it was given.
    """
    at, of_study = now(connection), LEASES.c.study == study
    rows = connection.execute(sa.select(LEASES).where(of_study, LEASES.c.until >= at)).all()
    if any(row.until > at + row.seconds for row in rows):
        ahead = of_study & (LEASES.c.until > at + LEASES.c.seconds)
        connection.execute(LEASES.update().where(ahead).values(until=at + LEASES.c.seconds))
    return list(rows)


def beat(connection: sa.Connection, study: int, worker: str, trial: int | None) -> bool:
    """See `Journal.beat`."""
    own = (LEASES.c.study == study) & (LEASES.c.worker == worker)
    own &= LEASES.c.process == this_process()  # another process may have the same name
    own = own if trial is None else own & (LEASES.c.trial == trial)
    later = LEASES.update().where(own).values(until=now(connection) + LEASES.c.seconds)
    return bool(connection.execute(later).rowcount)


def read_events(
    connection: sa.Connection, study: int, number: int = 0, kinds: Collection[Kind] | None = None
) -> list[Event]:
    """The events of a study from this number on; those of some kinds, or all."""
    wanted = sa.select(EVENTS).where(EVENTS.c.study == study, EVENTS.c.number >= number).order_by(EVENTS.c.number)
    rows = connection.execute(wanted if kinds is None else wanted.where(EVENTS.c.kind.in_(kinds))).all()
    try:
        return [Event(row.number, row.kind, row.trial, json.loads(row.data), row.at) for row in rows]
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"the log of a study in this store is damaged: {error}.") from error


def about_value(connection: sa.Connection, key: str) -> str | None:
    """What a store says of itself: its schema, the version that it needs."""
    return connection.execute(sa.select(ABOUT.c.value).where(ABOUT.c.key == key)).scalar()


def set_about(connection: sa.Connection, key: str, value: str) -> None:
    """Replace what a store says of itself."""
    connection.execute(ABOUT.delete().where(ABOUT.c.key == key))
    connection.execute(ABOUT.insert(), {"key": key, "value": value})


def _require(connection: sa.Connection, schema: int, version: str) -> None:
    """Mark the store as one that only this schema, and so this version or a newer one, can read."""
    if int(about_value(connection, "schema") or FIRST_SCHEMA) < schema:
        set_about(connection, "schema", str(schema))
        set_about(connection, "needs", version)


def now(connection: sa.Connection) -> float:
    """Seconds since 1970, by the clock of the database where it has one: the clocks of machines may differ."""
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.execute(sa.select(sa.extract("epoch", sa.func.clock_timestamp()))).scalar_one())
