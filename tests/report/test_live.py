"""Messages to a live page, and the process that computes its figures."""

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
from cascada.report.live.figure_process import FigureProcess, answer_requests
from cascada.report.live.view import Sent, View
from cascada.store.database import Store
from cascada.study import Study
from tests.missing import need_module
from tests.report.cases import proven
from tests.waiting import LONG, wait_until

need_module("plotly", "report")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/lab.db"


def read(view: View, url: str) -> bool:
    """Update a view from the store; return whether anything changed."""
    store = Store(url, read_only=True)
    update = view.read(store, store.heads().get(view.name), [])
    if update is not None:
        update()
    return update is not None


def sent(view: View, to: Sent) -> dict[str, Any]:
    """Return the messages that a page receives now, by kind."""
    messages = [dict(line.split(": ", 1) for line in one.strip().split("\n")) for one in view.updates(to)]
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


def test_figures_of_a_deleted_study_of_the_same_name_are_not_shown(url: str, tmp_path: Path) -> None:
    Study.open(url, "lab", proven(), algorithm="random_search").optimise(budget=1, progress=False)
    view, page = View("lab"), Sent()
    view.viewers = 1
    read(view, url)
    sent(view, page)
    about = part_of(url)
    assert view.needs_figures
    view.computed(about, '{"after": 1}')
    assert not view.needs_figures
    assert sent(view, page) == {"figures": {"after": 1}}
    for file in tmp_path.iterdir():
        file.unlink()
    Study.open(url, "lab", proven(), algorithm="random_search").optimise(budget=2, progress=False)
    read(view, url)
    assert view.needs_figures
    view.computed(about, '{"after": 1}')  # requested before the study was replaced
    assert view.needs_figures
    assert list(sent(view, page)) == ["runs"]


def part_of(url: str, changes: int = 99, described: int = 0) -> dict[str, Any]:
    """Return the description of a part that was computed from the present study."""
    created = Store(url, read_only=True).heads()["lab"].created
    return {"kind": "figures", "created": created, "described": described, "changes": changes}


def test_figures_computed_under_earlier_assumptions_are_not_shown(url: str) -> None:
    Study.open(url, "lab", proven(), algorithm="random_search").optimise(budget=1, progress=False)
    view, page = View("lab"), Sent()
    read(view, url)
    sent(view, page)
    stages = [stage.assuming(np.array([50.0]), stage.lipschitz) for stage in proven().stages]
    amended = Study.open(url, "lab", chain(*stages), algorithm="random_search", amend=True)
    read(view, url)
    view.computed(part_of(url), '{"after": 1}')  # the follower is already marked as outdated
    assert "figures" not in sent(view, page)
    read(view, url)
    view.computed(part_of(url), '{"after": 1}')  # requested before the amendment
    assert "figures" not in sent(view, page)
    view.computed(part_of(url, described=amended.events[-1].number), '{"after": 1}')
    assert "figures" in sent(view, page)


def test_a_refutation_removes_proven_results_at_once(url: str) -> None:
    study = Study.open(url, "lab", proven(), algorithm="random_search")
    study.optimise(budget=1, progress=False)
    view, page = View("lab"), Sent()
    read(view, url)
    view.computed(part_of(url, changes=1), '{"after": 1}')
    assert "figures" in sent(view, page)
    study.refute("the furnace was replaced")
    read(view, url)
    update = sent(view, page)["runs"]
    assert update["refuted"]
    assert ["this is", "refuted"] in update["facts"]
    view.computed(part_of(url, changes=1), '{"after": 1}')  # requested before the refutation
    assert sent(view, page) == {}
    assert "figures" not in sent(view, Sent())


def test_a_damaged_study_has_an_error_message(url: str, tmp_path: Path) -> None:
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
    """A stream that records the JSON lines written to it."""

    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []

    def write(self, text: str) -> int:
        self.written.append(json.loads(text))
        return len(text)

    def flush(self) -> None: ...


def test_requests_are_answered_from_the_stored_study(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study.open(url, "lab", proven(), algorithm="random_search")
    out = Lines()
    lowered: list[int] = []
    monkeypatch.setattr(os, "nice", lowered.append)  # otherwise this process would keep the low priority

    def requests() -> Any:
        study.optimise(budget=2, progress=False)
        yield '{"study": "lab"}'
        study.optimise(budget=4, progress=False)
        yield '{"study": "lab"}'
        yield '{"study": "none"}'
        study.refute("the furnace was replaced")
        yield '{"study": "lab"}'

    answer_requests(requests(), out, url, list)  # type: ignore[arg-type]
    assert lowered == [10]
    kinds = [one["kind"] for one in out.written[::2]]
    assert kinds == ["judged", "figures", "judged", "figures", "failed", "judged", "figures"]
    assert [one.get("after") for one in out.written[1::2]] == [2, 2, 4, 4, None, 4, 4]
    judged = out.written[5]
    assert "proven" in json.dumps(judged["facts"])
    assert "there is no study named 'none'" in out.written[9]["message"]
    bounds = [len(one["figures"][0]["figure"]["data"]) for one in out.written[3::4] if "figures" in one]
    assert bounds[0] == 3  # the bound is drawn
    assert "refuted" in json.dumps(out.written[11]["facts"])
    assert len(out.written[13]["figures"][0]["figure"]["data"]) == 2  # the bound is not drawn after the refutation


def test_a_figure_process_that_dies_is_started_again() -> None:
    received: SimpleQueue[dict[str, Any]] = SimpleQueue()
    code = "first, second = input(), input(); '3' in second and input(); print(first); print(second, flush=True)"
    process = FigureProcess(
        [sys.executable, "-c", code], {"kind": "settings"}, lambda about, part: received.put(about | {"part": part})
    )
    for name in ("study 1", "study 2"):
        process.request(name)
        assert received.get(timeout=LONG) == {"kind": "settings", "part": json.dumps({"study": name})}
        assert received.get(timeout=LONG) == {"kind": "ended", "part": ""}
    process.request("study 3")
    process.stop()
    process.stop()
    listening = [thread for thread in threading.enumerate() if thread.name == "cascada figures"]
    wait_until(lambda: not any(thread.is_alive() for thread in listening), "all listening threads have ended")
    assert received.empty()
