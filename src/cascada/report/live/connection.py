"""Connections of the live page: idle ones are closed, and their number is limited.

A program on this machine may open connections and never send a request. Without limits the server would run out of file
descriptors, and the page could not be reached any more.
"""

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE = 10.0  # seconds without a request under way after which a connection is closed
MOST = 100  # connections; an open page has one, and a browser a few more while it loads


class Connection(H11Protocol):
    """A connection that is closed if no request arrives in time, or if there are too many."""

    _idle_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection; if there are too many, close the one that has been idle for longest."""
        super().connection_made(transport)
        self._idle_since = time.monotonic()
        if len(self.connections) > MOST:
            idle: list[Any] = [each for each in self.connections if getattr(each, "idle_since", None) is not None]
            min(idle, key=lambda each: each.idle_since, default=self).transport.abort()
        self._check()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request; a whole one counts as activity, a part does not."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._idle_since = time.monotonic()

    @property
    def idle_since(self) -> float | None:
        """When the last request arrived; None while it is being answered."""
        under_way = self.cycle is not None and not self.cycle.response_complete
        return None if under_way else self._idle_since

    def _check(self) -> None:
        if self.transport.is_closing():
            return
        since, now = self.idle_since, time.monotonic()
        if since is None:
            self._idle_since = now
        elif now - since >= IDLE:
            self.transport.abort()
            return
        self.loop.call_later(IDLE / 4, self._check)
