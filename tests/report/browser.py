"""A browser for tests: Chromium, driven by playwright.

If one of the two is missing, tests that need them are skipped, or fail under CI=true.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.missing import need_module, need_program
from tests.waiting import LONG

_LIMIT = 1000 * LONG  # milliseconds


@contextmanager
def chromium() -> Iterator[Any]:
    """Run a browser."""
    path = need_program("chromium", "chromium-browser", package="chromium")
    need_module("playwright", "dev")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments, timeout=_LIMIT)
        try:
            yield browser
        finally:
            browser.close()


def patient_page(browser: Any, **options: Any) -> Any:
    """Return a new page with timeouts that suit a busy machine."""
    page = browser.new_page(**options)
    page.set_default_timeout(_LIMIT)
    return page


def recorded_page(browser: Any, **options: Any) -> tuple[Any, list[str], list[str]]:
    """Return a new page, and lists of its errors and of the addresses it requests, which grow as it runs."""
    page = patient_page(browser, **options)
    errors: list[str] = []
    requested: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: requested.append(request.url))
    return page, errors, requested
