"""A pool of worker processes that replaces a worker that dies or hangs, and retries only its stage.

A plain `ProcessPoolExecutor` loses every run when one worker dies, and cannot stop one that hangs. Here each worker
reports which stage it begins and the outputs of each stage, so that no finished stage is run twice. Functions are sent
with cloudpickle, so that any function can be used, also one defined in a notebook.
"""

import math
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX, Thread
from typing import Any

from cascada.errors import ArgumentError
from cascada.execution.blas import one_thread_environment
from cascada.execution.workers import EndedRun, Observer, Tries, not_run, own_outputs, work_of
from cascada.network import Outputs, StageError
from cascada.process import Process
from cascada.process.time_limit import TimedOut
from cascada.store.trial import Trial

# A worker may die for reasons other than its stage: it was killed, memory ran out. So one retry does not count.
_FREE_DEATHS = 1
_FREE_STARTS = 3  # the same before any stage of the run has begun
# Seconds for a worker to end by itself, with the commands that it runs.
_GRACE = 2.0
# It sets the path of this process before it imports anything: the same cascada, and no files of the working folder.
_WORKER = "import sys; sys.path[:] = {path!r}; from cascada.execution.pool_child import main; main()"


@dataclass(eq=False)
class _Run:
    """A trial under way: its outputs so far, which stage runs since when, how often a stage killed its worker."""

    trial: Trial
    outputs: Outputs
    stage: str | None = None
    since: float = math.inf
    lost: Counter[str] = field(default_factory=Counter)
    tries: Tries = field(default_factory=Tries)

    def ended(self, outputs: Outputs, failure: str | None = None) -> EndedRun:
        """This run after it has ended, with the outputs that belong to its trial."""
        return EndedRun(self.trial, own_outputs(self.trial, outputs), failure, self.tries.repeated)


class Pool:
    """Up to `capacity` runs at once, each in a process of its own.

    `follows`: after every stage a worker waits for what the observer returns, and goes on accordingly.
    """

    def __init__(self, process: Process, capacity: int, observed: Observer | None, *, follows: bool = False) -> None:
        self.capacity = capacity
        self._process, self._observed = process, observed
        self._follows = follows
        self._payload = _packed(process)
        self._messages: SimpleQueue[tuple[_Worker, Any]] = SimpleQueue()
        self._idle: list[_Worker] = []
        self._busy: dict[_Worker, _Run] = {}
        self._queue: deque[Trial] = deque()  # for the next worker that is free
        self._begun = False

    def start(self, trial: Trial) -> None:
        """Send a trial to a free worker or to a new one; if `capacity` workers are busy, to the next that is free.

        Raises `ArgumentError`, before the first run, if a command of a stage cannot be started.
        """
        if not self._begun:
            self._process.check_programs(not_run(self._process, trial))
            self._begun = True
        self._queue.append(trial)
        self._advance()

    def wait(self) -> list[EndedRun]:
        """Process messages of the workers until a run has ended."""
        while True:
            try:
                worker, message = self._messages.get(timeout=self._timeout())
            except Empty:
                finished = self._stop_overdue()
            else:
                finished = self._received(worker, message)
            if finished:
                self._advance()
                return finished

    def stop(self) -> list[EndedRun]:
        """End all workers with the processes that they started; return what they reported, also of unfinished runs."""
        workers = [*self._busy, *self._idle]
        for worker in workers:
            worker.dismiss()  # all at once: each may need a moment to end its commands
        for worker in workers:
            worker.end()
        finished = []
        with suppress(Empty):
            while True:
                worker, message = self._messages.get_nowait()
                if message[0] in ("ended", "finished"):
                    finished += self._received(worker, message)
        finished += [run.ended(run.outputs) for run in self._busy.values() if own_outputs(run.trial, run.outputs)]
        self._busy, self._idle, self._queue = {}, [], deque()
        return finished

    # ---- inside

    def _advance(self) -> None:
        while self._queue and len(self._busy) < self.capacity:
            trial = self._queue.popleft()
            self._send(_Run(trial, work_of(trial)[1]))

    def _send(self, run: _Run) -> None:
        worker = None
        while self._idle and (worker is None or not worker.alive):  # skips workers that died while idle
            worker = self._idle.pop()
        if worker is None or not worker.alive:
            worker = _Worker(self._payload, self._messages)
        self._busy[worker] = run
        run.stage, run.since = None, math.inf
        worker.send((dict(run.trial.controls), run.outputs, self._follows, run.trial.steps))

    def _received(self, worker: "_Worker", message: Any) -> list[EndedRun]:
        kind, *content = message
        run = self._busy.get(worker)
        if kind == "gone":
            worker.end()
        if run is None:  # a worker that was stopped, or that died while idle
            self._idle = [other for other in self._idle if other is not worker or kind != "gone"]
        elif kind == "gone":
            return self._lost(worker, f"ended its worker process ({worker.death()})", _FREE_DEATHS)
        elif kind == "finished":
            del self._busy[worker]
            self._idle.append(worker)
            return [run.ended(*content)]
        elif kind == "began":
            run.stage, run.since = content
            run.tries.began(run.stage)
        elif kind == "ended":
            stage, outputs = content
            run.outputs[stage] = outputs
            run.stage, run.since = None, math.inf
            trial = run.trial if self._observed is None else self._observed(run.trial, stage, outputs)
            if self._follows:
                worker.send(None if trial is None else dict(trial.controls))
            run.trial = trial or run.trial
        elif kind == "unusable":
            raise ArgumentError(f"the process could not be sent to a worker process: {content[0]}.")
        return []

    def _timeout(self) -> float | None:
        """Return the seconds until the first stage exceeds its time limit; None if no running stage has one."""
        deadlines = [self._deadline(run) for run in self._busy.values()]
        first = min(deadlines, default=math.inf)
        return None if first == math.inf else min(max(first - time.monotonic(), 0.0), TIMEOUT_MAX)

    def _deadline(self, run: _Run) -> float:
        if run.stage is None or self._process.stops_itself(run.stage):
            return math.inf
        timeout = self._process.network.node(run.stage).stage.timeout
        return math.inf if timeout is None else run.since + timeout

    def _stop_overdue(self) -> list[EndedRun]:
        finished = []
        now = time.monotonic()
        for worker, run in list(self._busy.items()):
            if run.stage is not None and self._deadline(run) <= now:
                timeout = self._process.network.node(run.stage).stage.timeout
                assert timeout is not None, "a stage without a limit has an infinite deadline"
                worker.end()
                finished += self._lost(worker, str(TimedOut(timeout)), 0)
        return finished

    def _lost(self, worker: "_Worker", reason: str, free: int) -> list[EndedRun]:
        """Continue the run of a worker that died in another one, or let it fail if its stage has no tries left."""
        run = self._busy.pop(worker)
        names = run.trial.steps or [node.stage.name for node in self._process.network.nodes]
        missing = [name for name in names if name not in run.outputs]
        if not missing:  # it died after its last stage, before it could report that
            return [run.ended(run.outputs)]
        stage = run.stage or missing[0]
        run.lost[run.stage or ""] += 1
        if run.stage is None:  # no stage had begun: the death counts for the first one, with more free retries
            free = _FREE_STARTS
        if worker.silent and not worker.killed:
            raise ArgumentError(f"worker processes cannot be started here: one ended at once ({worker.death()}).")
        tried = run.lost[run.stage or ""]
        if tried <= max(self._process.network.node(stage).stage.retries, free):
            self._send(run)
            return []
        tries = f" (in the last of {tried} tries)" if tried > 1 else ""
        error = StageError(stage, run.trial.controls, reason + tries, run.outputs)
        return [run.ended(run.outputs, str(error))]


