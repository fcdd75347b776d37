"""A revision: what can still become of a run in progress, how to go on with it, and whether to go on at all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from cascada.outwards import rounded_down, rounded_up
from cascada.space import ControlValue
from cascada.study.certificate import GapKind

_DIGITS = 5


@dataclass(frozen=True)
class Revision:
    """How to go on with a batch, a trial of which some stages were run. Controls of these stages stay as they are.

    `controls` are those from which most is learned. Nothing that can still be done with the batch gives a better value
    than `bound`. At the controls `surest`, the value is at least as good as `least`. Both hold as the `kind` says:
    proven, or estimated. None where nothing is known. `bound` is infinitely bad if nothing satisfies the limits.
    """

    controls: Mapping[str, ControlValue]
    bound: float | None
    surest: Mapping[str, ControlValue] | None
    least: float | None
    decision: Literal["continue", "discard"]
    #: The theorem or the rule behind the decision, in words.
    reason: str
    kind: GapKind = "proven"
    maximised: bool = True
    #: The controls of the trial as it was.
    planned: Mapping[str, ControlValue] = field(default_factory=dict)

    def __str__(self) -> str:
        # A value that is guaranteed, or never exceeded, is rounded to the safe side.
        most, least = ("at most", "at least") if self.maximised else ("at least", "at most")
        up, down = (rounded_up, rounded_down) if self.maximised else (rounded_down, rounded_up)
        known = []
        if self.bound is not None and np.isfinite(self.bound):
            known.append(f"{most} {up(self.bound, _DIGITS)}")
        if self.surest is not None and self.least is not None:
            other = _changes(self.surest, self.controls)
            sure = f" with {_settings({name: self.surest[name] for name in other})}" if other else ""
            known.append(f"{least} {down(self.least, _DIGITS)}{sure}")
        bounds = f" ({'estimated: ' if self.kind == 'estimated' else ''}{'; '.join(known)})" if known else ""
        going_on = f"{self._going_on()}{bounds}."
        if self.decision == "discard":
            return f"Discard this batch. {self.reason}\nTo go on with it nevertheless: {going_on}"
        return f"{going_on}\n{self.reason}"

    def _going_on(self) -> str:
        changed = _changes(self.controls, self.planned)
        if not changed:
            return "Go on as planned"
        return "Set " + ", ".join(f"{c} {self.controls[c]!r} instead of {self.planned[c]!r}" for c in changed)


def _changes(some: Mapping[str, ControlValue], others: Mapping[str, ControlValue]) -> list[str]:
    return [name for name in some if name in others and some[name] != others[name]]


def _settings(controls: Mapping[str, ControlValue]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in controls.items())
