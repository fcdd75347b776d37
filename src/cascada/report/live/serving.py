"""A server on this machine, for this machine: from the first connection to a clean end."""

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
from cascada.report.live.watching import Watch

_HOST = "127.0.0.1"  # nobody else's business, and no option: whoever wants to show it around has ssh
_LAST_BREATH = 1  # seconds for answers that are under way when the server ends


def listening(port: int) -> socket.socket:
    """A socket that listens on this machine; 0 is any port that is free."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that ended a moment ago is no obstacle
        made.bind((_HOST, port))
        made.listen()
        return made
    except OSError as error:
        made.close()
        taken = error.errno == errno.EADDRINUSE
        why = "is taken: another server may run there" if taken else f"cannot be used ({error.strerror or error})"
        raise CascadaError(f"port {port} {why}; give another by --port, or --port 0 for any that is free.") from None


def serve_store(
    made: socket.socket,
    url: str,
    networks: Callable[[], Sequence[Network]],
    command: Sequence[str],
    told: dict[str, Any],
    ready: Callable[[str], None],
    ended: Callable[[], object] | None = None,
) -> None:
    """Serve the studies of a store until a signal comes, or `ended` returns.

    `command` starts the process that computes figures, which is `told` what it has to know; `ready` is called with the
    address of the page.
    """
    port = made.getsockname()[1]
    page = Page()
    page.watch = Watch(url, networks, command, told, page.changed)
    server = _Server(
        uvicorn.Config(
            application(page, port),
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_LAST_BREATH,
        )
    )

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            page.close()
            server.should_exit = True

        _on_signals(loop, stop)
        if ended is not None:
            waiting = threading.Thread(target=lambda: (ended(), loop.call_soon_threadsafe(stop)), daemon=True)
            waiting.start()
        ready(f"http://{_HOST}:{port}/")
        await server.serve([made])

    try:
        asyncio.run(run())
    finally:
        page.watch.close()
        made.close()


class _Server(uvicorn.Server):
    """Signals are ours: uvicorn would end the process by them, which is no clean end."""

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
