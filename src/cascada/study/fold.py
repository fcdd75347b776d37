"""From events to the trials of a study, each event checked against those before it.

Nothing here learns from the trials, so that a log of ten thousand of them is folded in a second.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cascada.calibration import Calibration, calibrate
from cascada.errors import ArgumentError, CascadaError, StoreError
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.network import Beliefs, Network, prior_beliefs
from cascada.study.events import Event
from cascada.study.leases import checked_lease
from cascada.study.observing import observed
from cascada.study.repeats import Repeats
from cascada.study.trial import State, Trial

_ENDS: Mapping[str, State] = {"failed": "failed", "abandoned": "abandoned"}


class Fold:
    """The trials of a study after some of its events."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.trials: list[Trial] = []
        self.count = 0  # events so far
        self.workers: dict[int, str] = {}  # who runs a trial under a lease
        self.fits: Mapping[str, Any] = {}  # what was fitted last
        self._nothing = _beliefs(network)
        self._repeats = Repeats(network)

    def apply(self, event: Event) -> None:
        """The state after one more event; `StoreError`, and nothing changed, where it cannot follow."""
        try:
            self._apply(event)
        except (LookupError, ArithmeticError, AttributeError, TypeError, ValueError, CascadaError) as error:
            said = (
                f"{error}"
                if isinstance(error, CascadaError)
                else f"its data are not those of {event.kind!r}: {error!r}"
            )
            raise StoreError(f"event {event.number} cannot follow: {said}") from error
        self.count += 1

    def _apply(self, event: Event) -> None:
        if event.number != self.count:
            raise StoreError(f"its number should be {self.count}.")
        if (event.kind == "created") != (event.number == 0):
            raise StoreError("a log begins with 'created', once.")
        if event.kind == "calibrated":
            self.fits = event.data
        if event.trial is None:
            return
        self._apply_to_trial(event, event.trial)
        if self.trials[event.trial].state != "running":
            self.workers.pop(event.trial, None)
        elif event.kind == "asked" and event.data.get("lease") is not None:
            checked_lease(event.data["lease"])
            self.workers[event.trial] = str(event.data["worker"])

    def _apply_to_trial(self, event: Event, number: int) -> None:
        if number == len(self.trials) and event.kind in ("enqueued", "asked"):
            self.trials.append(Trial(number, self.controls(event.data["controls"]), state=_first_state(event)))
            return
        if not 0 <= number < len(self.trials):
            raise StoreError(f"there is no trial {number}; {len(self.trials)} were asked for.")
        trial = self.trials[number]
        if event.kind in ("observed", "told"):
            after = self.told(trial, event.data["outputs"])
            old = len(after.outputs) == len(trial.outputs)
            if old or (event.kind == "told") != (after.state == "complete"):
                raise StoreError(f"what it says of trial {number} is {'nothing new' if old else 'not all'}.")
            self._set(after)
        elif event.kind == "asked" and trial.state == "waiting":
            if self.controls(event.data["controls"]) != trial.controls:
                raise StoreError(f"trial {number} waits with other controls, {dict(trial.controls)}.")
            self.trials[number] = replace(trial, state="running")
        elif event.kind == "expired" and trial.state == "running":
            self.trials[number] = replace(trial, state="waiting")
        elif event.kind in _ENDS and trial.state != "complete":
            self.trials[number] = replace(trial, state=_ENDS[event.kind], reason=_text(event.data.get("reason")))
        else:
            raise StoreError(f"trial {number} is {trial.state}.")

    def controls(self, given: Any) -> dict[str, float | int]:
        """Named controls, checked against the domain."""
        if not isinstance(given, Mapping):
            raise ArgumentError(f"give the controls as a dict, {{'name': value}}; got {given!r:.100}.")
        try:
            return self.network.domain.named(self.network.domain.row(given))
        except OverflowError as error:
            raise ArgumentError(f"controls must be numbers: {error}.") from None

    def told(self, trial: Trial, outputs: Any) -> Trial:
        """The trial with these outputs too, checked against itself and against all others."""
        after = observed(self._nothing, trial, outputs)
        self._repeats.check(after)
        return after

    def _set(self, trial: Trial) -> None:
        self.trials[trial.number] = trial
        self._repeats.add(trial)


def _text(reason: Any) -> str | None:
    if reason is not None and not isinstance(reason, str):
        raise StoreError(f"a reason is a text; got {reason!r:.100}.")
    return reason


def _first_state(event: Event) -> State:
    return "waiting" if event.kind == "enqueued" else "running"


def _beliefs(network: Network) -> Beliefs:
    """Beliefs without data: what formulas say needs no more."""
    if not network.estimated:
        return prior_beliefs(network, SMALLEST_JITTER)
    return calibrate(network, np.empty((0, network.width)), Calibration(), SMALLEST_JITTER).judging
