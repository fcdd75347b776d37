"""Following a store for those who look at it: only while somebody does, and only the studies that are looked at."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cascada.errors import CascadaError
from cascada.network import Network
from cascada.report.live.computing import Computer
from cascada.report.live.view import Sent, View, message
from cascada.store.database import Head, Store

PACE = 0.1  # seconds between two looks at the store, each of two milliseconds
_AFTER_TROUBLE = 0.5  # seconds until a store that could not be read is tried again
_REST = 0.5  # of the time that a computation took: so long the machine is left to the runs
_AFTER_A_DEATH = 2.0  # seconds until a process that died is started again


class Watch:
    """What is known of a store now; `changed` is called, in any thread, when pages should be told."""

    def __init__(
        self,
        url: str,
        networks: Callable[[], Sequence[Network]],
        command: Sequence[str],
        told: dict[str, Any],
        changed: Callable[[], None],
    ) -> None:
        self._url, self._networks, self._changed = url, networks, changed
        self._lock = threading.Lock()
        self._lookers = threading.Event()
        self._closed = False
        self._store: Store | None = None
        self._heads: dict[str, Head] = {}
        self._message: str | None = None  # what is wrong with the store, if something is
        self._views: dict[str, View] = {}
        self._indexes = 0  # pages that show the list of studies only
        self._computer = Computer(command, told, self._heard)
        self._computing: str | None = None
        self._asked, self._free = 0.0, 0.0  # when the computer was last asked, and when it may be asked again
        threading.Thread(target=self._follow, name="cascada store", daemon=True).start()

    def close(self) -> None:
        """Let go of everything; nobody is told any more."""
        self._closed = True
        self._lookers.set()
        self._computer.stop()

    # ---- for pages

    @contextmanager
    def looked_at(self, study: str | None) -> Iterator[None]:
        """While this lasts somebody looks at a study, or at the list of all."""
        with self._lock:
            self._count(study, 1)
        try:
            yield
        finally:
            with self._lock:
                self._count(study, -1)

    def _count(self, study: str | None, one: int) -> None:
        if study is None:
            self._indexes += one
        else:
            view = self._views.setdefault(study, View(study))
            view.lookers += one
            if not view.lookers and not view.known:
                del self._views[study]  # it may be any text: only studies are kept
        if self._indexes or any(view.lookers for view in self._views.values()):
            self._lookers.set()
        else:
            self._lookers.clear()

    def news(self, study: str | None, sent: Sent) -> list[str]:
        """The messages that bring a page up to date."""
        with self._lock:
            view = None if study is None else self._views[study]
            trouble = self._message or (None if view is None else view.message)
            computing = view is not None and (view.wants or self._computing == study)
            found = _changed(sent, "studies", list(self._heads)) if self._heads or self._store is not None else []
            found += [] if view is None else view.news(sent)
            return found + _changed(sent, "state", {"message": trouble, "computing": computing})

    # ---- the thread that follows the store

    def _follow(self) -> None:
        while not self._closed:
            self._lookers.wait()
            started = time.monotonic()
            pause = PACE
            try:
                news = self._look()
            except Exception as error:  # whatever it is, pages say it, and it is tried again
                said = str(error) if isinstance(error, CascadaError) else f"{type(error).__name__}: {error}"
                self._store, pause = None, _AFTER_TROUBLE
                with self._lock:
                    news, self._message = True, said[:1].upper() + said[1:]
            if news:
                self._changed()
            time.sleep(max(pause - (time.monotonic() - started), PACE / 2))

    def _look(self) -> bool:
        """Read what is new; whether anything is."""
        if self._store is None:
            self._store = Store(self._url, read_only=True)
        heads = self._store.heads()
        with self._lock:
            wanted = [view for view in self._views.values() if view.lookers]
        networks = self._networks()
        found = [view.read(self._store, heads.get(view.name), networks) for view in wanted]
        with self._lock:
            for change in found:
                if change is not None:
                    change()
            news = any(found) or list(heads) != list(self._heads) or self._message is not None
            self._heads, self._message = heads, None
            return self._compute() or news

    def _compute(self) -> bool:
        """Ask for what somebody waits for, one study at a time, whoever waited longest; whether that was done."""
        now = time.monotonic()
        current = self._views.get(self._computing) if self._computing is not None else None
        wanting = [view for view in self._views.values() if view.wants and view is not current]
        if self._computing is not None:
            if not wanting or current is None or current.lookers:
                return False
            self._computer.stop()  # nobody looks at that study any more, and somebody waits
            self._computing = None
        if not wanting or now < self._free:
            return False
        view = min(wanting, key=lambda view: view.asked)
        view.asked = self._asked = now
        self._computing = view.name
        self._computer.ask(view.name)
        return True

    def _heard(self, about: dict[str, Any], part: str) -> None:
        """A part that was computed, or that something went wrong; called by the thread that listens."""
        now = time.monotonic()
        with self._lock:
            kind = about["kind"]
            view = self._views.get(about.get("study", self._computing or ""))
            if kind == "ended":
                self._free = now + _AFTER_A_DEATH
                if view is not None:
                    view.cannot("the process that does it was ended; it is started again.", again=True)
            elif kind == "failed" and about["again"]:  # the store is away: whoever follows it says so
                self._free = now + _AFTER_TROUBLE
            elif view is not None and kind == "failed":
                view.cannot(json.loads(part)["message"], again=False)
            elif view is not None:
                view.computed(about, part)
            if kind in ("ended", "failed", "figures"):
                self._free = max(self._free, now + _REST * (now - self._asked))
                self._computing = None
        self._changed()


def _changed(sent: Sent, kind: str, data: Any) -> list[str]:
    text = json.dumps(data)
    if sent.parts.get(kind) == text:
        return []
    sent.parts[kind] = text
    return [message(kind, text)]
