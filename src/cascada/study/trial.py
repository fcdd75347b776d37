"""One run of the process, as it was asked for and as far as it was observed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cascada.errors import ArgumentError

State = Literal["waiting", "running", "complete", "failed", "abandoned"]


@dataclass(frozen=True)
class Trial:
    """A run: its number, controls in user units, the outputs observed so far, and the objective once it is known."""

    number: int
    controls: Mapping[str, float | int]
    #: By stage, those that were observed.
    outputs: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    state: State = "running"
    #: The objective.
    value: float | None = None
    #: Why it failed, or was abandoned.
    reason: str | None = None


def trial_number(trial: Any) -> int:
    """The number of a trial that was named by itself or by its number."""
    number = trial.number if isinstance(trial, Trial) else trial
    if isinstance(number, bool) or not isinstance(number, int):
        raise ArgumentError(f"name a trial by itself or by its number; got {trial!r} (ask() gives None at the end).")
    return number


def best_of(trials: Iterable[Trial], sign: int) -> Trial | None:
    """The complete trial with the best objective; the earliest where several are equal."""
    complete = (trial for trial in trials if trial.value is not None)
    return max(complete, key=lambda trial: sign * trial.value, default=None)  # type: ignore[operator]


def how_many(n: Any) -> int:
    """A number of trials to ask for, at least 1."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ArgumentError(f"ask for a whole number of trials, at least 1; got {n!r:.100}.")
    return n
