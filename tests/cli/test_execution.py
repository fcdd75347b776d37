"""Signals during `cascada run` and `cascada worker`: they interrupt the run unless they were ignored at its start."""

import os
import signal
from collections.abc import Callable

import pytest

from cascada.cli.execution import execution_options


def test_termination_signals_interrupt_a_run_and_are_restored_after_it() -> None:
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGHUP):
        before = signal.signal(number, lambda got, _: received.append(got))
        try:
            with pytest.raises(KeyboardInterrupt), execution_options(None, None, revise=False):
                os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)
        finally:
            signal.signal(number, before)
    assert received == [signal.SIGTERM, signal.SIGHUP]


def test_a_run_continues_after_a_signal_that_it_was_started_to_ignore() -> None:
    before: Callable[..., object] | int | None = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with execution_options(None, None, revise=False) as options:
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert options == {"jobs": None, "revise": False}
