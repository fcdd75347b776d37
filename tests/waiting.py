"""Waiting for events in tests.

A test waits for an event, never for a fixed time. The timeout only prevents a failed test from hanging; it is so long
that a busy machine does not reach it.
"""

import time
from collections.abc import Callable
from typing import TypeVar

LONG = 300.0  # seconds

Found = TypeVar("Found")


def wait_until(condition: Callable[[], Found], what: str | Callable[[], str]) -> Found:
    """Wait until a condition is true and return its value; after `LONG` seconds fail with the text `what`."""
    end = time.monotonic() + LONG
    while not (found := condition()):
        if time.monotonic() > end:
            import pytest  # worker processes, which wait as well, need not import it

            pytest.fail(f"waited {LONG:g} s in vain until {what if isinstance(what, str) else what()}")
        time.sleep(0.01)
    return found
