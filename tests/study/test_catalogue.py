"""The studies of a store from Python: listed, renamed and deleted; and processes loaded from files."""

from pathlib import Path

import pytest

import cascada as cd
from cascada.errors import ArgumentError, StoreError
from cascada.network import chain
from cascada.store.summary import StudySummary
from tests.network.cases import X, stage

CHAIN = chain(stage("f", controls=X), stage("g"))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/studies.db"
    found: str = request.getfixturevalue("postgres_url")
    return found


def test_studies_are_listed_in_the_order_of_their_creation(url: str) -> None:
    first = cd.Study.open(url, "first", CHAIN)
    second = cd.Study.open(url, "second", CHAIN.mirrored())
    first.add_trial({"x": 0.5}, {"f": 0.25, "g": 1.0})
    first.add_trial({"x": 1.0}, {"f": 0.5})
    second.refute("the furnace was replaced")
    one, two = cd.studies(url)
    assert isinstance(one, StudySummary)
    assert (one.name, one.objective["sense"], one.best, one.gap_kind) == ("first", "maximise", 1.0, "proven")
    assert (one.trials["complete"], one.trials["abandoned"]) == (1, 1)
    assert (two.name, two.objective["sense"], two.best, two.gap_kind) == ("second", "minimise", None, "refuted")
    assert one.created <= one.last_event


def test_the_kind_of_gap_follows_corrections_and_amendments(url: str) -> None:
    study = cd.Study.open(url, "alloy", CHAIN)
    study.add_trial({"x": 0.5}, {"f": 0.25, "g": 1.0})

    def kind() -> str:
        return cd.studies(url)[0].gap_kind

    study.refute("trials 0 and 1 differ", trials=[0, 1])
    assert kind() == "refuted"
    study.correct(0, "f", 0.5)
    assert (kind(), cd.studies(url)[0].best) == ("proven", 1.0)
    study.correct(0, "g", 0.75)
    assert cd.studies(url)[0].best == 0.75
    estimated = cd.chain(cd.Stage("f", controls=X), cd.Stage("g"))
    cd.Study.open(url, "unknown", estimated)
    assert cd.studies(url)[1].gap_kind == "estimated"


def test_a_study_is_renamed_and_deleted(url: str) -> None:
    study = cd.Study.open(url, "alloy", CHAIN)
    cd.rename_study(url, "alloy", "steel")
    study.add_trial({"x": 0.5}, {"f": 0.25})  # an open study is the same study
    assert len(cd.Study.open(url, "steel").trials) == 1
    with pytest.raises(StoreError, match="there is no study 'alloy' in this store; it has steel"):
        cd.rename_study(url, "alloy", "b")
    with pytest.raises(StoreError, match="there is a study 'steel' in this store already; choose another name"):
        cd.rename_study(url, "steel", "steel")
    with pytest.raises(ArgumentError, match="a study's name must be printable"):
        cd.rename_study(url, "steel", "")
    cd.delete_study(url, "steel")
    assert cd.studies(url) == []
    with pytest.raises(StoreError, match="there is no study 'steel' in this store; it has none"):
        cd.delete_study(url, "steel")


def test_a_study_that_was_deleted_is_not_written_into_another(url: str) -> None:
    study = cd.Study.open(url, "alloy", CHAIN)
    study.add_trial({"x": 0.5}, {"f": 0.25})
    cd.delete_study(url, "alloy")
    other = cd.Study.open(url, "alloy", CHAIN)
    with pytest.raises(StoreError, match="was deleted, or its log was replaced"):
        study.add_trial({"x": 1.0}, {"f": 0.5})
    assert other.trials == ()


def test_nothing_is_created_by_a_mistyped_url(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/typo.db"
    for call in (
        lambda: cd.studies(url),
        lambda: cd.delete_study(url, "alloy"),
        lambda: cd.rename_study(url, "alloy", "b"),
    ):
        with pytest.raises(StoreError, match="there is no file"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_a_process_is_loaded_by_its_spec(tmp_path: Path) -> None:
    (tmp_path / "alloy.py").write_text(
        "import cascada as cd\n"
        "network = cd.chain(cd.Stage('f', controls={'x': cd.Real(0, 1)}, function=lambda x: x))\n",
        encoding="utf-8",
    )
    network = cd.load(f"{tmp_path}/alloy.py:network")
    assert isinstance(network, cd.Network)
    assert network.controls == ("x",)
    with pytest.raises(ArgumentError):
        cd.load(f"{tmp_path}/alloy.py:missing")


def test_every_public_name_is_there() -> None:
    assert all(hasattr(cd, name) for name in cd.__all__)
    assert issubclass(cd.StoreError, cd.CascadaError)
    assert cd.Command(["true"]).argv == ("true",)
