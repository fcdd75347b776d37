"""`cascada reproduce` as a user calls it, with fast stubs instead of the paper's algorithms."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cascada.cli import reproduce as command
from cascada.cli.main import app
from cascada.experiments import figures
from cascada.experiments.reproduce import reproduce
from tests.experiments import stubs
from tests.experiments.workers import forked_workers
from tests.missing import need_module

FIGURES = ("stages", "oi", "cumulative", "simple", "family")


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setattr(command, "QUICK", stubs.TINY)
    monkeypatch.setattr(command, "reproduce_paper", partial(reproduce, work=stubs.instant))
    return CliRunner()


def check_figure(path: Path) -> None:
    """Check that the file of a figure is valid, of a sensible size, and without a date."""
    from matplotlib.image import imread

    content = path.read_bytes()
    assert 5_000 < len(content) < 1_000_000, path.name
    if path.suffix == ".pdf":
        assert content.startswith(b"%PDF-")
        assert content.rstrip().endswith(b"%%EOF")
        assert b"CreationDate" not in content
    else:
        height, width, _ = imread(path).shape
        assert 1000 < width < 3000
        assert 500 < height < 3000


def test_reproduce_writes_all_files_and_prints_the_claims(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_module("matplotlib", "paper")
    from matplotlib import rcParams

    out, before = tmp_path / "deep" / "out", dict(rcParams)
    result = runner.invoke(app, ["reproduce", "--quick", "--out", str(out), "--jobs", "1"])
    assert result.exit_code == 0, result.output
    assert dict(rcParams) == before
    text = (out / "results.json").read_text(encoding="utf-8")
    found = json.loads(text)
    assert text.endswith("}\n")
    assert list(found) == ["settings", "family", "chains", "g1", "g2", "runs", "non_adaptive", "claims"]
    assert found["claims"]
    for path in ("results.json", "claims.md", "stages.png", "simple.pdf"):
        assert str(out / path) in result.output
        assert (out / path).stat().st_size > 0
    lines = (out / "claims.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# The paper's claims"
    assert all(line in result.stdout for line in lines[2:])
    assert "65 of 65 runs" in result.stderr
    contents = {path.name: path.read_bytes() for path in out.glob("*.p*")}
    assert set(contents) == {f"{name}.{kind}" for name in FIGURES for kind in ("pdf", "png")}
    for name in contents:
        check_figure(out / name)

    # The same results give the same figures, over the files of before.
    drawn: list[tuple[Any, Path]] = []
    draw = figures.draw

    def redraw(results: Any, folder: Path) -> list[Path]:
        drawn.append((results, folder))
        return draw(results, folder)

    monkeypatch.setattr(figures, "draw", redraw)
    again = runner.invoke(app, ["reproduce", "--quick", "--out", str(out), "--jobs", "2", "--json"])
    assert again.exit_code == 0
    assert again.stderr == ""
    printed = json.loads(again.stdout)
    assert list(printed) == ["out", "results", "figures", "claims"]
    assert printed["results"] == str(out / "results.json")
    assert printed["claims"] == found["claims"]
    assert printed["figures"] == [str(out / f"{name}.{kind}") for name in FIGURES for kind in ("pdf", "png")]
    assert [name for name, content in contents.items() if (out / name).read_bytes() != content] == []
    assert [(json.loads(json.dumps(results)), folder) for results, folder in drawn] == [(found, out)]
    assert (out / "results.json").read_text(encoding="utf-8") == text

    other = runner.invoke(app, ["reproduce", "--quick", "--out", str(out), "--seed", "5"])
    assert other.exit_code == 2
    assert "holds results of other settings (seed 0 there, 5 now)" in other.output


def test_reproduce_without_matplotlib_fails_before_it_writes_anything(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = runner.invoke(app, ["reproduce", "--quick", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "pip install 'cascada[paper]'" in result.output
    assert not (tmp_path / "out").exists()


def test_a_dead_worker_is_one_line_and_exit_code_1(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fatal = partial(stubs.fatal, str(tmp_path / "log"))
    monkeypatch.setattr(command, "reproduce_paper", partial(reproduce, work=fatal))
    with forked_workers():
        result = runner.invoke(app, ["reproduce", "--quick", "--out", str(tmp_path / "out"), "--json"])
    assert result.exit_code == 1
    assert "cascada: a worker process died" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("wrong", [[], ["--out", "x", "--jobs", "0"], ["--out", "x", "--seed", "-1"]])
def test_invalid_options_exit_with_code_2(runner: CliRunner, wrong: list[str]) -> None:
    assert runner.invoke(app, ["reproduce", *wrong]).exit_code == 2
