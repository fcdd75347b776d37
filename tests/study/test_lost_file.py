"""A SQLite file that is deleted, truncated, overwritten or replaced during a run: an error says so, and all is kept."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from cascada.errors import StoreError
from cascada.network import chain
from cascada.store import connection as store_connection
from cascada.store import read_only
from cascada.store.database import Store
from cascada.study import Study
from cascada.study.log_file import import_log
from tests.network.cases import X, stage

CHAIN = chain(stage("f", controls=X), stage("g"))
BUDGET = 4


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE notes (text)")
        connection.executemany("INSERT INTO notes VALUES (?)", [("x" * 5000,)] * 20)


def replace(path: Path) -> None:
    foreign(path.with_name("other.db"))
    path.with_name("other.db").replace(path)


def overwrite(path: Path) -> None:
    checkpoint(path)  # otherwise all of the store is still in the write-ahead log, and nothing is lost
    foreign(path.with_name("other.db"))
    path.write_bytes(path.with_name("other.db").read_bytes())


def checkpoint(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def truncate(path: Path) -> None:
    checkpoint(path)
    os.truncate(path, 0)


def damage(path: Path) -> None:
    checkpoint(path)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))


def delete(path: Path) -> None:
    path.unlink()


def move(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def restore(path: Path) -> None:
    """Put an older copy in its place."""
    shutil.copy(path.with_name("backup.db"), path.with_name("copy.db"))
    path.with_name("copy.db").replace(path)


def clear(path: Path) -> None:
    """Delete the last events, as an administrator could."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM cascada_events WHERE number > 3")


LOSSES: list[Callable[[Path], None]] = [delete, move, replace, overwrite, truncate, damage, restore, clear]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "lab" / "alloy.db"
    path.parent.mkdir()
    return path


def opened(path: Path) -> Study:
    return Study.open(f"sqlite:///{path}", "alloy", CHAIN, algorithm="random_search")


