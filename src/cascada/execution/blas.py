"""Limit of one BLAS thread while a study computes, and in worker processes.

Matrices here are small: synchronising threads costs several times what it gains, and results would depend on the number
of cores. The user's functions run without this limit. It applies to the whole program, though, and so to functions that
run in other threads while a study computes.
"""

import os
from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_P = ParamSpec("_P")
_R = TypeVar("_R")

# The limit applies to the whole process. If two overlapped, the second would restore the limit of the first. So only
# one thread at a time sets it, and others compute under it.
_limited = Lock()

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def one_thread_environment() -> dict[str, str]:
    """Return the environment of a child process with one BLAS thread, unless the user chose a number.

    If OMP_NUM_THREADS is set, no other variable is: OpenBLAS and MKL prefer their own, which would override the user.
    """
    chosen = "OMP_NUM_THREADS" in os.environ
    return ({} if chosen else dict.fromkeys(_VARIABLES, "1")) | dict(os.environ)


@cache
def _libraries() -> "ThreadpoolController":
    """Return a controller of the loaded BLAS libraries; cached, as finding them takes a hundredth of a second."""
    from threadpoolctl import ThreadpoolController  # slow to import

    return ThreadpoolController()


def on_one_thread(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function so that it computes on one BLAS thread."""

    @wraps(function)
    def limited(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if not _limited.acquire(blocking=False):
            return function(*args, **kwargs)
        try:
            with _libraries().limit(limits=1, user_api="blas"):
                return function(*args, **kwargs)
        finally:
            _limited.release()

    return limited
