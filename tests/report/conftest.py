"""Fixtures of all tests of pages: one browser, and one file for reports."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.browser import Browser, chromium


# Not for the whole session: while playwright is running, no other test can run an event loop.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Yield a browser."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="package")
def report_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a path for reports: the browser compiles the library of the figures once per address."""
    return tmp_path_factory.mktemp("reports") / "report.html"
