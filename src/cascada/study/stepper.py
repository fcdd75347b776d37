"""The part of a study that runs stages one at a time: steps that are asked for, and measurements of single stages."""

from collections.abc import Mapping
from typing import Any

from cascada.errors import ArgumentError, RefutedError
from cascada.execution.blas import on_one_thread
from cascada.store.lease import checked_lease
from cascada.store.trial import Step
from cascada.study.change import Change
from cascada.study.cost import Cost
from cascada.study.measurement import Measurement
from cascada.study.next_step import NextStep
from cascada.study.step_choice import check_steps
from cascada.study.writer import Writer


class Stepper(Writer):
    """A study of which single stages can be run, and measured. Every event is in the journal before a method returns."""

    _lasting: bool
    #: Whether the last step or run was not asked for because it would have cost more than the limit.
    budget_reached = False

    def ask_step(self, *, lease: float | None = None, limit: Cost | None = None) -> Step | None:
        """The stage to run next, with its inputs, its cost and the reason; None when no step is worth its cost.

        Its outputs are told with `tell_stage(step, outputs)`. Steps that wait come first: enqueued runs, and steps whose
        `lease` ran out. With a lease in seconds the worker has to give a sign of life (`beat`) in time. `limit`: no step
        that would make the study cost more, all that is under way included.
        """
        check_steps(self._state, self._settings)
        lease = self._lease if lease is None else checked_lease(lease)
        if limit is not None and not isinstance(limit, Cost):
            raise ArgumentError(f"limit must be a Cost, such as Cost(500), or None; got {limit!r:.100}.")
        if self._settings.tolerance is not None:
            self.certificate()  # a contradiction that it shows is written down, whatever comes next
        try:
            found = self._changed(lambda change: self._step(change, limit, lease))
        except RefutedError:
            self.certificate()  # the same
            raise
        self.budget_reached = found == "budget"
        return found if isinstance(found, Step) else None

    def measure(self, stage: str, inputs: Mapping[str, Any], outputs: Any) -> Measurement:
        """Tell what a stage gave at inputs of its own choice: data of this stage, and no run.

        `inputs` are all inputs of the stage by name: outputs of the stages before it, and its controls.
        """
        return self._changed(lambda change: change.measure({"stage": stage, "inputs": inputs, "outputs": outputs}))

    def correct_measurement(self, number: int, outputs: Any, reason: str = "") -> Measurement:
        """Replace the outputs of a measurement; None withdraws it."""
        measured = self.measurements
        whole = isinstance(number, int) and not isinstance(number, bool)
        if not whole or not 0 <= number < len(measured):
            raise ArgumentError(f"there is no measurement {number!r:.100}; {len(measured)} were told.")
        before = measured[number]
        data = {"stage": before.stage, "inputs": before.inputs, "outputs": outputs}
        return self._changed(lambda change: change.measure({**data, "measurement": number, "reason": str(reason)}))

    @on_one_thread
    def _step(self, change: Change, limit: Cost | None, lease: float | None) -> Step | str:
        next_step = NextStep(change, self._learned, self._settings, self._journal.shared)
        return next_step.step(limit, self.worker, lease, lasting=self._lasting)