def rescued(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("last", [True, False], ids=["in the last run", "in the second run"])
def test_a_store_that_was_lost_ends_a_run_and_the_log_is_kept_beside_it(
    path: Path, loss: Callable[[Path], None], last: bool
) -> None:
    study, runs = opened(path), 0
    shutil.copy(path, path.with_name("backup.db"))

    def g(f: float) -> float:
        nonlocal runs
        runs += 1
        if runs == (BUDGET if last else 2):
            loss(path)
        return 0.5 * f

    with pytest.raises(
        StoreError, match=r"were written to .*alloy\.db\.rescued\.jsonl; `cascada import` makes a study"
    ):
        study.optimise([lambda x: 0.1 * x, g], budget=BUDGET, progress=False)
    kept = path.with_name("alloy.db.rescued.jsonl")
    store = Store(f"sqlite:///{path.with_name('again.db')}")
    assert import_log(store, "alloy", kept.read_text().splitlines()) == len(rescued(kept))
    trials = Study.open(f"sqlite:///{path.with_name('again.db')}", "alloy").trials
    complete = [trial for trial in trials if trial.state == "complete"]
    assert len(complete) >= (BUDGET if last else 2)
    assert all(trial.outputs["f"] == (0.1 * trial.controls["x"],) for trial in complete)
    assert not list(path.parent.glob(".*")), "a temporary file is left"


@pytest.mark.parametrize("loss", LOSSES)
def test_a_store_that_is_lost_after_the_last_run_is_noticed(path: Path, loss: Callable[[Path], None]) -> None:
    study = opened(path)
    shutil.copy(path, path.with_name("backup.db"))
    study.optimise([lambda x: 0.1 * x, lambda f: 0.5 * f], budget=3, progress=False)
    study.verify()
    loss(path)
    with pytest.raises(
        StoreError, match=r"the file .* of the store|cannot read the store|does not hold what was written"
    ):
        study.verify()


def test_a_file_that_another_process_holds_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one does that ends: it writes its log into the file."""
    monkeypatch.setattr(read_only, "_WAIT", 0.0)  # for reading commands, which are repeated
    study = opened(path)
    study.ask()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        released = Timer(0.2, other.close)

        def hold(*_: object) -> None:
            other.execute("PRAGMA locking_mode=EXCLUSIVE")
            other.execute("BEGIN IMMEDIATE")
            released.start()

        monkeypatch.setattr(store_connection.StoreFile, "check", hold)
        study.verify()
        released.join()


def test_a_deleted_file_is_not_written_to_any_more(path: Path) -> None:
    study = opened(path)
    trial = study.ask()
    assert trial is not None
    path.unlink()
    with pytest.raises(StoreError, match=r"alloy\.db of the store is not there any more: it was deleted or moved"):
        study.tell(trial, {"f": 0.1, "g": 0.2})
    assert not path.exists()


def test_an_existing_file_is_never_overwritten_by_a_rescue(path: Path) -> None:
    path.with_name("alloy.db.rescued.jsonl").write_text("mine")

    def g(f: float) -> float:
        path.unlink()
        return 0.5 * f

    with pytest.raises(StoreError, match=r"alloy\.db\.rescued-2\.jsonl"):
        opened(path).optimise([lambda x: 0.1 * x, g], budget=1, progress=False)
    assert path.with_name("alloy.db.rescued.jsonl").read_text() == "mine"
    assert rescued(path.with_name("alloy.db.rescued-2.jsonl"))[-1]["kind"] == "told"


def test_a_folder_that_is_gone_leaves_the_working_folder_for_the_rescue(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    def g(f: float) -> float:
        shutil.rmtree(path.parent)
        return 0.5 * f

    with pytest.raises(StoreError, match=r"is not there any more.*were written to"):
        opened(path).optimise([lambda x: 0.1 * x, g], budget=1, progress=False)
    kept = tmp_path / "alloy.db.rescued.jsonl"
    assert rescued(kept)[-1]["kind"] == "told"
    assert kept.stat().st_mode & 0o077 == 0, "the store may have been private"


def test_a_store_that_is_whole_needs_no_rescue(path: Path) -> None:
    """An error for another reason stays as it is."""

    def amends(f: float) -> float:
        wider = chain(stage("f", controls=X, norm_bound=3.0), stage("g"))
        Study.open(f"sqlite:///{path}", "alloy", wider, amend=True).close()
        return 0.5 * f

    with pytest.raises(StoreError, match=r"^the study 'alloy' was amended by another process; open it again\.$"):
        opened(path).optimise([lambda x: 0.1 * x, amends], budget=3, progress=False)
    assert not list(path.parent.glob("*.jsonl"))


@pytest.mark.parametrize("command", ["run", "worker"])
def test_a_command_does_not_say_that_all_is_in_a_study_that_was_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (path.parent / "lost.py").write_text(
        f"""
import os
import cascada as cd

def f(x):
    if x != x_before[0]:
        x_before[0] = x
        runs.append(x)
    if len(runs) == 3:
        os.unlink({str(path)!r})
    return 0.1 * x

runs, x_before = [], [None]
kernel = cd.SquaredExponential(1.0)
network = cd.chain(cd.Stage("f", controls={{"x": cd.Real(-2, 2)}}, kernel=kernel, norm_bound=2.0, function=f))
"""
    )
    monkeypatch.chdir(path.parent)
    url = f"sqlite:///{path}"
    call = [command, "lost.py:network", "--storage", url, "--study", "alloy", "--budget", "3"]
    result = CliRunner().invoke(app, [*call, "--json"])
    assert result.exit_code == 1, result.output
    assert "All of it is in" not in result.output
    assert "is not there any more" in result.stderr
    assert "alloy.db.rescued.jsonl" in result.stderr
    imported = CliRunner().invoke(app, ["import", f"{path}.rescued.jsonl", "--study", "alloy", "--storage", url])
    assert imported.exit_code == 0, imported.output
    again = CliRunner().invoke(app, call)
    assert again.exit_code == 0, again.output
    assert "All of it is in the study 'alloy'." in again.stdout
