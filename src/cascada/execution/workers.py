"""Workers, which run trials: in the calling thread, or in any `concurrent.futures.Executor`."""

import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass, field
from functools import partial
from pickle import PicklingError
from typing import Any, Protocol

from cascada.errors import ArgumentError
from cascada.network import Outputs, StageError
from cascada.process.process import Process, RunStopped
from cascada.store.trial import Trial

# Called with a trial, a stage and its outputs as soon as the stage has ended. Returns the trial to go on with, possibly
# with other controls for the stages that follow, or None to end the run.
Observer = Callable[[Trial, str, tuple[float, ...]], Trial | None]


@dataclass(frozen=True)
class EndedRun:
    """A run that has ended, with its outputs; `failure` says why some are missing."""

    trial: Trial
    outputs: Outputs = field(default_factory=dict)
    failure: str | None = None
    tries: Mapping[str, int] = field(default_factory=dict)  # of stages that were run more than once


def work_of(trial: Trial) -> tuple[dict[str, float | int], Outputs, tuple[str, ...]]:
    """What `Process.run` needs for a trial: its controls, the outputs that are known, and its steps if it is no run."""
    return dict(trial.controls), {**(trial.set_outputs or {}), **trial.outputs}, trial.steps


def not_run(process: Process, trial: Trial) -> Collection[str]:
    """The stages that a trial does not run."""
    if not trial.steps:
        return trial.outputs
    return [stage.name for stage in process.network.stages if stage.name not in trial.steps]


def own_outputs(trial: Trial, outputs: Outputs) -> Outputs:
    """The outputs of a run that belong to its trial: of a step only those of its stages."""
    return {name: values for name, values in outputs.items() if name in trial.steps} if trial.steps else outputs


