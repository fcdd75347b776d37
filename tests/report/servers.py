"""A live page of one's own: `cascada serve` as a process, ended by its pid; a browser that notes what goes wrong."""

import http.client
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.report.browser import listened_to
from tests.starting import first_line, started
from tests.waiting import LONG, wait_until

COMMAND = [sys.executable, "-c", "from cascada.cli.main import app; app()"]


@dataclass
class Server:
    """The process, and the address that it printed."""

    process: "subprocess.Popen[str]"
    url: str

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    @contextmanager
    def answer(self, path: str = "/", method: str = "GET", **headers: str) -> Iterator[http.client.HTTPResponse]:
        """An answer, which may be a stream without end; headers may be any, that of the host too."""
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
        """Of an answer."""
        with self.answer(path, method, **headers) as response:
            return response.status


@contextmanager
def served(storage: str, *options: str, port: int = 0, ignoring: Sequence[signal.Signals] = ()) -> Iterator[Server]:
    """A server that lasts as long as this, and ends as it should: at once, with 0, without a word.

    It may have said at the beginning that there is no store yet. It is started to ignore the signals `ignoring`.
    """
    command = [*COMMAND, "serve", "--storage", storage, "--port", str(port), *options]
    process = started(command, ignoring=ignoring)
    try:
        line = first_line(process)
        assert "http://127.0.0.1:" in line, process.communicate(timeout=LONG)
        yield Server(process, "http" + line.partition("http")[2].split()[0])
    finally:
        code, said = ended(process, signal.SIGTERM)
    assert (code, [line for line in said.splitlines() if not line.endswith("the page waits for it.")]) == (0, [])


def ended(process: "subprocess.Popen[str]", how: signal.Signals) -> tuple[int, str]:
    """End a process: its exit code, and all that it said at the end."""
    if process.poll() is None:
        process.send_signal(how)
    out, err = process.communicate(timeout=LONG)
    return process.returncode, out + err


@dataclass
class Page:
    """A page in a browser, what it complained of, and what it asked for."""

    page: Any
    errors: list[str]
    asked: list[str]

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())

    def drawn(self, figure: str) -> str:
        """All text of a figure."""
        return str(self.page.locator(f"figure[data-id={figure}]").text_content())

    def rows(self) -> int:
        return int(self.page.locator("#trials tbody tr").count())

    def sees(self, what: Callable[[], Any]) -> Any:
        """Wait until a person sees something; what it is."""

        def seen() -> Any:
            return what() or self.page.wait_for_timeout(30)  # in which the browser's events are handled

        return wait_until(seen, lambda: f"it is seen; the page shows:\n{self.text('body')[:2000]}")

    def says(self, words: str) -> None:
        """Wait until the status line says something."""
        self.sees(lambda: words in self.text("#status"))


@contextmanager
def looked_at(browser: Any, url: str, **options: Any) -> Iterator[Page]:
    """A page at an address."""
    page, errors, asked = listened_to(browser, **options)
    page.goto(url)
    try:
        yield Page(page, errors, asked)
    finally:
        page.close()
