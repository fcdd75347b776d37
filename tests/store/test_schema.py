"""The schema number of a store: it rises with the first event that older versions cannot read, and not before."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cascada.errors import StoreError
from cascada.network import Network, chain
from cascada.store import database
from cascada.store.database import Store
from cascada.store.description import completed
from cascada.study import Study
from cascada.study.log_file import exported, import_log
from tests.network.cases import X, stage

CHAIN = chain(stage("f", controls=X), stage("g"))


def about(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT key, value FROM cascada").fetchall())


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store as 0.1.0 wrote it: schema 1, and a description with all its defaults."""
    path = tmp_path / "old.db"
    study = Study.open(f"sqlite:///{path}", "alloy", CHAIN)
    whole = json.dumps(completed(study.events[0].data), sort_keys=True)
    study.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE cascada_events SET data = ?", (whole,))
        connection.execute("DELETE FROM cascada WHERE key = 'needs'")
        connection.execute("UPDATE cascada SET value = '1' WHERE key = 'schema'")
    return path


def test_a_new_store_has_the_first_schema_until_a_study_is_created(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    Store(f"sqlite:///{path}").close()
    assert about(path) == {"schema": "1"}
    Study.open(f"sqlite:///{path}", "alloy", CHAIN)
    assert about(path) == {"schema": "2", "needs": "0.2.0"}


def test_an_old_store_that_is_asked_and_told_keeps_its_schema(old: Path) -> None:
    study = Study.open(f"sqlite:///{old}", "alloy", CHAIN)
    trial = study.ask(lease=60.0)
    assert trial is not None
    study.tell_stage(trial, "f", 0.5)
    study.tell(trial, {"g": 1.0})
    study.enqueue_trial({"x": 0.5})
    study.fail(1, "broken")
    study.add_trial({"x": 1.0}, {"f": 0.25})
    study.note("a new furnace")
    study.certificate()
    study.close()
    assert about(old) == {"schema": "1"}


@pytest.mark.parametrize("act", ["correct", "retract", "revise", "amend", "create", "import"])
def test_an_event_that_older_versions_cannot_read_raises_the_schema(old: Path, act: str) -> None:
    url = f"sqlite:///{old}"
    study = Study.open(url, "alloy", CHAIN)
    study.add_trial({"x": 1.0}, {"f": 0.25})
    assert about(old)["schema"] == "1"
    wider: Network = chain(stage("f", controls=X, norm_bound=3.0), stage("g"))
    if act == "correct":
        study.correct(0, "f", 0.5)
    elif act == "retract":
        study.retract(0, "f")
    elif act == "revise":
        trial = study.begin_trial({"x": 0.5})
        study._changed(lambda change: change.revise(trial.number, study.worker, {"x": 0.75}))
    elif act == "amend":
        Study.open(url, "alloy", wider, amend=True)
    elif act == "create":
        Study.open(url, "another", CHAIN)
    else:
        store = Store(url)
        import_log(store, "copy", exported(store, "alloy"))
    assert about(old) == {"schema": "2", "needs": "0.2.0"}
    assert Study.open(url, "alloy").network.nodes[0].stage.norm_bound == (3.0 if act == "amend" else 2.0)


def test_a_correction_that_is_refused_leaves_the_schema(old: Path) -> None:
    study = Study.open(f"sqlite:///{old}", "alloy", CHAIN)
    study.add_trial({"x": 1.0}, {"f": 0.25})
    with pytest.raises(ValueError, match="nothing to correct"):
        study.correct(0, "f", 0.25)
    assert about(old) == {"schema": "1"}


def test_an_older_version_is_told_which_one_to_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    Study.open(url, "alloy", CHAIN).close()
    monkeypatch.setattr(database, "SCHEMA", 1)
    with pytest.raises(StoreError, match=r"this store has schema 2, .* knows schema 1; use 0\.2\.0, or a newer one"):
        Store(url)
