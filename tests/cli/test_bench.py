"""`cascada bench` as a user calls it."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from tests.experiments.bench_stubs import PLACE
from tests.missing import need_module

ALGORITHM = """
from cascada.algorithms import RandomSearch

class Own(RandomSearch):
    pass
"""


def call(*arguments: str, out: Path, algorithms: str = "random_search") -> list[str]:
    problems = ["--problems", "certified-feed-forward"]
    size = ["--seeds", "1", "--budget", "2", "--initial", "3", "--jobs", "1"]
    return ["bench", *problems, "--algorithms", algorithms, "--out", str(out), *size, *arguments]


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


def test_bench_writes_all_files_and_prints_the_table(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_module("matplotlib", "paper")
    (tmp_path / "own_algorithm.py").write_text(ALGORITHM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    out, names = tmp_path / "out", "random_search, own_algorithm:Own"
    result = runner.invoke(app, call(out=out, algorithms=names))
    assert result.exit_code == 0, result.output
    table = (out / "table.md").read_text(encoding="utf-8")
    assert table in result.stdout
    assert "2 evaluations after 3 uniform random ones, one seed." in table
    assert "| own_algorithm:Own | 0      | 1     | 0     | 1     | undecided |" in table, "the same generator"
    for name in ("records.jsonl", "cpu.jsonl", "table.md", "regret-certified-feed-forward.png"):
        assert str(out / name) in result.output
        assert (out / name).stat().st_size > 0
    assert result.stderr == "1 of 2 runs\n2 of 2 runs\n"

    again = runner.invoke(app, call("--json", out=out, algorithms=names))
    assert again.exit_code == 0
    assert again.stderr == ""
    printed = json.loads(again.stdout)
    assert list(printed) == ["records", "cpu", "table", "figures", "failed", "summary"]
    assert printed["failed"] == 0
    assert all(Path(path).exists() for path in printed["figures"])
    assert printed["summary"][0]["comparisons"][0]["verdict"] == "undecided"

    other = runner.invoke(app, call("--gaps", out=out))
    assert other.exit_code == 2
    assert "holds results of other settings (gaps False there, True now)" in other.output


def test_bench_exits_with_code_1_if_every_run_failed(runner: CliRunner, tmp_path: Path) -> None:
    failing = f"{PLACE}:Sometimes"
    result = runner.invoke(app, call("--no-plots", out=tmp_path / "out", algorithms=failing))
    assert result.exit_code == 1
    assert f"1 of 1 runs of {failing} failed" in result.output
    assert "Traceback" not in result.output


def test_bench_without_matplotlib_fails_before_it_writes_anything(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = runner.invoke(app, call(out=tmp_path / "out"))
    assert result.exit_code == 2
    assert "pip install 'cascada[paper]'" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--problems", "nowhere"], "there is no problem 'nowhere'"),
        (["--problems", ","], "problems must be at least one name"),
        (["--algorithms", "best"], "algorithm must be one of auto"),
        (["--budget", "0"], "--budget"),
        (["--seeds", "0"], "--seeds"),
        (["--initial", "0"], "--initial"),
        (["--jobs", "0"], "--jobs"),
    ],
)
def test_invalid_options_exit_with_code_2_and_write_nothing(
    runner: CliRunner, tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = runner.invoke(app, call(*arguments, out=tmp_path / "out"))
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "out").exists()


def test_missing_options_exit_with_code_2(runner: CliRunner) -> None:
    assert runner.invoke(app, ["bench"]).exit_code == 2
