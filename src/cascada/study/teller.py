"""The part of a study that takes results: outputs of runs and of steps, failures, measurements of single stages."""

from collections.abc import Mapping
from typing import Any, overload

from cascada.errors import ArgumentError
from cascada.execution.blas import on_one_thread
from cascada.store.trial import Step, Trial, trial_number
from cascada.study.change import Change
from cascada.study.measurement import Measurement
from cascada.study.readings import nominal_inputs
from cascada.study.validation import stage_name
from cascada.study.writer import Writer

_NOTHING: Any = object()  # stands for an argument that was not given


class Teller(Writer):
    """A study that is told what came of its trials. Every event is in the journal before a method returns."""

    def tell(
        self, trial: Trial | Step | int, outputs: Mapping[str, Any], *, tries: Mapping[str, int] | None = None
    ) -> Trial:
        """Tell the outputs of every stage, or of those that were observed; with the objective the trial is complete.

        Telling the same again changes nothing. Other outputs than before are refused: see `correct`. `tries`: how often
        stages had to be run, by stage, if more than once; every try is charged.
        """
        return self._changed(lambda change: self._observed(change, trial_number(trial), outputs, tries))

    @overload
    def tell_stage(self, trial: Step, stage: Any) -> Trial: ...

    @overload
    def tell_stage(self, trial: Trial | int, stage: str, outputs: Any) -> Trial: ...

    def tell_stage(self, trial: Trial | Step | int, stage: Any, outputs: Any = _NOTHING) -> Trial:
        """Tell the outputs of one stage as they come in: `tell_stage(trial, stage, outputs)`.

        Those of a step need no stage: `tell_stage(step, outputs)`.
        """
        if isinstance(trial, Step) and outputs is _NOTHING:
            return self.tell(trial, {trial.stage: stage})
        if outputs is _NOTHING:
            raise ArgumentError(
                "tell_stage takes a trial, a stage and its outputs, or a step and its outputs; got no outputs. For "
                "example: study.tell_stage(3, 'mix', 2.812)."
            )
        return self.tell(trial, {stage_name(stage): outputs})

    def fail(self, trial: Trial | Step | int, reason: str, *, tries: Mapping[str, int] | None = None) -> Trial:
        """Mark a trial as failed; the stages that were observed are kept and used.

        The stage at which it failed is charged: the first that was not told, or that of `tries`, so many times.
        """
        return self._changed(lambda change: change.end(trial_number(trial), "failed", str(reason), tries))

    def abandon(self, trial: Trial | Step | int, reason: str = "abandoned") -> Trial:
        """Mark a trial as one that will not be run; the stages that were observed are kept and used.

        What a step gave is not in stock any more: it spoiled, or was thrown away.
        """
        return self._changed(lambda change: change.end(trial_number(trial), "abandoned", str(reason)))

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

    # ---- inside

    @on_one_thread
    def _observed(self, change: Change, number: int, outputs: Any, tries: Mapping[str, int] | None) -> Trial:
        if not self.network.scattered:
            return change.observe(number, outputs, tries=tries)
        # Chosen before the readings are learned; the log keeps them.
        model, after = self._learned(change.state), change.observed(number, outputs)
        nominal = nominal_inputs(model.judging, model.pending([after])[0], number)
        return change.observe(number, outputs, nominal, tries=tries)
