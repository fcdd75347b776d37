"""Start of processes in tests, with defined signal dispositions, and checks of their output and end."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.waiting import LONG


@contextmanager
def inherited_signals(ignoring: Sequence[signal.Signals] = ()) -> Iterator[None]:
    """Let processes that are started meanwhile ignore `ignoring`, and have the default for SIGINT and SIGHUP otherwise.

    A script's background jobs ignore SIGINT, `nohup` ignores SIGHUP, and processes inherit ignored signals. Handlers
    are not inherited: a new program begins with the default. So if this process ignores a signal, an empty handler is
    installed meanwhile.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    for number, handler in before.items():
        if number in ignoring:
            signal.signal(number, signal.SIG_IGN)
        elif handler is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def started(command: Sequence[str], ignoring: Sequence[signal.Signals] = (), **options: Any) -> "subprocess.Popen[str]":
    """Start a process with pipes for its output; of SIGINT and SIGHUP it ignores only those in `ignoring`."""
    with inherited_signals(ignoring):
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def first_line(process: "subprocess.Popen[str]", stream: IO[str] | None = None) -> str:
    """Return the next line of a process's output or of `stream`; "" if it ends, or is killed after a timeout."""
    timeout = threading.Timer(LONG, process.kill)
    timeout.daemon = True
    timeout.start()
    try:
        source = stream or process.stdout
        assert source is not None
        return source.readline()
    finally:
        timeout.cancel()


def gone(pid: int, reaped: bool = False) -> bool:
    """Return whether a process has ended and, if `reaped`, is no zombie either."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    try:
        return not reaped and stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:  # the process has just ended, or there is no procfs (not Linux)
        return stat.parent.parent.joinpath("self").exists()
