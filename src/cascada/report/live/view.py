"""The state of one study on the live page: its rows, each with the version of its last change, and computed parts."""

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cascada.errors import ArgumentError
from cascada.network import Network
from cascada.report.history import FEASIBLE, INFEASIBLE, history_of
from cascada.report.payload import versions
from cascada.report.runs import best_number, columns, facts_of_runs, limits_at, objective_at, row
from cascada.store.address import error_text
from cascada.store.database import Head, Store
from cascada.store.trial import Trial
from cascada.study.catalogue import follow
from cascada.study.follower import Follower

_HISTORY = "Every run and the best value so far."  # the caption before a bound is computed
_RETRY = 1.0  # seconds before a log that could not be read is read again


@dataclass
class Sent:
    """The messages that one page has received so far."""

    epoch: str = ""
    version: int = -1
    parts: dict[str, str] = field(default_factory=dict)  # kind of message → the last one

    @classmethod
    def resumed(cls, last: str | None) -> "Sent":
        """Return the state of a page that reconnects with the id of its last message; without one, of a new page."""
        epoch, _, version = (last or "").partition(".")
        return cls(epoch, int(version)) if version.isdecimal() and version.isascii() and len(version) < 10 else cls()


class View:
    """A study's quick part, which follows the log at once, and its slow part, which another process computes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.viewers = 0  # open pages that show this study
        self.requested = 0.0  # when a computation was last requested
        self._error: str | None = None  # an error in its log
        self._slow_error: str | None = None  # an error of the computation
        self._retry_at = 0.0  # when to read a log again that could not be read
        self._follower: Follower | None = None
        self._head: Head | None = None
        self._trials: tuple[Trial, ...] = ()
        self._rows: list[list[Any]] = []
        self._changed: list[int] = []  # by row: the version of its last change
        self._epoch, self._version = "", 0
        self._quick: dict[str, Any] = {}
        self._about: dict[str, Any] = {}
        self._slow: dict[str, str] = {}  # kind of message → its content, in the order of arrival
        self._computed: int | None = None  # number of changes in the log that the slow part was computed from
        self._valid_from = 0  # parts computed from fewer changes are outdated
        self._refuted = (False, 0)  # whether the log refutes an assumption, and its number of corrections

    @property
    def known(self) -> bool:
        """Whether this study exists or existed."""
        return bool(self._epoch)

    @property
    def judged(self) -> tuple[str, str] | None:
        """The gap and its kind, if they were computed."""
        facts = dict(json.loads(self._slow["judged"])["facts"]) if "judged" in self._slow else {}
        return (facts["gap"], facts["this is"]) if facts else None

    @property
    def message(self) -> str | None:
        """The error message to show, or None."""
        return self._error or self._slow_error

    # ---- following the log

    def read(self, store: Store, head: Head | None, networks: Sequence[Network]) -> Callable[[], None] | None:
        """Read new events of the log; return a function that updates the view, or None if there are none.

        Reading may take long. The update is separate so that pages can use the view meanwhile.
        """
        if head is None:
            return self._failure(f"There is no study named {self.name!r} in this store (yet).")
        before, follower = self._head, self._follower
        same = before is not None and (before.study, before.created) == (head.study, head.created)
        try:
            if follower is None or not same or head.events < follower.state.count or follower.outdated:
                if time.monotonic() < self._retry_at:
                    return None
                self._follower = None
                follower = follow(store, self.name, networks)
                self._follower, self._head = follower, head
                return partial(self._begin, follower, _about(follower.network))
            if head.events > follower.state.count:
                follower.refresh()
                return partial(self._update, follower)
            return None if self._error is None else self._clear_error
        except Exception as error:  # a log may be damaged in any way; other studies must not be affected
            self._follower, self._retry_at = None, time.monotonic() + _RETRY
            hint = " Start `cascada serve` with --spec SPEC." if isinstance(error, ArgumentError) else ""
            return self._failure(f"{error_text(error)}{hint}")

    def _failure(self, text: str) -> Callable[[], None] | None:
        """Return a function that sets the error message, or None if it is set already."""
        text = text[:1].upper() + text[1:]
        return None if text == self._error else lambda: setattr(self, "_error", text)

    def _clear_error(self) -> None:
        self._error = None

    def _begin(self, follower: Follower, about: dict[str, Any]) -> None:
        self._epoch, self._version, self._about = uuid.uuid4().hex, 0, about
        self._trials, self._rows, self._changed = (), [], []
        self._slow, self._slow_error, self._computed = {}, None, None
        self._valid_from, self._refuted = 0, (False, 0)
        self._update(follower)

    def _update(self, follower: Follower) -> None:
        self._error = None
        self._version += 1
        trials, before, corrections = follower.trials, len(self._trials), follower.state.notes
        for i, trial in enumerate(trials):
            if i >= before:
                self._rows.append(row(follower.network, trial, corrections.get(i, ())))
                self._changed.append(self._version)
            elif trial is not self._trials[i]:
                self._rows[i] = row(follower.network, trial, corrections.get(i, ()))
                self._changed[i] = self._version
        self._trials = trials
        self._quick = {
            "facts": facts_of_runs(follower.network, trials),
            "best": best_number(follower.network, trials),
        }
        refuted = follower.known_refuted, follower.state.revision
        if refuted != self._refuted:  # a refutation or a correction invalidates what was computed before
            self._refuted, self._valid_from, self._slow = refuted, follower.state.changes, {}
        if follower.known_refuted and "judged" not in self._slow:
            self._quick["facts"] += [["gap", "none"], ["this is", "refuted"]]
            self._quick["refuted"] = True

    # ---- the computed part

    @property
    def needs_figures(self) -> bool:
        """Whether a page is open and its computed part does not include the newest runs."""
        follower = self._follower
        if follower is None or not self.viewers:
            return False
        return self._computed is None or self._computed < follower.state.changes

    def computed(self, about: Mapping[str, Any], text: str) -> None:
        """Take a computed part, unless it is of another study or rests on assumptions that were changed since."""
        head, follower = self._head, self._follower
        if head is None or follower is None or follower.outdated:
            return
        if (head.created, follower.assumed) != (about["created"], about["described"]):
            return
        if about["changes"] < self._valid_from:
            return
        self._slow[about["kind"]], self._slow_error = text, None
        if about["kind"] == "figures":  # the last part
            self._computed = about["changes"]

    def failed(self, message: str, retry: bool) -> None:
        """Show that the computation failed; without `retry`, it is not repeated before the log changes."""
        self._slow_error = f"The gap and the figures cannot be computed: {message}"
        if self._follower is not None and not retry:
            self._computed = self._follower.state.changes

    # ---- sending

    def updates(self, sent: Sent) -> list[str]:
        """Return the messages that bring a page up to date, and record in `sent` that it received them."""
        found = []
        if self._epoch and (sent.epoch, sent.version) != (self._epoch, self._version):
            resumed = sent.epoch == self._epoch
            since = sent.version if resumed else -1
            fresh = [r for r, version in zip(self._rows, self._changed, strict=True) if version > since]
            data = self._quick | {"rows": fresh} | ({} if resumed else {"about": self._about})
            found.append(message("runs", json.dumps(data, allow_nan=False), f"{self._epoch}.{self._version}"))
            if not resumed:
                sent.parts = {}
            sent.epoch, sent.version = self._epoch, self._version
        for kind, text in self._slow.items():
            if sent.parts.get(kind) is not text:
                found.append(message(kind, text))
                sent.parts[kind] = text
        return found


def _about(network: Network) -> dict[str, Any]:
    """Return what a page needs to interpret rows: columns, objective, sense, limits and an empty history."""
    return {
        "columns": columns(network),
        "controls": len(network.controls),
        "objective": objective_at(network),
        "sign": network.sign,
        "limits": limits_at(network),
        "symbols": {"feasible": FEASIBLE, "infeasible": INFEASIBLE},
        "alt": _HISTORY,
        "history": json.loads(history_of(network, [], []).to_json()),
        "versions": versions(),
    }


def message(kind: str, data: str, id_: str | None = None) -> str:
    """Return one server-sent event; the data are JSON, which has no line breaks."""
    return f"event: {kind}\n" + (f"id: {id_}\n" if id_ is not None else "") + f"data: {data}\n\n"
