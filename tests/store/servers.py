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


@contextmanager
def postgres() -> Iterator[str]:
    """Run a server and yield its URL."""
    binaries = _binaries()
    need_module("psycopg", "postgres")
    if binaries is None:
        missing("initdb", "apt install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="cascada-postgres-"))
    other: dict[str, Any] = {}
    if os.getuid() == 0:  # PostgreSQL does not run as root
        try:
            shutil.chown(folder, "postgres", "postgres")
        except LookupError:
            missing("the user postgres, which runs the server for root,", "apt install postgresql")
        other = {"user": "postgres", "group": "postgres", "extra_groups": []}
    try:
        data = folder / "data"
        initdb = [binaries / "initdb", "-D", data, "-A", "trust", "-U", "cascada", "-N", "-E", "UTF8", "--locale=C"]
        subprocess.run(list(map(str, initdb)), check=True, capture_output=True, cwd=folder, **other)
        command = [binaries / "postgres", "-D", data, "-k", folder, "-h", "127.0.0.1"]
        begun = wait_until(
            lambda: _begun(list(map(str, command)), folder, other), "a server begins whose port nobody else has taken"
        )
        assert begun is not None
        server, port = begun
        try:
            yield f"postgresql://cascada@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGQUIT)  # immediate shutdown: the data are deleted anyway
            server.wait(LONG)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _begun(command: list[str], folder: Path, other: dict[str, Any]) -> tuple[subprocess.Popen[bytes], int] | None:
    """Start a server on a port that is free, and wait until it answers; None if the port was taken meanwhile."""
    import psycopg  # type: ignore[import-not-found, unused-ignore]

    log, port = folder / "log", _free_port()
    with log.open("w") as file:
        server = subprocess.Popen([*command, "-p", str(port)], stdout=file, stderr=file, cwd=folder, **other)

    def answers() -> bool:
        try:
            # In this folder: at the port on 127.0.0.1 the server of another worker may answer.
            psycopg.connect(f"postgresql://cascada@/postgres?host={folder}&port={port}").close()
        except psycopg.OperationalError:
            return server.poll() is not None
        return True

    wait_until(answers, lambda: f"the server answers; its log:\n{log.read_text()}")
    if server.poll() is None:
        return server, port
    assert "Address already in use" in log.read_text(), log.read_text()
    return None
