"""Call of a function with a time limit, as far as the calling process can enforce one."""

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
    """What the function gives or raises; `TimedOut` if that takes longer, though the function runs on in a thread.

    Nothing can stop a Python function but the end of its process: that is what a pool of processes does.
    """
    answers: SimpleQueue[tuple[bool, Any]] = SimpleQueue()

    def call() -> None:
        try:
            answers.put((True, function(**inputs)))
        except BaseException as error:  # raised again where the function was called
            answers.put((False, error))

    Thread(target=call, name="cascada stage", daemon=True).start()
    try:
        fine, answer = answers.get(timeout=min(seconds, TIMEOUT_MAX))
    except Empty:
        raise TimedOut(seconds) from None
    if not fine:
        raise answer
    return answer
