"""Runs on a Dask cluster: as an executor, so that a worker that dies takes no more than its own run with it."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

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
        yield client.get_executor(pure=False), capacity
