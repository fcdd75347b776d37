"""Running a stored study: what was left open is finished first, and signs of life are given while it runs."""

import time
from collections.abc import Iterable
from concurrent.futures import Executor
from contextlib import suppress

from cascada.errors import CascadaError, RefutedError
from cascada.network import Process
from cascada.network.evaluation import Functions
from cascada.study.driving import check_run, chosen_workers, concluded, process_of
from cascada.study.progress import progress_bar
from cascada.study.result import Result, Status
from cascada.study.runner import Callback, run_trials
from cascada.study.stored import StoredStudy
from cascada.study.trial import Trial

LEASE = 60.0  # seconds without a sign of life after which another worker may take a trial
_LOOKS = 60  # so often during a lease it is looked whether others have finished, or let go of a trial


def optimise_stored(
    study: StoredStudy,
    functions: Functions | Process = None,
    *,
    budget: int,
    jobs: int | None = None,
    executor: Executor | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
    lease: float = LEASE,
) -> Result:
    """Run the process until the study has `budget` trials, those of earlier days and of other workers among them.

    Every stage is told as soon as it has ended, but for those that an executor runs. A worker that has nothing left to
    do waits for others that run the last trials: should one of them die, its trial is run here.
    """
    check_run(budget, jobs, executor)
    process = process_of(study, functions)
    study.take_up()
    last: Status = "budget"

    def ask() -> Trial | None:
        return study.ask(limit=budget)

    def observed(trial: Trial, stage: str, outputs: tuple[float, ...]) -> None:
        with suppress(CascadaError):  # it is told again with the whole run, and what is wrong is said then
            study.tell_stage(trial, stage, outputs)

    workers = chosen_workers(study, process, budget, jobs, executor, observed)
    with study.beating(lease), progress_bar(progress, budget) as show:
        while True:
            if study.refuted:
                last = "refuted"
            elif study.within_tolerance:
                last = "tolerance"
            else:
                try:
                    last = run_trials(study, ask, budget, workers, tuple(callbacks), show, in_order=False)
                except RefutedError:  # it was before, and a bound had to be computed to see it
                    last = "refuted"
            if last not in ("budget", "exhausted") or not study.others_at_work():
                break
            try:
                time.sleep(lease / _LOOKS)
            except KeyboardInterrupt:
                last = "interrupted"
                break
    return concluded(study, last)
