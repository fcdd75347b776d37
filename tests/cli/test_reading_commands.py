"""Commands that read a store write nothing: not to a store, nor to a file or database of another program."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cascada.cli.main import app
from cascada.network import Stage, chain
from cascada.space import Real
from cascada.store.database import Store
from cascada.study import Study
from tests.missing import need_module
from tests.network.cases import X, stage

CHAIN = chain(stage("f", controls=X), stage("g"))
READING = {
    "status": ("status",),
    "status of one": ("status", "--study", "alloy"),
    "best": ("best", "--study", "alloy"),
    "trials": ("trials", "--study", "alloy"),
    "trials as csv": ("trials", "--study", "alloy", "--csv"),
    "export": ("export", "--study", "alloy"),
    "report": ("report", "--out", os.devnull),
    "studies": ("studies",),
}
WRITING = {
    "ask": ("ask", "--study", "alloy"),
    "tell": ("tell", "--study", "alloy", "0", "{}"),
    "fail": ("fail", "--study", "alloy", "0"),
    "enqueue": ("enqueue", "--study", "alloy", "{}"),
    "rename": ("rename", "alloy", "bronze"),
    "delete": ("delete", "alloy", "--yes"),
}


def call(arguments: tuple[str, ...], url: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--storage", url])


def seen(folder: Path) -> dict[str, tuple[bytes, int]]:
    """The contents of a folder, with the times of their last changes."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Path]:
    """A folder with a store that nobody has open; nothing in it may be written to."""
    folder = tmp_path / "lab"
    folder.mkdir()
    study = Study.open(f"sqlite:///{folder}/alloy.db", "alloy", CHAIN, algorithm="random_search")
    for x in (0.0, 0.5, 1.0):
        study.add_trial({"x": x}, {"f": 0.1 * x, "g": 0.1 * x})
    study.ask(lease=60.0)
    study.close()
    (folder / "alloy.db").chmod(0o444)
    folder.chmod(0o555)  # which root may write to all the same
    yield folder
    folder.chmod(0o755)


@pytest.mark.parametrize("name", READING)
def test_a_store_is_read_in_a_folder_that_may_not_be_written_to(lab: Path, name: str) -> None:
    if name == "report":
        need_module("plotly", "report")
    before = seen(lab)
    result = call(READING[name], f"sqlite:///{lab}/alloy.db")
    assert result.exit_code == 0, result.output
    assert seen(lab) == before


def test_a_store_with_a_formula_is_read_with_its_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "process.py").write_text(
        "import cascada as cd\n"
        "kernel = cd.SquaredExponential(1.0)\n"
        "first = cd.Stage('f', controls={'x': cd.Real(-2, 2)}, kernel=kernel, norm_bound=2.0)\n"
        "network = cd.chain(first, cd.Stage('h', known=True, lipschitz=2.0, function=lambda f: 2 * f))\n"
        "other = cd.chain(first, cd.Stage('k', known=True, lipschitz=2.0, function=lambda f: 2 * f))\n"
    )
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/alloy.db"
    made = chain(
        stage("f", controls={"x": Real(-2, 2)}), Stage("h", known=True, lipschitz=2.0, function=lambda f: 2 * f)
    )
    study = Study.open(url, "alloy", made.mirrored())
    study.add_trial({"x": 0.5}, {"f": 0.25})
    study.close()
    before = seen(tmp_path)["alloy.db"]
    found = call(("best", "--study", "alloy", "--spec", "process.py:network"), url)
    assert (found.exit_code, "best value  0.5 (trial 0)" in found.stdout) == (0, True), found.output
    other = call(("best", "--study", "alloy", "--spec", "process.py:other"), url)
    assert (other.exit_code, "the study 'alloy' is stored otherwise" in other.stderr) == (2, True), other.output
    assert call(("best", "--study", "alloy"), url).exit_code == 2
    assert seen(tmp_path)["alloy.db"] == before


def foreign(path: Path, mode: str = "DELETE") -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA journal_mode={mode}")
        for name in ("customers", "orders", "prices", "suppliers"):
            connection.execute(f"CREATE TABLE {name} (name)")


def check_refused(result: Result, *texts: str) -> None:
    assert result.exit_code == 1, result.output
    assert all(text in result.stderr for text in texts), result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", [*READING, *WRITING])
