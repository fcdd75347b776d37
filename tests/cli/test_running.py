"""What ends `cascada run` and `cascada worker`: signals interrupt them, unless they were started to ignore these."""

import os
import signal
from collections.abc import Callable

import pytest

from cascada.cli.running import at_work


def test_what_ends_a_process_interrupts_a_run_and_nothing_after_it() -> None:
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGHUP):
        before = signal.signal(number, lambda got, _: received.append(got))
        try:
            with pytest.raises(KeyboardInterrupt), at_work(None, None):
                os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)
        finally:
            signal.signal(number, before)
    assert received == [signal.SIGTERM, signal.SIGHUP]


def test_a_run_goes_on_when_a_signal_comes_that_it_was_started_to_ignore() -> None:
    before: Callable[..., object] | int | None = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with at_work(None, None) as options:
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert options == {"jobs": None}
