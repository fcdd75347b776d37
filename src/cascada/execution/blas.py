"""One BLAS thread while a study computes, and in worker processes.

Matrices here are small: threads that wait for each other cost several times what they gain, and results would depend
on the number of cores. The user's functions run without this limit; but it holds for the whole program, and so for
functions in other threads while a study computes.
"""

import os
from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

_P = ParamSpec("_P")
_R = TypeVar("_R")

# The limit holds for the whole process. Of two that overlap, the second would restore the limit of the first; so there
# is one at a time, and other threads compute under it.
_limited = Lock()

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def one_thread_environment() -> dict[str, str]:
    """The environment of a child process with one BLAS thread, unless the user chose a number.

    OpenBLAS and MKL prefer their own variables: a number that the user set for all of them must not be overridden.
    """
    chosen = "OMP_NUM_THREADS" in os.environ
    return ({} if chosen else dict.fromkeys(_VARIABLES, "1")) | dict(os.environ)


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of NumPy and SciPy, which are loaded by now; finding them takes a hundredth of a second."""
    return ThreadpoolController()


def on_one_thread(computing: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function so that it computes on one thread."""

    @wraps(computing)
    def limited(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if not _limited.acquire(blocking=False):
            return computing(*args, **kwargs)
        try:
            with _libraries().limit(limits=1, user_api="blas"):
                return computing(*args, **kwargs)
        finally:
            _limited.release()

    return limited
