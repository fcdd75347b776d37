"""The live page from the command line: in this process or in the background of a run, and the process for figures."""

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

from cascada.cli.terminal import say
from cascada.errors import ArgumentError, CascadaError

if TYPE_CHECKING:
    from cascada.network import Network

_NEEDED = ("plotly", "starlette", "uvicorn")
_START_TIMEOUT = 30.0  # seconds for the background page to report its address


def serve_here(
    storage: str,
    spec: str | None,
    port: int,
    ready: Callable[[str], None],
    ended: Callable[[], object] | None = None,
) -> None:
    """Serve a store until a signal arrives or `ended` returns; `ready` is called with the address.

    Raises `CascadaError` if a package is missing, the port is taken, or the URL or SPEC is invalid.
    """
    check_installed()
    from cascada.report.live.server import listening_socket, serve_store  # imports optional packages
    from cascada.store.address import checked_url

    checked_url(storage)
    networks = _networks(spec)
    networks()  # raises now if SPEC is invalid
    settings = {"storage": storage, "spec": spec}
    serve_store(listening_socket(port), storage, networks, _python_command("compute_figures"), settings, ready, ended)


def check_installed() -> None:
    """Raise `CascadaError`, with the command that installs them, if packages of the live page are missing."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise CascadaError(f"the live page needs {', '.join(missing)}: pip install 'cascada[report]'.")


@contextmanager
def background_page(storage: str, spec: str, study: str, port: int, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Run a live page in a child process; yield a function that prints its address.

    It needs a process of its own because a run may keep this one busy. The child ends when its standard input is
    closed, so it ends with this process even if this process is killed.
    """
    process = subprocess.Popen(
        _python_command("serve_in_background"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="ascii",
        start_new_session=True,  # Ctrl-C interrupts the run only
    )
    assert process.stdin is not None
    assert process.stdout is not None
    settings = {"storage": storage, "spec": spec, "port": port}  # not as arguments: a URL may contain a password
    with suppress(OSError):
        process.stdin.write(json.dumps(settings) + "\n")
        process.stdin.flush()

    def announce() -> None:
        timeout = threading.Timer(_START_TIMEOUT, process.kill)
        timeout.daemon = True  # so that an interrupted process can exit before the timeout
        timeout.start()
        try:
            line = process.stdout.readline() if process.stdout is not None else ""
        finally:
            timeout.cancel()
        reply = json.loads(line) if line else {"error": "it did not start"}
        if "url" not in reply:
            say(f"The live page cannot be shown; the run continues without it: {reply['error']}", err=True)
            return
        address = f"{reply['url']}?{urlencode({'study': study})}"
        say(f"The live page is at {address} while this runs.", err=quiet)
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
    """Return whether a browser can open a window; a text browser would take over this terminal."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(address: str) -> None:
    with suppress(Exception):  # without a browser the printed address is enough
        webbrowser.open(address)


def _networks(spec: str | None) -> Callable[[], Sequence["Network"]]:
    """Return a function that returns the network of a SPEC, loaded at the first call, or nothing without a SPEC."""
    found: list[Network] = []

    def networks() -> Sequence["Network"]:
        if spec is not None and not found:
            from cascada.cli.stored import import_from_here, network_of

            import_from_here(spec)
            found.append(network_of(spec))
        return found

    return networks


# ---- entry points of child processes


def _python_command(function: str) -> list[str]:
    """Return a command that calls a function of this module, with the path of this process: the same cascada."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from cascada.cli.live import {function}; {function}()"
    return [sys.executable, "-c", code]


def compute_figures() -> None:
    """Compute figures for a server that sends requests to standard input; exit as soon as that is closed."""
    from cascada.report.live.figure_process import answer_requests

    out, lines = _private_stdout(), SimpleQueue[str]()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    settings = json.loads(lines.get())
    answer_requests(iter(lines.get, None), out, settings["storage"], _networks(settings["spec"]))


def serve_in_background() -> None:
    """Serve the live page of a run until standard input is closed; its first line holds the settings."""
    from cascada.store.address import error_text

    out, settings = _private_stdout(), json.loads(sys.stdin.readline())

    def reply(content: dict[str, str]) -> None:
        out.write(json.dumps(content) + "\n")
        out.flush()

    def serve(port: int) -> None:
        serve_here(settings["storage"], settings["spec"], port, lambda url: reply({"url": url}), _wait_for_parent)

    try:
        try:
            serve(settings["port"])
        except CascadaError as error:
            if isinstance(error, ArgumentError):
                raise
            serve(0)  # the port is taken: use any free one
    except Exception as error:  # the run continues whatever happens to its page
        with suppress(OSError):
            reply({"error": error_text(error)})
    os._exit(0)  # do not wait for threads that a SPEC may have started


def _wait_for_parent() -> None:
    """Return when the run ends: when it closes our standard input or, as a child may hold that open, when it dies."""
    parent, closed = os.getppid(), threading.Event()

    def listen() -> None:
        sys.stdin.read()
        closed.set()

    threading.Thread(target=listen, daemon=True).start()
    while not closed.wait(1.0) and os.getppid() == parent:
        pass


def _private_stdout() -> IO[str]:
    """Return standard output for messages alone; redirect what a SPEC prints to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    return out