class Tries:
    """How often the stages of a run were begun."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()

    def began(self, stage: str) -> None:
        """Count a try of a stage."""
        self._count[stage] += 1

    @property
    def repeated(self) -> dict[str, int]:
        """The stages that were begun more than once."""
        return {stage: count for stage, count in self._count.items() if count > 1}


class Workers(Protocol):
    """Runs up to `capacity` trials at a time."""

    capacity: int

    def start(self, trial: Trial) -> None:
        """Run a trial, now or, if `capacity` of them are running, as soon as one of these has ended."""

    def wait(self) -> list[EndedRun]:
        """Wait for runs to end; return those that have, at least one."""

    def stop(self) -> list[EndedRun]:
        """Cancel what has not begun, stop what can be stopped, and return what has ended meanwhile."""


class InThread:
    """Runs a trial in the calling thread, when `wait` is called."""

    capacity = 1

    def __init__(self, process: Process, observed: Observer | None) -> None:
        self._process, self._observed = process, observed
        self._trial: Trial | None = None
        self._outputs: Outputs = {}  # of stages that have ended, while the run is under way

    def start(self, trial: Trial) -> None:
        """Keep the trial for `wait`; raises `ArgumentError`, once, if a command of a stage cannot be started."""
        if self._trial is None:
            self._process.check_programs(not_run(self._process, trial))
        self._trial = trial

    def wait(self) -> list[EndedRun]:
        """Run the trial and return it."""
        trial = self._trial
        assert trial is not None, "`wait()` called before `start()`"
        ended = None if self._observed is None else partial(self._ended, self._observed)
        self._outputs = {}
        (controls, done, only), tries = work_of(trial), Tries()
        try:
            outputs = self._process.run(controls, done, began=tries.began, ended=ended, only=only)
            failure = None
        except StageError as error:
            outputs, failure = own_outputs(trial, error.outputs), str(error)
        self._outputs = {}
        return [EndedRun(self._trial or trial, outputs, failure, tries.repeated)]

    def _ended(self, observed: Observer, stage: str, outputs: tuple[float, ...]) -> Mapping[str, float]:
        assert self._trial is not None, "a trial is under way"
        self._outputs[stage] = outputs
        trial = observed(self._trial, stage, outputs)
        if trial is None:
            raise RunStopped
        self._trial = trial
        return trial.controls

    def stop(self) -> list[EndedRun]:
        """Return the run that was interrupted if some of its stages have ended: the observer may have failed."""
        outputs, self._outputs = self._outputs, {}
        outputs = {} if self._trial is None else own_outputs(self._trial, outputs)
        return [EndedRun(self._trial, outputs)] if self._trial is not None and outputs else []


class OnExecutor:
    """Submits whole runs to an executor, up to `capacity` at once, and waits for the first one that ends."""

    def __init__(self, process: Process, executor: Executor, capacity: int) -> None:
        self.capacity = capacity
        self._process, self._executor = process, executor
        self._runs: dict[Future[Outputs], Trial] = {}
        self._queue: deque[Trial] = deque()
        # An executor with at most `capacity` workers has a queue of its own, which starts runs without delay.
        size = _size(executor)
        self._most = math.inf if size is not None and size <= capacity else capacity

    def start(self, trial: Trial) -> None:
        """Submit the run of a trial, or queue it if `capacity` runs are under way."""
        self._queue.append(trial)
        self._advance()

    def _advance(self) -> None:
        while self._queue and (len(self._runs) < self._most or self._under_way < self._most):
            self._submit(self._queue.popleft())

    @property
    def _under_way(self) -> int:
        return sum(not future.done() for future in self._runs)

    def _submit(self, trial: Trial) -> None:
        try:
            controls, done, only = work_of(trial)
            counted = any(stage.retries for stage in self._process.network.stages)
            run: Callable[[], Any] = partial(self._process.run, controls, done, only=only)
            future = self._executor.submit(partial(_counted, self._process, controls, done, only) if counted else run)
        except BrokenExecutor as error:  # reported by `wait`, as for the runs under way
            future = Future()
            future.set_exception(error)
        except RuntimeError as error:
            raise ArgumentError(
                f"executor must take work, but it raised: {error}. Give one that is not shut down."
            ) from None
        self._runs[future] = trial

    def wait(self) -> list[EndedRun]:
        """Return the runs that have ended; raise `BrokenExecutor` or `KeyboardInterrupt` if all of them raised one."""
        done, _ = wait(self._runs, return_when=FIRST_COMPLETED)
        raised: BaseException | None = None
        finished = []
        for future in self._in_order(done):
            try:
                finished.append(_ended_run(self._runs[future], future))
                del self._runs[future]
            except (BrokenExecutor, KeyboardInterrupt) as error:
                raised = raised or error
        if not finished and raised is not None:
            raise raised
        self._advance()
        return finished

    def stop(self) -> list[EndedRun]:
        """Cancel runs that have not begun, and return those that have ended; running ones cannot be stopped.

        Runs that a broken executor lost are returned as failed.
        """
        self._queue.clear()
        for future in self._runs:
            future.cancel()
        finished = []
        for future in self._in_order(self._runs):
            if not future.done() or future.cancelled():
                continue
            try:
                finished.append(_ended_run(self._runs[future], future))
            except BrokenExecutor as error:
                finished.append(EndedRun(self._runs[future], failure=f"the executor broke: {error}"))
            except (KeyboardInterrupt, ArgumentError):  # the worker was interrupted as well
                continue
        self._runs = {}
        return finished

    def _in_order(self, futures: Iterable[Future[Outputs]]) -> list[Future[Outputs]]:
        return sorted(futures, key=lambda future: self._runs[future].number)


def capacity_of(executor: Executor) -> int:
    """Return the number of workers of an executor; `ArgumentError` if it is unknown."""
    found = _size(executor)
    if found is None:
        raise ArgumentError(
            f"the number of workers of {type(executor).__name__} is unknown; give the number of runs at once, as in "
            f"jobs=8."
        )
    return found


def _size(executor: Executor) -> int | None:
    found = getattr(executor, "_max_workers", None)  # executors of the standard library have this attribute
    return found if isinstance(found, int) else None


@dataclass(frozen=True)
class _Counted:
    """What a run gave, or why it failed, with its tries: an error would lose them on its way from another process."""

    outputs: Outputs
    failure: str | None
    tries: Mapping[str, int]


def _counted(
    process: Process, controls: Mapping[str, float], done: Mapping[str, tuple[float, ...]], only: tuple[str, ...]
) -> _Counted:
    tries = Tries()
    try:
        return _Counted(process.run(controls, done, began=tries.began, only=only), None, tries.repeated)
    except StageError as error:
        return _Counted(error.outputs, str(error), tries.repeated)


def _ended_run(trial: Trial, future: Future[Any]) -> EndedRun:
    try:
        found = future.result()
        if isinstance(found, _Counted):
            return EndedRun(trial, own_outputs(trial, found.outputs), found.failure, found.tries)
        return EndedRun(trial, found)
    except StageError as error:
        return EndedRun(trial, own_outputs(trial, error.outputs), str(error))
    except BrokenExecutor:
        raise
    except CancelledError:
        raise BrokenExecutor("the run was cancelled") from None
    except Exception as error:  # the process itself raises only StageError
        if isinstance(error, PicklingError) or str(error).lower().startswith(("cannot pickle", "can't pickle")):
            raise ArgumentError(
                f"the process could not be sent to the executor: {error}. Processes need functions that are defined "
                f"at the top level of a module; or use jobs= instead, which takes any function, or a "
                f"ThreadPoolExecutor."
            ) from error
        return EndedRun(trial, failure=f"the executor lost it: {type(error).__name__}: {error}")
