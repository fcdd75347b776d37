"""The HTTP server of the live page, which listens on this machine only, and its clean shutdown."""

import asyncio
import errno
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn

from cascada.errors import CascadaError
from cascada.network import Network
from cascada.report.live.app import Page, application
from cascada.report.live.connection import Connection
from cascada.report.live.watch import Watch

_HOST = "127.0.0.1"  # not an option, as the page has no login; ssh can forward it to other machines
_SHUTDOWN_TIMEOUT = 1  # seconds for responses under way when the server ends


def listening_socket(port: int) -> socket.socket:
    """Return a socket that listens on this machine, on any free port if it is 0; `CascadaError` if it is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the last server may have ended just now
        listener.bind((_HOST, port))
        listener.listen()
        return listener
    except OSError as error:
        listener.close()
        taken = error.errno == errno.EADDRINUSE
        why = "is taken: another server may run there" if taken else f"cannot be used ({error.strerror or error})"
        raise CascadaError(f"port {port} {why}; give another with --port, or --port 0 for any free port.") from None


def serve_store(
    listener: socket.socket,
    url: str,
    networks: Callable[[], Sequence[Network]],
    command: Sequence[str],
    settings: dict[str, Any],
    ready: Callable[[str], None],
    ended: Callable[[], object] | None = None,
) -> None:
    """Serve the studies of a store until a signal arrives, or `ended` returns.

    `command` starts the process that computes figures, which gets the `settings`; `ready` is called with the address of
    the page.
    """
    port = listener.getsockname()[1]
    page = Page()
    page.watch = Watch(url, networks, command, settings, page.changed)
    server = _Server(
        uvicorn.Config(
            application(page, port),
            loop="asyncio",
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT,
        )
    )

    async def run() -> None:
        loop = asyncio.get_running_loop()
        # asyncio reports each failed accept; it tries again after a second, when descriptors may be free.
        loop.set_exception_handler(lambda *_: None)

        def stop() -> None:
            page.close()
            server.should_exit = True

        _on_signals(loop, stop)
        if ended is not None:
            waiting = threading.Thread(target=lambda: (ended(), loop.call_soon_threadsafe(stop)), daemon=True)
            waiting.start()
        ready(f"http://{_HOST}:{port}/")
        await server.serve([listener])

    try:
        asyncio.run(run())
    finally:
        page.watch.close()
        listener.close()


class _Server(uvicorn.Server):
    """A server without uvicorn's signal handlers, which would end the process before its clean shutdown."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _on_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # A signal that is ignored stays ignored: `nohup` starts a server that outlives its terminal.
        if number is None or signal.getsignal(number) is signal.SIG_IGN:
            continue
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
