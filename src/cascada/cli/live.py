"""The live page from the command line: here until it is ended, or beside a run; and the process that draws figures."""

import json
import os
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING
from urllib.parse import urlencode

import typer

from cascada.errors import ArgumentError, CascadaError

if TYPE_CHECKING:
    from cascada.network import Network

_NEEDED = ("plotly", "starlette", "uvicorn")
_STARTED = 30.0  # seconds for the page beside a run to say where it is


def serve_here(
    storage: str,
    spec: str | None,
    port: int,
    ready: Callable[[str], None],
    ended: Callable[[], object] | None = None,
) -> None:
    """Serve a store until a signal comes or `ended` returns; `ready` is called with the address."""
    check_installed()
    from cascada.report.live.serving import listening, serve_store  # what figures need is imported after it listens
    from cascada.store.address import checked_url

    checked_url(storage)
    networks = _networks(spec)
    networks()  # a SPEC that is none is said at once
    made, told = listening(port), {"storage": storage, "spec": spec}
    serve_store(made, storage, networks, _process("draw"), told, ready, ended)


def check_installed() -> None:
    """Say how to install what the page needs."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise CascadaError(f"the live page needs {', '.join(missing)}: pip install 'cascada[report]'.")


@contextmanager
def page_beside(storage: str, spec: str, study: str, port: int, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """A live page in a process of its own while this lasts, whatever ends it; to be called to say where it is.

    In a process of its own, as a run may keep this one busy. It hears of the end by its standard input, so it ends with
    this process even if that is killed.
    """
    process = subprocess.Popen(
        _process("beside"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="ascii",
        start_new_session=True,  # Ctrl-C is for the run
    )
    assert process.stdin is not None
    assert process.stdout is not None
    told = {"storage": storage, "spec": spec, "port": port}  # not as arguments: a URL may hold a password
    with suppress(OSError):
        process.stdin.write(json.dumps(told) + "\n")
        process.stdin.flush()

    def announce() -> None:
        late = threading.Timer(_STARTED, process.kill)
        late.daemon = True  # nobody waits for it who is interrupted
        late.start()
        try:
            line = process.stdout.readline() if process.stdout is not None else ""
        finally:
            late.cancel()
        said = json.loads(line) if line else {"error": "it did not start"}
        if "url" not in said:
            typer.echo(f"The live page cannot be shown, and the run goes on without: {said['error']}", err=True)
            return
        address = f"{said['url']}?{urlencode({'study': study})}"
        typer.echo(f"The live page is at {address} while this runs.", err=quiet)
        if not quiet and sys.stdout.isatty() and _has_display():
            threading.Thread(target=_open, args=(address,), daemon=True).start()

    try:
        yield announce
    finally:
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _has_display() -> bool:
    """Whether a browser would have a window: one for terminals would take over this one."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(address: str) -> None:
    with suppress(Exception):  # no browser, and nobody's fault: the address was printed
        webbrowser.open(address)


def _networks(spec: str | None) -> Callable[[], Sequence["Network"]]:
    """The process that a SPEC names, loaded when it is first needed."""
    found: list[Network] = []

    def networks() -> Sequence["Network"]:
        if spec is not None and not found:
            from cascada.cli.stored import network_of

            sys.path.insert(0, "")  # a SPEC may live in this folder
            found.append(network_of(spec))
        return found

    return networks


# ---- other processes


def _process(what: str) -> list[str]:
    """A command that runs a part of this module, with the path of this process: the same cascada."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from cascada.cli.live import {what}; {what}()"
    return [sys.executable, "-c", code]


def draw() -> None:
    """Compute what takes long, for a server that asks by standard input; ends with it, whatever it is at."""
    from cascada.report.live.computing import answers

    out, lines = _apart(), SimpleQueue[str]()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    told = json.loads(lines.get())
    answers(iter(lines.get, None), out, told["storage"], _networks(told["spec"]))


def beside() -> None:
    """Serve beside a run, until standard input ends; the first line of it says what."""
    out, told = _apart(), json.loads(sys.stdin.readline())

    def say(said: dict[str, str]) -> None:
        out.write(json.dumps(said) + "\n")
        out.flush()

    def serve(port: int) -> None:
        serve_here(told["storage"], told["spec"], port, lambda address: say({"url": address}), _parent_gone)

    try:
        try:
            serve(told["port"])
        except CascadaError as error:
            if isinstance(error, ArgumentError):
                raise
            serve(0)  # that port is taken: any other will do
    except Exception as error:  # whatever it is, the run goes on
        with suppress(OSError):
            say({"error": str(error)})
    os._exit(0)  # whatever threads a SPEC may have started


def _parent_gone() -> None:
    """Return when the run ends: when it closes our standard input, or, as a child of its may hold that open, dies."""
    parent, closed = os.getppid(), threading.Event()

    def listen() -> None:
        sys.stdin.read()
        closed.set()

    threading.Thread(target=listen, daemon=True).start()
    while not closed.wait(1.0) and os.getppid() == parent:
        pass


def _apart() -> IO[str]:
    """Standard output for the other process alone: what a SPEC prints goes where errors go."""
    out = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    return out
