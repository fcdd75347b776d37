"""Running trials: ask, run the process, tell, until something ends it; here, or in somebody's executor.

Whatever the executor does, trials are told in the order of their numbers, so that the same process gives the same
result. A run that is paid for is not thrown away: what was finished before an interruption is told as well.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import suppress
from functools import partial
from pickle import PicklingError

from cascada.errors import ArgumentError, CascadaError, ContradictionError
from cascada.network import Outputs, Process, StageError
from cascada.study.result import Status
from cascada.study.study import Study
from cascada.study.trial import Trial

# So many failures without a single success are no accident: a wrong name, a missing file.
_FAILURES_IN_A_ROW = 5

Callback = Callable[[Study], bool | None]


class _Lost(Exception):
    """An executor lost one run; the text continues "the run failed because …"."""


def run_trials(
    study: Study,
    process: Process,
    budget: int,
    callbacks: tuple[Callback, ...],
    show: Callable[[Study], None],
    executor: Executor | None,
) -> Status:
    """Run up to `budget` trials, and say why they ended."""
    # What an adaptive algorithm suggests depends on what was told, so it waits for every run.
    ahead = 1 if executor is None or study.adaptive else budget
    under_way: deque[_Run] = deque()
    left = budget
    ended: Status = "budget"
    try:
        while True:
            if (left or under_way) and _only_failures(study):
                return "failing"
            while left and len(under_way) < ahead:
                trial = study.ask()
                if trial is None:
                    left, ended = 0, "tolerance" if study.within_tolerance else "exhausted"
                else:
                    under_way.append(_Run(trial, process, executor))
                    left -= 1
            if not under_way:
                return ended
            contradiction = _tell(study, under_way[0])
            under_way.popleft()
            if contradiction:
                return "contradiction"
            show(study)
            answers = [callback(study) for callback in callbacks]  # each is called, also after one that says stop
            if _refuted(study):
                return "refuted"
            if study.within_tolerance:
                return "tolerance"
            if any(answers):
                return "stopped"
    except KeyboardInterrupt:
        return "interrupted"
    except BrokenExecutor:
        return "broken"
    finally:
        _tell_finished(study, under_way)  # what is paid for is not thrown away, whatever ended the rest


class _Run:
    """A trial that is to be run: here once its result is asked for, or by an executor as soon as it can."""

    def __init__(self, trial: Trial, process: Process, executor: Executor | None) -> None:
        self.trial = trial
        self._future: Future[Outputs] | None = None
        self._outputs: Outputs | None = None  # of a run here, kept until it is told
        self._here = partial(process, trial.controls)
        if executor is None:
            return
        try:
            self._future = executor.submit(self._here)
        except BrokenExecutor as error:  # it breaks for this run as for those under way
            self._future = Future()
            self._future.set_exception(error)
        except RuntimeError as error:
            raise ArgumentError(
                f"executor must take work, but it says: {error}. Give one that is not shut down."
            ) from None

    def result(self) -> Outputs:
        """The outputs; `StageError` when a stage failed, `_Lost` when the run was, `BrokenExecutor` when all are."""
        if self._future is None:
            if self._outputs is None:
                self._outputs = self._here()
            return self._outputs
        try:
            return self._future.result()
        except (StageError, BrokenExecutor):
            raise
        except CancelledError:
            raise BrokenExecutor("the run was cancelled") from None
        except Exception as error:  # the process itself raises nothing but StageError
            if isinstance(error, PicklingError) or str(error).lower().startswith(("cannot pickle", "can't pickle")):
                raise ArgumentError(
                    f"the process could not be sent to the executor: {error}. Processes need functions that are "
                    f"defined at the top level of a module; or use a ThreadPoolExecutor."
                ) from error
            raise _Lost(f"the executor lost it: {type(error).__name__}: {error}") from error

    @property
    def finished(self) -> bool:
        """Whether there is a result or an error already."""
        if self._future is None:
            return self._outputs is not None
        return self._future.done() and not self._future.cancelled()

    def cancel(self) -> None:
        """Do not start the run, if it has not been started."""
        if self._future is not None:
            self._future.cancel()


def _tell(study: Study, run: _Run) -> bool:
    """Tell what a run gave, also when a stage failed; whether it contradicts other runs."""
    trial = run.trial
    try:
        try:
            study.tell(trial, run.result())
        except StageError as error:
            if study.tell(trial, error.outputs).state != "complete":  # the objective may come before the failure
                study.fail(trial, str(error))
        except _Lost as error:
            study.fail(trial, str(error))
    except ContradictionError as error:
        study.refute(str(error))
        with suppress(ContradictionError):  # somebody else may have completed it
            study.fail(trial, str(error))
        return True
    return False


def _tell_finished(study: Study, under_way: deque[_Run]) -> None:
    """Tell the runs that are finished, without waiting for others; those that a broken executor took have failed."""
    for run in under_way:
        run.cancel()
    for run in under_way:
        if not run.finished:
            continue
        try:
            _tell(study, run)
        except BrokenExecutor as error:
            study.fail(run.trial, f"the executor broke: {error}")
        except (KeyboardInterrupt, CascadaError):  # a worker that was interrupted as well
            continue


def _refuted(study: Study) -> bool:
    """Whether the data refute an assumption, found by a look at the gap where the gap matters now.

    A design goes on whatever the gap is, an estimated one stops nothing, and computing it after every run may take
    longer than the runs.
    """
    if (study.adaptive and not study.network.estimated) or study.tolerance is not None:
        return study.certificate().kind == "refuted"
    return study.refuted


def _only_failures(study: Study) -> bool:
    states = [trial.state for trial in study.trials]
    return states.count("failed") >= _FAILURES_IN_A_ROW and "complete" not in states
