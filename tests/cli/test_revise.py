"""`cascada revise` and `--revise`: a run in progress on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_store_commands import PROCESS, cured, found, invoke, mixed, refused

STUDY = ("--study", "alloy")


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A running trial with a poor plan, of which only the first stage was reported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CASCADA_STORAGE", "sqlite:///lab.db")
    (tmp_path / "alloy.py").write_text(PROCESS, encoding="utf-8")
    for dose, heat in ((0.0, 0.0), (1.0, -1.0), (0.5, 1.0)):
        invoke("enqueue", *STUDY, "--spec", "alloy.py:network", json.dumps({"dose": dose, "heat": heat}))
        asked = found(invoke("ask", *STUDY, "--spec", "alloy.py:network", "--json"))
        outputs = {"mix": mixed(dose), "cure": cured(mixed(dose), heat)}
        invoke("tell", *STUDY, str(asked["number"]), json.dumps(outputs))
    invoke("enqueue", *STUDY, '{"dose": 0.4, "heat": 0.9}')
    asked = found(invoke("ask", *STUDY, "--json"))
    invoke("tell-stage", *STUDY, str(asked["number"]), "mix", repr(mixed(0.4)))
    return asked


def test_a_revision_is_printed_and_written_down(trial: Any) -> None:
    number = str(trial["number"])
    revision = found(invoke("revise", *STUDY, number, "--json"))
    assert revision["decision"] == "continue"
    assert revision["planned"] == trial["controls"]
    assert revision["controls"]["dose"] == 0.4
    heat = revision["controls"]["heat"]
    text = invoke("revise", *STUDY, number).stdout
    assert text.startswith(f"Set heat {heat!r} instead of 0.9 (at most ")
    assert "; at least " in text
    assert text.endswith(revision["reason"] + "\n")
    (still,) = found(invoke("status", *STUDY, "--json"))["open"]
    assert still["controls"] == trial["controls"]  # nothing was written

    applied = invoke("revise", *STUDY, number, "--apply")
    assert applied.stdout == f"{text}Trial {number} is running; not told yet: cure.\n"
    (after,) = found(invoke("status", *STUDY, "--json"))["open"]
    assert after["controls"] == revision["controls"]
    assert "the controls were revised, before: heat = 0.9" in invoke("trials", *STUDY).stdout
    assert "revised" in [json.loads(line)["kind"] for line in invoke("export", *STUDY).stdout.splitlines()]


def test_a_trial_that_cannot_be_revised_is_refused(trial: Any) -> None:
    refused(invoke("revise", *STUDY, "0"), 2, "trial 0 is complete: only a running trial")
    refused(invoke("revise", *STUDY, "17"), 2, "there is no trial 17")
    assert trial["number"] == 3


def test_a_process_is_run_and_revised(trial: Any) -> None:
    assert trial["number"] == 3
    result = found(invoke("run", "alloy.py:network", "--revise", "--budget", "4", "--json"))
    assert result["status"] == "budget"
    stored = invoke("run", "alloy.py:network", "--revise", "--budget", "8", "--storage", "sqlite:///other.db", "--json")
    assert len(found(stored)["trials"]) == 8


def test_revise_does_not_work_with_dask(trial: Any) -> None:
    assert trial["number"] == 3
    for command in (("run", "alloy.py:network"), ("worker", "alloy.py:network", *STUDY)):
        refused(invoke(*command, "--revise", "--dask", "tcp://h:1"), 2, "--revise does not work with --dask")
