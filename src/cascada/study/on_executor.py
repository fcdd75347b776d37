"""Runs in somebody's `concurrent.futures.Executor`: threads, processes, a cluster."""

import math
from collections import deque
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from functools import partial
from pickle import PicklingError

from cascada.errors import ArgumentError
from cascada.network import Outputs, Process, StageError
from cascada.study.trial import Trial
from cascada.study.workers import Finished


class OnExecutor:
    """Submits whole runs, up to `capacity` at once, and waits for whichever ends first."""

    def __init__(self, process: Process, executor: Executor, capacity: int) -> None:
        self.capacity = capacity
        self._process, self._executor = process, executor
        self._runs: dict[Future[Outputs], Trial] = {}
        self._queue: deque[Trial] = deque()
        # One that has no more workers than that keeps the rest in a queue of its own, and begins it without us.
        size = _size(executor)
        self._most = math.inf if size is not None and size <= capacity else capacity

    def start(self, trial: Trial) -> None:
        """Submit the run of a trial; where `capacity` of them are under way, when one of these has ended."""
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
        except BrokenExecutor as error:  # it breaks for this run as for those under way
            future = Future()
            future.set_exception(error)
        except RuntimeError as error:
            raise ArgumentError(
                f"executor must take work, but it says: {error}. Give one that is not shut down."
            ) from None
        self._runs[future] = trial

    def wait(self) -> list[Finished]:
        """The runs that have ended; `BrokenExecutor` or `KeyboardInterrupt` where that is all there is."""
        done, _ = wait(self._runs, return_when=FIRST_COMPLETED)
        raised: BaseException | None = None
        finished = []
        for future in self._in_order(done):
            try:
                finished.append(_finished(self._runs[future], future))
                del self._runs[future]
            except (BrokenExecutor, KeyboardInterrupt) as error:
                raised = raised or error
        if not finished and raised is not None:
            raise raised
        self._advance()
        return finished

    def stop(self) -> list[Finished]:
        """Cancel what has not begun; what runs cannot be stopped. Runs that a broken executor took have failed."""
        self._queue.clear()
        for future in self._runs:
            future.cancel()
        finished = []
        for future in self._in_order(self._runs):
            if not future.done() or future.cancelled():
                continue
            try:
                finished.append(_finished(self._runs[future], future))
            except BrokenExecutor as error:
                finished.append(Finished(self._runs[future], failure=f"the executor broke: {error}"))
            except (KeyboardInterrupt, ArgumentError):  # a worker that was interrupted as well
                continue
        self._runs = {}
        return finished

    def _in_order(self, futures: Iterable[Future[Outputs]]) -> list[Future[Outputs]]:
        return sorted(futures, key=lambda future: self._runs[future].number)


def capacity_of(executor: Executor) -> int:
    """How many runs an executor has at once, as far as it says."""
    found = _size(executor)
    if found is None:
        raise ArgumentError(
            f"say how many runs {type(executor).__name__} may have under way at once: jobs=8, for instance."
        )
    return found


def _size(executor: Executor) -> int | None:
    found = getattr(executor, "_max_workers", None)  # of the executors in the standard library
    return found if isinstance(found, int) else None


def _finished(trial: Trial, future: Future[Outputs]) -> Finished:
    try:
        return Finished(trial, future.result())
    except StageError as error:
        return Finished(trial, error.outputs, str(error))
    except BrokenExecutor:
        raise
    except CancelledError:
        raise BrokenExecutor("the run was cancelled") from None
    except Exception as error:  # the process itself raises nothing but StageError
        if isinstance(error, PicklingError) or str(error).lower().startswith(("cannot pickle", "can't pickle")):
            raise ArgumentError(
                f"the process could not be sent to the executor: {error}. Processes need functions that are defined "
                f"at the top level of a module; or use jobs= instead, which takes any function, or a "
                f"ThreadPoolExecutor."
            ) from error
        return Finished(trial, failure=f"the executor lost it: {type(error).__name__}: {error}")
