"""An executor that runs trials on a Dask cluster; a worker that dies loses only its own run."""

import pickle
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

import cloudpickle  # type: ignore[import-untyped, unused-ignore]

from cascada.errors import ArgumentError, CascadaError

_TIMEOUT = 30  # seconds for a scheduler to answer
_TCP = re.compile(r"(?:tcp://)?(?P<host>\[[^]]+\]|[^:/]+):(?P<port>\d+)")


@contextmanager
def dask_executor(address: str) -> Iterator[tuple[Executor, int]]:
    """Yield an executor on the cluster whose scheduler is at this address, and the cluster's number of threads.

    Raises `CascadaError` if Dask is not installed or the cluster has no workers, and `ArgumentError` if there is no
    scheduler at the address.
    """
    try:
        import distributed
    except ImportError:
        raise CascadaError("Dask is not installed: pip install 'cascada[dask]'.") from None
    _check_reachable(address)
    connect: Any = distributed.Client  # has no types
    try:
        client = connect(address, timeout=_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # a timeout is an OSError; the others are invalid addresses
        raise ArgumentError(
            f"there is no Dask scheduler at {address!r} ({error}); give the address that `dask scheduler` prints, such "
            f"as tcp://10.0.0.1:8786."
        ) from error
    with client:
        capacity = sum(client.nthreads().values())
        if not capacity:
            raise CascadaError(f"the Dask cluster at {address} has no workers; start some: dask worker {address}.")
        # pure=False: otherwise Dask treats two runs with the same inputs as one.
        yield _Packing(client.get_executor(pure=False), capacity), capacity


def _check_reachable(address: str) -> None:
    """Raise `ArgumentError` at once if nothing listens at a TCP address: Dask itself would try for half a minute."""
    found = _TCP.fullmatch(address)
    if found is None:
        return
    try:
        socket.create_connection((found["host"].strip("[]"), int(found["port"])), _TIMEOUT).close()
    except (OSError, OverflowError) as error:
        raise ArgumentError(
            f"there is no Dask scheduler at {address!r} ({error}); start one with `dask scheduler`, and give the "
            f"address that it prints, such as tcp://10.0.0.1:8786."
        ) from None


class _Packing(Executor):
    """An executor that pickles calls itself, with cloudpickle.

    Dask's workers unpickle tasks while they read from the scheduler, and die if that fails, for example because a
    module is missing. If the task itself unpickles the call, such an error belongs to that task. Cloudpickle also sends
    code of files that are not importable.
    """

    def __init__(self, executor: Executor, size: int) -> None:
        self._executor = executor
        self._max_workers = size  # the attribute that executors of the standard library have

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call."""
        return self._executor.submit(_called, cloudpickle.dumps((fn, args, kwargs)))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls."""
        self._executor.shutdown(wait, cancel_futures=cancel_futures)


def _called(packed: bytes) -> Any:
    function, arguments, named = pickle.loads(packed)
    return function(*arguments, **named)
