"""Worker processes of a pool that need not import the library: forks of a server that has imported it.

A worker that is spawned, as users' workers are, spends half a second on imports. Tests that count the threads of
workers, compare numbers of jobs, or interrupt a reproduction spawn them.
"""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def forked_workers() -> Iterator[None]:
    """Let pools fork their workers meanwhile. These have the environment that this process had at the first fork."""
    multiprocessing.set_forkserver_preload(["tests.experiments.stubs"])
    forking = multiprocessing.get_context("forkserver")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multiprocessing, "get_context", lambda _method: forking)
        yield
