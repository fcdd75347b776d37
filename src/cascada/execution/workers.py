"""Workers, which run trials: in the calling thread, or in any `concurrent.futures.Executor`."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass, field
from functools import partial
from pickle import PicklingError
from typing import Protocol

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
            self._process.check_programs(trial.outputs)
        self._trial = trial

    def wait(self) -> list[EndedRun]:
        """Run the trial and return it."""
        trial = self._trial
        assert trial is not None, "`wait()` called before `start()`"
        ended = None if self._observed is None else partial(self._ended, self._observed)
        self._outputs = {}
        try:
            outputs, failure = self._process.run(trial.controls, trial.outputs, ended=ended), None
        except StageError as error:
            outputs, failure = error.outputs, str(error)
        self._outputs = {}
        return [EndedRun(self._trial or trial, outputs, failure)]

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
            future = self._executor.submit(partial(self._process.run, trial.controls, dict(trial.outputs)))
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


def _ended_run(trial: Trial, future: Future[Outputs]) -> EndedRun:
    try:
        return EndedRun(trial, future.result())
    except StageError as error:
        return EndedRun(trial, error.outputs, str(error))
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
