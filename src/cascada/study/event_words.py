"""What notes, reasons and given values in events say, validated."""

from typing import Any

from cascada.errors import StoreError
from cascada.store.event import Event
from cascada.store.trial import Trial
from cascada.study.refutation import Refutation


def refutation_of(event: Event, described: int) -> list[Refutation]:
    """What a note refutes of the present assumptions: at most one statement."""
    if "refuted" not in event.data or event.data.get("assumed") not in (None, described):
        return []
    trials = tuple(map(int, event.data.get("trials", ())))
    return [Refutation(str(event.data["refuted"]), event.data.get("assumed"), trials)]


def text_of(reason: Any) -> str | None:
    """A reason; `StoreError` if it is not a text."""
    if not isinstance(reason, str | None):
        raise StoreError(f"a reason is a text; got {reason!r:.100}.")
    return reason


def check_given(event: Event, trial: Trial) -> None:
    """Raise `StoreError` if what was fixed or measured when a trial was asked for is not what its controls are."""
    for word in ("fixed", "context"):
        if any(trial.controls.get(name) != value for name, value in event.data.get(word, {}).items()):
            raise StoreError(f"{word!r} of trial {trial.number} differs from its controls, {dict(trial.controls)}.")
