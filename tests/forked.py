"""Processes that need not import the library: forks of one process that has imported it.

A new interpreter spends 0.3 s to 0.8 s on imports, a fork a hundredth of that. Otherwise a fork is a process like any
other: it has its own folder, environment, signal dispositions, standard streams and exit status, and it ends as an
interpreter ends. `Fork` starts one. `commands(folder)` fills a folder with two commands for shells: `cascada`, and
`python` for scripts and for code after `-c`. The processes of a live page are forks, too. Whether the installed command
works is tested elsewhere, without forks.
"""

import atexit
import gc
import marshal
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import cascada

# What commands of studies import, at the latest when a kernel is evaluated or a page is served.
_IMPORTED = (
    "cascada.cli.main",
    "cascada.cli.live",
    "cascada.cli.run",
    "cascada.cli.serve",
    "cascada.cli.worker",
    "cascada.execution.process_pool",
    "cascada.report.live.app",
    "cascada.report.live.figure_process",
    "cascada.store.database",
    "cascada.study.catalogue",
    "cascada.study.loop",
    "psycopg",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.spatial.distance",
    "scipy.stats",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
    "threadpoolctl",
)
# Signals whose dispositions a fork is given; a handler of this process would not be inherited either.
_SIGNALS = (signal.SIGINT, signal.SIGHUP)

# The command itself imports almost nothing. It hands its arguments, folder, environment and streams to the server.
_CLIENT = """#!{python} -IS
import marshal, os, socket, sys
with socket.socket(socket.AF_UNIX) as there:
    there.connect({address!r})
    sent = marshal.dumps(({name!r}, sys.argv[1:], os.getcwd(), dict(os.environ), []))
    socket.send_fds(there, [len(sent).to_bytes(8, "big")], [0, 1, 2])
    there.sendall(sent)
    with there.makefile("rb") as answers:
        answers.readline()  # the number of the process
        status = int(answers.readline() or b"70")
    os._exit(status if status >= 0 else 128 - status)
"""


def commands(folder: Path) -> Path:
    """Write the commands `cascada` and `python` into a folder, which is for the front of PATH; return the folder."""
    for name in ("cascada", "python"):
        _write_client(folder / name, _server())
    return folder


def _write_client(client: Path, address: str) -> None:
    """Write a command that runs what its file name says, in a fork of the server with this address."""
    client.write_text(_CLIENT.format(python=sys.executable, address=address, name=client.name), encoding="utf-8")
    client.chmod(client.stat().st_mode | stat.S_IXUSR)


