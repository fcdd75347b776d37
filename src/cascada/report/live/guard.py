"""Access control of the live page: only this machine's browser, only at this address, and only for reading.

A page of another site can send requests to this machine, and can make its own name resolve to this machine (DNS
rebinding). So the host name of a request is validated, and its origin as far as the browser sends it.
"""

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Scripts and style sheets come from this server alone, and no text is executed as code. Plotly adds its rules to our
# style sheet. It also sets `style` attributes and draws nothing if these are forbidden; under this policy they cannot
# load anything. Maps are images that the page creates itself.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "style-src-attr 'unsafe-inline'",
        "connect-src 'self'",
        "img-src 'self' data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_SAME_SITE = (None, "none", "same-origin")  # an old browser or no browser; the user; this page


class Guard:
    """ASGI middleware that validates every request and adds security headers to every response."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], pages: Iterable[str]) -> None:
        self._app, self._hosts, self._pages = app, frozenset(hosts), frozenset(pages)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request: refuse it, or pass it on to the application."""
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refused = self._refusal(scope)
        await (refused or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if headers.getlist("host") == [] or any(host.lower() not in self._hosts for host in headers.getlist("host")):
            return PlainTextResponse("This page is for this machine: ask for it as 127.0.0.1.\n", 421)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("This page can only be looked at.\n", 405, {"allow": "GET, HEAD"})
        if scope["path"] not in self._pages and headers.get("sec-fetch-site") not in _SAME_SITE:
            return PlainTextResponse("This is for the page of this server alone.\n", 403)
        return None
