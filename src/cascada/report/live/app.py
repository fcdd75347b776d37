"""The routes of the live page: the page, its static files, and the stream of updates."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from importlib.resources import files

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from cascada.errors import CascadaError
from cascada.report.live.guard import Guard
from cascada.report.live.view import Sent, message
from cascada.report.live.watch import Watch
from cascada.report.page import static

ALIVE = 5.0  # seconds between two heartbeats: a page that receives nothing for long reconnects
_STYLE_IDS = re.compile(r'getElementById\("([0-9a-f]{64})"\)')
_RETRY = 500  # milliseconds before a page that lost the connection reconnects


class Page:
    """The streams of updates to all open pages."""

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sleeping: set[asyncio.Event] = set()  # one for every stream
        self._closed = False

    def changed(self) -> None:
        """Wake all streams; may be called from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the server has ended
                self._loop.call_soon_threadsafe(self._wake)

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        for event in self._sleeping:
            event.set()

    async def events(self, request: Request) -> Response:
        """Return a stream of updates, which lasts as long as the page is open."""
        kind = "text/event-stream"
        if request.method == "HEAD":
            return Response(media_type=kind)
        # A browser sends the header after it lost the connection; a page that closed it must use the query.
        sent = Sent.resumed(request.headers.get("last-event-id") or request.query_params.get("last"))
        return StreamingResponse(self._stream(request.query_params.get("study"), sent), media_type=kind)

    async def _stream(self, study: str | None, sent: Sent) -> AsyncIterator[str]:
        assert self.watch is not None
        self._loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        self._sleeping.add(woken)
        try:
            with self.watch.viewed(study):
                yield f"retry: {_RETRY}\n\n" + message("alive", "null")
                while not self._closed:
                    woken.clear()
                    for text in self.watch.updates(study, sent):
                        yield text
                    try:
                        await asyncio.wait_for(woken.wait(), ALIVE)
                    except TimeoutError:
                        yield message("alive", "null")
        finally:
            self._sleeping.discard(woken)


def application(page: Page, port: int) -> ASGIApp:
    """Return the application: the page and its static files behind a `Guard`."""
    parts = {"/page.css": ("text/css", _style), "/page.js": _code("page.js"), "/live.js": _code("live.js")}
    parts["/plotly.min.js"] = ("text/javascript", _plotly)
    stored = {path: (kind, read()) for path, (kind, read) in parts.items()}
    address = {path: f"{path}?v={hashlib.sha256(data).hexdigest()[:16]}" for path, (_, data) in stored.items()}
    html = static("page.html").replace("<body>", f'<body data-plotly="{address["/plotly.min.js"]}">')
    # Plotly adds its styles to an element with this id if there is one. The policy in `guard` allows no other place.
    style = f'<link id="plotly.js-style-global" rel="stylesheet" href="{address["/page.css"]}">'
    # If elements with these ids exist, plotly does not add styles for maps, which the policy would block.
    style += "".join(f'<meta id="{id_}">' for id_ in set(_STYLE_IDS.findall(stored["/plotly.min.js"][1].decode())))
    scripts = "\n".join(f'<script defer src="{address[path]}"></script>' for path in ("/page.js", "/live.js"))
    html = html.replace("<!-- style -->", style).replace("<!-- scripts -->", scripts)

    def index(_: Request) -> Response:
        return HTMLResponse(html)

    def part(request: Request) -> Response:
        kind, data = stored[request.url.path]
        fresh = request.url.query == address[request.url.path].partition("?")[2]
        caching = {"cache-control": "private, max-age=31536000, immutable"} if fresh else {}
        return Response(data, media_type=f"{kind}; charset=utf-8", headers=caching)

    routes = [Route("/", index), Route("/events", page.events), *(Route(path, part) for path in parts)]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, Exception: _failed})
    names = ["127.0.0.1", "localhost", "[::1]"]
    return Guard(app, [f"{name}:{port}" for name in names] + (names if port == 80 else []), ["/"])


def _not_found(_: Request, __: Exception) -> Response:
    return PlainTextResponse("There is no such page here; the live page is at /.\n", 404)


def _failed(_: Request, error: Exception) -> Response:
    return PlainTextResponse(f"The server failed with an unexpected error: {type(error).__name__}.\n", 500)


def _style() -> bytes:
    return static("page.css").encode()


def _code(name: str) -> tuple[str, Callable[[], bytes]]:
    return "text/javascript", lambda: static(name).encode()


def _plotly() -> bytes:
    try:
        import plotly  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise CascadaError("the live page needs plotly: pip install 'cascada[report]'.") from None
    return files(plotly).joinpath("package_data", "plotly.min.js").read_bytes()
