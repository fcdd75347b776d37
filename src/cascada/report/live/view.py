"""One study as those see it who look at it now: rows with the version in which they changed, and what was computed."""

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cascada.errors import ArgumentError, CascadaError
from cascada.network import Network
from cascada.report.history import history_of
from cascada.report.payload import versions
from cascada.report.runs import best_number, columns, facts_of_runs, objective_at, row
from cascada.store.database import Head, Store
from cascada.store.trial import Trial
from cascada.study.catalogue import follow
from cascada.study.follower import Follower

_HISTORY = "Every run and the best value so far."  # as long as no bound is computed
_AGAIN = 1.0  # seconds before a log that could not be read is read again


@dataclass
class Sent:
    """What one page has got so far."""

    epoch: str = ""
    version: int = -1
    parts: dict[str, str] = field(default_factory=dict)  # by the kind of message: the last one

    @classmethod
    def resumed(cls, last: str | None) -> "Sent":
        """From the id of the last message that a page got, if it comes back."""
        epoch, _, version = (last or "").partition(".")
        return cls(epoch, int(version)) if version.isdecimal() and version.isascii() and len(version) < 10 else cls()


class View:
    """A study's quick part, which follows the log at once, and its slow part, which is computed elsewhere."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lookers = 0
        self.asked = 0.0  # when something was last computed for it
        self._trouble: str | None = None  # what is wrong with its log
        self._slow_trouble: str | None = None  # with what is computed from it
        self._not_before = 0.0  # when to try again to read a log that cannot be read
        self._follower: Follower | None = None
        self._head: Head | None = None
        self._trials: tuple[Trial, ...] = ()
        self._rows: list[list[Any]] = []
        self._changed: list[int] = []  # by row: the version in which it changed
        self._epoch, self._version = "", 0
        self._quick: dict[str, Any] = {}
        self._about: dict[str, Any] = {}
        self._slow: dict[str, str] = {}  # by kind of message, as they came
        self._computed: int | None = None  # from a log with so many changes
        self._valid_from = 0  # what was computed from fewer changes is wrong by now
        self._refuted = (False, 0)  # whether the log refutes an assumption, and its corrections so far

    @property
    def known(self) -> bool:
        """Whether there is, or was, such a study."""
        return bool(self._epoch)

    @property
    def message(self) -> str | None:
        """What is wrong, if something is."""
        return self._trouble or self._slow_trouble

    # ---- following

    def read(self, store: Store, head: Head | None, networks: Sequence[Network]) -> Callable[[], None] | None:
        """Read what is new in the log; None if nothing is, else what puts it into the view.

        Reading may take long, and pages look at the view meanwhile: so the two are apart.
        """
        if head is None:
            return self._in_trouble(f"There is no study named {self.name!r} in this store (yet).")
        before, follower = self._head, self._follower
        same = before is not None and (before.study, before.created) == (head.study, head.created)
        try:
            if follower is None or not same or head.events < follower.state.count or follower.outdated:
                if time.monotonic() < self._not_before:
                    return None
                self._follower = None
                follower = follow(store, self.name, networks)
                self._follower, self._head = follower, head
                return partial(self._begin, follower, _about(follower.network))
            if head.events > follower.state.count:
                follower.refresh()
                return partial(self._update, follower)
            return None if self._trouble is None else self._well
        except Exception as error:  # a log may be damaged in any way, and that is this study's trouble alone
            self._follower, self._not_before = None, time.monotonic() + _AGAIN
            said = str(error) if isinstance(error, CascadaError) else f"{type(error).__name__}: {error}"
            hint = " Start `cascada serve` with --spec SPEC." if isinstance(error, ArgumentError) else ""
            return self._in_trouble(f"{said}{hint}")

    def _in_trouble(self, said: str) -> Callable[[], None] | None:
        said = said[:1].upper() + said[1:]
        return None if said == self._trouble else lambda: setattr(self, "_trouble", said)

    def _well(self) -> None:
        self._trouble = None

    def _begin(self, follower: Follower, about: dict[str, Any]) -> None:
        self._epoch, self._version, self._about = uuid.uuid4().hex, 0, about
        self._trials, self._rows, self._changed = (), [], []
        self._slow, self._slow_trouble, self._computed = {}, None, None
        self._valid_from, self._refuted = 0, (False, 0)
        self._update(follower)

    def _update(self, follower: Follower) -> None:
        self._trouble = None
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
        if refuted != self._refuted:  # what was proven before a refutation or a correction is not shown any longer
            self._refuted, self._valid_from, self._slow = refuted, follower.state.changes, {}
        if follower.known_refuted and "judged" not in self._slow:
            self._quick["facts"] += [["gap", "none"], ["the gap is", "refuted"]]
            self._quick["refuted"] = True

    # ---- what takes long

    @property
    def wants(self) -> bool:
        """Whether there is something new to compute for somebody who looks."""
        follower = self._follower
        if follower is None or not self.lookers:
            return False
        return self._computed is None or self._computed < follower.state.changes

    def computed(self, about: Mapping[str, Any], text: str) -> None:
        """A part that was computed; not taken if it is of another study, or rests on what is not assumed any more."""
        head, follower = self._head, self._follower
        if head is None or follower is None or follower.outdated:
            return
        if (head.created, follower.assumed) != (about["created"], about["described"]):
            return
        if about["changes"] < self._valid_from:
            return
        self._slow[about["kind"]], self._slow_trouble = text, None
        if about["kind"] == "figures":  # the last of all
            self._computed = about["changes"]

    def cannot(self, message: str, again: bool) -> None:
        """Say that something cannot be computed from what there is now; `again`, if it is worth another try."""
        self._slow_trouble = f"The gap and the figures cannot be computed: {message}"
        if self._follower is not None and not again:
            self._computed = self._follower.state.changes

    # ---- sending

    def news(self, sent: Sent) -> list[str]:
        """The messages that bring a page up to date, and note that it got them."""
        found = []
        if self._epoch and (sent.epoch, sent.version) != (self._epoch, self._version):
            again = sent.epoch == self._epoch
            since = sent.version if again else -1
            fresh = [r for r, version in zip(self._rows, self._changed, strict=True) if version > since]
            data = self._quick | {"rows": fresh} | ({} if again else {"about": self._about})
            found.append(message("runs", json.dumps(data, allow_nan=False), f"{self._epoch}.{self._version}"))
            if not again:
                sent.parts = {}
            sent.epoch, sent.version = self._epoch, self._version
        for kind, text in self._slow.items():
            if sent.parts.get(kind) is not text:
                found.append(message(kind, text))
                sent.parts[kind] = text
        return found


def _about(network: Network) -> dict[str, Any]:
    """What a page has to know before rows make sense to it."""
    return {
        "columns": columns(network),
        "controls": len(network.controls),
        "objective": objective_at(network),
        "sign": network.sign,
        "alt": _HISTORY,
        "history": json.loads(history_of(network, [], []).to_json()),
        "versions": versions(),
    }


def message(kind: str, data: str, id_: str | None = None) -> str:
    """One server-sent event; the data are JSON, which has no line breaks."""
    return f"event: {kind}\n" + (f"id: {id_}\n" if id_ is not None else "") + f"data: {data}\n\n"