class _Worker:
    """A child process that runs trials, and a thread that reads its messages."""

    def __init__(self, payload: bytes, messages: "SimpleQueue[tuple[_Worker, Any]]") -> None:
        self.silent = True  # until its first message
        # In a session of its own: Ctrl-C interrupts only the owner of the pool, which then ends the workers.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _WORKER.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=one_thread_environment(),
            start_new_session=True,
        )
        self._messages = messages
        self._listener = Thread(target=self._listen, name="cascada worker", daemon=True)
        self._listener.start()
        self._write(payload)

    def send(self, message: Any) -> None:
        """Send a message; does not raise if the worker is dead, which its listener reports."""
        self._write(pickle.dumps(message))

    def dismiss(self) -> None:
        """Close the standard input of the process, which makes it end, with the commands that it runs."""
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]  # not None because of PIPE

    def end(self) -> None:
        """Dismiss the process, kill it if it has not ended after the grace period, and reap it."""
        self.dismiss()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._kill()
        self._process.wait()
        self._listener.join(_GRACE)  # with a limit, because another process may hold the pipe open

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    @property
    def alive(self) -> bool:
        """Whether the process is still running."""
        return self._process.poll() is None

    @property
    def killed(self) -> bool:
        """Whether a signal ended the process; waits for its end."""
        return self._process.wait() < 0

    def death(self) -> str:
        """Return how the process ended, in words; waits for its end."""
        code = self._process.wait()
        return f"exit code {code}" if code >= 0 else f"killed by signal {signal.Signals(-code).name}"

    def _write(self, data: bytes) -> None:
        stream = self._process.stdin
        assert stream is not None, "started with a pipe"
        with suppress(OSError, ValueError):
            stream.write(data)
            stream.flush()

    def _listen(self) -> None:
        stream = self._process.stdout
        assert stream is not None, "started with a pipe"
        try:
            with suppress(EOFError, OSError, pickle.UnpicklingError), stream:
                while True:
                    message = pickle.load(stream)
                    self.silent = False
                    if message[0] == "began":  # the time limit starts now, even if the message is processed later
                        message = (*message, time.monotonic())
                    self._messages.put((self, message))
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
        finally:
            self._messages.put((self, ("gone",)))


def _packed(process: Process) -> bytes:
    import cloudpickle  # type: ignore[import-untyped, unused-ignore]

    try:
        return bytes(cloudpickle.dumps(process))
    except Exception as error:  # pickling raises many kinds of errors
        raise ArgumentError(
            f"the process could not be sent to worker processes: {type(error).__name__}: {error}. Functions must not "
            f"hold on to open files, locks or connections; open them inside the function."
        ) from error
