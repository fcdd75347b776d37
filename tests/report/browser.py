"""A browser for tests: Chromium, driven by playwright.

If one of the two is missing, tests that need them are skipped, or fail under CI=true.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.missing import need_module, need_program
from tests.waiting import LONG

_LIMIT = 1000 * LONG  # milliseconds


class Browser:
    """A browser whose pages are used again: a new page takes three times as long to load the library of the figures."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._free: list[Any] = []

    @contextmanager
    def page(self, width: int = 1280, height: int = 720, color_scheme: str = "light") -> Iterator[Any]:
        """Lend an empty page with timeouts that suit a busy machine."""
        page = self._free.pop() if self._free else self._context.new_page()
        page.set_default_timeout(_LIMIT)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=color_scheme)
        try:
            yield page
        except BaseException:  # whatever state it is in
            page.close()
            raise
        page.unroute_all()
        page.goto("about:blank")
        self._free.append(page)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a browser."""
    path = need_program("chromium", "chromium-browser", package="chromium")
    need_module("playwright", "dev")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments, timeout=_LIMIT)
        try:
            yield Browser(browser.new_context())
        finally:
            browser.close()


@contextmanager
def recorded_page(browser: Browser, **options: Any) -> Iterator[tuple[Any, list[str], list[str]]]:
    """Lend a page, and lists of its errors and of the addresses it requests, which grow as it runs."""
    errors: list[str] = []
    requested: list[str] = []
    record: dict[str, Callable[[Any], object]] = {
        "console": lambda message: errors.append(message.text) if message.type == "error" else None,
        "pageerror": lambda error: errors.append(str(error)),
        "dialog": lambda dialog: errors.append(f"dialog {dialog.message}"),
        "request": lambda request: requested.append(request.url),
    }
    with browser.page(**options) as page:
        for event, listener in record.items():
            page.on(event, listener)
        yield page, errors, requested
        for event, listener in record.items():
            page.remove_listener(event, listener)
