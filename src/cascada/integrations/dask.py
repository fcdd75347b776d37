"""Runs on a Dask cluster: as an executor, so that a worker that dies takes no more than its own run with it."""

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

import cloudpickle  # type: ignore[import-untyped, unused-ignore]

from cascada.errors import ArgumentError, CascadaError

_PATIENCE = 30  # seconds for a scheduler to answer


@contextmanager
def dask_executor(address: str) -> Iterator[tuple[Executor, int]]:
    """An executor on the cluster whose scheduler is at this address, and how many runs it has at once."""
    try:
        import distributed
    except ImportError:
        raise CascadaError("Dask is not installed: pip install 'cascada[dask]'.") from None
    connect: Any = distributed.Client  # which has no types
    try:
        client = connect(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # a time-out is an OSError; the rest are odd addresses
        raise ArgumentError(
            f"there is no Dask scheduler at {address!r} ({error}); give the address that `dask scheduler` prints, such "
            f"as tcp://10.0.0.1:8786."
        ) from error
    with client:
        capacity = sum(client.nthreads().values())
        if not capacity:
            raise CascadaError(f"the Dask cluster at {address} has no workers; start some: dask worker {address}.")
        # pure=False: Dask would take two runs with the same inputs for the same run.
        yield _Packing(client.get_executor(pure=False), capacity), capacity


class _Packing(Executor):
    """An executor that packs what it submits by itself.

    Dask's workers unpack tasks where they read from the scheduler, and die of one that they cannot unpack: a module
    that they do not have. Unpacked inside the task, it is an error of that task. And code of files that are no modules
    is packed with it.
    """

    def __init__(self, executor: Executor, size: int) -> None:
        self._executor = executor
        self._max_workers = size  # by this name executors of the standard library tell it

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call."""
        return self._executor.submit(_called, cloudpickle.dumps((fn, args, kwargs)))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more."""
        self._executor.shutdown(wait, cancel_futures=cancel_futures)


def _called(packed: bytes) -> Any:
    function, arguments, named = pickle.loads(packed)
    return function(*arguments, **named)
