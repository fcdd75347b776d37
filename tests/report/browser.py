"""A real browser: Debian's chromium, driven by playwright.

Without one of the two, tests that need it are skipped; but not under CI=true, where they fail.
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
    """A browser that lasts as long as this."""
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
    """A new page, whose limits are those of a busy machine."""
    page = browser.new_page(**options)
    page.set_default_timeout(_LIMIT)
    return page


def listened_to(browser: Any, **options: Any) -> tuple[Any, list[str], list[str]]:
    """A page, with what it complains of and what it asks others for."""
    page = patient_page(browser, **options)
    errors: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: asked.append(request.url))
    return page, errors, asked
