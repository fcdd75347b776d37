"""`maximise` and `minimise`: ask, run the process, tell, until the gap is proven small or the budget is used up."""

import warnings
from collections.abc import Iterable
from concurrent.futures import Executor
from typing import Literal

from cascada.algorithms import Algorithm
from cascada.calibration import Calibration
from cascada.errors import ArgumentError
from cascada.network import Network, Process
from cascada.network.evaluation import Functions
from cascada.search import Certificate
from cascada.space import CandidatesLike
from cascada.study.progress import progress_bar
from cascada.study.recommendation import Recommendation
from cascada.study.result import Result
from cascada.study.runner import Callback, run_trials
from cascada.study.study import Study

# Cells of the only search for a bound that there is when an algorithm is not adaptive.
_LAST_LOOK = 20_000


def maximise(
    network: Network,
    functions: Functions = None,
    *,
    budget: int,
    algorithm: str | Algorithm = "auto",
    candidates: CandidatesLike | None = None,
    tolerance: float | None = None,
    stop_on_estimated: bool = False,
    on_violation: Literal["stop", "enlarge"] = "stop",
    seed: int = 0,
    executor: Executor | None = None,
    calibration: Calibration | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
) -> Result:
    """Maximise a process within `budget` runs.

    * `functions`: one per stage (a list in stage order or a dict by name), one `evaluate(**controls)` that returns all
      outputs by stage, or none when every `Stage` has its own.
    * `candidates`: a `Grid`, points (n, d) in the order of `network.controls`, or dicts by name; without them the box.
    * `tolerance`: stop when the *proven* gap is at most this, in units of the objective; with `stop_on_estimated` also
      when an estimated one is.
    * `on_violation`: what to do when data refute a bound: "stop", or "enlarge" it and go on, the gap being *estimated*
      from then on.
    * `executor`: runs the process, instead of this thread. An algorithm that needs no results to choose its points
      (`NonAdaptive`, `RandomSearch`) has all its runs under way at once; the others have one at a time, so far. Trials
      are told in the order of their numbers. A process pool needs functions defined at the top level of a module.
    * `calibration`: how kernels and norms are estimated for stages that were given none.
    * `callbacks`: called with the study after every run; one that returns True stops.

    An exact duplicate is never run. A stage that fails ends only its own run; what was observed before is used.
    """
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise ArgumentError(f"budget must be a whole number of runs, at least 1; got {budget!r}.")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ArgumentError(f"executor must be a concurrent.futures.Executor, or None; got {executor!r}.")
    process = Process(network, functions)
    study = Study(
        network,
        algorithm=algorithm,
        candidates=candidates,
        tolerance=tolerance,
        stop_on_estimated=stop_on_estimated,
        on_violation=on_violation,
        seed=seed,
        horizon=budget,
        calibration=calibration,
    )
    with progress_bar(progress, budget) as show:
        status = run_trials(study, process, budget, tuple(callbacks), show, executor)
    # A design is looked at once, at its end, and a better look then is worth its time.
    looked = study.adaptive and not network.estimated
    certificate = study.certificate(cells=None if looked else _LAST_LOOK)
    if certificate.kind == "refuted" and status in ("budget", "exhausted"):
        status = "refuted"
    recommendation = _recommendation(study, certificate)
    if study.refuted and certificate.kind != "refuted":
        certificate = study.certificate()  # looking at the recommended point showed a contradiction
    recommended = None if recommendation is None else dict(recommendation.controls)
    return Result(study.best_trial, recommended, certificate, study.trials, status, recommendation)


def _recommendation(study: Study, certificate: Certificate) -> Recommendation | None:
    """What the algorithm recommends; an algorithm that fails at this must not take the runs with it."""
    try:
        return study.recommendation(certificate)
    except Exception as error:  # the algorithm may be the user's: it may raise anything
        warnings.warn(f"{study.algorithm} could recommend no point: {error}", RuntimeWarning, stacklevel=3)
        return None


def minimise(
    network: Network,
    functions: Functions = None,
    *,
    budget: int,
    algorithm: str | Algorithm = "auto",
    candidates: CandidatesLike | None = None,
    tolerance: float | None = None,
    stop_on_estimated: bool = False,
    on_violation: Literal["stop", "enlarge"] = "stop",
    seed: int = 0,
    executor: Executor | None = None,
    calibration: Calibration | None = None,
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
        executor=executor,
        calibration=calibration,
        callbacks=callbacks,
        progress=progress,
    )
