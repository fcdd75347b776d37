"""Events: the rows of a study's log, which is only ever appended to.

The state of a study follows from its events, so a crash between two of them leaves a valid state. Their data are JSON:
no pickles, and floats are read back to the last bit (Python writes the shortest text that allows this).
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from cascada.errors import StoreError

Kind = Literal[
    "created",  # a study, as `store.description` describes it
    "amended",  # another kernel, B, L or offset from now on
    "enqueued",  # a trial that waits for a worker
    "asked",  # a trial that a worker runs: a new one, or one that waited
    "observed",  # outputs of some stages
    "told",  # the outputs that complete a trial
    "failed",
    "abandoned",
    "expired",  # the lease ran out or was given back: the trial waits again
    "calibrated",  # fitted kernels and means, by which points are chosen from now on
    "note",
    "corrected",  # outputs of a stage, or the controls of a trial, that were reported wrongly
    "retracted",  # outputs of a stage that do not count any more
    "revised",  # other controls for the stages of a running trial that were not run yet
    "measured",  # outputs of one stage by itself, at inputs of its own: of no trial
]
KINDS: frozenset[str] = frozenset(get_args(Kind))
_OF_TRIALS = KINDS - {"created", "amended", "calibrated", "note", "measured"}

#: The schema of a store that holds nothing but the events of 0.1.0.
FIRST_SCHEMA = 1
#: The newest schema that this version reads and writes.
SCHEMA = 2
#: Kinds that older versions cannot read → the schema and the version that a store with such an event needs.
NEWER: Mapping[str, tuple[int, str]] = {
    "created": (2, "0.2.0"),  # descriptions without defaults, which 0.1.0 cannot read
    "amended": (2, "0.2.0"),
    "corrected": (2, "0.2.0"),
    "retracted": (2, "0.2.0"),
    "revised": (2, "0.2.0"),
    "measured": (2, "0.2.0"),
}


@dataclass(frozen=True)
class Event:
    """One row of a study's log; numbers are 0, 1, 2, … within the study."""

    number: int
    kind: Kind
    trial: int | None
    data: Mapping[str, Any]
    at: float  # seconds since 1970, for people: no computation depends on it

    def is_same(self, other: "Event") -> bool:
        """Whether another event stands for the same change, whatever became of the types of its data in a store."""
        return (self.number, self.kind, self.trial, self.at) == (other.number, other.kind, other.trial, other.at)

    def to_json(self) -> str:
        """One line of an export."""
        fields = {"number": self.number, "kind": self.kind, "trial": self.trial, "data": self.data, "at": self.at}
        return json.dumps(fields, allow_nan=False, sort_keys=True)


def same_events(some: Sequence[Event], others: Sequence[Event]) -> bool:
    """Whether these are the same events with the same data, in the same order."""
    pairs = zip(some, others, strict=False)
    return len(some) == len(others) and all(a.is_same(b) and encode(a.data) == encode(b.data) for a, b in pairs)


def encode(data: Mapping[str, Any]) -> str:
    """Data as ASCII text, which every database accepts."""
    return json.dumps(data, allow_nan=False, sort_keys=True, separators=(",", ":"))


def event_from(fields: Any) -> Event:
    """An event from parsed JSON; `StoreError` if it is invalid."""
    if not isinstance(fields, Mapping) or set(fields) != {"number", "kind", "trial", "data", "at"}:
        raise StoreError("an event is an object with the keys number, kind, trial, data and at")
    number, kind, trial, data, at = (fields[key] for key in ("number", "kind", "trial", "data", "at"))
    if not is_whole(number):
        raise StoreError(f"number must be a whole number, got {number!r:.100}")
    if not isinstance(kind, str) or kind not in KINDS:
        raise StoreError(f"there is no event of kind {kind!r:.100}")
    if not (is_whole(trial) if kind in _OF_TRIALS else trial is None):
        raise StoreError(
            f"trial must be {'a number' if kind in _OF_TRIALS else 'null'} for {kind!r}, got {trial!r:.100}"
        )
    if not isinstance(data, Mapping):
        raise StoreError(f"data must be an object, got {data!r:.100}")
    if not is_number(at) or not abs(at) < 1e15:
        raise StoreError(f"at must be a number of seconds, got {at!r:.100}")
    return Event(number, cast(Kind, kind), trial, data, float(at))


def is_whole(value: Any) -> bool:
    """Whether a value from JSON may be the number of an event or of a trial."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def is_number(value: Any) -> bool:
    """Whether a value from JSON is a number that a float can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
