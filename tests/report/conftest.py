"""What tests of pages share: one browser for all of them."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.report.browser import chromium


# Not for the whole session: while playwright is at work, no other test can run an event loop.
@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """A browser."""
    with chromium() as found:
        yield found
