"""One program and all that it starts, as a process group: fed, listened to within bounds, and ended as a whole.

Programs misbehave: they hang, flood their pipes, leave children behind, never read. Whatever one does, a call here ends
in time, takes little memory, and leaves nothing of the group running. What moves into another session is out of reach.

Nothing outside of a study is remembered, except here, what is under way: `stop_all` must find it from any thread.
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
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05  # seconds between looks whether the program has ended
_LAST_LOOKS = 64  # reads after its end: more than a pipe holds, and an end if somebody else keeps writing
_GRACE = 0.5  # seconds between the polite signal and the other one
_REAPING = 5.0  # seconds until a killed process is given up: it hangs in the kernel


How = Literal["by itself", "too long", "too much"]


@dataclass(frozen=True)
class Ended:
    """How a program ended: by itself, or because it took too long or printed too much."""

    how: How
    code: int  # its exit code, or minus the number of the signal that killed it
    output: bytes  # all of its standard output, or somewhat more than the limit
    errors: bytes  # the end of its standard error


def run_group(argv: Sequence[str], folder: str | None, text: bytes, timeout: float | None, limit: int) -> Ended:
    """Run a program with `text` as its standard input; nothing of it is left, however this returns or raises.

    It ends when its first process ends: children that this one leaves behind are killed. Raises OSError when it could
    not be started.
    """
    group: _Group | None = None
    try:
        with _interrupts_wait():  # until it is known whom they end
            group = _Group(argv, folder)
        how = group.listen(text, None if timeout is None else time.monotonic() + timeout, limit)
    finally:
        if group is not None:
            with _interrupts_wait():
                group.end()
    return Ended(how, group.code, bytes(group.output), bytes(group.errors))


def stop_all(*, for_good: bool = False) -> None:
    """Kill all programs that are under way in this process; the calls that wait for them raise.

    `for_good`: no other one starts, as a call that is tried again would, while this process comes to its end.
    """
    global _closed  # noqa: PLW0603
    with _lock:
        _closed = _closed or for_good
        for pid in _under_way:
            _send(pid, signal.SIGKILL)


class _Group:
    """A program that was started as the leader of a group of its own."""

    def __init__(self, argv: Sequence[str], folder: str | None) -> None:
        pipe = subprocess.PIPE
        with _lock:  # so that `stop_all` never misses one
            if _closed:
                raise OSError(errno.ECANCELED, "all was stopped, because the process that starts it comes to its end")
            self._process = subprocess.Popen(
                argv, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, start_new_session=True
            )
            _under_way.add(self._process.pid)
        self.output = bytearray()
        self.errors = bytearray()

    @property
    def code(self) -> int:
        """The exit code once it has ended."""
        code = self._process.returncode
        return -signal.SIGKILL if code is None else code

    def listen(self, text: bytes, deadline: float | None, limit: int) -> How:
        """Write and read until the leader ends, or has to be ended."""
        stdin, stdout, stderr = (pipe.fileno() for pipe in self._pipes)
        left, pause, last_looks = memoryview(text), _SHORTEST_PAUSE, _LAST_LOOKS
        with selectors.DefaultSelector() as selector:
            for pipe in (stdin, stdout, stderr):
                os.set_blocking(pipe, False)
                selector.register(pipe, selectors.EVENT_WRITE if pipe == stdin else selectors.EVENT_READ)
            while last_looks:
                ended = self._has_ended()  # before reading, so that all that it printed is read
                now = time.monotonic()
                if not ended and deadline is not None and now >= deadline:
                    return "too long"
                wait = 0.0 if ended else pause if deadline is None else min(pause, deadline - now)
                ready = {key.fd for key, _ in selector.select(wait)}
                if stdin in ready:
                    left = _written(stdin, left)
                    if not left:
                        selector.unregister(stdin)
                        self._pipes[0].close()  # the end of the input is part of it
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
                last_looks = last_looks if not ended else last_looks - 1 if ready - {stdin} else 0
        return "by itself"

    def end(self) -> None:
        """End the whole group, the leader first politely if it is still there, and reap it."""
        pid = self._process.pid
        try:
            if not self._has_ended():
                _send(pid, signal.SIGTERM)
                patience = time.monotonic() + _GRACE
                while not self._has_ended() and time.monotonic() < patience:
                    time.sleep(0.01)
        finally:
            with _lock:  # its id may be another's once it is reaped, and `stop_all` must not kill that
                _send(pid, signal.SIGKILL)
                _under_way.discard(pid)
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
        """Whether the leader has; not reaped yet if that can be avoided, because until then no other gets its id."""
        waitid = getattr(os, "waitid", None)  # not on macOS before Python 3.13
        if waitid is None or self._process.returncode is not None:
            return self._process.poll() is not None
        try:
            return waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # somebody else reaped it
            return True


_under_way: set[int] = set()  # leaders, whose ids are those of their groups
_closed = False
_lock = threading.RLock()  # a signal's handler may call `stop_all` while this thread holds it


def _forget() -> None:
    """A fork is not the parent of what its parent started, nor does it hold its parent's locks."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()
    _under_way.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
atexit.register(stop_all)


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # all gone; or, on macOS, all but reaped
        os.killpg(pid, number)


def _written(pipe: int, text: memoryview) -> memoryview:
    """What is left to write: nothing when nobody reads, which is a program's good right."""
    try:
        return text[os.write(pipe, text[:_CHUNK]) :]
    except BrokenPipeError:
        return text[:0]
    except BlockingIOError:
        return text


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Signals with a handler in Python, Ctrl-C above all, are handled after this: they would leave a group behind."""
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
