"""Call of a function with a time limit, which waits no longer but cannot stop the function."""

from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX, Thread
from typing import Any

from cascada.network.outputs import StageProblem


class TimedOut(StageProblem):
    """A function took longer than its limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"took longer than its time-out of {seconds:g} s")


def called_within(seconds: float, function: Callable[..., Any], inputs: Mapping[str, Any]) -> Any:
    """Return the function's result or raise its exception; raise `TimedOut` if it takes longer than `seconds`.

    After a timeout the function continues in a thread. Only the end of its process can stop a Python function, which is
    how a pool of processes enforces a time limit.
    """
    results: SimpleQueue[tuple[bool, Any]] = SimpleQueue()

    def call() -> None:
        try:
            results.put((True, function(**inputs)))
        except BaseException as error:  # raised again in the calling thread
            results.put((False, error))

    Thread(target=call, name="cascada stage", daemon=True).start()
    try:
        succeeded, result = results.get(timeout=min(seconds, TIMEOUT_MAX))
    except Empty:
        raise TimedOut(seconds) from None
    if not succeeded:
        raise result
    return result
