"""Helpers for tests of the live page: `cascada serve` as a process, and a page that records errors and requests."""

import http.client
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.forked import Fork
from tests.report.browser import Browser, recorded_page
from tests.starting import first_line, started
from tests.waiting import LONG, wait_until

# The command as a new interpreter. Other tests start a fork, whose imports are done.
COMMAND = [sys.executable, "-c", "from cascada.cli.main import app; app()"]


@dataclass
class Server:
    """A server process and the address that it printed."""

    process: "subprocess.Popen[str]"
    url: str

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    @contextmanager
    def answer(self, path: str = "/", method: str = "GET", **headers: str) -> Iterator[http.client.HTTPResponse]:
        """Send a request and yield the response, which may be an endless stream; any header can be set, also host."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in ({"host": f"127.0.0.1:{self.port}"} | headers).items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            with connection.getresponse() as response:
                yield response
        finally:
            connection.close()

    def status(self, path: str = "/", method: str = "GET", **headers: str) -> int:
        """Return the status code of the response to a request."""
        with self.answer(path, method, **headers) as response:
            return response.status


@contextmanager
def served(
    storage: str,
    *options: str,
    port: int = 0,
    ignoring: Sequence[signal.Signals] = (),
    command: Sequence[str] | None = None,
) -> Iterator[Server]:
    """Run a server, and check that it ends at once, with exit code 0 and without output.

    It may print at the start that there is no store yet. It is started with the signals `ignoring` ignored. Without
    `command` it is a fork.
    """
    arguments = ["serve", "--storage", storage, "--port", str(port), *options]
    process = started([*command, *arguments], ignoring=ignoring) if command else Fork("cascada", arguments)
    try:
        line = first_line(process)
        assert "http://127.0.0.1:" in line, process.communicate(timeout=LONG)
        yield Server(process, "http" + line.partition("http")[2].split()[0])
    finally:
        code, output = ended(process, signal.SIGTERM)
    assert (code, [line for line in output.splitlines() if not line.endswith("the page waits for it.")]) == (0, [])


def ended(process: "subprocess.Popen[str]", how: signal.Signals) -> tuple[int, str]:
    """End a process by a signal; return its exit code and its remaining output."""
    if process.poll() is None:
        process.send_signal(how)
    out, err = process.communicate(timeout=LONG)
    return process.returncode, out + err


@dataclass
class Page:
    """A page in a browser, the errors it reported, and the addresses it requested."""

    page: Any
    errors: list[str]
    requested: list[str]

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())

    def drawn(self, figure: str) -> str:
        """Return all text of a figure."""
        return str(self.page.locator(f"figure[data-id={figure}]").text_content())

    def rows(self) -> int:
        return int(self.page.locator("#trials tbody tr").count())

    def sees(self, what: Callable[[], Any]) -> Any:
        """Wait until `what` returns something true, and return that."""

        def seen() -> Any:
            return what() or self.page.wait_for_timeout(100)  # the browser handles its events meanwhile

        return wait_until(seen, lambda: f"it is seen; the page shows:\n{self.text('body')[:2000]}")

    def says(self, words: str) -> None:
        """Wait until the status line contains these words."""
        self.sees(lambda: words in self.text("#status"))


@contextmanager
def open_page(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    """Open a page at an address."""
    with recorded_page(browser, **options) as (page, errors, requested):
        page.goto(url)
        yield Page(page, errors, requested)
