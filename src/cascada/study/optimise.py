"""`maximise` and `minimise`: optimise a process in one call."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cascada.algorithms import Algorithm
from cascada.calibration import Calibration
from cascada.near_names import with_near_names
from cascada.network import Network
from cascada.network.argument import as_network
from cascada.space import CandidatesLike
from cascada.study.cost import Cost
from cascada.study.result import Result
from cascada.study.settings import OnViolation, StopOn
from cascada.study.study import Callback, Study

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from cascada.process import Functions, Process


@with_near_names
def maximise(
    network: Network,
    functions: "Functions | Process" = None,
    *,
    budget: int | Cost,
    algorithm: str | Algorithm = "auto",
    candidates: CandidatesLike | None = None,
    tolerance: float | None = None,
    stop_on: StopOn | None = None,
    stop_on_estimated: bool = False,
    on_violation: OnViolation = "stop",
    safe: bool = False,
    confidence: float | None = None,
    start: Mapping[str, Any] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    executor: "Executor | None" = None,
    calibration: Calibration | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
    revise: bool = False,
) -> Result:
    """Maximise a process within `budget` runs, or within a budget in money, `Cost(500)`.

    * `budget=Cost(500)`: in the unit of the costs that the stages declare. Stages are run one at a time, where some can
      be run by themselves (`Stage(reachable=)`), and whole runs otherwise.
    * `functions`: one per stage (a list in stage order or a dict by name), one `evaluate(**controls)` that returns all
      outputs by stage, or none when every `Stage` has its own.
    * `candidates`: a `Grid`, points (n, d) in the order of `network.controls`, or dicts by name; without them the box.
    * `tolerance`: stop when the *proven* gap is at most this, in units of the objective.
    * `stop_on`: the kind of gap that stops as well where kernels or norms are estimated: "probable" (computed after
      every d + 1 runs) or "estimated", for which `stop_on_estimated=True` is another name.
    * `on_violation`: what to do when data refute a bound: "stop", or "enlarge" it and go on, the gap being *estimated*
      from then on.
    * `safe`: run only settings that are proven to satisfy the limits. It needs a `start`: controls of a setting that is
      known to satisfy them, which is run first.
    * `confidence`: the probability with which bounds hold if a stage has a `SubGaussian` error; by default 0.95.
    * `jobs`: so many runs at once, in processes of their own; a process that dies or hangs is replaced, and only the
      stage that it ran is tried again. A free one gets a new point at once, chosen with the open ones in mind.
    * `executor`: runs the process instead, with `jobs` runs at once, by default as many as it has workers; a design
      (`NonAdaptive`, `RandomSearch`) is submitted as a whole. Process pools need functions defined at the top level
      of a module.
    * `calibration`: how kernels and norms are estimated for stages that were given none.
    * `callbacks`: called with the study after every run; one that returns True stops.
    * `revise`: after every stage, choose the controls of the stages that are left anew, and do not complete a run that
      is not worth it (`Study.revise`); for processes with a function for every stage, without an executor.

    An exact duplicate is never run. A stage that fails ends only its own run; what was observed before is used.
    """
    from cascada.study.loop_options import check_run  # what runs processes is imported where it is used

    check_run(budget, jobs, executor, revise, callbacks)
    study = Study(
        network,
        algorithm=algorithm,
        candidates=candidates,
        tolerance=tolerance,
        stop_on=stop_on,
        stop_on_estimated=stop_on_estimated,
        on_violation=on_violation,
        seed=seed,
        horizon=None if isinstance(budget, Cost) else budget,
        calibration=calibration,
        safe=safe,
        confidence=confidence,
    )
    if start is not None:
        study.enqueue_trial(start, known_safe=True)
    return study.optimise(
        functions,
        budget=budget,
        jobs=jobs,
        executor=executor,
        callbacks=callbacks,
        progress=progress,
        revise=revise,
    )


@with_near_names
def minimise(
    network: Network,
    functions: "Functions | Process" = None,
    *,
    budget: int | Cost,
    algorithm: str | Algorithm = "auto",
    candidates: CandidatesLike | None = None,
    tolerance: float | None = None,
    stop_on: StopOn | None = None,
    stop_on_estimated: bool = False,
    on_violation: OnViolation = "stop",
    safe: bool = False,
    confidence: float | None = None,
    start: Mapping[str, Any] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    executor: "Executor | None" = None,
    calibration: Calibration | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
    revise: bool = False,
) -> Result:
    """The mirror of `maximise`, with the same options: the best value is the smallest."""
    return maximise(
        as_network(network).mirrored(),
        functions,
        budget=budget,
        algorithm=algorithm,
        candidates=candidates,
        tolerance=tolerance,
        stop_on=stop_on,
        stop_on_estimated=stop_on_estimated,
        on_violation=on_violation,
        safe=safe,
        confidence=confidence,
        start=start,
        seed=seed,
        jobs=jobs,
        executor=executor,
        calibration=calibration,
        callbacks=callbacks,
        progress=progress,
        revise=revise,
    )
