"""Fixture of all tests of pages: one browser."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.report.browser import chromium


# Not for the whole session: while playwright is running, no other test can run an event loop.
@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Yield a browser."""
    with chromium() as found:
        yield found
