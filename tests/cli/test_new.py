"""`cascada new`: writes a template that runs as it is, and overwrites nothing."""

import json
import math
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from cascada.specs.toml_file import load_toml


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_template_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=os.pathsep)  # its commands need python3
    result = invoke("new", "my process.toml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "cascada run 'my process.toml'" in result.stdout
    assert "cascada run my process.toml --budget" in Path("my process.toml").read_text(encoding="utf-8")
    found = json.loads(invoke("run", "my process.toml", "--budget", "10", "--json").stdout)
    assert [trial["state"] for trial in found["trials"]] == ["complete"] * 10


def test_json_output_is_the_path_of_the_file() -> None:
    assert json.loads(invoke("new", "process.toml", "--json").stdout) == {"path": "process.toml"}


def test_the_template_is_valid_with_all_commented_lines_enabled() -> None:
    invoke("new", "process.toml")
    text = Path("process.toml").read_text(encoding="utf-8")
    keys = r"(objective|sense|kernel|offset|norm_bound|ranges|limits) ="
    assert len(re.findall(f"^# {keys}", text, flags=re.M)) == 7
    Path("process.toml").write_text(re.sub(f"^# {keys}", r"\1 =", text, flags=re.M), encoding="utf-8")
    network = load_toml(Path("process.toml"))
    assert (network.sign, network.objective) == (-1, ("cure", "profit"))
    assert not network.stages[1].estimated
    assert list(map(str, network.limits)) == ["profit ≥ 0"]
    assert network.stages[1].ranges == {"profit": (-math.inf, 90.0)}


@pytest.mark.parametrize("what", ["file", "folder", "link"])
def test_an_existing_file_folder_or_link_is_not_overwritten(folder: Path, what: str) -> None:
    path = folder / "process.toml"
    if what == "file":
        path.write_text("mine", encoding="utf-8")
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to(folder / "elsewhere")
    result = invoke("new", "process.toml")
    assert result.exit_code == 2
    assert "process.toml is already there, and is not overwritten" in result.stderr
    assert not (folder / "elsewhere").exists()
    assert what != "file" or path.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none/process.toml", "there is no folder none"),
        ("process.txt", "must end with .toml"),
        ("process", "must end with .toml"),
        ("n" * 300 + ".toml", "cannot write"),
    ],
)
def test_a_path_that_cannot_be_written_exits_with_code_2(folder: Path, path: str, message: str) -> None:
    result = invoke("new", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert os.listdir(folder) == []
