"""What takes long, computed by another process at low priority, so that no run waits for it to be shown.

Lines of JSON both ways. First comes what it needs to know, then the names of studies; it answers each with parts, a
line about the part and a line with it. It ends when nobody can ask any more.
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
from cascada.report.contributions import gap_contributions
from cascada.report.history import Looks, bounds_hold, looked_at
from cascada.report.payload import figures, judgement
from cascada.store.database import Store
from cascada.study.catalogue import follow
from cascada.study.follower import Follower
from cascada.study.reader import Reader

_KEPT = 4  # studies, the last ones looked at, that need not be learned anew

#: Called with what a part is (or what went wrong) and the part itself.
Heard = Callable[[dict[str, Any], str], None]


class Computer:
    """The other process, seen from the server; started when it is first asked, and again if it dies."""

    def __init__(self, command: Sequence[str], told: dict[str, Any], heard: Heard) -> None:
        self._command, self._told, self._heard = list(command), told, heard
        self._process: subprocess.Popen[str] | None = None

    def ask(self, study: str) -> None:
        """Have everything computed that is shown of a study."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self._process is not None
        with suppress(OSError, ValueError):  # it died: whoever listens hears of that
            _say(self._process.stdin, {"study": study})

    def stop(self) -> None:
        """End the process, whatever it is at."""
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
            start_new_session=True,  # Ctrl-C in a terminal is for the server alone, which ends this
        )
        threading.Thread(target=self._listen, args=(self._process,), name="cascada figures", daemon=True).start()
        with suppress(OSError, ValueError):
            _say(self._process.stdin, self._told)

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        with suppress(ValueError, OSError), process.stdout:
            for line in process.stdout:
                self._heard(json.loads(line), process.stdout.readline().strip())
        with suppress(OSError):
            process.stdin.close()
        process.wait()
        if process is self._process:  # else it was stopped
            self._heard({"kind": "ended"}, "")


def answers(lines: Iterable[str], out: IO[str], url: str, networks: Callable[[], Sequence[Network]]) -> None:
    """The other process itself: what is asked on `lines` is answered on `out`, until nobody asks any more."""
    if hasattr(os, "nice"):
        os.nice(10)  # the runs come first
    studies: dict[str, _Known] = {}
    store: Store | None = None
    for line in lines:
        name = json.loads(line)["study"]
        known = studies.pop(name, None) or _Known(name)
        try:
            store = store or Store(url, read_only=True)
            for about, part in known.parts(store, networks()):
                _say(out, about | {"study": name})
                _say(out, part)
            studies[name] = known
        except Exception as error:  # whatever it is, the page says it, and the next try may do better
            store = None
            said = str(error) if isinstance(error, CascadaError) else f"{type(error).__name__}: {error}"
            _say(out, {"study": name, "kind": "failed", "again": isinstance(error, StoreError)})
            _say(out, {"message": said})
        while len(studies) > _KEPT:
            studies.pop(next(iter(studies)))


class _Known:
    """What was learned of one study, to which only new runs are added."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._created: float | None = None
        self._revision = -1  # corrections of the study that the looks know of
        self._follower: Follower | None = None

    def parts(self, store: Store, networks: Sequence[Network]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """First how good the best run is, then the figures."""
        follower = self._followed(store, networks)
        study: Reader = follower
        about = {"created": self._created, "described": follower.assumed, "changes": follower.state.changes}
        after = {"after": sum(trial.value is not None for trial in study.trials)}
        contributions = gap_contributions(study)
        yield about | {"kind": "judged"}, judgement(study, contributions) | after
        self._look(follower)
        found = self._looks.found if bounds_hold(study) else []
        yield about | {"kind": "figures"}, {"figures": figures(study, found, contributions)} | after

    def _followed(self, store: Store, networks: Sequence[Network]) -> Follower:
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
        if follower.state.revision != self._revision:  # a correction changes what was known at any time
            self._looks, self._seen, self._revision = Looks(follower.network), set[int](), follower.state.revision
        self._follower, self._created = follower, head.created
        return follower

    def _look(self, follower: Follower) -> None:
        """Look at the bound after runs that ended since the last time: after some of them, and after the last."""
        ended = [t for t in follower.trials if t.outputs and t.state in ("complete", "failed", "abandoned")]
        fresh = [trial for trial in ended if trial.number not in self._seen]
        at = looked_at(follower.network, len(fresh)) if not self._seen else {len(fresh) - 1}
        for i, trial in enumerate(fresh):
            self._looks.add(trial, i in at)
            self._seen.add(trial.number)


def _say(stream: IO[str] | None, data: dict[str, Any]) -> None:
    assert stream is not None
    stream.write(json.dumps(data, allow_nan=False) + "\n")
    stream.flush()
