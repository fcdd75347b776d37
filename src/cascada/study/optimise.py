"""`maximise` and `minimise`: ask, run the process, tell, until the gap is proven small or the budget is used up."""

from collections.abc import Callable, Iterable
from typing import Literal

from numpy.typing import ArrayLike

from cascada.algorithms import Algorithm
from cascada.errors import ArgumentError, ContradictionError
from cascada.network import Network, Process, StageError
from cascada.network.evaluation import Functions
from cascada.space import Grid
from cascada.study.progress import progress_bar
from cascada.study.result import Result, Status
from cascada.study.study import Study
from cascada.study.trial import Trial

# So many failures without a single success are no accident: a wrong name, a missing file.
_FAILURES_IN_A_ROW = 5

Callback = Callable[[Study], bool | None]


def maximise(
    network: Network,
    functions: Functions = None,
    *,
    budget: int,
    algorithm: str | Algorithm = "auto",
    candidates: Grid | ArrayLike | None = None,
    tolerance: float | None = None,
    stop_on_estimated: bool = False,
    on_violation: Literal["stop", "enlarge"] = "stop",
    seed: int = 0,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
) -> Result:
    """Maximise a process within `budget` runs.

    * `functions`: one per stage (a list in stage order or a dict by name), one `evaluate(**controls)` that returns all
      outputs by stage, or none when every `Stage` has its own.
    * `candidates`: a `Grid` or points (n, d) in the order of `network.controls`; without them the whole box.
    * `tolerance`: stop when the *proven* gap is at most this, in units of the objective; with `stop_on_estimated` also
      when an estimated one is.
    * `on_violation`: what to do when data refute a bound: "stop", or "enlarge" it and go on, the gap being *estimated*
      from then on.
    * `callbacks`: called with the study after every run; one that returns True stops.

    An exact duplicate is never run. A stage that fails ends only its own run; what was observed before is used.
    """
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise ArgumentError(f"budget must be a whole number of runs, at least 1; got {budget!r}.")
    process = Process(network, functions)
    study = Study(
        network,
        algorithm=algorithm,
        candidates=candidates,
        tolerance=tolerance,
        stop_on_estimated=stop_on_estimated,
        on_violation=on_violation,
        seed=seed,
    )
    with progress_bar(progress, budget) as show:
        status = _run(study, process, budget, tuple(callbacks), show)
    best, recommended = study.best_trial, study.recommended()
    return Result(best, recommended, study.certificate(), study.trials, status)


def minimise(
    network: Network,
    functions: Functions = None,
    *,
    budget: int,
    algorithm: str | Algorithm = "auto",
    candidates: Grid | ArrayLike | None = None,
    tolerance: float | None = None,
    stop_on_estimated: bool = False,
    on_violation: Literal["stop", "enlarge"] = "stop",
    seed: int = 0,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
) -> Result:
    """The mirror of `maximise`, with the same options: the best value is the smallest."""
    return maximise(
        network.mirrored(),
        functions,
        budget=budget,
        algorithm=algorithm,
        candidates=candidates,
        tolerance=tolerance,
        stop_on_estimated=stop_on_estimated,
        on_violation=on_violation,
        seed=seed,
        callbacks=callbacks,
        progress=progress,
    )


def _run(
    study: Study, process: Process, budget: int, callbacks: tuple[Callback, ...], show: Callable[[Study], None]
) -> Status:
    try:
        for _ in range(budget):
            if len(study.trials) >= _FAILURES_IN_A_ROW and all(trial.state == "failed" for trial in study.trials):
                return "failing"
            trial = study.ask()
            if trial is None:
                return "tolerance" if study.within_tolerance else "exhausted"
            try:
                _run_one(study, trial, process)
            except ContradictionError as error:
                study.fail(trial, str(error))
                study.refute(str(error))
                return "contradiction"
            show(study)
            answers = [callback(study) for callback in callbacks]  # each is called, also after one that says stop
            if study.certificate().kind == "refuted":
                return "refuted"
            if study.within_tolerance:
                return "tolerance"
            if any(answers):
                return "stopped"
    except KeyboardInterrupt:
        return "interrupted"
    return "budget"


def _run_one(study: Study, trial: Trial, process: Process) -> None:
    """Run a trial and tell what was observed, also when a stage fails."""
    try:
        study.tell(trial, process(trial.controls))
    except StageError as error:
        if study.tell(trial, error.outputs).state != "complete":  # the objective may come before the failure
            study.fail(trial, str(error))
