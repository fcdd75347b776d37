"""Who may see the page: this machine's browser, at this address, from this page; and what the page may do: look.

A page of another site can send requests to this machine, and can let its own name mean this machine (DNS rebinding).
So the name that was asked for is checked, and where a request comes from, as far as the browser says so.
"""

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Scripts and style sheets come from this server alone, and no text becomes code. Plotly's rules go into our own style
# sheet by its interface; but it also sets the attribute `style` of what it draws, and is blank without. Such attributes
# can load nothing under this policy. Maps are images that the page makes itself.
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
_OURS = (None, "none", "same-origin")  # an old browser or no browser; the user's own doing; this page


class Guard:
    """All that a request has to pass before anything looks at it, and the headers of every answer."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], pages: Iterable[str]) -> None:
        self._app, self._hosts, self._pages = app, frozenset(hosts), frozenset(pages)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
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
        if scope["path"] not in self._pages and headers.get("sec-fetch-site") not in _OURS:
            return PlainTextResponse("This is for the page of this server alone.\n", 403)
        return None