class Fork(subprocess.Popen[str]):
    """A fork that runs `cascada` or Python code, with those members of `Popen` that tests use.

    `name` is "cascada", "python" (the first argument is a script) or "-c" (the first argument is code). Output goes to
    pipes. Of SIGINT and SIGHUP it ignores only those in `ignoring`.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        ignoring: Sequence[signal.Signals] = (),
        cwd: str | Path | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        self.args = [name, *arguments]
        (stdin, write), (read, stdout), (read_errors, stderr) = os.pipe(), os.pipe(), os.pipe()
        self.stdin, self.stdout, self.stderr = os.fdopen(write, "w"), os.fdopen(read), os.fdopen(read_errors)
        self._there = socket.socket(socket.AF_UNIX)
        self._there.connect(_server())
        sent = marshal.dumps((name, list(arguments), str(cwd or Path.cwd()), env or dict(os.environ), list(ignoring)))
        socket.send_fds(self._there, [len(sent).to_bytes(8, "big")], [stdin, stdout, stderr])
        self._there.sendall(sent)
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
        self._answers = self._there.makefile("rb")
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        if self.returncode is None and select.select([self._there], [], [], 0)[0]:
            self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process and return its exit status."""
        if self.returncode is None:
            if not select.select([self._there], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002
        """Close the standard input, wait for the end of the process, and return its output."""
        assert input is None
        assert self.stdin is not None
        with suppress(BrokenPipeError):
            self.stdin.close()
        found = {"stdout": "", "stderr": ""}
        readers = [threading.Thread(target=self._read, args=(found, name), daemon=True) for name in found]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
            if reader.is_alive():  # a child of the process holds the pipe
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return found["stdout"], found["stderr"]

    def send_signal(self, sig: int) -> None:
        """Send a signal to the process unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, sig)

    def _read(self, found: dict[str, str], name: str) -> None:
        stream: IO[str] = getattr(self, name)
        if not stream.closed:
            found[name] = stream.read()
            stream.close()

    def _end(self) -> None:
        self.returncode = int(self._answers.readline())
        self._answers.close()
        self._there.close()


# ---- the server


@cache
def _server() -> str:
    """Start the server of this process, which ends with it, and return its address."""
    folder = tempfile.mkdtemp(prefix="cascada-forks-")
    address = os.path.join(folder, "server")
    server = subprocess.Popen(
        [sys.executable, "-c", "import sys; from tests.forked import serve; serve(sys.argv[1])", address],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"

    def end() -> None:
        server.communicate()  # closes its standard input
        shutil.rmtree(folder)

    atexit.register(end)
    return address


def serve(address: str) -> None:
    """Fork for every client that connects to a socket, until the standard input is closed."""
    for name in _IMPORTED:
        with suppress(ImportError):  # what is optional may be missing
            import_module(name)
    for name in cascada.__all__:
        getattr(cascada, name)  # imports its module
    python = Path(address).with_name("python")
    _write_client(python, address)
    _start_page_processes_with(str(python))
    gc.freeze()  # so that no fork copies the pages of these modules when it collects garbage
    here = socket.socket(socket.AF_UNIX)
    here.bind(address)
    here.listen(64)
    print("ready", flush=True)
    clients: dict[int, socket.socket] = {}
    signal.signal(signal.SIGCHLD, lambda *_: _reap(clients))
    while True:
        ready, _, _ = select.select([here.fileno(), 0], [], [])
        if here.fileno() not in ready:
            return
        there, _ = here.accept()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # until the client of the fork is known
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            for other in (here, *clients.values()):
                other.close()
            _run(there)
            return
        clients[pid] = there
        with suppress(OSError):
            there.sendall(b"%d\n" % pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


def _start_page_processes_with(python: str) -> None:
    """Let live pages of forks start their processes with another command than a new interpreter."""
    from cascada.cli import live

    command = live._python_command
    live._python_command = lambda function: [python, *command(function)[1:]]


def _reap(clients: dict[int, socket.socket]) -> None:
    """Tell the clients of forks that have ended their exit status."""
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            with clients.pop(pid) as there, suppress(OSError):
                there.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _run(there: socket.socket) -> None:
    """Run what a client asks for as the main program of this process."""
    with there:
        name, arguments, folder, environment, ignoring = _received(there)
    for number in _SIGNALS:
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in ignoring else default)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    main = sys.modules["__main__"] = ModuleType("__main__")
    if name == "python" and arguments[0] == "-c":
        name, arguments = "-c", arguments[1:]
    path = [one for one in environment.get("PYTHONPATH", "").split(os.pathsep) if one]
    if name == "cascada":
        from cascada.cli.main import app

        sys.argv, sys.path[:1] = [name, *arguments], [str(Path(sys.executable).parent)]  # as a script that pip installs
        app()
    elif name == "python":
        sys.argv, sys.path[:1] = arguments, [str(Path(arguments[0]).parent.resolve()), *path]
        main.__file__ = arguments[0]
        exec(compile(Path(arguments[0]).read_bytes(), arguments[0], "exec"), vars(main))
    else:
        sys.argv, sys.path[:1] = [name, *arguments[1:]], ["", *path]
        exec(compile(arguments[0], "<string>", "exec"), vars(main))


def _received(there: socket.socket) -> Any:
    head, streams, _, _ = socket.recv_fds(there, 8, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    with there.makefile("rb") as rest:
        return marshal.loads(rest.read(int.from_bytes(head, "big")))
