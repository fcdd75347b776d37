"""A live page of one's own: `cascada serve` as a process, ended by its pid; a browser that notes what goes wrong."""

import http.client
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.report.browser import listened_to

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
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
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
def served(storage: str, *options: str, port: int = 0) -> Iterator[Server]:
    """A server that lasts as long as this, and ends as it should: at once, with 0, without a word.

    It may have said at the beginning that there is no store yet.
    """
    command = [*COMMAND, "serve", "--storage", storage, "--port", str(port), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line, process.communicate(timeout=20)
        yield Server(process, "http" + line.partition("http")[2].split()[0])
    finally:
        code, said = ended(process, signal.SIGTERM)
    assert (code, [line for line in said.splitlines() if not line.endswith("the page waits for it.")]) == (0, [])


def ended(process: "subprocess.Popen[str]", how: signal.Signals) -> tuple[int, str]:
    """End a process: its exit code, and all that it said at the end."""
    if process.poll() is None:
        process.send_signal(how)
    out, err = process.communicate(timeout=10)
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

    def sees(self, what: Callable[[], Any], seconds: float = 15.0) -> Any:
        """Wait until a person sees something; what it is."""
        until = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < until, f"not seen in {seconds} s; the page shows:\n{self.text('body')[:2000]}"
            self.page.wait_for_timeout(30)
        return found

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