def test_a_database_of_another_program_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    arguments = (READING | WRITING)[name]
    for mode in ("DELETE", "WAL"):
        path = tmp_path / mode / "shop.db"
        path.parent.mkdir()
        foreign(path, mode)
        before = seen(path.parent)
        found = (
            "this is not a cascada store: it has the tables of another program (customers, orders, prices and 1 more)"
        )
        check_refused(call(arguments, f"sqlite:///{path}"), found, "Check the address")
        assert seen(path.parent) == before


@pytest.mark.parametrize("name", [*READING, *WRITING])
def test_files_that_are_no_database_are_left_as_they_are(tmp_path: Path, name: str) -> None:
    contents = {"empty.db": (b"", "the file is empty"), "text.db": (b"x,y\n1,2\n" * 200, "not a database of SQLite")}
    for file, (content, text) in contents.items():
        (tmp_path / file).write_bytes(content)
        before = seen(tmp_path)
        result = call((READING | WRITING)[name], f"sqlite:///{tmp_path / file}")
        check_refused(result, "this is not a cascada store", text)
        assert seen(tmp_path) == before


@pytest.mark.parametrize("name", [*READING, *WRITING])
def test_a_file_that_is_missing_is_not_created(tmp_path: Path, name: str) -> None:
    check_refused(call((READING | WRITING)[name], f"sqlite:///{tmp_path}/typo.db"), "there is no store at")
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_database_of_a_server_is_left_as_it_is(postgres_url: str) -> None:
    import psycopg  # type: ignore[import-not-found, unused-ignore]

    def tables() -> list[str]:
        with psycopg.connect(postgres_url) as connection:
            found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return sorted(row[0] for row in found)

    for arguments in (READING | WRITING).values():
        check_refused(call(arguments, postgres_url), "this is not a cascada store (yet): the database has no tables")
    assert tables() == []
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE orders (name text)")
    for arguments in (READING | WRITING).values():
        check_refused(call(arguments, postgres_url), "it has the tables of another program (orders)")
    assert tables() == ["orders"]
    Study.open(postgres_url, "alloy", CHAIN).close()  # a command that creates a study may share the database
    assert Store(postgres_url, read_only=True).studies() == ["alloy"]


def test_readers_of_a_store_that_is_written_to_see_the_newest_events(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/alloy.db"
    study = Study.open(url, "alloy", CHAIN, algorithm="random_search")  # new events are in the write-ahead log
    for x in (0.0, 0.5):
        study.add_trial({"x": x}, {"f": 0.1 * x, "g": 0.2 * x})
        result = call(("best", "--study", "alloy"), url)
        assert f"best value  {0.2 * x!r}" in result.stdout, result.output
    study.close()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("disk I/O error", "the disk reported an error (disk I/O error). Check that it is mounted"),
        ("database disk image is malformed", "its file is damaged (database disk image is malformed). Restore it"),
        ("attempt to write a readonly database", "the file or its folder may not be written to"),
        ("database or disk is full", "the disk is full (database or disk is full). Free some space"),
        ("database is locked", "another process holds it (database is locked). Wait until it has ended"),
    ],
)
def test_errors_of_the_database_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, meant: str
) -> None:
    import sqlalchemy as sa

    Study.open(f"sqlite:///{tmp_path}/alloy.db", "alloy", CHAIN).close()

    def fails(*_: object) -> None:
        raise sa.exc.OperationalError("SELECT 1", None, sqlite3.OperationalError(said))

    monkeypatch.setattr("cascada.store.database.read_events", fails)
    check_refused(
        call(("status", "--study", "alloy"), f"sqlite:///{tmp_path}/alloy.db"), f"cannot read the store: {meant}"
    )


def test_a_damaged_store_is_reported_as_one(tmp_path: Path) -> None:
    path = tmp_path / "alloy.db"
    study = Study.open(f"sqlite:///{path}", "alloy", CHAIN, algorithm="random_search")
    for i in range(200):
        study.note("x" * 200 + str(i))
    study.close()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2 // 4096 * 4096])
    for arguments in (("status", "--study", "alloy"), ("ask", "--study", "alloy")):
        check_refused(call(arguments, f"sqlite:///{path}"), "its file is damaged")


def test_a_store_whose_mode_cannot_be_changed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "alloy.db"
    Study.open(f"sqlite:///{path}", "alloy", CHAIN).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=DELETE")  # as after a backup by another program
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr("time.sleep", lambda _: None)
        monkeypatch.setattr("cascada.store.connection.WAIT", 0.01)
        check_refused(call(("ask", "--study", "alloy"), f"sqlite:///{path}"), "another process holds it")
