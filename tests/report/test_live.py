"""What goes to a page, message by message; and the process that computes what takes long, should it die."""

import json
import os
import re
import sqlite3
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from cascada.network import chain
from cascada.report.live.computing import Computer, answers
from cascada.report.live.view import Sent, View
from cascada.store.database import Store
from cascada.study import Study
from tests.report.cases import proven
from tests.waiting import LONG, wait_until


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/lab.db"


def read(view: View, url: str) -> bool:
    """Let a view follow the store; whether anything was new."""
    store = Store(url, read_only=True)
    change = view.read(store, store.heads().get(view.name), [])
    if change is not None:
        change()
    return change is not None


def sent(view: View, to: Sent) -> dict[str, Any]:
    """What a page gets now, by kind."""
    messages = [dict(line.split(": ", 1) for line in one.strip().split("\n")) for one in view.news(to)]
    return {one["event"]: json.loads(one["data"]) | ({"id": one["id"]} if "id" in one else {}) for one in messages}


def test_only_rows_that_changed_are_sent(url: str) -> None:
    study = Study.open(url, "lab", proven(), algorithm="random_search")
    study.optimise(budget=3, progress=False)
    view, page = View("lab"), Sent()
    assert read(view, url)
    first = sent(view, page)["runs"]
    assert [row[0] for row in first["rows"]] == [0, 1, 2]
    assert first["about"]["columns"] == ["trial", "state", "dose", "heat", "mix", "cure"]
    assert not read(view, url)
    assert sent(view, page) == {}
    trial = study.ask()
    assert trial is not None
    assert read(view, url)
    assert [row[:2] for row in sent(view, page)["runs"]["rows"]] == [[3, "running"]]
    study.tell_stage(trial, "mix", 0.5)
    assert read(view, url)
    later = sent(view, page)["runs"]
    assert ([row[4] for row in later["rows"]], "about" in later) == ([0.5], False)
    again = sent(view, Sent.resumed(first["id"]))["runs"]  # a page that comes back
    assert ([row[0] for row in again["rows"]], "about" in again) == ([3], False)
    for strange in ("", "x", "x.1", ".", f"{first['id']}9999999999", "é.²"):
        assert len(sent(view, Sent.resumed(strange))["runs"]["rows"]) == 4


def test_a_corrected_run_is_sent_again_and_says_so(url: str) -> None:
    study = Study.open(url, "lab", proven(), algorithm="random_search")
    study.optimise(budget=2, progress=False)
    right = study.trials[0].outputs["mix"][0]
    view, page = View("lab"), Sent()
    assert read(view, url)
    sent(view, page)
    study.correct(0, "mix", 0.75, reason="<b>decimal point</b>")
    assert read(view, url)
    (row,) = sent(view, page)["runs"]["rows"]
    said = f"mix was corrected, before: {right!r} (<b>decimal point</b>)"
    assert (row[:2], row[4]) == ([0, f"complete; {said}"], 0.75)
    study.retract(0, "cure")
    assert read(view, url)
    runs = sent(view, page)["runs"]
    assert runs["rows"][0][1].startswith(f"running; {said}; cure = ")
    assert runs["rows"][0][5] is None  # so that the live history leaves it out
    assert runs["best"] == 1


def test_what_was_computed_for_another_study_is_not_shown(url: str, tmp_path: Path) -> None:
    Study.open(url, "lab", proven(), algorithm="random_search").optimise(budget=1, progress=False)
    view, page = View("lab"), Sent()
    view.lookers = 1
    read(view, url)
    sent(view, page)
    about = part_of(url)
    assert view.wants
    view.computed(about, '{"after": 1}')
    assert not view.wants
    assert sent(view, page) == {"figures": {"after": 1}}
    for file in tmp_path.iterdir():
        file.unlink()
    Study.open(url, "lab", proven(), algorithm="random_search").optimise(budget=2, progress=False)
    read(view, url)
    assert view.wants
    view.computed(about, '{"after": 1}')  # it was under way
    assert view.wants
    assert list(sent(view, page)) == ["runs"]


def part_of(url: str, changes: int = 99, described: int = 0) -> dict[str, Any]:
    """What is said of a part that was computed from the present study."""
    created = Store(url, read_only=True).heads()["lab"].created
    return {"kind": "figures", "created": created, "described": described, "changes": changes}


