"""Processes that need not import the library: forks of one process that has imported it.

A new interpreter spends 0.7 s on imports, a fork a hundredth of that. Otherwise a fork is a process like any other: it
has its own folder, environment, standard streams and exit status. `forked(folder)` fills a folder with two commands for
shells: `cascada`, and `python` for scripts. Whether the installed command works is tested elsewhere, without forks.
"""

import marshal
import os
import runpy
import signal
import socket
import stat
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

# What commands of studies import, at the latest when a kernel is evaluated.
_IMPORTED = (
    "cascada.cli.main",
    "cascada.store.database",
    "cascada.study.catalogue",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.spatial.distance",
    "scipy.stats",
)

# The command itself imports almost nothing. It hands its arguments, folder, environment and streams to the server.
_CLIENT = """#!{python} -IS
import marshal, os, socket, sys
with socket.socket(socket.AF_UNIX) as there:
    there.connect({address!r})
    sent = marshal.dumps(({name!r}, sys.argv[1:], os.getcwd(), dict(os.environ)))
    socket.send_fds(there, [len(sent).to_bytes(8, "big")], [0, 1, 2])
    there.sendall(sent)
    os._exit(int(there.recv(3) or b"70"))
"""


@contextmanager
def forked(folder: Path) -> Iterator[None]:
    """Let the commands in a folder run as forks meanwhile; the folder is for the front of PATH."""
    address = str(folder / "server")
    for name in ("cascada", "python"):
        client = folder / name
        client.write_text(_CLIENT.format(python=sys.executable, address=address, name=name), encoding="utf-8")
        client.chmod(client.stat().st_mode | stat.S_IXUSR)
    server = subprocess.Popen(
        [sys.executable, "-c", "import sys; from tests.forked import serve; serve(sys.argv[1])", address],
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield
    finally:
        server.kill()
        server.communicate()


def serve(address: str) -> None:
    """Fork for every client that connects to a socket, without end."""
    for name in _IMPORTED:
        import_module(name)
    with socket.socket(socket.AF_UNIX) as here:
        here.bind(address)
        here.listen()
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, lambda *_: _reap())
        while True:
            there, _ = here.accept()
            if os.fork() == 0:
                here.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _answer(there)
            there.close()


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _answer(there: socket.socket) -> None:
    """Run what a client asks for, as this process; answer with its exit status, and end."""
    status = 1
    try:
        status = _run(*_received(there))
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        there.sendall(b"%d" % status)
        os._exit(status)


def _received(there: socket.socket) -> Any:
    head, streams, _, _ = socket.recv_fds(there, 8, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    with there.makefile("rb") as rest:
        return marshal.loads(rest.read(int.from_bytes(head, "big")))


def _run(name: str, arguments: list[str], folder: str, environment: dict[str, str]) -> int:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if name == "cascada":
        from cascada.cli.main import app

        sys.argv = [name, *arguments]
        sys.path[0] = str(Path(sys.executable).parent)  # as a script that pip installs
        app()
        return 0
    sys.argv = arguments
    sys.path[:1] = [
        str(Path(arguments[0]).parent.resolve()),
        *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)),
    ]
    runpy.run_path(arguments[0], run_name="__main__")
    return 0
