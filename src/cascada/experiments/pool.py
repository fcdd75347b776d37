"""Jobs on all cores, longest first, each result kept as soon as it is there."""

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
from cascada.experiments.finished import Finished

# One thread a process: results do not depend on the number of cores, and processes do not fight for them.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class UnfinishedError(CascadaError):
    """Raised when work stopped before its end; what was finished is kept."""


class Named(Protocol):
    """What can be done by `complete`."""

    @property
    def name(self) -> str:
        """Where its result is kept."""
        ...

    @property
    def cost(self) -> float:
        """How long it takes, compared with others."""
        ...


J = TypeVar("J", bound=Named)
Report = Callable[[int, int], None]


def cores() -> int:
    """How many processes can run at once on this machine, as far as this one may use it."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """Worker processes; they are ended at once when anything is raised, an interrupt above all.

    They are spawned, not forked: the same on all systems, and a fork would copy the threads' locks of this process.
    """
    before = set(multiprocessing.active_children())
    with _one_thread_each():
        executor = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=_settle)
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
    executor: Executor, jobs: Sequence[J], work: Callable[[J], Any], finished: Finished, report: Report
) -> list[Any]:
    """The results of all jobs, in their order; done now are those that are not finished yet.

    `work` must be a function of a module, or a `partial` of one: it is sent to other processes by name.
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
            # Read back, so that a result is the same whether it was made now or before.
            results[name] = finished.get(name)
            done += 1
            report(done, len(jobs))
    except BrokenProcessPool as error:
        raise UnfinishedError(
            f"a worker process died, perhaps for lack of memory, with {done} of {len(jobs)} runs finished. They are "
            f"kept in {finished.out}: the same command continues from there. Use fewer --jobs if memory was short."
        ) from error
    return [results[job.name] for job in jobs]


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Set here, because a worker's numerical library reads it before any line of ours is run there."""
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


def _settle() -> None:
    """Begin a worker: Ctrl-C reaches the whole group, but ending is up to the parent; without it, a worker ends too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    """A killed parent cannot end its workers, which would wait for work for ever."""
    parent.join()
    os._exit(1)
