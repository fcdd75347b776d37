"""A child process that computes gaps and figures at low priority, so that new runs are shown without delay.

Server and child exchange lines of JSON. The server first sends the settings, then one request per study. The child
answers each request with several parts: one line that describes the part, and one line with its content. The child ends
when its standard input is closed.
"""

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any

from cascada.errors import CascadaError, StoreError
from cascada.execution.blas import one_thread_environment
from cascada.network import Network
from cascada.report.bound_after import BoundAfter
from cascada.report.contributions import gap_contributions
from cascada.report.history import BoundHistory, bound_history, bounds_hold, checkpoints
from cascada.report.payload import figures, judgement
from cascada.store.address import error_text
from cascada.store.database import Store
from cascada.study.catalogue import follow
from cascada.study.follower import Follower
from cascada.study.reader import Reader

_CACHED = 4  # most recently requested studies, which need not be read again from the beginning

#: Called with the description of a part (or of an error) and the part itself.
Received = Callable[[dict[str, Any], str], None]


class FigureProcess:
    """The server's handle of the child process; starts it at the first request, and again if it dies."""

    def __init__(self, command: Sequence[str], settings: dict[str, Any], received: Received) -> None:
        self._command, self._settings, self._received = list(command), settings, received
        self._process: subprocess.Popen[str] | None = None

    def request(self, study: str) -> None:
        """Request the gap and the figures of a study; `received` is called with each part."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self._process is not None
        with suppress(OSError, ValueError):  # the child died, which `_listen` reports
            _send(self._process.stdin, {"study": study})

    def stop(self) -> None:
        """Kill the process, even in the middle of a computation."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="ascii",
            env=one_thread_environment(),
            start_new_session=True,  # Ctrl-C in a terminal reaches the server only, which then ends this process
        )
        threading.Thread(target=self._listen, args=(self._process,), name="cascada figures", daemon=True).start()
        with suppress(OSError, ValueError):
            _send(self._process.stdin, self._settings)

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        with suppress(ValueError, OSError), process.stdout:
            for line in process.stdout:
                self._received(json.loads(line), process.stdout.readline().strip())
        with suppress(OSError):
            process.stdin.close()
        process.wait()
        if process is self._process:  # otherwise `stop` killed it
            self._received({"kind": "ended"}, "")


def answer_requests(lines: Iterable[str], out: IO[str], url: str, networks: Callable[[], Sequence[Network]]) -> None:
    """Run the child process: answer the requests on `lines` with parts on `out`, until `lines` ends."""
    if hasattr(os, "nice"):
        os.nice(10)  # runs of the study on this machine have priority
    studies: dict[str, _CachedStudy] = {}
    store: Store | None = None
    for line in lines:
        name = json.loads(line)["study"]
        study = studies.pop(name, None) or _CachedStudy(name)
        try:
            store = store or Store(url, read_only=True)
            for about, part in study.parts(store, networks()):
                _send(out, about | {"study": name})
                _send(out, part)
            studies[name] = study
        except Exception as error:  # the page shows the message, and the next request may succeed
            store = None
            _send(out, {"study": name, "kind": "failed", "again": isinstance(error, StoreError)})
            _send(out, {"message": error_text(error)})
        while len(studies) > _CACHED:
            studies.pop(next(iter(studies)))


class _CachedStudy:
    """A study and its bound history, kept between requests so that only new runs have to be added."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._created: float | None = None
        self._revision = -1  # number of corrections that the bound history includes
        self._follower: Follower | None = None

    def parts(self, store: Store, networks: Sequence[Network]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield descriptions and parts: first the gap of the best run, then the figures."""
        follower = self._refreshed(store, networks)
        study: Reader = follower
        about = {"created": self._created, "described": follower.assumed, "changes": follower.state.changes}
        after = {"after": sum(trial.value is not None for trial in study.trials)}
        contributions = gap_contributions(study)
        yield about | {"kind": "judged"}, judgement(study, contributions) | after
        bounds = bound_history(study) if study.network.scattered else self._kept_bounds(follower)
        yield about | {"kind": "figures"}, {"figures": figures(study, bounds, contributions)} | after

    def _refreshed(self, store: Store, networks: Sequence[Network]) -> Follower:
        head = store.heads().get(self._name)
        if head is None:
            raise CascadaError(f"there is no study named {self._name!r} in this store any more.")
        follower = self._follower
        if follower is not None and self._created == head.created and head.events >= follower.state.count:
            follower.refresh()
        else:
            follower = None
        if follower is None or follower.outdated:
            follower = follow(store, self._name, networks)
            self._revision = -1
        if follower.state.revision != self._revision:  # a correction changes the bounds after all earlier runs
            self._history, self._seen = BoundHistory(follower.network), set[int]()
            self._revision = follower.state.revision
        self._follower, self._created = follower, head.created
        return follower

    def _kept_bounds(self, follower: Follower) -> list[BoundAfter]:
        """Add the runs that ended since the last call; the bounds after some of them and after the last."""
        ended = [t for t in follower.trials if t.outputs and t.state in ("complete", "partial", "failed", "abandoned")]
        fresh = [trial for trial in ended if trial.number not in self._seen]
        at = checkpoints(follower.network, len(fresh)) if not self._seen else {len(fresh) - 1}
        for i, trial in enumerate(fresh):
            self._history.add(trial, i in at)
            self._seen.add(trial.number)
        return self._history.found if bounds_hold(follower) else []


def _send(stream: IO[str] | None, data: dict[str, Any]) -> None:
    assert stream is not None
    stream.write(json.dumps(data, allow_nan=False) + "\n")
    stream.flush()
