"""What can happen to a study, as rows of a log that is only ever appended to.

The state of a study is a fold over its events, so a crash between two of them leaves a state that is right. Their data
are JSON: no pickles, and floats that come back to the last bit (Python writes the shortest text that does).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from cascada.errors import StoreError

Kind = Literal[
    "created",  # a study, as `identity` describes it
    "amended",  # another kernel, B, L or offset from now on
    "enqueued",  # a trial that waits for somebody to run it
    "asked",  # a trial somebody runs: a new one, one that waited, or one whose lease ran out
    "observed",  # outputs of some stages
    "told",  # the outputs that complete a trial
    "failed",
    "abandoned",
    "expired",  # nobody was heard of in time: the trial waits again
    "calibrated",  # kernels and means that were fitted, and that points are chosen by from now on
    "note",
]
KINDS: frozenset[str] = frozenset(get_args(Kind))
_OF_TRIALS = KINDS - {"created", "amended", "calibrated", "note"}


@dataclass(frozen=True)
class Event:
    """One row of a study's log; numbers are 0, 1, 2, … within the study."""

    number: int
    kind: Kind
    trial: int | None
    data: Mapping[str, Any]
    at: float  # seconds since 1970, for people: nothing depends on it

    def to_json(self) -> str:
        """One line of an export."""
        fields = {"number": self.number, "kind": self.kind, "trial": self.trial, "data": self.data, "at": self.at}
        return json.dumps(fields, allow_nan=False, sort_keys=True)


def encode(data: Mapping[str, Any]) -> str:
    """Data as text: ASCII, so that every database takes it."""
    return json.dumps(data, allow_nan=False, sort_keys=True, separators=(",", ":"))


def event_from(fields: Any) -> Event:
    """An event from parsed JSON, checked; `StoreError` says what is wrong with it."""
    if not isinstance(fields, Mapping) or set(fields) != {"number", "kind", "trial", "data", "at"}:
        raise StoreError("an event is an object with the keys number, kind, trial, data and at")
    number, kind, trial, data, at = (fields[key] for key in ("number", "kind", "trial", "data", "at"))
    if not _whole(number):
        raise StoreError(f"number must be a whole number, got {number!r}")
    if not isinstance(kind, str) or kind not in KINDS:
        raise StoreError(f"there is no event of kind {kind!r}")
    if not (_whole(trial) if kind in _OF_TRIALS else trial is None):
        raise StoreError(f"trial must be {'a number' if kind in _OF_TRIALS else 'null'} for {kind!r}, got {trial!r}")
    if not isinstance(data, Mapping):
        raise StoreError(f"data must be an object, got {data!r}")
    if isinstance(at, bool) or not isinstance(at, int | float) or not abs(at) < 1e15:
        raise StoreError(f"at must be a number of seconds, got {at!r:.100}")
    return Event(number, cast(Kind, kind), trial, data, float(at))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
