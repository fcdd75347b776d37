"""The loop of a study: ask, run the process, tell, until the gap is small, the budget is used up, or something ends it.

A free worker gets the next trial at once, chosen with the pending ones in mind. A finished run is never thrown away:
what ended before an interruption is told as well.
"""

import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Executor
from contextlib import suppress
from functools import partial

from cascada.errors import ArgumentError, CascadaError, ContradictionError, RefutedError, StoreError
from cascada.execution.process_pool import Pool
from cascada.execution.workers import EndedRun, InThread, Observer, OnExecutor, Workers, capacity_of
from cascada.network.failures import counts_as_infeasible
from cascada.printable import one_line
from cascada.process import Functions, Process
from cascada.store.trial import Trial
from cascada.study.caller_warning import warn_caller
from cascada.study.certificate import Certificate
from cascada.study.cost import Cost
from cascada.study.loop_options import check_money, check_run, in_steps
from cascada.study.progress import LOGGER, progress_bar
from cascada.study.recommendation import Recommendation
from cascada.study.rescue import rescued, told
from cascada.study.result import SENTENCES, Result, Status
from cascada.study.study import Callback, Study

LEASE = 60.0  # seconds without a sign of life after which another worker may take a trial
_LOOKS = 60  # how often per lease it is checked whether other workers have finished or released a trial
_NOTICEABLE = 0.2  # of the time between two runs
# So many failures without a single success have a common cause: a wrong name, a missing file.
_FAILURES_IN_A_ROW = 5
# Cell budget of the final certificate if none was computed earlier, and after an interrupt, when it must be quick.
_FINAL_CELLS = 20_000
_QUICK_CELLS = 500
# Ends with nothing left to do here; the results of other workers may change that.
_UNFINISHED = ("budget", "exhausted", "no safe setting")


def optimise(
    study: Study,
    functions: Functions | Process = None,
    *,
    budget: int | Cost,
    jobs: int | None = None,
    executor: Executor | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
    lease: float | None = None,
    revise: bool = False,
) -> Result:
    """Run the process until the study has `budget` trials, or ends for another reason.

    With `budget=Cost(500)` it ends when the next run would cost more than is left of 500. Single stages are run, if
    some can be run by themselves, and whole runs otherwise.

    In a store the budget counts the trials of earlier days and of other workers, open trials are finished first, and
    every stage is told as soon as it has ended, except with an executor. A worker that has nothing left to do waits for
    others that run the last trials: if one of them dies, its trial is run here.

    With `revise`, the controls of the stages that are left are chosen anew after every stage, and a run that is not
    worth to be completed is abandoned, with the reason (`Study.revise`). It counts as a run.
    """
    check_run(budget, jobs, executor, revise, callbacks)
    if study.network.context:
        raise ArgumentError(
            f"context=True, which {', '.join(study.network.context)} has, does not work with maximise, optimise, "
            f"`cascada run` and `cascada worker`: a context is measured before each run. Use study.ask(context=…) and "
            f"study.tell."
        )
    process = functions if isinstance(functions, Process) else Process(study.network, functions)
    check_money(study, process, budget, revise)
    if revise and not process.by_stage:
        raise ArgumentError(
            "revise=True needs a function for every stage; got one evaluate(), which runs all of them in one call."
        )
    study.take_up()
    workers = _workers(study, process, budget, jobs, executor, revise)
    lease = LEASE if lease is None else lease
    untold: list[EndedRun] = []
    try:
        with study.beating(lease), progress_bar(progress, budget) as show:
            while True:
                status = _run(study, budget, workers, tuple(callbacks), show, untold)
                if status not in _UNFINISHED or not (study.shared and study.others_at_work()):
                    break
                try:
                    time.sleep(lease / _LOOKS)
                except KeyboardInterrupt:
                    status = "interrupted"
                    break
        failure = _tell_rest(study, untold)  # a store that was away may be back
        if failure is not None:
            raise failure
        result = _concluded(study, status)
        LOGGER.info("%s %r", SENTENCES[result.status], result.certificate)
        study.verify()
    except StoreError as error:
        raise rescued(study, untold, error) from error
    except KeyboardInterrupt:  # the second one: the first ends the runs, and their results are told
        if not untold:
            raise
        raise rescued(study, untold, StoreError("this was interrupted while it waited for the store.")) from None
    return result


def _workers(
    study: Study, process: Process, budget: int | Cost, jobs: int | None, executor: Executor | None, revise: bool
) -> Workers:
    """The executor if one is given, a pool of processes for several jobs, else this thread."""
    if executor is not None:
        # An executor has its own queue: points that need no results to be chosen are submitted at once.
        if jobs is None:
            jobs = capacity_of(executor) if study.adaptive or isinstance(budget, Cost) else budget
        return OnExecutor(process, executor, jobs)

    def tell_stage(trial: Trial, stage: str, outputs: tuple[float, ...]) -> Trial:
        with suppress(CascadaError):  # it is told again with the whole run, and an error is reported then
            study.tell_stage(trial, stage, outputs)
        return trial

    observer: Observer | None = tell_stage if study.shared else None
    if revise:
        observer = partial(_revised, study)
    return InThread(process, observer) if jobs in (None, 1) else Pool(process, jobs, observer, follows=revise)


