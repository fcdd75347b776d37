"""Progress: a line that changes in notebooks, lines in log files, and messages of the logger `cascada`."""

import logging
import sys
import types
from typing import Any

import pytest

from cascada.network import chain
from cascada.study import maximise, progress
from tests.network.cases import X, stage, truth

NETWORK = chain(stage("f", controls=X))
FUNCTIONS = truth(NETWORK, 1)


@pytest.fixture
def notebook(monkeypatch):
    """Return the contents that a notebook is told to display, in order; the display is replaced by later ones."""
    shown = []

    class Handle:
        def update(self, content, raw):
            assert raw
            shown.append(content)

    def display(content, raw, display_id):
        assert raw
        assert display_id
        shown.append(content)
        return Handle()

    ipython, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    vars(ipython)["get_ipython"] = lambda: types.SimpleNamespace(kernel=object())
    vars(module)["display"] = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return shown


def test_a_notebook_shows_one_line_that_changes(notebook, capsys):
    result = maximise(NETWORK, FUNCTIONS, budget=4)
    assert notebook[0]["text/plain"].startswith("1 of 4 runs, best ")
    assert result.certificate.shown is not None
    last = notebook[-1]["text/plain"]
    assert last.startswith(f"{len(result.trials)} of 4 runs, best ")
    assert last.endswith(f"gap {result.certificate.shown.gap} (proven)")
    assert len(notebook) <= len(result.trials)
    assert capsys.readouterr().err == ""


def test_a_notebook_is_silent_if_progress_is_not_wanted(notebook):
    maximise(NETWORK, FUNCTIONS, budget=3, progress=False)
    assert notebook == []


def test_a_log_file_gets_lines_a_minute_apart(monkeypatch, capsys):
    clock = iter(range(0, 1000, 25))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    show: Any = progress._occasional_lines(9)
    monkeypatch.setattr(progress, "in_words", lambda study, budget: f"{study} of {budget}")
    for run in range(9):
        show(run)
    assert capsys.readouterr().err.splitlines() == [f"cascada: {run} of 9" for run in (2, 5, 8)]


def test_a_short_run_prints_no_lines(capsys):
    maximise(NETWORK, FUNCTIONS, budget=3)
    assert capsys.readouterr() == ("", "")


def test_every_run_is_a_message_of_the_logger(caplog):
    caplog.set_level(logging.INFO, logger="cascada")
    result = maximise(NETWORK, FUNCTIONS, budget=3, progress=False)
    messages = [record.message for record in caplog.records if record.name == "cascada"]
    assert [text.partition(",")[0] for text in messages[:3]] == [f"{n} of 3 runs" for n in (1, 2, 3)]
    assert messages[-1].endswith(repr(result.certificate))


def test_a_failed_run_is_a_warning_of_the_logger(caplog):
    def broken(**_):
        raise ValueError("the oven tripped")

    maximise(NETWORK, [broken], budget=1, progress=False)
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == 1
    assert "trial 0 failed: " in warned[0].message
    assert "the oven tripped" in warned[0].message


def test_without_a_handler_the_logger_prints_nothing():
    assert any(isinstance(handler, logging.NullHandler) for handler in progress.LOGGER.handlers)
