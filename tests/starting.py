"""Processes that a test starts, with the signal dispositions that it relies on, and their end."""

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
    """Processes that are started meanwhile ignore these of SIGINT and SIGHUP, and have the default for the others.

    A script's background jobs ignore SIGINT, `nohup` ignores SIGHUP, and processes inherit what is ignored. A handler
    is not inherited: a new program begins with the default instead. So one that does nothing is installed here where
    this process ignores a signal.
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
    """Start a process with pipes for what it prints; whatever this process ignores, it ignores only `ignoring`."""
    with inherited_signals(ignoring):
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def first_line(process: "subprocess.Popen[str]", stream: IO[str] | None = None) -> str:
    """The next line of a process's output, or of another of its streams; "" if it ends, or hangs and is killed."""
    late = threading.Timer(LONG, process.kill)
    late.daemon = True
    late.start()
    try:
        source = stream or process.stdout
        assert source is not None
        return source.readline()
    finally:
        late.cancel()


def gone(pid: int, reaped: bool = False) -> bool:
    """Whether a process has ended; `reaped`: and its parent has noticed, so that no zombie is left of it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    try:
        return not reaped and stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:  # the process has just ended, or there is no procfs (not Linux)
        return stat.parent.parent.joinpath("self").exists()