def _revised(study: Study, trial: Trial, stage: str, outputs: tuple[float, ...]) -> Trial | None:
    """Tell a stage of a run, and revise the run: the trial to go on with; None if the run is not to be completed."""
    now = trial
    with suppress(CascadaError):  # the stage is told again with the whole run; without a revision the plan stays
        now = study.trials[trial.number]
        if now.controls != trial.controls:  # another worker has taken the trial over and revised it
            return None
        now = study.tell_stage(trial, stage, outputs)
        if now.state == "running":
            study.revise(trial, apply=True)
            now = study.trials[trial.number]
    return None if now.state in ("abandoned", "failed") else now


def _run(
    study: Study,
    budget: int | Cost,
    workers: Workers,
    callbacks: tuple[Callback, ...],
    show: Callable[[Study], None],
    untold: list[EndedRun],
) -> Status:
    """Run trials until none is left, and say why they ended; those that the store does not take are in `untold`."""
    if study.shared:
        if study.refuted:
            return "refuted"
        if study.within_tolerance:
            return _enough(study)
    # Where points are known in advance, trials are told in the order of their numbers: the same process gives the same
    # result. Other processes of a store tell theirs at any time.
    in_order = not study.adaptive and not study.shared
    ask: Callable[[], Trial | None] = partial(study.ask, limit=budget)
    if isinstance(budget, Cost) and in_steps(study, budget):
        ask = partial(_asked_step, study, budget)
    try:
        return run_trials(study, ask, budget, workers, callbacks, show, untold, in_order=in_order)
    except RefutedError:  # it was refuted before, or a bound had to be computed to see it
        return "refuted"


def _asked_step(study: Study, budget: Cost) -> Trial | None:
    step = study.ask_step(limit=budget)
    return None if step is None else study.trials[step.trial]


def _is_used_up(study: Study, budget: int | Cost) -> bool:
    """Whether nothing more is run because of the budget."""
    return study.budget_reached if isinstance(budget, Cost) else len(study.trials) >= budget


def run_trials(
    study: Study,
    ask: Callable[[], Trial | None],
    budget: int | Cost,
    workers: Workers,
    callbacks: tuple[Callback, ...],
    show: Callable[[Study], None],
    untold: list[EndedRun],
    *,
    in_order: bool,
) -> Status:
    """Run trials until `ask` returns none, and say why they ended; those that the store does not take are in `untold`.

    `in_order`: tell them in the order of their numbers.
    """
    under_way: dict[int, Trial] = {}
    finished: dict[int, EndedRun] = {}  # and not told yet
    pace = _Pace(workers.capacity)
    try:
        while True:
            while len(under_way) - len(finished) < pace.wanted and (trial := pace.asked(ask)) is not None:
                under_way[trial.number] = trial
                workers.start(trial)
            if not under_way:
                if _is_used_up(study, budget):
                    return "budget"
                if _infeasible(study):
                    return "infeasible"
                if study.within_tolerance:
                    return "tolerance"
                return "no safe setting" if study.lacks_safe_setting else "exhausted"
            finished |= {run.trial.number: run for run in pace.waited(workers.wait)}
            while (number := min(under_way if in_order else finished, default=None)) in finished:
                contradiction = _tell(study, finished[number])
                del finished[number]
                under_way.pop(number, None)
                if contradiction:
                    return "contradiction"
                show(study)
                answers = [callback(study) for callback in callbacks]  # all are called, also after one that stops
                if _refuted(study, looking=workers.capacity == 1):
                    return "refuted"
                if study.within_tolerance:
                    return _enough(study)
                if _probable_is_due(study) and study.probably_within_tolerance:
                    return "tolerance"
                if study.tolerance is not None and _at_floor(study):
                    return "floor"
                if any(answers):
                    return "stopped"
                if (under_way or not _is_used_up(study, budget)) and _only_failures(study):
                    return "failing"
    except KeyboardInterrupt:
        return "interrupted"
    except BrokenExecutor:
        return "broken"
    finally:
        untold += [*finished.values(), *workers.stop()]  # paid for, whatever ended the rest
        _tell_rest(study, untold)
        with suppress(CascadaError):  # other workers need not wait until the leases run out
            study.put_back(under_way)


def _tell_rest(study: Study, untold: list[EndedRun]) -> StoreError | None:
    """Tell runs; those that the store does not take stay in the list, and the error says why."""
    failure = None
    for run in list(untold):
        try:
            _tell(study, run)
        except StoreError as error:
            failure = error
            continue
        except CascadaError:  # what ended the other runs is reported
            pass
        untold.remove(run)
    return failure


