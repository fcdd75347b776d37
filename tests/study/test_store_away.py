"""Runs that end or are interrupted while their store is away: no finished result is dropped."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cascada.errors import StoreError
from cascada.network import chain
from cascada.study import Study
from tests.network.cases import X, stage

CHAIN = chain(stage("f", controls=X), stage("g"))
INTERRUPT, AWAY = KeyboardInterrupt(), StoreError("cannot write the store: it is away.")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/alloy.db"


@pytest.fixture
def study(url: str) -> Study:
    return Study.open(url, "alloy", CHAIN, algorithm="random_search")


def fail(study: Study, monkeypatch: pytest.MonkeyPatch, errors: list[BaseException | None]) -> None:
    """Let the next calls of `tell` raise these errors; the ones after it do what they always do."""
    tell: Callable[..., Any] = study.tell

    def told(*arguments: Any) -> Any:
        error = errors.pop(0) if errors else None
        if error is not None:
            raise error
        return tell(*arguments)

    monkeypatch.setattr(study, "tell", told)


def run(study: Study) -> Any:
    """One trial. `tell` is called for f, for g, for the whole run, and again for what was not told."""
    return study.optimise([lambda x: 0.1 * x, lambda f: 0.5 * f], budget=1, progress=False)


def test_a_stage_that_ended_before_an_interrupt_is_told(
    url: str, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(study, monkeypatch, [INTERRUPT])  # while f waits for the store
    assert run(study).status == "interrupted"
    (trial,) = Study.open(url, "alloy").trials
    assert trial.outputs == {"f": (0.1 * trial.controls["x"],)}


def test_a_run_that_a_store_did_not_take_is_told_when_it_is_back(
    url: str, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(study, monkeypatch, [AWAY, AWAY, INTERRUPT, AWAY])
    assert run(study).status == "interrupted"
    assert [trial.state for trial in Study.open(url, "alloy").trials] == ["complete"]


def test_a_second_interrupt_leaves_the_results_in_a_file(
    study: Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fail(study, monkeypatch, [AWAY, AWAY, INTERRUPT, INTERRUPT])
    with pytest.raises(
        StoreError, match=r"interrupted while it waited for the store\. The 3 events .* were written to"
    ):
        run(study)
    lines = (tmp_path / "alloy.db.rescued.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["created", "asked", "told"]
    assert set(json.loads(lines[-1])["data"]["outputs"]) == {"f", "g"}


def test_an_interrupt_without_results_stays_one(study: Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "verify", interrupted)  # all is told by then
    with pytest.raises(KeyboardInterrupt):
        run(study)
    assert not list(tmp_path.glob("*.jsonl"))
