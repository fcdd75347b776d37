"""The state of a study: its trials and all else that follows from its events.

`State.after` is the only transition. It validates an event against those before it and finds contradictions between
runs. Nothing here learns from the trials, so that a log of ten thousand of them is replayed in a second.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.errors import CascadaError, StoreError
from cascada.network import Network
from cascada.network.failures import counts_as_infeasible
from cascada.store.event import Event
from cascada.store.lease import checked_lease
from cascada.store.trial import Trial, TrialState, best_of, trial_at
from cascada.study.charges import Prices, charged, failure_charged, prices_of
from cascada.study.correction import Lesson, change_text, check_origin, copies, relearned
from cascada.study.event_words import check_given, refutation_of, text_of
from cascada.study.measurement import Measurement
from cascada.study.refutation import Refutation
from cascada.study.selective import amendment, nominal_of, selection
from cascada.study.step_trial import after_step, step_trial
from cascada.study.validation import Rules

_ENDS: Mapping[str, TrialState] = {"failed": "failed", "abandoned": "abandoned"}


@dataclass(frozen=True, eq=False)
class State:
    """The trials of a study after some of its events, and what a model learns from, in order."""

    network: Network
    rules: Rules
    count: int = 0  #: events so far
    last: Event | None = None  #: the last of them
    trials: tuple[Trial, ...] = ()
    holders: Mapping[int, str] = field(default_factory=dict)  #: trials under a lease → their workers
    #: What a model learns from: a trial as it was after each of its observations, and refutations.
    lessons: tuple[Lesson, ...] = ()
    revision: int = 0  #: corrections so far; each replaces earlier lessons
    ended: int = 0  #: events so far that ended a trial without its objective
    taken: frozenset[bytes] = frozenset()  #: points of all trials, as `algorithms.point_key`
    described: int = 0  #: the event that says what is assumed
    fits: Mapping[str, Any] = field(default_factory=dict)  #: the last calibration
    changes: int = 0  #: events so far that may change what is known of the process
    notes: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  #: corrections and revisions by trial, in words
    #: Two runs that show that readings scatter although no stage says so, if their noise can be estimated.
    scatter: Refutation | None = None
    #: Trials that the user knows to satisfy the limits, without a proof, since the last amendment.
    known_safe: frozenset[int] = frozenset()
    #: With scatter: the nominal inputs of stages, by trial, which were chosen before the stages were read.
    nominal: Mapping[int, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    #: With scatter: why bounds do not hold with the given probability any more; None if they do.
    selective: str | None = None
    #: What the last event that describes the study says; empty in memory.
    description: Mapping[str, Any] = field(default_factory=dict)
    #: Outputs of single stages that were told without a trial.
    measurements: tuple[Measurement, ...] = ()
    prices: Prices = field(default_factory=dict)  #: the present cost of every stage

    @classmethod
    def empty(cls, network: Network) -> "State":
        """The state before any event."""
        return cls(network, Rules(network), prices=prices_of(network, {}))

    # ---- transitions

    def after(self, event: Event) -> "State":
        """The state after one more event; raises a `CascadaError` if it cannot follow."""
        draft = Draft(self)
        draft.apply(event)
        return draft.state()

    def replayed(self, events: Iterable[Event]) -> "State":
        """The state after more events from a log; `StoreError` names the first one that cannot follow."""
        events = list(events)
        if not events:
            return self
        draft = Draft(self)
        for event in events:
            try:
                draft.apply(event)
            except (LookupError, ArithmeticError, AttributeError, TypeError, ValueError, CascadaError) as error:
                own = isinstance(error, CascadaError)
                text = f"{error}" if own else f"its data are not those of {event.kind!r}: {error!r}"
                raise StoreError(f"event {event.number} cannot follow: {text}") from error
        return draft.state()

    # ---- views

    def draft(self) -> "Draft":
        """A draft of later states."""
        return Draft(self)

    @property
    def running(self) -> list[Trial]:
        """The runs under way; steps are not among them."""
        return [trial for trial in self.trials if trial.state == "running" and not trial.steps]

    @cached_property
    def stepped(self) -> bool:
        """Whether stages were run, or measured, by themselves."""
        return bool(self.measurements) or any(trial.steps for trial in self.trials)

    @property
    def spent(self) -> float:
        """What was spent on all trials."""
        return math.fsum(trial.cost for trial in self.trials)

    @cached_property
    def best(self) -> Trial | None:
        """The complete trial with the best objective that satisfies the limits; the earliest if several are equal."""
        return best_of(self.trials, self.network.sign, limited=bool(self.network.limits))

    @property
    def best_value(self) -> float:
        """The best objective, as it is maximised; −∞ if there is none."""
        trial = self.best
        return -np.inf if trial is None or trial.value is None else self.network.sign * trial.value

    @property
    def complete(self) -> int:
        """The number of trials with a value of the objective."""
        return sum(trial.value is not None for trial in self.trials)

    @property
    def refutations(self) -> list[Refutation]:
        """The statements that an assumption is wrong."""
        return [lesson for lesson in self.lessons if isinstance(lesson, Refutation)]

    def covers(self, points: Array) -> bool:
        """Whether all points (n, d) in user units were run."""
        return self.complete >= len(points) and not np.isnan(self.values_at(points)).any()

    def values_at(self, points: Array) -> Array:
        """The objective at points (n, d) in user units, NaN where none was observed, (n,)."""
        complete = [trial for trial in self.trials if trial.value is not None]
        rows = np.array([self.rules.coded(trial) for trial in complete], dtype=float)
        found = {row.tobytes(): trial.value for row, trial in zip(rows, complete, strict=True)}
        return np.array([found.get(point.tobytes(), np.nan) for point in points], dtype=float)


class Draft:
    """A state under construction, with one copy of its collections for any number of events."""

    def __init__(self, before: State) -> None:
        self._before, self.rules, self._network = before, before.rules, before.network
        self.trials, self._lessons = list(before.trials), list(before.lessons)
        self.holders = dict(before.holders)
        self._taken: set[bytes] | None = None  # copied when a trial is added
        self._moved = False  # whether a trial has other controls than before
        self._notes = before.notes
        self.count, self._revision, self._ended = before.count, before.revision, before.ended
        self._changes, self._last = before.changes, before.last
        self._described, self._fits = before.described, before.fits
        self._scatter, self._known_safe = before.scatter, before.known_safe
        self._nominal, self._selective = before.nominal, before.selective
        self._description = before.description
        self.measurements, self._prices = list(before.measurements), before.prices

    def observed(self, number: int, outputs: Any) -> Trial:
        """The trial with these outputs too, validated; `ContradictionError` if they contradict other observations."""
        after = self.rules.with_outputs(trial_at(self.trials, number), outputs)
        self.rules.check_repeats(after, self.trials)
        return after

    def state(self) -> State:
        """The state after all events that were applied."""
        if self._moved:  # once for any number of events
            self._taken = {key for t in self.trials if _is_run(t) for key in self.rules.point_keys(t)}
            self._moved = False
        return replace(
            self._before,
            count=self.count,
            last=self._last,
            trials=tuple(self.trials),
            holders=self.holders,
            lessons=tuple(self._lessons),
            revision=self._revision,
            ended=self._ended,
            taken=self._before.taken if self._taken is None else frozenset(self._taken),
            described=self._described,
            fits=self._fits,
            changes=self._changes,
            notes=self._notes,
            scatter=self._scatter,
            known_safe=self._known_safe,
            nominal=self._nominal,
            selective=self._selective,
            description=self._description,
            measurements=tuple(self.measurements),
            prices=self._prices,
        )

    def apply(self, event: Event, validated: Trial | None = None) -> None:
        """Apply one event; raises a `CascadaError`, with nothing changed, if it cannot follow.

        `validated` is the trial that `observed` returned for its outputs, which are then not validated again.
        """
        if event.number != self.count:
            raise StoreError(f"its number should be {self.count}.")
        if (event.kind == "created") != (event.number == 0):
            raise StoreError("a log begins with 'created', once.")
        if event.trial is not None:
            self._apply_to_trial(event, event.trial, validated)
            self._update_holder(event, event.trial)
        elif event.kind == "calibrated":
            self._fits = event.data
        elif event.kind in ("created", "amended"):
            self._described, self._known_safe = event.number, frozenset()  # it was known of other limits
            self._select(event.kind == "amended" and amendment(self._description, event.data))
            self._description = event.data
            self._prices = prices_of(self._network, event.data)
            # What a bound showed speaks against the assumptions of its time.
            self._lessons = [x for x in self._lessons if not isinstance(x, Refutation) or x.assumed is None]
        elif event.kind == "note":
            self._lessons += refutation_of(event, self._described)
        elif event.kind == "measured":
            self._measure(self.rules.measurement(len(self.measurements), event.data))
        self.count += 1
        self._last = event
        self._changes += event.kind not in ("asked", "calibrated")

    def _select(self, reason: str | bool | None) -> None:
        """Note why readings are a selection, if they are: bounds from scatter then hold with no known probability."""
        if isinstance(reason, str) and self._network.scattered and self._selective is None:
            self._selective = reason

    def _update_holder(self, event: Event, number: int) -> None:
        if self.trials[number].state != "running" or event.kind == "retracted":
            self.holders.pop(number, None)
        elif event.kind == "asked" and event.data.get("lease") is not None:
            checked_lease(event.data["lease"])
            self.holders[number] = str(event.data["worker"])

    def _apply_to_trial(self, event: Event, number: int, validated: Trial | None) -> None:
        if number == len(self.trials) and event.kind in ("enqueued", "asked"):
            trial = Trial(number, self.rules.controls(event.data["controls"]), state=_first_state(event))
            check_given(event, trial)
            if "steps" in event.data:
                trial = step_trial(self.rules, self.trials, trial, event.data)
            self._add(trial)
            self._known_safe |= {number} if event.data.get("known_safe") is True else frozenset()
            return
        trial = trial_at(self.trials, number)
        self._select(selection(event, trial))
        if event.kind in ("observed", "told"):
            self._observe(event, trial, validated)
        elif event.kind == "corrected" and {"stage", "controls"} & set(event.data):
            check_origin(self._network, trial, self.trials, event.data)
            self._correct(self.rules.corrected(trial, event.data), event)
        elif event.kind == "retracted":
            check_origin(self._network, trial, self.trials, event.data)
            self._correct(self.rules.retracted(trial, event.data["stage"]), event)
        elif event.kind == "revised":
            self._revise(self.rules.revised(trial, event.data["controls"]), event)
        elif event.kind == "asked" and trial.state == "waiting":
            if self.rules.controls(event.data["controls"]) != trial.controls:
                raise StoreError(f"trial {number} waits with other controls, {dict(trial.controls)}.")
            self.trials[number] = replace(trial, state="running")
        elif event.kind == "expired" and trial.state == "running":
            self.trials[number] = replace(trial, state="waiting")
        elif event.kind in _ENDS and trial.state != "complete":
            broken = event.kind == "failed" and counts_as_infeasible(self._network, trial.outputs)
            self.trials[number] = replace(
                trial,
                state=_ENDS[event.kind],
                reason=text_of(event.data.get("reason")),
                feasible=False if broken else self.rules.feasible(trial.controls, trial.outputs),
                costs=failure_charged(self._network, trial, event, self._prices),
            )
            self._ended += 1
        else:
            raise StoreError(f"trial {number} is {trial.state}.")

    def _add(self, trial: Trial) -> None:
        self.trials.append(trial)
        if _is_run(trial):
            self._take(trial)

    def _take(self, trial: Trial) -> None:
        """Note that the point of a trial is a run."""
        self._taken = set(self._before.taken) if self._taken is None else self._taken
        self._taken.update(self.rules.point_keys(trial))

    def _observe(self, event: Event, trial: Trial, validated: Trial | None) -> None:
        after = self.observed(trial.number, event.data["outputs"]) if validated is None else validated
        if len(after.outputs) == len(trial.outputs):
            raise StoreError(f"what it says of trial {trial.number} is nothing new.")
        after = after_step(self._as_logged(after, trial, complete=event.kind == "told"))
        after = replace(after, costs=charged(self._network, trial, after, event, self._prices))
        self.trials[trial.number] = after
        if after.steps and _is_run(after):
            self._take(after)
        if self._network.scattered and "nominal" in event.data:
            chosen = nominal_of(self._network, event.data["nominal"], after)
            self._nominal = {**self._nominal, after.number: {**self._nominal.get(after.number, {}), **chosen}}
        self._lessons.append(after)
        self._scatter = self._scatter or self.rules.scatter(after, self.trials)
        self.rules.remember(after)

    def _as_logged(self, after: Trial, before: Trial, *, complete: bool) -> Trial:
        """The trial, complete or not as the log says; `StoreError` if it can never have been so.

        Which outputs make a trial complete depends on the limits, and these may have been amended since.
        """
        if complete == (after.state == "complete"):
            return after
        value = self._network.objective_of(after.outputs)
        if complete and value is not None:
            return replace(after, value=value, state="complete", reason=None)
        # Without the objective no trial was complete. With everything told, no trial was incomplete.
        if complete or len(after.outputs) == len(self._network.nodes):
            raise StoreError(f"what it says of trial {after.number} is not all.")
        return replace(after, value=before.value, state=before.state, reason=before.reason)

    def _correct(self, after: Trial, event: Event) -> None:
        """Replace a trial, in all lessons too; what bounds or other runs showed about the old values is dropped.

        Trials that took its outputs change as well.
        """
        before = self.trials[after.number]
        stage = event.data.get("stage")
        changed = [after, *(() if stage is None else copies(self.rules, self.trials, after, stage))]
        new = {trial.number: trial for trial in changed}
        for trial in changed:
            self.rules.check_repeats(trial, [new.get(other.number, other) for other in self.trials])
        for trial in changed:
            self._replace(trial)
        self._moved |= after.controls != before.controls
        self._note(before, event)
        shown = changed if self._scatter is None else self.trials
        found = (self.rules.scatter(trial, self.trials) for trial in shown)
        self._scatter = next((scatter for scatter in found if scatter is not None), None)
        self._revision += 1

    def _replace(self, after: Trial) -> None:
        """Replace a trial, and what was learned from it."""
        before = self.trials[after.number]
        if before.state != "complete" and self._network.objective_of(before.outputs) is not None:
            after = replace(after, value=None, state=before.state, reason=before.reason)  # see `_as_logged`
        self.trials[after.number] = after = after_step(after)
        self._lessons = list(relearned(self._lessons, after, self._network, self.rules))
        self.rules.remember(after)
        self._moved |= bool(after.steps)

    def _measure(self, measured: Measurement) -> None:
        """Add a measurement, or replace one that was told before."""
        if measured.number == len(self.measurements):
            self.measurements.append(measured)
            self._lessons.append(measured)
            return
        before = self.measurements[measured.number]
        self.measurements[measured.number] = measured
        self._lessons = [measured if lesson is before else lesson for lesson in self._lessons]
        self._lessons = [x for x in self._lessons if not isinstance(x, Refutation) or x.assumed is None]
        self._revision += 1

    def _revise(self, after: Trial, event: Event) -> None:
        """Replace the controls of a trial; what its stages gave stays, and so do all lessons."""
        before = self.trials[after.number]
        self.trials[after.number], self._moved = after, True
        self._note(before, event)

    def _note(self, before: Trial, event: Event) -> None:
        said = self._notes.get(before.number, ())
        self._notes = {**self._notes, before.number: (*said, change_text(before, event))}


def _is_run(trial: Trial) -> bool:
    """Whether the point of a trial is a run that was made, or is going to be."""
    return not trial.steps or trial.state == "complete"


def _first_state(event: Event) -> TrialState:
    return "waiting" if event.kind == "enqueued" else "running"
