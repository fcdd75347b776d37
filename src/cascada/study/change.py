"""One change of a study: events that are appended to its journal together, and the state after them."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from cascada.errors import ContradictionError, StoreError
from cascada.store.event import Event, Kind
from cascada.store.journal import Transaction
from cascada.store.trial import Trial, trial_at
from cascada.study.charges import checked_tries
from cascada.study.measurement import Measurement
from cascada.study.state import Draft, State
from cascada.study.validation import stage_name


class Change:
    """Events are validated and appended one by one; they count once the transaction ends, all of them or none."""

    def __init__(self, log: Transaction, before: State) -> None:
        self.log = log
        self._draft = Draft(before)

    @property
    def state(self) -> State:
        """The state after the events so far."""
        return self._draft.state()

    @property
    def trials(self) -> list[Trial]:
        """The trials after the events so far."""
        return self._draft.trials

    @property
    def waiting(self) -> Trial | None:
        """The first run that waits for a worker."""
        return next((trial for trial in self.trials if trial.state == "waiting" and not trial.steps), None)

    @property
    def waiting_step(self) -> Trial | None:
        """The first run or step that waits for a worker."""
        return next((trial for trial in self.trials if trial.state == "waiting"), None)

    def append(self, kind: Kind, trial: int | None, data: dict[str, Any], validated: Trial | None = None) -> None:
        """Append an event; raises a `CascadaError` if it cannot follow. `validated`: see `Draft.apply`."""
        event = Event(self._draft.count, kind, trial, data, time.time())
        self._draft.apply(event, validated)
        self.log.append(event)

    # ---- trials

    def begin(self, kind: Literal["enqueued", "asked"], controls: Any, **data: Any) -> Trial:
        """A new trial at these controls."""
        number = len(self.trials)
        self.append(kind, number, {"controls": self._draft.rules.controls(controls), **data})
        return self.trials[number]

    def add(self, controls: Any, outputs: Any) -> Trial:
        """A run of the past, with all or some of its outputs."""
        trial = self.observe(self.begin("enqueued", controls).number, outputs, past=True)
        if trial.state == "complete":
            return trial
        return self.end(trial.number, "abandoned", "added without its objective")

    def observed(self, number: int, outputs: Any) -> Trial:
        """The trial with these outputs too, validated; nothing is written."""
        return self._draft.observed(number, outputs)

    def observe(
        self,
        number: int,
        outputs: Any,
        nominal: Mapping[str, Sequence[float]] | None = None,
        *,
        past: bool = False,
        tries: Mapping[str, int] | None = None,
    ) -> Trial:
        """The trial with these outputs too; those that it has already are not written again.

        With scatter, `nominal` are the nominal inputs of new outputs by stage. `past`: the run was made before the
        study. `tries`: how often stages were run until they gave their outputs; once, if a stage is not named.
        """
        before = trial_at(self.trials, number)
        after = self._draft.observed(number, outputs)
        fresh = {name: list(after.outputs[name]) for name in outputs if name not in before.outputs}
        if fresh:
            leased, complete = number in self._draft.holders, after.state == "complete"
            data: dict[str, Any] = {"outputs": fresh}
            if nominal:
                data["nominal"] = {name: list(place) for name, place in nominal.items()}
            if past:
                data["past"] = True
            if repeated := {name: n for name, n in checked_tries(tries).items() if n > 1 and name in fresh}:
                data["tries"] = repeated
            self.append("told" if complete else "observed", number, data, after)
            if leased and self.trials[number].state != "running":
                self.log.release(number)
        return self.trials[number]

    def end(
        self,
        number: int,
        kind: Literal["failed", "abandoned"],
        reason: str,
        tries: Mapping[str, int] | None = None,
    ) -> Trial:
        """End a trial that will not be complete; abandoned outputs are not in stock any more.

        `tries`: how often the stage was run at which it failed.
        """
        before = trial_at(self.trials, number)
        if before.state == "complete" or (before.state == "partial" and kind == "failed"):
            done = "is complete" if before.state == "complete" else "has given its outputs"
            raise ContradictionError(f"trial {number} {done}: it cannot be {kind} any more.")
        if before.state != kind or before.reason != reason:
            leased = number in self._draft.holders
            self.append(kind, number, {"reason": reason} | ({"tries": dict(checked_tries(tries))} if tries else {}))
            if leased:
                self.log.release(number)
        return self.trials[number]

    def correct(
        self,
        number: int,
        worker: str,
        reason: str,
        stage: str | None,
        outputs: Any,
        controls: Mapping[str, Any] | None,
    ) -> Trial:
        """Replace the outputs of a stage, or the controls of a trial."""
        trial = self._free(number, worker, "correct")
        rules = self._draft.rules
        data: dict[str, Any] = {"reason": reason} if reason else {}
        if stage is None:
            data |= {"controls": rules.changed_controls(trial, controls)}
        else:
            name = stage_name(stage)
            data |= {"stage": name, "outputs": list(rules.outputs(number, name, outputs))}
        self.append("corrected", number, data)
        return self.trials[number]

    def retract(self, number: int, worker: str, reason: str, stage: str) -> Trial:
        """Withdraw the outputs of a stage."""
        self._free(number, worker, "correct")
        self.append("retracted", number, {"stage": stage} | ({"reason": reason} if reason else {}))
        self.log.release(number)
        return self.trials[number]

    def revise(self, number: int, worker: str, controls: Mapping[str, Any]) -> Trial:
        """Give other controls to the stages of a trial that were not run yet; nothing is written if they are equal."""
        trial = self._free(number, worker, "revise")
        changed = self._draft.rules.changed_controls(trial, controls)
        if changed != trial.controls:
            self.append("revised", number, {"controls": changed})
        return self.trials[number]

    def discard(self, number: int, worker: str, reason: str) -> Trial:
        """Abandon a trial that no other worker runs."""
        self._free(number, worker, "discard")
        return self.end(number, "abandoned", reason)

    def _free(self, number: int, worker: str, act: str) -> Trial:
        """A trial that no other worker runs; `StoreError` if one does."""
        trial = trial_at(self.trials, number)
        holder = self._draft.holders.get(number)
        if holder is not None and self.log.is_held_elsewhere(number, worker):
            raise StoreError(
                f"trial {number} is being run by the worker {holder!r}; wait until its run has ended, or stop the "
                f"worker, and {act} it then."
            )
        return trial

    def measure(self, data: Mapping[str, Any]) -> Measurement:
        """A measurement of one stage by itself; with `data["measurement"]` it replaces the one of this number."""
        measured = self._draft.rules.measurement(len(self._draft.measurements), data)
        outputs = None if measured.outputs is None else list(measured.outputs)
        more = {key: data[key] for key in ("measurement", "reason") if data.get(key) not in (None, "")}
        written = {"stage": measured.stage, "inputs": dict(measured.inputs), "outputs": outputs, **more}
        self.append("measured", None, written)
        return measured

    # ---- leases

    def expire(self) -> None:
        """Let trials wait again whose lease ran out, or was left behind in another store."""
        if self._draft.holders:
            held = self.log.leased()
            self._give_back([number for number in self._draft.holders if number not in held])

    def give_back(self, worker: str, numbers: set[int] | None = None) -> int:
        """Let trials wait again that a worker runs under a lease, all or those of these numbers; how many.

        A trial without a lease is left as it is: it may be a week's work in a lab.
        """
        held = [number for number, holder in self._draft.holders.items() if holder == worker]
        mine = [number for number in held if numbers is None or number in numbers]
        self._give_back(mine)
        return len(mine)

    def _give_back(self, numbers: list[int]) -> None:
        for number in numbers:
            self.log.release(number)
            self.append("expired", number, {})
