"""A trial: one run of the process, or a step of one, as it was asked for and as far as it was observed."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from cascada.card import card, in_short
from cascada.errors import ArgumentError
from cascada.space import ControlValue

#: *partial*: a step whose stages were run; what they gave is data, and later steps may go on from it.
TrialState = Literal["waiting", "running", "partial", "complete", "failed", "abandoned"]

_ONLY_STEPS = ("partial",)  # states that only steps have


def counted(states: Iterable[TrialState]) -> dict[str, int]:
    """How many trials are in each state; states that only steps have are left out where there is none."""
    count = Counter(states)
    return {state: count[state] for state in get_args(TrialState) if count[state] or state not in _ONLY_STEPS}


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
    #: The stages that it was asked for, in their order; empty for a whole run.
    steps: tuple[str, ...] = ()
    #: Stages whose outputs were taken from the stock → the trials that ran them.
    taken: Mapping[str, int] = field(default_factory=dict)
    #: Of a step whose inputs are not those of one run: outputs by stage that its stages are run on, NaN where an
    #: output is of no consequence. Its own outputs are data of its stages, and never a value of the objective.
    set_outputs: Mapping[str, tuple[float, ...]] | None = None
    #: The trial with which the complete run began that it is a step of.
    run: int | None = None
    #: Why this step was chosen.
    why: str = ""
    #: What was spent on its stages, by stage.
    costs: Mapping[str, float] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        """What was spent on it: every try of every stage, at the cost that was declared then."""
        return math.fsum(self.costs.values())

    @property
    def closed(self) -> bool:
        """Whether all its outputs are of one run at its controls."""
        return self.set_outputs is None

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


@dataclass(frozen=True)
class Step:
    """A stage to run next, by itself."""

    stage: str
    inputs: Mapping[str, ControlValue]  #: what it is run with: outputs of earlier stages, and controls in user units
    trial: int  #: the trial under which its outputs are told
    takes: Mapping[str, int]  #: the stages on whose outputs it is run, if these were kept → the trials that gave them
    cost: float  #: of this step
    reason: str  #: why it was chosen
    then: tuple[str, ...] = ()  #: stages that have to be run directly after it, in the same trial


def trial_number(trial: Any) -> int:
    """The number of a trial that is given as a `Trial`, a `Step` or its number; `ArgumentError` for anything else."""
    number = trial.number if isinstance(trial, Trial) else trial.trial if isinstance(trial, Step) else trial
    if isinstance(number, bool) or not isinstance(number, int):
        raise ArgumentError(f"name a trial by itself or by its number; got {trial!r} (ask() gives None at the end).")
    return number


def trial_at(trials: Sequence[Trial], number: int) -> Trial:
    """The trial of this number; `ArgumentError` if there is none."""
    if not 0 <= number < len(trials):
        last = f"the last one is {len(trials) - 1}" if trials else "none was asked for yet"
        raise ArgumentError(f"there is no trial {number}; {last}.")
    return trials[number]


def best_of(trials: Iterable[Trial], sign: int, *, limited: bool = False) -> Trial | None:
    """The complete trial with the best objective; the earliest where several are equal.

    `limited`: only trials that satisfy the limits of the process count.
    """
    complete = (trial for trial in trials if trial.value is not None and (trial.feasible or not limited))
    return max(complete, key=lambda trial: sign * trial.value, default=None)  # type: ignore[operator]
