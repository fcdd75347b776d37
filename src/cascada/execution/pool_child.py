"""The main function of a worker process of a pool: runs the trials that it receives, and reports every stage."""

import os
import pickle
import signal
import sys
from collections.abc import Mapping
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

from cascada.network import StageError
from cascada.process import Process
from cascada.process.command import stop_all
from cascada.process.process import RunStopped


def main() -> None:
    """Read runs from standard input until it ends; write messages to the original standard output."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Output of stages must not mix with the messages, and their standard input is empty.
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # otherwise its last lines are lost
    if hasattr(os, "register_at_fork"):  # a process that a stage forks must not keep the pipes open after this one dies
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.register_at_fork(
            after_in_child=lambda: (os.dup2(nowhere, requests.fileno()), os.dup2(nowhere, answers.fileno()))
        )
    try:
        process: Process = pickle.load(requests)
    except Exception as error:  # unpickling runs the user's code, which may raise anything
        _send(answers, "unusable", f"{type(error).__name__}: {error}")
        return
    _send(answers, "ready")
    runs: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_read, args=(requests, runs), daemon=True).start()
    while True:
        controls, outputs, follows, only = runs.get()
        try:
            found = process.run(
                controls,
                outputs,
                began=lambda stage: _send(answers, "began", stage),
                ended=partial(_ended, answers, runs if follows else None),
                limited=False,
                only=only,
            )
        except StageError as error:
            _send(answers, "finished", error.outputs, str(error))
        else:
            _send(answers, "finished", found)


def _ended(
    answers: BinaryIO, replies: "SimpleQueue[Any] | None", stage: str, outputs: tuple[float, ...]
) -> Mapping[str, float] | None:
    """Report a stage; if there are `replies`, wait for the controls of the stages that follow."""
    _send(answers, "ended", stage, outputs)
    if replies is None:
        return None
    controls: Mapping[str, float] | None = replies.get()
    if controls is None:
        raise RunStopped
    return controls


def _read(requests: BinaryIO, runs: "SimpleQueue[Any]") -> None:
    """Read runs; when the parent process has ended, end this process at once, with all that a stage started."""
    try:
        while True:
            runs.put(pickle.load(requests))
    except (EOFError, OSError, pickle.UnpicklingError):
        stop_all(for_good=True)
        if os.name == "posix" and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)  # also ends the processes that a stage started
        os._exit(0)


def _send(answers: BinaryIO, *message: Any) -> None:
    pickle.dump(message, answers)
    answers.flush()


if __name__ == "__main__":
    main()
