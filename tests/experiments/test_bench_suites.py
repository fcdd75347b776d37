"""Tests of the suites: their problems exist, those that cannot be run are skipped with a reason, users can add one."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from cascada.errors import ArgumentError
from cascada.experiments import bench_suites
from cascada.experiments.bench_suites import SUITES, suite
from cascada.problems import PROBLEMS, SIMULATORS
from tests.missing import need_module

DOCS = Path(__file__).parents[2] / "docs"
# The files that the pages show.
OWN_PROBLEM, OWN_ALGORITHM = (
    (DOCS / page).read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    for page in ("suite.md", "writing-an-algorithm.md")
)


def test_the_real_suite_has_eleven_problems_and_all_simulators() -> None:
    assert len(SUITES["real"]) == 11
    assert set(SIMULATORS) <= set(SUITES["real"]) <= set(PROBLEMS)


def test_problems_without_their_library_are_skipped_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_suites, "find_spec", lambda module: None if module in ("cantera", "pvlib") else module)
    runnable, skipped = suite("real")
    assert set(SUITES["real"]) - set(runnable) == {"combustor", "pv-plant"}
    assert skipped[0] == "combustor is skipped: cantera is not installed (pip install 'cascada[simulators]')."
    assert skipped[1].startswith("pv-plant is skipped: pvlib is not installed")
    with pytest.raises(ArgumentError, match="there is no suite 'easy'; the suites are real"):
        suite("easy")


def test_bench_runs_a_suite_and_says_what_it_skips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_suites, "SUITES", {"real": ("tablet", "combustor")})
    monkeypatch.setattr(bench_suites, "find_spec", lambda module: None if module == "cantera" else module)
    size = ["--seeds", "1", "--budget", "1", "--initial", "1", "--jobs", "1", "--no-plots"]
    arguments = ["bench", "--suite", "real", "--algorithms", "random_search", "--out", str(tmp_path), *size]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "combustor is skipped: cantera is not installed" in result.stderr
    assert "cost of a run 50: 50 in all" in result.stdout
    assert "1 (cost 50)" in result.stdout
    more = CliRunner().invoke(app, [*arguments, "--problems", "manufacturing"])
    assert more.exit_code == 0, more.output
    records = (tmp_path / "records.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(record)["problem"] for record in records] == ["manufacturing", "tablet"]
    twice = CliRunner().invoke(app, [*arguments, "--problems", "tablet"])
    assert twice.exit_code == 2
    assert "problems must be at least one name, each given once; got tablet twice" in twice.stderr


def test_an_own_problem_and_an_own_algorithm_are_one_file_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_module("matplotlib", "paper")
    (tmp_path / "own_tank.py").write_text(OWN_PROBLEM, encoding="utf-8")
    (tmp_path / "greedy.py").write_text(OWN_ALGORITHM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    size = ["--seeds", "1", "--budget", "2", "--initial", "2", "--jobs", "1", "--json"]
    algorithms = ["--algorithms", "random_search,greedy:GreedyMean"]
    arguments = ["bench", "--problems", "own_tank:tank", *algorithms, "--out", "out", *size]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert (printed["failed"], printed["summary"][0]["cost"]) == (0, 3.0)
    records = Path(printed["records"]).read_text(encoding="utf-8").splitlines()
    assert {json.loads(record)["algorithm"] for record in records} == {"random_search", "greedy:GreedyMean"}
    assert all(Path(path).exists() for path in printed["figures"])