def test_a_gap_of_other_assumptions_is_not_shown(url: str) -> None:
    Study.open(url, "lab", proven(), algorithm="random_search").optimise(budget=1, progress=False)
    view, page = View("lab"), Sent()
    read(view, url)
    sent(view, page)
    stages = [stage.assuming(np.array([50.0]), stage.lipschitz) for stage in proven().stages]
    amended = Study.open(url, "lab", chain(*stages), algorithm="random_search", amend=True)
    read(view, url)
    view.computed(part_of(url), '{"after": 1}')  # the view knows already that it is outdated
    assert "figures" not in sent(view, page)
    read(view, url)
    view.computed(part_of(url), '{"after": 1}')  # it was under way
    assert "figures" not in sent(view, page)
    view.computed(part_of(url, described=amended.events[-1].number), '{"after": 1}')
    assert "figures" in sent(view, page)


def test_what_is_refuted_is_not_called_proven_any_longer(url: str) -> None:
    study = Study.open(url, "lab", proven(), algorithm="random_search")
    study.optimise(budget=1, progress=False)
    view, page = View("lab"), Sent()
    read(view, url)
    view.computed(part_of(url, changes=1), '{"after": 1}')
    assert "figures" in sent(view, page)
    study.refute("the furnace was replaced")
    read(view, url)
    said = sent(view, page)["runs"]
    assert said["refuted"]
    assert ["the gap is", "refuted"] in said["facts"]
    view.computed(part_of(url, changes=1), '{"after": 1}')  # it was under way
    assert sent(view, page) == {}
    assert "figures" not in sent(view, Sent())


def test_a_damaged_study_is_in_trouble_alone(url: str, tmp_path: Path) -> None:
    Study.open(url, "lab", proven(), algorithm="random_search").optimise(budget=1, progress=False)
    with sqlite3.connect(tmp_path / "lab.db") as connection:
        (data,) = connection.execute("SELECT data FROM cascada_events WHERE number = 0").fetchone()
        huge, found = re.subn(r'("high": ?)[\d.]+', rf"\g<1>1{'0' * 400}", data)
        assert found
        connection.execute("UPDATE cascada_events SET data = ? WHERE number = 0", (huge,))
    view = View("lab")
    read(view, url)
    assert view.message is not None
    assert "damaged" in view.message


class Lines:
    """What is asked, and what is answered."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []

    def write(self, text: str) -> int:
        self.said.append(json.loads(text))
        return len(text)

    def flush(self) -> None: ...


def test_figures_are_computed_from_what_is_stored(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study.open(url, "lab", proven(), algorithm="random_search")
    out = Lines()
    lowered: list[int] = []
    monkeypatch.setattr(os, "nice", lowered.append)  # else all later tests of this process would wait for others

    def asked() -> Any:
        study.optimise(budget=2, progress=False)
        yield '{"study": "lab"}'
        study.optimise(budget=4, progress=False)
        yield '{"study": "lab"}'
        yield '{"study": "none"}'
        study.refute("the furnace was replaced")
        yield '{"study": "lab"}'

    answers(asked(), out, url, list)  # type: ignore[arg-type]
    assert lowered == [10]
    kinds = [one["kind"] for one in out.said[::2]]
    assert kinds == ["judged", "figures", "judged", "figures", "failed", "judged", "figures"]
    assert [one.get("after") for one in out.said[1::2]] == [2, 2, 4, 4, None, 4, 4]
    judged = out.said[5]
    assert "proven" in json.dumps(judged["facts"])
    assert "there is no study named 'none'" in out.said[9]["message"]
    bounds = [len(one["figures"][0]["figure"]["data"]) for one in out.said[3::4] if "figures" in one]
    assert bounds[0] == 3  # with a line of the bound
    assert "refuted" in json.dumps(out.said[11]["facts"])
    assert len(out.said[13]["figures"][0]["figure"]["data"]) == 2  # and without: it does not hold any more


def test_a_process_that_dies_is_started_again() -> None:
    heard: SimpleQueue[dict[str, Any]] = SimpleQueue()
    code = "told, asked = input(), input(); '3' in asked and input(); print(told); print(asked, flush=True)"
    computer = Computer(
        [sys.executable, "-c", code], {"kind": "told"}, lambda about, part: heard.put(about | {"part": part})
    )
    for name in ("study 1", "study 2"):
        computer.ask(name)
        assert heard.get(timeout=LONG) == {"kind": "told", "part": json.dumps({"study": name})}
        assert heard.get(timeout=LONG) == {"kind": "ended", "part": ""}
    computer.ask("study 3")
    computer.stop()
    computer.stop()
    listening = [thread for thread in threading.enumerate() if thread.name == "cascada figures"]
    wait_until(lambda: not any(thread.is_alive() for thread in listening), "all listening threads have ended")
    assert heard.empty()
