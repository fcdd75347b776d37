"""Running a study to its end: who runs the trials, how the progress is shown, and what was found."""

import warnings
from collections.abc import Iterable
from concurrent.futures import Executor
from typing import Any

from cascada.errors import ArgumentError, RefutedError
from cascada.network import Process
from cascada.network.evaluation import Functions
from cascada.search import Certificate
from cascada.study.on_executor import OnExecutor, capacity_of
from cascada.study.pool import Pool
from cascada.study.progress import progress_bar
from cascada.study.recommendation import Recommendation
from cascada.study.result import Result, Status
from cascada.study.runner import AnyStudy, Callback, run_trials
from cascada.study.study import Study
from cascada.study.trial import Trial
from cascada.study.workers import Here, Observer, Workers

# Cells of the only search for a bound that there is when nobody looked at the gap before.
_LAST_LOOK = 20_000
_QUICK_LOOK = 500  # whoever interrupts does not want to wait for it


def optimise(
    study: Study,
    functions: Functions | Process = None,
    *,
    budget: int,
    jobs: int | None = None,
    executor: Executor | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
) -> Result:
    """Run the process until the study has `budget` trials, or ends for another reason."""
    check_run(budget, jobs, executor)
    workers = chosen_workers(study, process_of(study, functions), budget, jobs, executor, None)

    def ask() -> Trial | None:
        waiting = any(trial.state == "waiting" for trial in study.trials)
        return study.ask() if waiting or len(study.trials) < budget else None

    with progress_bar(progress, budget) as show:
        in_order = not study.adaptive  # its points are known beforehand, so nobody waits for what is told
        try:
            status = run_trials(study, ask, budget, workers, tuple(callbacks), show, in_order=in_order)
        except RefutedError:  # it was before, or a bound had to be computed to see it
            status = "refuted"
    return concluded(study, status)


def check_run(budget: Any, jobs: Any, executor: Any) -> None:
    """Refuse a budget, a number of jobs or an executor that is none."""
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise ArgumentError(f"budget must be a whole number of runs, at least 1; got {budget!r}.")
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
        raise ArgumentError(f"jobs must be a whole number of runs at once, at least 1, or None; got {jobs!r}.")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ArgumentError(f"executor must be a concurrent.futures.Executor, or None; got {executor!r}.")


def process_of(study: AnyStudy, functions: Functions | Process) -> Process:
    """The study's network with its functions."""
    return functions if isinstance(functions, Process) else Process(study.network, functions)


def chosen_workers(
    study: AnyStudy,
    process: Process,
    budget: int,
    jobs: int | None,
    executor: Executor | None,
    observed: Observer | None,
) -> Workers:
    """Whoever runs the trials: the executor that is given, a pool of processes for several jobs, else this thread."""
    if executor is not None:
        # An executor has a queue of its own: what needs no results to be chosen is put there at once.
        return OnExecutor(process, executor, jobs or (capacity_of(executor) if study.adaptive else budget))
    return Here(process, observed) if jobs is None or jobs == 1 else Pool(process, jobs, observed)


def concluded(study: AnyStudy, status: Status) -> Result:
    """What was found in the end."""
    # A bound that nobody looked at on the way is worth a better look now; not to whoever wants to stop.
    looked = study.adaptive and not study.network.estimated
    try:
        cells = _QUICK_LOOK if status == "interrupted" else _LAST_LOOK
        certificate = study.certificate(cells=None if looked else cells)
    except KeyboardInterrupt:  # the runs are paid for, and are not lost for the sake of a better bound
        status, certificate = "interrupted", study.certificate(cells=_QUICK_LOOK)
    if certificate.kind == "refuted" and status in ("budget", "exhausted"):
        status = "refuted"
    recommendation = _recommendation(study, certificate)
    if study.refuted and certificate.kind != "refuted":
        certificate = study.certificate()  # looking at the recommended point showed a contradiction
    recommended = None if recommendation is None else dict(recommendation.controls)
    return Result(study.best_trial, recommended, certificate, study.trials, status, recommendation)


def _recommendation(study: AnyStudy, certificate: Certificate) -> Recommendation | None:
    """What the algorithm recommends; an algorithm that fails at this must not take the runs with it."""
    try:
        return study.recommendation(certificate)
    except Exception as error:  # the algorithm may be the user's: it may raise anything
        warnings.warn(f"{study.algorithm} could recommend no point: {error}", RuntimeWarning, stacklevel=4)
        return None
