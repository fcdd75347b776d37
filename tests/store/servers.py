"""A PostgreSQL server for tests, in a temporary folder and on a free port of this machine.

If psycopg or the server's binaries are missing, tests that need them are skipped, or fail under CI=true.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.missing import missing, need_module
from tests.waiting import LONG, wait_until


def _binaries() -> Path | None:
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server that can be restarted, with its data, at the same address."""

    def __init__(self, command: list[str], port: int, folder: Path, other: dict[str, Any]) -> None:
        self.url = f"postgresql://cascada@127.0.0.1:{port}/postgres"
        self._command, self._port, self._folder, self._other = command, port, folder, other
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        log = self._folder / "log"
        with log.open("a") as file:
            self._process = subprocess.Popen(self._command, stdout=file, stderr=file, cwd=self._folder, **self._other)
        _wait(self._process, self._port, log)

    def stop(self) -> None:
        """End the server at once, like `pg_ctl stop -m immediate`; a start recovers its data as after a crash."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(LONG)

    def restart(self) -> None:
        """Restart the server like `pg_ctl restart -m immediate`."""
        self.stop()
        self.start()


_ROOM = 2**30  # bytes for a server and its databases


@contextmanager
def postgres() -> Iterator[str]:
    """Run a server and yield its URL."""
    with postgres_server() as server:
        yield server.url


@contextmanager
def postgres_server() -> Iterator[Server]:
    """Run a server."""
    binaries = _binaries()
    need_module("psycopg", "postgres")
    if binaries is None:
        missing("initdb", "apt install postgresql")
    # A database is a thousand files: in memory, creating and dropping hundreds of them saves a minute.
    memory = Path("/dev/shm")
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM
    folder = Path(tempfile.mkdtemp(prefix="cascada-postgres-", dir=memory if roomy else None))
    other: dict[str, Any] = {}
    if os.getuid() == 0:  # PostgreSQL does not run as root
        try:
            shutil.chown(folder, "postgres", "postgres")
        except LookupError:
            missing("the user postgres, which runs the server for root,", "apt install postgresql")
        other = {"user": "postgres", "group": "postgres", "extra_groups": []}
    try:
        data, port = folder / "data", _free_port()
        initdb = [binaries / "initdb", "-D", data, "-A", "trust", "-U", "cascada", "-N", "-E", "UTF8", "--locale=C"]
        subprocess.run(list(map(str, initdb)), check=True, capture_output=True, cwd=folder, **other)
        command = [binaries / "postgres", "-D", data, "-p", str(port), "-k", folder, "-h", "127.0.0.1"]
        server = Server(list(map(str, command)), port, folder, other)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(url: str) -> str:
    """Create an empty database on a server and return its URL."""
    import psycopg  # type: ignore[import-not-found, unused-ignore]

    name = f"test_{uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return url.removesuffix("postgres") + name


def drop_database(url: str) -> None:
    """Drop a database that a test has done with; connections to it are closed."""
    import psycopg  # type: ignore[import-not-found, unused-ignore]

    server, _, name = url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    import psycopg  # type: ignore[import-not-found, unused-ignore]

    def answers() -> bool:
        try:
            psycopg.connect(f"postgresql://cascada@127.0.0.1:{port}/postgres").close()
        except psycopg.OperationalError:
            assert server.poll() is None, log.read_text()
            return False
        return True

    wait_until(answers, lambda: f"the server answers; its log:\n{log.read_text()}")
