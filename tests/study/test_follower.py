"""A read-only view of a stored study follows its log and writes nothing."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cascada.errors import ArgumentError, StoreError
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.space import Real
from cascada.store import read_only
from cascada.store.database import Store
from cascada.store.event import Event
from cascada.study import Study
from cascada.study.catalogue import follow
from cascada.study.follower import Follower


def sine(x: float) -> float:
    return math.sin(x)


def network(norm_bound: float = 2.0) -> Network:
    kernel = SquaredExponential(1.0)
    first = Stage("f", {"x": Real(-2, 2)}, kernel=kernel, norm_bound=norm_bound, function=sine)
    return chain(first, Stage("g", kernel=kernel, norm_bound=2.0, function=lambda f: 0.5 * f))


@dataclass(frozen=True)
class Mine:
    """An algorithm that the reader of a study cannot load."""

    def suggest(self, situation: Any, rng: Any) -> Any: ...

    def recommend(self, situation: Any) -> Any: ...


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/lab.db"


def followed(url: str, name: str = "lab") -> Follower:
    return follow(Store(url, read_only=True), name)


def test_a_follower_has_the_trials_and_the_gap_of_the_stored_study(url: str) -> None:
    study = Study.open(url, "lab", network(), algorithm="random_search")
    study.optimise(budget=4, progress=False)
    seen = followed(url)
    assert tuple(seen.trials) == study.trials
    assert seen.certificate().gap == study.certificate().gap
    before, changes = seen.trials, seen.state.changes
    study.enqueue_trial({"x": 1.0})
    trial = study.ask()
    assert trial is not None
    assert seen.trials == before  # unchanged until the next refresh
    seen.refresh()
    assert (len(seen.trials), seen.state.changes) == (5, changes + 1)  # the begin of a run does not count as a change
    study.tell(trial, {"f": 0.5, "g": 0.25})
    study.close()
    seen.refresh()
    assert tuple(seen.trials) == study.trials
    study.close()
    assert Store(url, read_only=True).heads()["lab"].events == seen.state.count


def test_a_read_only_store_creates_and_writes_nothing(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no file"):
        Store(url, read_only=True)
    (tmp_path / "lab.db").write_bytes(b"")
    with pytest.raises(StoreError, match=r"this is not a cascada store \(yet\): the file is empty"):
        Store(url, read_only=True)
    assert (tmp_path / "lab.db").read_bytes() == b""
    (tmp_path / "lab.db").unlink()
    study = Study.open(url, "lab", network(), algorithm="random_search")
    study.tell(study.ask(), {"f": 0.5, "g": 5.0})  # type: ignore[arg-type]
    study.close()
    before = (tmp_path / "lab.db").read_bytes()
    seen = followed(url)
    assert seen.certificate().kind == "refuted"
    store = Store(url, read_only=True)
    note = Event(seen.state.count, "note", None, {}, 0.0)
    with pytest.raises(StoreError, match="readonly"):
        store.change(1, lambda log: log.append(note))
    with pytest.raises(StoreError, match="readonly"):
        store.create("another", [])
    assert (tmp_path / "lab.db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["lab.db"]


def test_an_amended_study_is_outdated(url: str) -> None:
    Study.open(url, "lab", network(), algorithm="random_search").optimise(budget=2, progress=False)
    seen = followed(url)
    Study.open(url, "lab", network(3.0), amend=True)
    seen.refresh()
    assert seen.outdated
    assert not followed(url).outdated


def test_the_formula_of_a_known_stage_comes_from_a_given_network(url: str) -> None:
    made = chain(*network().stages, Stage("h", known=True, lipschitz=2.0, function=lambda g: 2 * g))
    Study.open(url, "lab", made.mirrored(), algorithm="random_search").optimise(budget=2, progress=False)
    with pytest.raises(ArgumentError, match="stage 'h' is a formula"):
        followed(url)
    seen = follow(Store(url, read_only=True), "lab", [network(), made])
    assert seen.network.sign == -1
    assert all(trial.value is not None for trial in seen.trials)


def test_a_follower_does_not_need_the_algorithm(url: str) -> None:
    study = Study.open(url, "lab", network(), algorithm=Mine())
    study.add_trial({"x": 0.0}, {"f": 0.0, "g": 0.0})
    assert followed(url).certificate().gap is not None


def test_a_follower_of_a_symbolic_link_sees_new_events(url: str, tmp_path: Path) -> None:
    study = Study.open(
        url, "lab", network(), algorithm="random_search"
    )  # kept open, so that new events are in the write-ahead log next to the file
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link.db").symlink_to(tmp_path / "lab.db")
    seen = followed(f"sqlite:///{tmp_path}/elsewhere/link.db")
    study.optimise(budget=3, progress=False)
    seen.refresh()
    assert tuple(seen.trials) == study.trials
    study.close()


def test_a_follower_of_a_restored_backup_is_outdated(url: str, tmp_path: Path) -> None:
    study = Study.open(url, "lab", network(), algorithm="random_search", seed=1)
    study.optimise(budget=2, progress=False)
    study.close()
    backup = (tmp_path / "lab.db").read_bytes()
    study = Study.open(url, "lab")
    for x in (0.1, 0.2):
        study.add_trial({"x": x}, {"f": math.sin(x), "g": 0.5 * math.sin(x)})
    study.close()
    seen = followed(url)
    (tmp_path / "lab.db").write_bytes(backup)
    study = Study.open(url, "lab")
    for x in (0.3, 0.4, 0.5):
        study.add_trial({"x": x}, {"f": math.sin(x), "g": 0.5 * math.sin(x)})
    study.close()
    assert not seen.outdated
    seen.refresh()
    assert seen.outdated


def test_a_refutation_in_the_log_is_found_by_refresh(url: str) -> None:
    study = Study.open(url, "lab", network(), algorithm="random_search")
    seen = followed(url)
    study.refute("the furnace was replaced")
    assert not seen.refuted
    seen.refresh()
    assert seen.refuted
    assert followed(url).refuted


def test_a_read_only_postgresql_store_does_not_write_and_does_not_wait_for_locks(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_only, "_LOCKED", 200)
    import psycopg

    study = Study.open(postgres_url, "lab", network(), algorithm="random_search")
    study.optimise(budget=2, progress=False)
    store = Store(postgres_url, read_only=True)
    seen = follow(store, "lab")
    assert tuple(seen.trials) == study.trials
    with pytest.raises(StoreError, match="read-only"):
        store.create("another", [])
    with psycopg.connect(postgres_url) as holder:
        holder.execute("LOCK TABLE cascada_events IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreError, match="lock timeout"):
            seen.refresh()
    study.tell(study.ask(), {"f": 0.5, "g": 0.25})  # type: ignore[arg-type]
    seen.refresh()
    assert tuple(seen.trials) == study.trials
    store.close()
    study.close()
