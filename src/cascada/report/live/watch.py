"""Observer of a store for the live page; it reads only while a page is open, and only the studies shown."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cascada.network import Network
from cascada.report.live.figure_process import FigureProcess
from cascada.report.live.index import Index
from cascada.report.live.view import Sent, View, message
from cascada.store.address import error_text
from cascada.store.database import Head, Store

PACE = 0.1  # seconds between two reads of the store, each of which takes two milliseconds
_RETRY = 0.5  # seconds until a store that could not be read is read again
_REST = 0.5  # pause after a computation as a fraction of its duration, which leaves the machine to the runs
_RESTART = 2.0  # seconds until a figure process that died is started again


class Watch:
    """The present state of a store; `changed` is called, from any thread, when pages need an update."""

    def __init__(
        self,
        url: str,
        networks: Callable[[], Sequence[Network]],
        command: Sequence[str],
        settings: dict[str, Any],
        changed: Callable[[], None],
    ) -> None:
        self._url, self._networks, self._changed = url, networks, changed
        self._lock = threading.Lock()
        self._viewed = threading.Event()  # set while any page is open
        self._closed = False
        self._store: Store | None = None
        self._heads: dict[str, Head] = {}
        self._message: str | None = None  # error message of the store, or None
        self._views: dict[str, View] = {}
        self._index = Index()
        self._listed: list[dict[str, Any]] = []  # the rows of the list
        self._indexes = 0  # pages that show the list of studies only
        self._figures = FigureProcess(command, settings, self._received)
        self._computing: str | None = None
        self._requested, self._free = 0.0, 0.0  # when figures were last requested, and when they may be again
        threading.Thread(target=self._follow, name="cascada store", daemon=True).start()

    def close(self) -> None:
        """Stop the thread and the figure process."""
        self._closed = True
        self._viewed.set()
        self._figures.stop()

    # ---- for pages

    @contextmanager
    def viewed(self, study: str | None) -> Iterator[None]:
        """Register an open page that shows a study, or the list of all."""
        with self._lock:
            self._count(study, 1)
        try:
            yield
        finally:
            with self._lock:
                self._count(study, -1)

    def _count(self, study: str | None, change: int) -> None:
        if study is None:
            self._indexes += change
        else:
            view = self._views.setdefault(study, View(study))
            view.viewers += change
            if not view.viewers and not view.known:
                del self._views[study]  # the name may be any text; only existing studies are kept
        if self._indexes or any(view.viewers for view in self._views.values()):
            self._viewed.set()
        else:
            self._viewed.clear()

    def updates(self, study: str | None, sent: Sent) -> list[str]:
        """Return the messages that bring a page up to date."""
        with self._lock:
            view = None if study is None else self._views[study]
            error = self._message or (None if view is None else view.message)
            computing = view is not None and (view.needs_figures or self._computing == study)
            found = _changed(sent, "studies", list(self._heads)) if self._heads or self._store is not None else []
            found += _changed(sent, "index", self._listed) if view is None else view.updates(sent)
            return found + _changed(sent, "state", {"message": error, "computing": computing})

    # ---- the thread that follows the store

    def _follow(self) -> None:
        while not self._closed:
            self._viewed.wait()
            started = time.monotonic()
            pause = PACE
            try:
                changed = self._read()
            except Exception as error:  # pages show the message, and the store is read again later
                text = error_text(error)
                self._store, pause = None, _RETRY
                with self._lock:
                    changed, self._message = True, text[:1].upper() + text[1:]
            if changed:
                self._changed()
            time.sleep(max(pause - (time.monotonic() - started), PACE / 2))

    def _read(self) -> bool:
        """Read new events of the store; return whether there were any."""
        if self._store is None:
            self._store = Store(self._url, read_only=True)
        heads = self._store.heads()
        with self._lock:
            shown = [view for view in self._views.values() if view.viewers]
            listing = self._indexes > 0
        if listing:
            self._index.read(self._store, heads)
        networks = self._networks()
        found = [view.read(self._store, heads.get(view.name), networks) for view in shown]
        with self._lock:
            for update in found:
                if update is not None:
                    update()
            listed = self._index.rows(heads, self._views) if listing else self._listed
            changed = any(found) or list(heads) != list(self._heads) or self._message is not None
            changed, self._listed = changed or listed != self._listed, listed
            self._heads, self._message = heads, None
            return self._request() or changed

    def _request(self) -> bool:
        """Request the figures of the study that has waited for them longest; return whether a request was made."""
        now = time.monotonic()
        current = self._views.get(self._computing) if self._computing is not None else None
        waiting = [view for view in self._views.values() if view.needs_figures and view is not current]
        if self._computing is not None:
            if not waiting or current is None or current.viewers:
                return False
            self._figures.stop()  # no page shows that study any more, and another study is waiting
            self._computing = None
        if not waiting or now < self._free:
            return False
        view = min(waiting, key=lambda view: view.requested)
        view.requested = self._requested = now
        self._computing = view.name
        self._figures.request(view.name)
        return True

    def _received(self, about: dict[str, Any], part: str) -> None:
        """Take a computed part, or an error; called by the thread that listens to the figure process."""
        now = time.monotonic()
        with self._lock:
            kind = about["kind"]
            view = self._views.get(about.get("study", self._computing or ""))
            if kind == "ended":
                self._free = now + _RESTART
                if view is not None:
                    view.failed("the process that computes them ended; it is started again.", retry=True)
            elif kind == "failed" and about["again"]:  # the store cannot be read, which `_follow` reports
                self._free = now + _RETRY
            elif view is not None and kind == "failed":
                view.failed(json.loads(part)["message"], retry=False)
            elif view is not None:
                view.computed(about, part)
            if kind in ("ended", "failed", "figures"):
                self._free = max(self._free, now + _REST * (now - self._requested))
                self._computing = None
        self._changed()


def _changed(sent: Sent, kind: str, data: Any) -> list[str]:
    text = json.dumps(data)
    if sent.parts.get(kind) == text:
        return []
    sent.parts[kind] = text
    return [message(kind, text)]
