"""A program and its child processes, run as one process group with limits on time and output, and ended as a whole.

Programs misbehave: they hang, flood their pipes, leave children behind, never read. A call here always ends in time,
uses little memory, and leaves no process of the group running. Processes that move to another session are out of reach.

This module keeps global state, the running groups, because `stop_all` must find them from any thread.
"""

import atexit
import errno
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import IO, Any, Literal

_CHUNK = 1 << 16  # bytes read or written at once
_TAIL = 8192  # bytes of standard error that are kept
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05  # seconds between checks whether the program has ended
_LAST_READS = 64  # reads after its end: more than a pipe holds, but limited if another process keeps writing
_GRACE = 0.5  # seconds between SIGTERM and SIGKILL
_REAPING = 5.0  # seconds to wait for a killed process, which may hang in the kernel


How = Literal["by itself", "too long", "too much"]


@dataclass(frozen=True)
class Ended:
    """How a program ended: by itself, or because it took too long or printed too much."""

    how: How
    code: int  # its exit code, or minus the number of the signal that killed it
    output: bytes  # all of its standard output, or slightly more than the limit
    errors: bytes  # the end of its standard error


def run_group(argv: Sequence[str], folder: str | None, text: bytes, timeout: float | None, limit: int) -> Ended:
    """Run a program with `text` as its standard input; no process of its group is left when this returns or raises.

    The program ends when its first process ends: children that this one leaves behind are killed. Raises OSError if it
    cannot be started.
    """
    group: _Group | None = None
    try:
        with _deferred_interrupts():  # an interrupt before `group` is set would leave the program running
            group = _Group(argv, folder)
        how = group.listen(text, None if timeout is None else time.monotonic() + timeout, limit)
    finally:
        if group is not None:
            with _deferred_interrupts():
                group.end()
    return Ended(how, group.code, bytes(group.output), bytes(group.errors))


def stop_all(*, for_good: bool = False) -> None:
    """Kill all programs that this process is running; the calls that wait for them raise.

    With `for_good`, no program can be started afterwards, such as by a retry while this process ends.
    """
    global _closed  # noqa: PLW0603
    with _lock:
        _closed = _closed or for_good
        for pid in _running:
            _send(pid, signal.SIGKILL)


class _Group:
    """A running program that is the leader of its own process group."""

    def __init__(self, argv: Sequence[str], folder: str | None) -> None:
        pipe = subprocess.PIPE
        with _lock:  # so that `stop_all` never misses one
            if _closed:
                raise OSError(errno.ECANCELED, "all was stopped, because the process that starts it is ending")
            self._process = subprocess.Popen(
                argv,
                bufsize=0,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                cwd=folder,
                env=_environment(),
                start_new_session=True,
            )
            _running.add(self._process.pid)
        self.output = bytearray()
        self.errors = bytearray()

    @property
    def code(self) -> int:
        """The exit code after the end; minus the number of the signal if one killed it."""
        code = self._process.returncode
        return -signal.SIGKILL if code is None else code

    def listen(self, text: bytes, deadline: float | None, limit: int) -> How:
        """Write the input and read the output until the leader ends or exceeds a limit; return which of these."""
        stdin, stdout, stderr = (pipe.fileno() for pipe in self._pipes)
        left, pause, last_reads = memoryview(text), _SHORTEST_PAUSE, _LAST_READS
        with selectors.DefaultSelector() as selector:
            for pipe in (stdin, stdout, stderr):
                os.set_blocking(pipe, False)
                selector.register(pipe, selectors.EVENT_WRITE if pipe == stdin else selectors.EVENT_READ)
            while last_reads:
                ended = self._has_ended()  # checked before reading, so that the whole output is read
                now = time.monotonic()
                if not ended and deadline is not None and now >= deadline:
                    return "too long"
                wait = 0.0 if ended else pause if deadline is None else min(pause, deadline - now)
                ready = {key.fd for key, _ in selector.select(wait)}
                if stdin in ready:
                    left = _written(stdin, left)
                    if not left:
                        selector.unregister(stdin)
                        self._pipes[0].close()  # the program may read up to the end of its input
                for pipe in ready - {stdin}:
                    chunk = os.read(pipe, _CHUNK)
                    if not chunk:
                        selector.unregister(pipe)
                    elif pipe == stdout:
                        self.output += chunk
                    else:
                        self.errors += chunk
                        del self.errors[:-_TAIL]
                if len(self.output) > limit:
                    return "too much"
                pause = _SHORTEST_PAUSE if ready else min(2 * pause, _LONGEST_PAUSE)
                last_reads = last_reads if not ended else last_reads - 1 if ready - {stdin} else 0
        return "by itself"

    def end(self) -> None:
        """Send SIGTERM to the group if its leader is still running, then SIGKILL, and reap the leader."""
        pid = self._process.pid
        try:
            if not self._has_ended():
                _send(pid, signal.SIGTERM)
                deadline = time.monotonic() + _GRACE
                while not self._has_ended() and time.monotonic() < deadline:
                    time.sleep(0.01)
        finally:
            with _lock:  # after reaping, its id may belong to another process, which `stop_all` must not kill
                _send(pid, signal.SIGKILL)
                _running.discard(pid)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_REAPING)
            for pipe in self._pipes:
                pipe.close()

    @property
    def _pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        return process.stdin, process.stdout, process.stderr

    def _has_ended(self) -> bool:
        """Return whether the leader has ended; does not reap it if possible, because that would free its process id."""
        waitid = getattr(os, "waitid", None)  # not on macOS before Python 3.13
        if waitid is None or self._process.returncode is not None:
            return self._process.poll() is not None
        try:
            return waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # other code in this process reaped it
            return True


_running: set[int] = set()  # process ids of leaders, which are also the ids of their groups
_closed = False  # whether `stop_all` was called with `for_good`
_lock = threading.RLock()  # a signal's handler may call `stop_all` while this thread holds it


def _reset_after_fork() -> None:
    """Clear the state in a forked child: it must not end its parent's programs, and holds none of its locks."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
atexit.register(stop_all)


def _environment() -> dict[str, str]:
    """The environment of a program: without the settings of cascada, such as the address of a store with a password."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CASCADA_")}


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # the group has ended; on macOS, it is not reaped yet
        os.killpg(pid, number)


def _written(pipe: int, text: memoryview) -> memoryview:
    """Write a part of the text; return the rest, which is empty if the program closed its input."""
    try:
        return text[os.write(pipe, text[:_CHUNK]) :]
    except BrokenPipeError:
        return text[:0]
    except BlockingIOError:
        return text


@contextmanager
def _deferred_interrupts() -> Iterator[None]:
    """Defer SIGINT and SIGTERM that have a handler in Python until the end, so that they leave no group running."""
    if threading.current_thread() is not threading.main_thread():  # signals are handled in the main thread only
        yield
        return
    waiting: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
    for each in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(each)
        if callable(handler):
            handlers[each] = handler
            signal.signal(each, lambda number, frame: waiting.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in waiting:
            handlers[number](number, frame)
