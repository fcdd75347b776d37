"""Stores that released versions wrote: they open, say the same as then, and go on. See tests/data/stores/README.md."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import cascada as cd
from cascada.cli.main import app
from tests.environment import environment
from tests.missing import need_module
from tests.old_stores import FOLDER, MAKERS, PROCESSES, VERSION, asked, in_words, taken

EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
EXACT: bool = EXPECTED["environment"] == environment()
# Elsewhere, bounds differ in their last digits; estimated ones, which follow from a fit, by up to 0.02 %.
# A bound may be rounded otherwise than by the code that wrote the stores; the points that follow may not differ.
BOUNDS, POINTS = (1e-14, 0.0) if EXACT else (1e-3, 1e-6)


@pytest.fixture(params=list(MAKERS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(name: str, tmp_path: Path) -> str:
    """A copy of the store: opening it may write to it."""
    shutil.copy(FOLDER / f"{name}-{VERSION}.sqlite3", tmp_path / "old.db")
    return f"sqlite:///{tmp_path / 'old.db'}"


def close_to(text: str | None, relative: float) -> Any:
    """What equals a recorded number, to the last bit if `relative` is 0."""
    return None if text is None else pytest.approx(float.fromhex(text), rel=relative, abs=relative)


def call(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_store_has_its_files() -> None:
    assert {path.stem for path in FOLDER.glob("*.sqlite3")} == {f"{name}-{VERSION}" for name in MAKERS}
    assert set(EXPECTED["stores"]) == set(MAKERS)
    assert not list(FOLDER.glob("*-wal"))


def test_an_old_study_has_the_same_trials_and_the_same_best(url: str, name: str) -> None:
    study, expected = cd.Study.open(url, name), EXPECTED["stores"][name]
    assert [in_words(trial) for trial in study.trials] == expected["trials"]
    assert study.best_trial is not None
    assert study.best_trial.number == expected["best"]


def test_an_old_study_has_the_same_proven_certificate(url: str, name: str) -> None:
    certificate, expected = cd.Study.open(url, name).certificate(), EXPECTED["stores"][name]["certificate"]
    assert certificate.kind == expected["kind"]
    assert list(certificate.evidence) == expected["evidence"]
    assert certificate.best == close_to(expected["best"], 0.0)
    if certificate.kind == "estimated":  # what an estimate rests on may change; what is proven may not
        assert certificate.gap is not None
        assert certificate.gap >= 0
        return
    assert certificate.bound == close_to(expected["bound"], BOUNDS)
    assert certificate.gap == close_to(expected["gap"], BOUNDS)


@pytest.mark.parametrize("algorithm", [None, "auto"])
def test_an_old_study_suggests_the_same_point(url: str, name: str, algorithm: str | None) -> None:
    study, expected = cd.Study.open(url, name, algorithm=algorithm), EXPECTED["stores"][name]
    made = asked(study, len(expected["trials"]))
    assert len(made) == len(expected["next"])
    estimated = expected["certificate"]["kind"] == "estimated"
    for got, wanted in zip(made, expected["next"], strict=True):
        if isinstance(wanted, str):  # an error
            assert got == wanted
            continue
        assert got[0] == wanted[0]
        if estimated and got[0] == len(expected["trials"]):  # a version with another search chooses another
            continue
        assert {key: float.fromhex(text) for key, text in got[1].items()} == {
            key: close_to(text, POINTS) for key, text in wanted[1].items()
        }


def test_an_old_study_suggests_the_same_point_whenever_it_is_opened(url: str, name: str, tmp_path: Path) -> None:
    shutil.copy(tmp_path / "old.db", tmp_path / "copy.db")
    trials = len(EXPECTED["stores"][name]["trials"])
    copy = cd.Study.open(f"sqlite:///{tmp_path / 'copy.db'}", name)
    assert asked(cd.Study.open(url, name), trials) == asked(copy, trials)


def test_an_old_study_goes_on(url: str, name: str) -> None:
    study = cd.Study.open(url, name)
    if name == "refuted":
        with pytest.raises(cd.RefutedError, match="the furnace drifts"):
            study.ask()
        trial = study.enqueue_trial({"x": 0.75})
    else:
        trial = taken(study)
    told = study.tell(trial, PROCESSES[name](trial.controls))
    assert told.state == "complete"
    assert study.certificate().kind == EXPECTED["stores"][name]["certificate"]["kind"]
    if name != "refuted":
        assert taken(study).state == "running"
    study.close()
    again = cd.Study.open(url, name)
    assert again.trials[trial.number] == told
    assert len(again.trials) >= len(EXPECTED["stores"][name]["trials"])


def test_an_old_study_is_exported_and_imported(url: str, name: str, tmp_path: Path) -> None:
    lines = call("export", "--study", name, "--storage", url).splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    old = (FOLDER / f"{name}-{VERSION}.jsonl").read_text(encoding="utf-8").splitlines()
    assert kinds == [json.loads(line)["kind"] for line in old]
    (tmp_path / "log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    new = f"sqlite:///{tmp_path / 'new.db'}"
    call("import", str(tmp_path / "log.jsonl"), "--study", "now", "--storage", new)
    call("import", str(FOLDER / f"{name}-{VERSION}.jsonl"), "--study", "then", "--storage", new)
    expected = EXPECTED["stores"][name]["trials"]
    for study in ("now", "then"):
        assert [in_words(trial) for trial in cd.Study.open(new, study).trials] == expected


def test_an_old_study_has_a_status_and_a_report(url: str, name: str, tmp_path: Path) -> None:
    need_module("plotly", "report")
    counts = json.loads(call("status", "--study", name, "--storage", url, "--json"))["trials"]
    states = [trial[0] for trial in EXPECTED["stores"][name]["trials"]]
    assert {state: number for state, number in counts.items() if number} == {s: states.count(s) for s in set(states)}
    call("report", "--study", name, "--storage", url, "-o", str(tmp_path / "page.html"))
    assert name in (tmp_path / "page.html").read_text(encoding="utf-8")
