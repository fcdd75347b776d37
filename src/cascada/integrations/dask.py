"""An executor that runs trials on a Dask cluster; a worker that dies loses only its own run."""

import logging
import pickle
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from typing import Any

import cloudpickle  # type: ignore[import-untyped, unused-ignore]

from cascada.errors import ArgumentError, CascadaError

_TIMEOUT = 30  # seconds for a scheduler to answer
_TCP = re.compile(r"(?:tcp://)?(?P<host>\[[^]]+\]|[^:/]+):(?P<port>\d+)")


@contextmanager
def dask_executor(address: str) -> Iterator[tuple[Executor, int]]:
    """Yield an executor on the cluster whose scheduler is at this address, and the cluster's number of threads.

    If the scheduler dies, runs that have not ended raise `BrokenExecutor`, and `optimise` ends with status "broken".

    Raises `CascadaError` if Dask is not installed, no scheduler answers or the cluster has no workers, and
    `ArgumentError` if the address is invalid.
    """
    try:
        import distributed
    except ImportError:
        raise CascadaError("Dask is not installed: pip install 'cascada[dask]'.") from None
    _check_reachable(address)
    connect: Any = distributed.Client  # has no types
    try:
        client = connect(address, timeout=_TIMEOUT, set_as_default=False)
    except OSError as error:  # a timeout is one
        raise _no_scheduler(address, error) from error
    except (ValueError, TypeError) as error:
        raise ArgumentError(
            f"{address!r} is no address of a Dask scheduler ({error}); give the one that `dask scheduler` prints, such "
            f"as tcp://10.0.0.1:8786."
        ) from error
    with _logged_while_connected(client), client:
        capacity = sum(client.nthreads().values())
        if not capacity:
            raise CascadaError(f"the Dask cluster at {address} has no workers; start some: dask worker {address}.")
        yield _Packing(client, capacity), capacity


def _check_reachable(address: str) -> None:
    """Raise `CascadaError` at once if nothing listens at a TCP address: Dask itself would try for half a minute."""
    found = _TCP.fullmatch(address)
    if found is None:
        return
    try:
        socket.create_connection((found["host"].strip("[]"), int(found["port"])), _TIMEOUT).close()
    except (OSError, OverflowError) as error:
        raise _no_scheduler(address, error) from None


def _no_scheduler(address: str, error: Exception) -> CascadaError:
    return CascadaError(
        f"there is no Dask scheduler at {address!r} ({error}); start one with `dask scheduler`, and give the address "
        f"that it prints, such as tcp://10.0.0.1:8786."
    )


@contextmanager
def _logged_while_connected(client: Any) -> Iterator[None]:
    """Drop what Dask's client logs about a lost scheduler, with tracebacks: the status of the run reports it."""
    logger = logging.getLogger("distributed.client")

    def connected(_: logging.LogRecord) -> bool:
        return bool(client.status == "running")

    logger.addFilter(connected)
    try:
        yield
    finally:
        logger.removeFilter(connected)


class _Packing(Executor):
    """An executor that pickles calls itself, with cloudpickle.

    Dask's workers unpickle tasks while they read from the scheduler, and die if that fails, for example because a
    module is missing. If the task itself unpickles the call, such an error belongs to that task. Cloudpickle also sends
    code of files that are not importable.
    """

    def __init__(self, client: Any, size: int) -> None:
        self._client = client
        # pure=False: otherwise Dask treats two runs with the same inputs as one.
        self._executor: Executor = client.get_executor(pure=False)
        self._max_workers = size  # the attribute that executors of the standard library have

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call; raise `BrokenExecutor` if the connection to the scheduler was lost for good."""
        if self._client.status in ("closing", "closed"):
            raise BrokenExecutor("the Dask scheduler is gone")
        return self._executor.submit(_called, cloudpickle.dumps((fn, args, kwargs)))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls."""
        self._executor.shutdown(wait, cancel_futures=cancel_futures)


def _called(packed: bytes) -> Any:
    function, arguments, named = pickle.loads(packed)
    return function(*arguments, **named)