def _tell(study: Study, run: EndedRun) -> bool:
    """Tell the outputs of a run, also if a stage failed; whether they contradict other runs."""
    try:
        # Told even if it failed and nothing was observed: the objective may come before the failure.
        trial = told(study, run)
    except ContradictionError as error:
        study.refute(str(error), trials=error.trials)
        with suppress(ContradictionError):  # another worker may have completed it
            study.fail(run.trial, str(error))
        return True
    if run.failure is not None and trial.state not in ("complete", "partial"):
        with suppress(ContradictionError):  # another worker has completed it in the meantime
            study.fail(trial, run.failure, tries=_failed_tries(run))
            LOGGER.warning("%s", one_line(f"trial {trial.number} failed: {run.failure}"))
    return False


def _failed_tries(run: EndedRun) -> dict[str, int]:
    """How often the stage was run at which a run failed, if more than once."""
    return {stage: count for stage, count in run.tries.items() if stage not in run.outputs}


class _Pace:
    """The number of trials to have under way: one more than there are workers where choosing a point takes long.

    Then a free worker need not wait for it. Where choosing is quick, the newest results are worth more.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._asking, self._waiting = 0.0, math.inf  # seconds of the last ask, and of the last wait for runs

    @property
    def wanted(self) -> int:
        """The number of trials to have under way now."""
        return self._capacity + (self._capacity > 1 and self._asking > _NOTICEABLE * self._waiting)

    def asked(self, ask: Callable[[], Trial | None]) -> Trial | None:
        """Call `ask` and measure its time."""
        began = time.monotonic()
        trial = ask()
        self._asking = time.monotonic() - began
        return trial

    def waited(self, wait: Callable[[], list[EndedRun]]) -> list[EndedRun]:
        """Call `wait` and measure its time."""
        began = time.monotonic()
        found = wait()
        self._waiting = time.monotonic() - began
        return found


def _refuted(study: Study, *, looking: bool) -> bool:
    """Whether the data refute an assumption; the gap is computed for it where it matters now.

    A design continues whatever the gap is, an estimated one stops nothing, and computing it after every run may take
    longer than the runs. Not `looking`: it would be computed in addition to the next point, which has pending runs.
    """
    if (looking and study.adaptive and not study.network.estimated) or study.tolerance is not None:
        return study.certificate().kind == "refuted"
    return study.refuted


def _infeasible(study: Study) -> bool:
    """Whether it is proven that no setting satisfies the limits."""
    return bool(study.network.limits) and study.best_trial is None and study.certificate().answer == "infeasible"


def _enough(study: Study) -> Status:
    """Why a study ends that needs no further run."""
    return "infeasible" if _infeasible(study) else "tolerance"


def _probable_is_due(study: Study) -> bool:
    """Whether the probable gap is computed now: after every d + 1 complete runs."""
    return sum(trial.value is not None for trial in study.trials) % (study.network.domain.dimension + 1) == 0


def _at_floor(study: Study) -> bool:
    """Whether errors of readings leave no run at the point of the bound that is sure to teach anything."""
    if not study.network.read_with_errors:
        return False
    floor = study.certificate().floor
    return floor is not None and floor.reached


def _only_failures(study: Study) -> bool:
    """Whether nothing but failures was observed; those that count as infeasible are results of the process."""
    trials = study.trials
    failed = [t for t in trials if t.state == "failed" and not counts_as_infeasible(study.network, t.outputs)]
    return len(failed) >= _FAILURES_IN_A_ROW and all(t.state not in ("complete", "partial") for t in trials)


def _concluded(study: Study, status: Status) -> Result:
    """The result of a study whose loop ended."""
    # A bound that was not computed on the way is worth a better search now; not after an interrupt.
    computed = study.adaptive and not study.network.estimated
    try:
        cells = _QUICK_CELLS if status == "interrupted" else _FINAL_CELLS
        certificate = study.certificate(cells=None if computed else cells)
    except KeyboardInterrupt:  # the runs are not lost for the sake of a better bound
        status, certificate = "interrupted", study.certificate(cells=_QUICK_CELLS)
    if certificate.kind == "refuted" and status in _UNFINISHED:
        status = "refuted"
    if certificate.answer == "infeasible" and status == "budget":
        status = "infeasible"
    recommendation = _recommendation(study, certificate)
    if study.refuted and certificate.kind != "refuted":
        certificate = study.certificate()  # the recommended point showed a contradiction
    recommended = None if recommendation is None else dict(recommendation.controls)
    probable = None if status == "interrupted" else study.probable_gap_if_defined()
    return Result(
        study.best_trial, recommended, certificate, study.trials, status, recommendation, probable, study.spent
    )


def _recommendation(study: Study, certificate: Certificate) -> Recommendation | None:
    """What the algorithm recommends; an algorithm that fails at this must not lose the runs."""
    try:
        return study.recommendation(certificate)
    except Exception as error:  # the algorithm may be the user's: it may raise anything
        text = f"{type(study.algorithm).__name__} could recommend no point: {error}"
        warn_caller(one_line(text))
        return None
