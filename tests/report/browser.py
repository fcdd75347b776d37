"""A real browser: Debian's chromium, driven by playwright.

Without one of the two, tests that need it are skipped; but not under CI=true, where they fail.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest


def _missing(what: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"no browser to test with: {what}")
    pytest.skip(f"no browser to test with: {what}")


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser that lasts as long as this."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        _missing("chromium is not installed (apt-get install chromium)")
    if find_spec("playwright") is None:
        _missing("playwright is not installed (pip install playwright)")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


def listened_to(browser: Any, **options: Any) -> tuple[Any, list[str], list[str]]:
    """A page, with what it complains of and what it asks others for."""
    page = browser.new_page(**options)
    errors: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: asked.append(request.url))
    return page, errors, asked
