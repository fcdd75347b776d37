"""Running trials: ask, run the process, tell, until something ends it.

A worker that is free gets the next trial at once, chosen with those that are under way in mind. A run that is paid for
is not thrown away: what was finished before an interruption is told as well.
"""

import math
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Union

from cascada.errors import CascadaError, ContradictionError
from cascada.study.result import Status
from cascada.study.study import Study
from cascada.study.trial import Trial
from cascada.study.workers import Finished, Workers

if TYPE_CHECKING:
    from cascada.study.stored import StoredStudy

_NOTICEABLE = 0.2  # of the time between two runs
# So many failures without a single success are no accident: a wrong name, a missing file.
_FAILURES_IN_A_ROW = 5

AnyStudy = Union[Study, "StoredStudy"]
Callback = Callable[[Any], bool | None]  # called with the study, in memory or stored


def run_trials(
    study: AnyStudy,
    ask: Callable[[], Trial | None],
    budget: int,
    workers: Workers,
    callbacks: tuple[Callback, ...],
    show: Callable[[AnyStudy], None],
    *,
    in_order: bool,
) -> Status:
    """Run trials until `ask` has none, and say why they ended.

    `in_order`: tell them in the order of their numbers, so that the same process gives the same result.
    """
    under_way: dict[int, Trial] = {}
    finished: dict[int, Finished] = {}  # and not told yet
    pace = _Pace(workers.capacity)
    try:
        while True:
            while len(under_way) - len(finished) < pace.wanted and (trial := pace.asked(ask)) is not None:
                under_way[trial.number] = trial
                workers.start(trial)
            if not under_way:
                if len(study.trials) >= budget:
                    return "budget"
                return "tolerance" if study.within_tolerance else "exhausted"
            finished |= {run.trial.number: run for run in pace.waited(workers.wait)}
            while (number := min(under_way if in_order else finished, default=None)) in finished:
                contradiction = _tell(study, finished[number])
                del finished[number], under_way[number]
                if contradiction:
                    return "contradiction"
                show(study)
                answers = [callback(study) for callback in callbacks]  # each is called, also after one that says stop
                if _refuted(study, looking=workers.capacity == 1):
                    return "refuted"
                if study.within_tolerance:
                    return "tolerance"
                if any(answers):
                    return "stopped"
                if (under_way or len(study.trials) < budget) and _only_failures(study):
                    return "failing"
    except KeyboardInterrupt:
        return "interrupted"
    except BrokenExecutor:
        return "broken"
    finally:
        for run in [*finished.values(), *workers.stop()]:  # paid for, whatever ended the rest
            with suppress(CascadaError):
                _tell(study, run)
        with suppress(CascadaError):  # others need not wait until the leases run out
            study.put_back(under_way)


def _tell(study: AnyStudy, run: Finished) -> bool:
    """Tell what a run gave, also when a stage failed; whether it contradicts other runs."""
    try:
        # Told even if it failed and nothing was observed: the objective may come before the failure.
        told = study.tell(run.trial, run.outputs)
    except ContradictionError as error:
        study.refute(str(error))
        with suppress(ContradictionError):  # somebody else may have completed it
            study.fail(run.trial, str(error))
        return True
    if run.failure is not None and told.state != "complete":
        with suppress(ContradictionError):  # somebody else has completed it in the meantime
            study.fail(run.trial, run.failure)
    return False


class _Pace:
    """How many trials to have under way: one more than there are workers where choosing a point takes its time.

    Then a worker that is free need not wait for it. Where it takes next to nothing, the newest results are worth more.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._asking, self._waiting = 0.0, math.inf  # seconds of the last ask, and of the last time with nothing to do

    @property
    def wanted(self) -> int:
        """So many, now."""
        return self._capacity + (self._capacity > 1 and self._asking > _NOTICEABLE * self._waiting)

    def asked(self, ask: Callable[[], Trial | None]) -> Trial | None:
        """A trial that is asked for."""
        began = time.monotonic()
        trial = ask()
        self._asking = time.monotonic() - began
        return trial

    def waited(self, wait: Callable[[], list[Finished]]) -> list[Finished]:
        """Runs that are waited for."""
        began = time.monotonic()
        found = wait()
        self._waiting = time.monotonic() - began
        return found


def _refuted(study: AnyStudy, *, looking: bool) -> bool:
    """Whether the data refute an assumption, found by a look at the gap where the gap matters now.

    A design goes on whatever the gap is, an estimated one stops nothing, and computing it after every run may take
    longer than the runs. Not `looking`: it would have to be computed beside the next point, which rests on guesses.
    """
    if (looking and study.adaptive and not study.network.estimated) or study.tolerance is not None:
        return study.certificate().kind == "refuted"
    return study.refuted


def _only_failures(study: AnyStudy) -> bool:
    states = [trial.state for trial in study.trials]
    return states.count("failed") >= _FAILURES_IN_A_ROW and "complete" not in states
