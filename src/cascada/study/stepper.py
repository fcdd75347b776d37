"""The part of a study that asks for single stages to run."""

from cascada.errors import ArgumentError, RefutedError
from cascada.execution.blas import on_one_thread
from cascada.store.lease import checked_lease
from cascada.store.trial import Step
from cascada.study.change import Change
from cascada.study.cost import Cost
from cascada.study.teller import Teller


class Stepper(Teller):
    """A study of which single stages can be run."""

    _lasting: bool
    #: Whether the last step or run was not asked for because it would have cost more than the limit.
    budget_reached = False

    def ask_step(self, *, lease: float | None = None, limit: Cost | None = None) -> Step | None:
        """The stage to run next, with its inputs, its cost and the reason; None when no step is worth its cost.

        Its outputs are told with `tell_stage(step, outputs)`. Steps that wait come first: enqueued runs, and steps
        whose `lease` ran out. With a lease in seconds the worker has to give a sign of life (`beat`) in time. `limit`:
        no step that would make the study cost more, all that is under way included.
        """
        from cascada.study.step_choice import check_steps  # steps are imported where they are used

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

    @on_one_thread
    def _step(self, change: Change, limit: Cost | None, lease: float | None) -> Step | str:
        from cascada.study.next_step import NextStep

        next_step = NextStep(change, self._learned, self._settings, self._journal.shared)
        return next_step.step(limit, self.worker, lease, lasting=self._lasting)
