"""A lab whose readings scatter: the probability of its gap is set with `cascada ask`, and shown by `cascada status`."""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cascada.cli.main import _plain_warnings, app

PROCESS = """
[[stage]]
name = "mix"
kernel = { type = "squared-exponential", lengthscale = 1.0 }
norm_bound = 2.0
error = { bounded = 0.001, sub_gaussian = 0.01 }
controls = { dose = { low = -2, high = 2 } }
"""
STUDY = "--study", "alloy"


def call(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else " ".join(result.output.split())


def test_a_lab_sets_the_probability_once_and_reads_it_with_the_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CASCADA_STORAGE", "sqlite:///lab.db")
    Path("alloy.toml").write_text(PROCESS, encoding="utf-8")
    spec = *STUDY, "--spec", "alloy.toml"
    trial: Any = json.loads(call("ask", *spec, "--confidence", "0.9", "--json"))
    call("tell", *STUDY, str(trial["number"]), '{"mix": 1.2}')
    status = json.loads(call("status", *STUDY, "--json"))
    assert (status["gap_kind"], status["certificate"]["confidence"]) == ("confident", 0.9)
    shown = call("status", *STUDY)
    assert "(confident, 90 %)" in shown
    assert "recommended (with probability 90 % sure to give at least" in shown
    assert "With probability at least 90 %, now and at every later step" in shown
    assert "stored 0.9, given 0.99" in call("ask", *spec, "--confidence", "0.99", code=2)
    Path("past.csv").write_text("dose,mix\n0.5,1.0\n", encoding="utf-8")
    with pytest.warns(RuntimeWarning, match="trial 1 was added as a run of the past, so the gap is estimated"):
        call("add", *STUDY, "past.csv")
    assert json.loads(call("status", *STUDY, "--json"))["gap_kind"] == "estimated"


def test_a_warning_is_printed_in_one_line_without_code() -> None:
    before = warnings.formatwarning
    with _plain_warnings():
        text = warnings.formatwarning("the gap is estimated\nfrom now on.", RuntimeWarning, "correct.py", 48, "code")
    assert text == "cascada: the gap is estimated from now on.\n"
    assert warnings.formatwarning is before


@pytest.mark.parametrize("command", ["add", "worker", "run"])
def test_every_command_that_creates_a_study_sets_the_probability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CASCADA_STORAGE", "sqlite:///lab.db")
    code = 'import json, sys; print(json.dumps({"mix": json.load(sys.stdin)["dose"] / 2}))'
    controls = "controls = {"
    Path("alloy.toml").write_text(
        PROCESS.replace(controls, f"command = ['{sys.executable}', '-c', '{code}']\n{controls}"), encoding="utf-8"
    )
    Path("past.csv").write_text("dose,mix\n0.5,0.25\n", encoding="utf-8")
    options = {
        "add": ["past.csv", *STUDY, "--spec", "alloy.toml"],
        "worker": ["alloy.toml", *STUDY, "--budget", "1"],
        "run": ["alloy.toml", *STUDY, "--budget", "1"],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of an added run
        said = call(command, *options[command], "--confidence", "0.9")
    assert command == "add" or "(confident, 90 %)" in said
    refused = call("ask", *STUDY, "--spec", "alloy.toml", "--confidence", "0.99", code=2)
    assert "stored 0.9, given 0.99" in refused
