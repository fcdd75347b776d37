"""The commands on a study whose stages are read with bounded errors."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cascada.cli.main import app

PROCESS = """
[[stage]]
name = "f"
command = ["false"]
kernel = { type = "squared-exponential" }
norm_bound = 3
error = 0.02
limits = { f = { max = 0.9 } }
[stage.controls]
x = { low = -2, high = 2 }
[[stage]]
name = "g"
command = ["false"]
kernel = { type = "squared-exponential" }
norm_bound = 3
error = { bounded = 0.02 }
"""
Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CASCADA_STORAGE", "sqlite:///lab.db")
    (tmp_path / "lab.toml").write_text(PROCESS, encoding="utf-8")
    return lambda *arguments: CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def found(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def text(result: Result, code: int = 0) -> str:
    assert result.exit_code == code, result.output
    return " ".join((result.stdout + result.stderr).split())


def told(call: Call, runs: int) -> None:
    for number in range(runs):
        asked = found(call("ask", "--study", "lab", "--spec", "lab.toml", "--json"))
        value = math.sin(asked["controls"]["x"])
        text(call("tell-stage", "--study", "lab", str(number), "f", "--", f"{value + 0.02:.6f}"))
        text(call("tell", "--study", "lab", str(number), json.dumps({"g": math.cos(value) + 0.02})))


def test_a_study_with_errors_goes_through_all_commands(call: Call) -> None:
    told(call, 2)
    status = text(call("status", "--study", "lab"))
    assert "best reading" in status
    assert "recommended (proven to satisfy the limits and to give at least" in status
    assert "f is read to ±0.02, g is read to ±0.02" in status
    certificate = found(call("status", "--study", "lab", "--json"))["certificate"]
    assert certificate["best"] is None
    assert certificate["best_reading"] is not None
    assert set(certificate["floor"]) == {"estimate", "stage", "reached"}
    assert "best reading" in text(call("best", "--study", "lab"))
    assert "feasible" in text(call("trials", "--study", "lab"))
    log = call("export", "--study", "lab")
    assert log.exit_code == 0
    Path("log.jsonl").write_text(log.stdout, encoding="utf-8")
    text(call("import", "--study", "copy", "log.jsonl"))
    one, other = (found(call("ask", "--study", name, "--json")) for name in ("lab", "copy"))
    assert one["controls"] == other["controls"]


def test_a_wrong_reading_is_reported_at_once_and_corrected(call: Call) -> None:
    told(call, 2)
    x = found(call("trials", "--study", "lab", "--json"))[0]["controls"]["x"]
    Path("again.csv").write_text(f"x,f,g\n{x!r},{math.sin(x) + 0.1!r},{math.cos(math.sin(x))!r}\n", encoding="utf-8")
    text(call("add", "--study", "lab", "again.csv"))
    refuted = text(call("status", "--study", "lab"))
    assert "The data refute an assumption" in refuted
    assert "trials 0 and 2" in refuted
    text(call("correct", "--study", "lab", "2", "f", "--reason", "typo", "--", f"{math.sin(x):.6f}"))
    assert "Proven" in text(call("status", "--study", "lab"))


def test_a_new_file_mentions_errors(call: Call) -> None:
    text(call("new", "other.toml"))
    content = Path("other.toml").read_text(encoding="utf-8")
    assert "# error = 0.5" in content
    assert '# forwards = "reading"' in content
