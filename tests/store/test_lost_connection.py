"""A server that goes away at any statement loses no result and writes none twice."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from cascada.errors import StoreError
from cascada.network import chain
from cascada.store import connection as store_connection
from cascada.store import database
from cascada.store.database import Store
from cascada.study import Study
from cascada.study.catalogue import delete_study, rename_study
from cascada.study.log_file import exported, import_log
from tests.network.cases import X, stage
from tests.store.servers import Server

CHAIN = chain(stage("f", controls=X), stage("g"))
OUTPUTS = {"f": 0.25, "g": 0.5}


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_connection, "_PAUSE", 0.01)


def opened(url: str, **options: Any) -> Study:
    return Study.open(url, "alloy", CHAIN, algorithm="random_search", **options)


def ended(url: str, pid: int) -> None:
    """End the process of a server that serves a connection, and wait until it has ended."""
    import psycopg  # type: ignore[import-not-found, unused-ignore]

    with psycopg.connect(url, autocommit=True) as administrator:
        administrator.execute("SELECT pg_terminate_backend(%s, 60000)", [pid])


def pid_of(connection: sa.Connection) -> int:
    driver: Any = connection.connection.dbapi_connection
    return int(driver.info.backend_pid)


@contextmanager
def connection_lost(url: str, place: str, number: int) -> Iterator[list[str]]:
    """End the connection once, before or after the statement of this number, or before or after the commit.

    Yield the statements that were sent.
    """
    sent: list[str] = []
    lost: list[int] = []

    def end(connection: sa.Connection) -> None:
        lost.append(pid_of(connection))
        ended(url, lost[0])

    def before(connection: sa.Connection, _cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)
        if place == "before" and len(sent) == number and not lost:
            end(connection)

    def after(connection: sa.Connection, *_: Any) -> None:
        if place == "after" and len(sent) == number and not lost:
            end(connection)

    def commit(connection: sa.Connection) -> None:
        if place == "before commit" and not lost:
            end(connection)
        elif place == "after commit" and not lost:
            connection.connection.commit()  # the server commits, and its answer is lost
            end(connection)

    listeners: dict[str, Callable[..., Any]] = {
        "before_cursor_execute": before,
        "after_cursor_execute": after,
        "commit": commit,
    }
    for event, listener in listeners.items():
        sa.event.listen(sa.Engine, event, listener)
    try:
        yield sent
    finally:
        for event, listener in listeners.items():
            sa.event.remove(sa.Engine, event, listener)
    assert lost or place == "never"


ACTS: dict[str, Callable[[Study], Any]] = {
    "ask": lambda study: study.ask(lease=60.0),
    "tell": lambda study: study.tell(0, OUTPUTS),
    "tell_stage": lambda study: study.tell_stage(0, "f", 0.25),
    "add": lambda study: study.add_trials([({"x": 1.0}, OUTPUTS, "line 1"), ({"x": 1.5}, {"f": 0.5}, "line 2")]),
    "fail": lambda study: study.fail(0, "broken"),
    "beat": lambda study: study.beat(0),
    "take up": lambda study: study.take_up(),
    "look": lambda study: study.trials,
}
PLACES = [*(("before", n) for n in (1, 2, 3, 4)), ("after", 1), ("after", 3), ("before commit", 0), ("after commit", 0)]


@pytest.mark.parametrize("act", ACTS)
def test_a_call_whose_connection_is_lost_does_the_same_as_any_other(postgres_url: str, act: str) -> None:
    expected: Any = None
    sent: list[str] = []
    for i, (place, number) in enumerate([("never", 0), *PLACES]):
        if number > len(sent) or ("commit" in place and act == "look"):
            continue
        name = f"study {i}"
        study = Study.open(postgres_url, name, CHAIN, algorithm="random_search")
        study.ask(lease=60.0)
        with connection_lost(postgres_url, place, number) as statements:
            found = ACTS[act](study)
        sent = sent or statements
        events = [(event.number, event.kind, event.trial, event.data) for event in study.events[1:]]
        again = Study.open(postgres_url, name)
        assert again.events == study.events
        assert again.trials == study.trials
        expected = expected or (found, events)
        assert (found, events) == expected, (place, number)


def test_a_change_is_made_on_what_others_wrote_while_the_server_was_away(postgres_url: str) -> None:
    study, other = opened(postgres_url), opened(postgres_url, worker="other")
    first = study.ask()
    assert first is not None
    trials: list[Any] = []
    lost: list[int] = []

    def commit(connection: sa.Connection) -> None:
        if not lost:
            lost.append(pid_of(connection))
            ended(postgres_url, lost[0])
            trials.append(other.ask())  # with the number that was to be written

    sa.event.listen(sa.Engine, "commit", commit)
    try:
        trial = study.ask()
    finally:
        sa.event.remove(sa.Engine, "commit", commit)
    assert trial is not None
    assert (trials[0].number, trial.number) == (1, 2)
    assert trial.controls != trials[0].controls
    assert [event.kind for event in study.events] == ["created", "asked", "asked", "asked"]
    assert opened(postgres_url).trials == study.trials


def test_studies_are_created_imported_renamed_and_deleted_once(postgres_url: str) -> None:
    lines = exported(Store(postgres_url), opened(postgres_url).name or "")
    for place in ("before commit", "after commit"):
        with connection_lost(postgres_url, place, 0):
            Study.open(postgres_url, "bronze", CHAIN)
        assert [event.kind for event in Study.open(postgres_url, "bronze").events] == ["created"]
        store = Store(postgres_url)
        with connection_lost(postgres_url, place, 0):
            import_log(store, "copy", lines)
        assert exported(store, "copy") == lines
        store.close()
        with connection_lost(postgres_url, place, 0):
            rename_study(postgres_url, "copy", "another")
        assert Store(postgres_url).studies() == ["alloy", "bronze", "another"]
        for name in ("bronze", "another"):
            with connection_lost(postgres_url, place, 0):
                delete_study(postgres_url, name)
        assert Store(postgres_url).studies() == ["alloy"]


def test_a_server_that_restarts_while_a_study_runs_loses_nothing(server: Server, postgres_url: str) -> None:
    study = opened(postgres_url)
    restarts: list[threading.Thread] = []

    def f(x: float) -> float:
        thread = threading.Thread(target=server.restart)
        thread.start()
        if restarts:  # one restart begins before a result is told, the others end before
            thread.join()
        restarts.append(thread)
        return 0.1 * x

    result = study.optimise([f, lambda f: 0.5 * f], budget=3, progress=False, lease=5.0)
    for thread in restarts:
        thread.join()
    assert (result.status, len(restarts)) == ("budget", 3)
    assert [trial.state for trial in Study.open(postgres_url, "alloy").trials] == ["complete"] * 3
    kinds = [event.kind for event in study.events]
    assert (kinds.count("asked"), kinds.count("observed"), kinds.count("told")) == (3, 3, 3)


def test_a_server_that_stays_away_ends_a_run_and_its_results_are_kept_in_a_file(
    server: Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(database, "AWAY", 0.2)
    study = opened(postgres_url)

    def f(x: float) -> float:
        server.stop()
        return 0.1 * x

    try:
        with pytest.raises(
            StoreError, match=r"cannot (read|write) the store: .* were written to \S+\.rescued\.jsonl"
        ) as error:
            study.optimise([f, lambda f: 0.5 * f], budget=3, progress=False, lease=0.2)
    finally:
        server.start()
    path = tmp_path / f"{sa.make_url(postgres_url).database}.rescued.jsonl"
    assert str(path) in str(error.value)
    store = Store(f"sqlite:///{tmp_path}/rescued.db")
    import_log(store, "alloy", path.read_text().splitlines())
    assert [trial.state for trial in Study.open(f"sqlite:///{tmp_path}/rescued.db", "alloy").trials] == ["complete"]
    assert [trial.state for trial in Study.open(postgres_url, "alloy").trials] == ["running"]
