"""The examples, as their pages say."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def needs(program: str) -> None:
    """Skip where a program is missing; but not under CI=true, where nothing is skipped."""
    if shutil.which(program) is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no {program} to test the examples with")
        pytest.skip(f"no {program} to test the examples with")


@pytest.fixture
def cement(tmp_path: Path) -> Path:
    """A copy with its kiln compiled."""
    for program in ("cc", "awk"):
        needs(program)
    folder = tmp_path / "command-stages"
    shutil.copytree(EXAMPLES / "command-stages", folder, ignore=shutil.ignore_patterns("kiln"))
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", "kiln", "kiln.c", "-lm"], cwd=folder, check=True)
    return folder


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; from cascada.cli.main import app; app(sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_stages_in_c_and_awk(cement: Path) -> None:
    done = run("run", "command-stages/process.toml", "--budget", "12", "--json", cwd=cement.parent)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [trial["state"] for trial in found["trials"]] == ["complete"] * 12
    assert found["best"]["value"] > 30
    for trial in found["trials"]:
        free_lime, crystal, fuel = trial["outputs"]["kiln"]
        assert 0 < free_lime < 5
        assert 10 < crystal < 100
        assert fuel > 14
        assert trial["value"] == trial["outputs"]["mill"][1]


def test_the_stages_keep_all_digits(cement: Path) -> None:
    """Close inputs give different outputs, and the same inputs the same."""
    inputs = ['{"temperature": 1450.0, "burning": 25.0}', '{"burning": 25.000000000000004, "temperature": 1.45e3}']
    printed = [subprocess.check_output(["./kiln"], input=one, cwd=cement, text=True) for one in [*inputs, inputs[0]]]
    assert printed[0] == printed[2]
    assert json.loads(printed[0])["free_lime"] == pytest.approx(json.loads(printed[1])["free_lime"], abs=1e-12)
    assert printed[0] != printed[1]


def test_a_stage_without_its_inputs_says_so(cement: Path) -> None:
    for command in (["./kiln"], ["awk", "-f", "mill.awk"]):
        done = subprocess.run(command, input="{}", cwd=cement, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert "there is no" in done.stderr
