"""A trial: one run of the process, as it was asked for and as far as it was observed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cascada.card import card, in_short
from cascada.errors import ArgumentError
from cascada.space import ControlValue

TrialState = Literal["waiting", "running", "complete", "failed", "abandoned"]


@dataclass(frozen=True)
class Trial:
    """A run: its number, controls in user units, the outputs observed so far, and the objective once it is known."""

    number: int
    controls: Mapping[str, ControlValue]
    #: The observed outputs, by stage.
    outputs: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    state: TrialState = "running"
    #: The objective.
    value: float | None = None
    #: Why it failed or was abandoned.
    reason: str | None = None
    #: Whether the outputs satisfy the limits of the process; None if it has none, or if it is not known yet. False also
    #: for a failure that counts as infeasible.
    feasible: bool | None = None

    def __repr__(self) -> str:
        value = "" if self.value is None else f"; value {self.value:.6g}"
        return f"Trial({self.number}, {self.state}: {in_short(self.controls)}{value})"

    def _repr_html_(self) -> str:
        rows = [("settings", in_short(self.controls))]
        rows += [(stage, ", ".join(f"{value:.6g}" for value in values)) for stage, values in self.outputs.items()]
        rows += [] if self.value is None else [("value", f"{self.value:.6g}")]
        rows += [] if self.feasible is None else [("limits", "satisfied" if self.feasible else "broken")]
        rows += [("reason", self.reason)] if self.reason else []
        return card(f"Trial {self.number}, {self.state}", rows)


def trial_number(trial: Any) -> int:
    """The number of a trial that is given as a `Trial` or as its number; `ArgumentError` for anything else."""
    number = trial.number if isinstance(trial, Trial) else trial
    if isinstance(number, bool) or not isinstance(number, int):
        raise ArgumentError(f"name a trial by itself or by its number; got {trial!r} (ask() gives None at the end).")
    return number


def trial_at(trials: Sequence[Trial], number: int) -> Trial:
    """The trial of this number; `ArgumentError` if there is none."""
    if not 0 <= number < len(trials):
        raise ArgumentError(f"there is no trial {number}; {len(trials)} were asked for.")
    return trials[number]


def best_of(trials: Iterable[Trial], sign: int, *, limited: bool = False) -> Trial | None:
    """The complete trial with the best objective; the earliest where several are equal.

    `limited`: only trials that satisfy the limits of the process count.
    """
    complete = (trial for trial in trials if trial.value is not None and (trial.feasible or not limited))
    return max(complete, key=lambda trial: sign * trial.value, default=None)  # type: ignore[operator]
