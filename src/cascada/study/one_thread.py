"""Linear algebra on one thread, as long as a study computes.

Matrices here are small: threads that wait for each other cost several times what they bring, and results would depend
on the number of cores. The functions of the process run outside of this. But the limit is the whole program's, so those
in threads beside a study that computes are under it as well.
"""

from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

_P = ParamSpec("_P")
_R = TypeVar("_R")

# The limit is the whole process's. Two that overlap would each put back what they found, the second one the limit of
# the first; so there is one at a time, and whoever computes beside it goes by it.
_limited = Lock()


@cache
def _libraries() -> ThreadpoolController:
    """Those of NumPy and SciPy, which are loaded by now; to look for them takes a hundredth of a second."""
    return ThreadpoolController()


def on_one_thread(computing: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that computes on one thread, from wherever it is called."""

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
