"""Who runs trials: this thread, a pool of processes, or somebody's executor."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from cascada.network import Outputs, Process, StageError
from cascada.study.trial import Trial

# Called with a trial, a stage and its outputs when they are there, long before the trial is finished perhaps.
Observer = Callable[[Trial, str, tuple[float, ...]], None]


@dataclass(frozen=True)
class Finished:
    """A run that is over, with what was observed; `failure` says why that is not everything."""

    trial: Trial
    outputs: Outputs = field(default_factory=dict)
    failure: str | None = None


class Workers(Protocol):
    """Something that runs trials, some at a time."""

    capacity: int

    def start(self, trial: Trial) -> None:
        """Run a trial, now or, where `capacity` of them run already, as soon as one of these has ended."""

    def wait(self) -> list[Finished]:
        """Wait for runs to end; those that have, at least one."""

    def stop(self) -> list[Finished]:
        """Cancel what has not begun, stop what can be stopped, and give what has ended meanwhile."""


class Here:
    """Runs a trial in this thread, once it is waited for."""

    capacity = 1

    def __init__(self, process: Process, observed: Observer | None) -> None:
        self._process, self._observed = process, observed
        self._trial: Trial | None = None

    def start(self, trial: Trial) -> None:
        """Keep the trial for `wait`."""
        if self._trial is None:
            self._process.check_programs(trial.outputs)
        self._trial = trial

    def wait(self) -> list[Finished]:
        """Run it."""
        trial = self._trial
        assert trial is not None, "nobody waits for nothing"
        ended = None if self._observed is None else partial(self._observed, trial)
        try:
            finished = Finished(trial, self._process.run(trial.controls, trial.outputs, ended=ended))
        except StageError as error:
            finished = Finished(trial, error.outputs, str(error))
        return [finished]

    def stop(self) -> list[Finished]:
        """There is nothing to stop: whoever calls this is this thread."""
        return []
