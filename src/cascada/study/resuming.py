"""Running a stored study: what was left open is finished first, and signs of life are given while it runs."""

from collections.abc import Iterable
from typing import cast

from cascada.errors import ArgumentError, RefutedError
from cascada.network import Process
from cascada.network.evaluation import Functions
from cascada.study.progress import progress_bar
from cascada.study.result import Result, Status
from cascada.study.runner import Callback, run_trials
from cascada.study.stored import StoredStudy
from cascada.study.study import Study

LEASE = 60.0  # seconds without a sign of life after which another worker may take a trial


def run_stored(
    study: StoredStudy,
    functions: Functions = None,
    *,
    budget: int,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
    lease: float = LEASE,
) -> Result:
    """Run the process until the study has `budget` trials that have ended, those of earlier days among them."""
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise ArgumentError(f"budget must be a whole number of runs, at least 1; got {budget!r}.")
    process = Process(study.network, functions)
    study.take_up()

    def ended() -> int:
        return sum(trial.state in ("complete", "failed", "abandoned") for trial in study.trials)

    def enough(_: object) -> bool:  # others may be running trials of this study, too
        return ended() >= budget

    left = budget - ended()
    status: Status = "budget"
    with study.beating(lease), progress_bar(progress, budget) as show:
        if study.refuted:
            status = "refuted"
        elif study.within_tolerance:
            status = "tolerance"
        elif left > 0:
            same = cast(Study, study)  # all that a runner asks of a study, a stored one has
            try:
                status = run_trials(same, process, left, (*callbacks, enough), show, None)
            except RefutedError:  # it was before, and a bound had to be computed to see it
                status = "refuted"
    if status == "stopped" and ended() >= budget:
        status = "budget"
    certificate = study.certificate()
    if certificate.kind == "refuted" and status in ("budget", "exhausted"):
        status = "refuted"
    recommendation = study.recommendation(certificate)
    recommended = None if recommendation is None else dict(recommendation.controls)
    return Result(study.best_trial, recommended, certificate, study.trials, status, recommendation)
