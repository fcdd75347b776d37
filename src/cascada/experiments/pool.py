"""Execution of jobs in worker processes, longest first; each result is stored immediately."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

from cascada.errors import CascadaError
from cascada.experiments.result_store import ResultStore

# One thread per process, so that results do not depend on the number of cores and processes do not compete for them.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class UnfinishedError(CascadaError):
    """Raised when the work was interrupted; finished results are kept."""


class Named(Protocol):
    """A job for `complete`."""

    @property
    def name(self) -> str:
        """The name under which its result is stored."""
        ...

    @property
    def cost(self) -> float:
        """Its relative cost."""
        ...


J = TypeVar("J", bound=Named)
Report = Callable[[int, int], None]


def cores() -> int:
    """The number of cores available to this process."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """Worker processes, which are terminated at once if an exception or interrupt is raised.

    They are spawned instead of forked: this works on all systems, and a fork would copy locks held by threads.
    """
    before = set(multiprocessing.active_children())
    with _one_thread_each():
        executor = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=_initialise_worker)
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()
            raise
        finally:
            executor.shutdown()


def complete(
    executor: Executor, jobs: Sequence[J], work: Callable[[J], Any], finished: ResultStore, report: Report
) -> list[Any]:
    """The results of all jobs in their order; only jobs without a stored result are executed.

    `work` must be a function of a module or a `partial` of one, because it is pickled.
    """
    results = {job.name: finished.get(job.name) for job in jobs}
    missing = sorted((job for job in jobs if results[job.name] is None), key=lambda job: -job.cost)
    done = len(jobs) - len(missing)
    report(done, len(jobs))
    try:
        futures = {executor.submit(work, job): job.name for job in missing}
        for future in as_completed(futures):
            name = futures.pop(future)
            finished.put(name, future.result())
            # Read back, so that new and stored results are identical.
            results[name] = finished.get(name)
            done += 1
            report(done, len(jobs))
    except BrokenProcessPool as error:
        raise UnfinishedError(
            f"a worker process died, perhaps for lack of memory, with {done} of {len(jobs)} runs finished. They are "
            f"kept in {finished.out}; the same command continues from there. Use fewer --jobs if memory was short."
        ) from error
    return [results[job.name] for job in jobs]


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Set the variables in this process, because a worker's numerical library reads them before our code runs."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _initialise_worker() -> None:
    """Initialise a worker: ignore Ctrl-C, which the parent handles, and exit when the parent dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()


def _exit_with(parent: BaseProcess) -> None:
    """Exit when the parent ends: a killed parent cannot terminate its workers."""
    parent.join()
    os._exit(1)
