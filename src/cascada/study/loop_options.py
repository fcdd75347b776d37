"""Validation of the options of a loop: budget, jobs, executor, revise."""

from collections.abc import Iterable
from typing import Any

from cascada.algorithms import NonAdaptive
from cascada.arrays import as_whole_number
from cascada.errors import ArgumentError
from cascada.process import Process
from cascada.study.cost import Cost
from cascada.study.step_choice import check_steps
from cascada.study.study import Study


def check_run(budget: Any, jobs: Any, executor: Any, revise: Any = False, callbacks: Any = ()) -> None:
    """Raise `ArgumentError` if budget, jobs, executor, revise or callbacks is invalid, or they do not work together."""
    if not isinstance(budget, Cost):
        as_whole_number(budget, "budget")
    if jobs is not None:
        as_whole_number(jobs, "jobs")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ArgumentError(f"executor must be a concurrent.futures.Executor, or None; got {executor!r}.")
    listed = isinstance(callbacks, Iterable) and not isinstance(callbacks, str)
    if callable(callbacks) or not listed:
        raise ArgumentError(
            f"callbacks must be a list of functions that are called with the study; got {callbacks!r:.100}. "
            f"Write callbacks=[function]."
        )
    if not isinstance(revise, bool):
        raise ArgumentError(f"revise must be True or False; got {revise!r:.100}.")
    if revise and executor is not None:
        raise ArgumentError(
            "revise=True does not work with an executor (nor with Dask), which reports all stages of a run at its end; "
            "use jobs= instead."
        )


def in_steps(study: Study, budget: int | Cost) -> bool:
    """Whether a budget is spent on single stages."""
    return isinstance(budget, Cost) and study.network.stepwise


def check_money(study: Study, process: Process, budget: int | Cost, revise: bool) -> None:
    """Raise `ArgumentError` if a budget in money does not work with the study, or with how the process is run."""
    if not isinstance(budget, Cost):
        return
    if isinstance(study.algorithm, NonAdaptive):
        raise ArgumentError(
            "budget=Cost(...) does not work with NonAdaptive, which plans a number of runs; give the number of runs."
        )
    if not in_steps(study, budget):
        return
    check_steps(study.state, study.settings)
    if revise:
        raise ArgumentError(
            "revise=True does not work with budget=Cost(...) where single stages are run: each step is chosen anew "
            "anyway; leave revise= out."
        )
    if not process.by_stage:
        raise ArgumentError(
            "single stages are run by a function for every stage; got one evaluate(), which runs all of them in one "
            "call. Give a function for every stage, or a number of runs as the budget."
        )
