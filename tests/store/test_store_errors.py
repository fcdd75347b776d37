"""Invalid input of every kind raises an error of the library with a message, and does not change the store."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cascada.calibration import Calibration
from cascada.errors import ArgumentError, CascadaError, ContradictionError, StoreError
from cascada.network import Network, chain
from cascada.store.database import Store
from cascada.study import Study
from cascada.study.log_file import exported, import_log
from cascada.study.tabular import add_runs
from tests.network.cases import X, Y, stage
from tests.thorough import examples

NETWORK = chain(stage("f", controls=X, outputs=["u", "v"], norm_bound=[2.0, 1.0]), stage("g", controls=Y))
HUGE = 10**400

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([HUGE, -HUGE, 2**31, 2**63, 2**64, 1e308, -0.0, 5e-324]),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=4),
    st.complex_numbers(),
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=6,
)
outputs = anything | st.dictionaries(
    st.sampled_from(["f", "g", "h"]),
    anything | st.lists(st.floats(-1, 1), max_size=3) | st.fixed_dictionaries({"u": anything, "v": anything}),
    max_size=3,
)
controls = anything | st.fixed_dictionaries({"x": scalars, "y": scalars}) | st.dictionaries(st.text("xyz"), scalars)
fuzzed = settings(
    max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('store')}/studies.db"


@pytest.fixture(scope="module")
def study(place: str) -> Study:
    """Return a study with a complete, a failed and a running trial."""
    study = Study.open(place, "alloy", NETWORK, algorithm="random_search")
    for _ in range(2):
        study.ask()
    study.tell(0, {"f": [0.1, 0.2], "g": 0.3})
    study.tell_stage(1, "f", [0.1, 0.3])
    study.fail(1, "no reason")
    study.ask(lease=1000.0)
    return study


def refused(study: Study, act: Callable[[], Any]) -> bool:
    """Return whether an act raises a `CascadaError`; check that it has a message and the study is unchanged."""
    events, trials = study.events, study.trials
    try:
        act()
    except CascadaError as error:
        said = str(error)
    else:
        return False
    assert said.strip()
    assert study.events == events
    assert study.trials == trials
    return True


# ---- asking and telling


@fuzzed
@given(outputs=outputs)
def test_invalid_outputs_are_refused(study: Study, outputs: Any) -> None:
    trial = len(study.trials) - 1
    if not refused(study, lambda: study.tell(trial, outputs)):
        assert set(outputs) <= set(study.trials[trial].outputs)
        study.enqueue_trial({"x": (trial % 2000) / 1000, "y": 0.0})  # another trial for the next example


@fuzzed
@given(number=anything)
def test_invalid_trial_numbers_are_refused(study: Study, number: Any) -> None:
    known = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(study.trials)
    for act in (
        lambda: study.tell(number, {"g": float("nan")}),
        lambda: study.tell_stage(number, "z", 1.0),
        lambda: study.beat(number),
        lambda: None if known else study.fail(number, "no reason"),
        lambda: None if known else study.abandon(number),
    ):
        assert refused(study, act) or known


@fuzzed
@given(controls=controls)
def test_enqueueing_invalid_controls_is_refused(study: Study, controls: Any) -> None:
    if not refused(study, lambda: study.enqueue_trial(controls)):
        assert study.trials[-1].controls == {name: float(controls[name]) for name in ("x", "y")}


@fuzzed
@given(controls=controls, outputs=outputs)
def test_adding_invalid_past_runs_is_refused(study: Study, controls: Any, outputs: Any) -> None:
    refused(study, lambda: study.add_trial({"x": 0.5, "y": 0.5}, outputs))
    refused(study, lambda: study.add_trial(controls, {}))


@fuzzed
@given(lease=anything)
def test_invalid_leases_are_refused(study: Study, lease: Any) -> None:
    fine = lease is None or (isinstance(lease, int | float) and not isinstance(lease, bool) and 0 < lease <= 1e9)
    if not fine:
        assert refused(study, lambda: study.ask(lease=lease))
        assert refused(study, lambda: study.optimise({"f": abs, "g": abs}, budget=1, lease=lease)) or lease is None


@fuzzed
@given(text=anything)
def test_any_reason_is_stored_as_text(study: Study, text: Any) -> None:
    study.fail(1, text)
    study.note(text)
    assert study.trials[1].reason == str(text)
    assert study.events[-1].data == {"text": str(text)}


# ---- names, URLs, options


def names() -> st.SearchStrategy[Any]:
    sql = st.sampled_from(["'; DROP TABLE cascada_events; --", '" OR 1=1', "%s", "?", ":name", "a\x00b", "a\nb", "\\"])
    return st.text(max_size=30) | st.text(min_size=190, max_size=210) | sql | anything


@fuzzed
@given(name=names())
def test_a_name_is_stored_exactly_or_refused(place: str, study: Study, name: Any) -> None:
    before = Store(place).studies()
    if not isinstance(name, str) or not name.isprintable() or name != name.strip() or not 0 < len(name) <= 200:
        with pytest.raises(ArgumentError, match="name must be printable text of 1 to 200 characters"):
            Study.open(place, name, NETWORK)
        assert Store(place).studies() == before
        return
    made = Study.open(place, name, NETWORK, algorithm="random_search")
    assert made.name == name
    assert Store(place).studies() == list(dict.fromkeys([*before, name]))
    assert len(study.trials) >= 3


@fuzzed
@given(url=anything | st.text(max_size=20).map(lambda text: "sqlite:///nowhere/at/all/" + text))
def test_random_urls_are_refused(url: Any) -> None:
    with pytest.raises(CascadaError, match=r"\w+"):
        Store(url)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "a store is a URL like"),
        ("alloy.db", "a store is a URL like"),
        ("postgresql://host:port/name", "a store is a URL like"),
        ("mysql://host/name", "stores are SQLite or PostgreSQL"),
        ("sqlite://", "a SQLite store needs a file"),
        ("sqlite:///:memory:", "a SQLite store needs a file"),
        ("sqlite:///file:alloy?mode=memory&uri=true", "a SQLite store needs a file"),
        ("sqlite:///alloy.db?timeout=soon", "a SQLite store needs a file"),
        ("sqlite:///al\x00loy.db", "a SQLite store needs a file"),
        ("sqlite://host/alloy.db", "cannot open the store"),
    ],
)
def test_the_error_of_an_invalid_url_names_the_mistake(url: str, message: str) -> None:
    with pytest.raises(CascadaError, match=message):
        Study.open(url, "alloy", NETWORK)


@pytest.mark.parametrize(
    "options",
    [
        {"seed": -1},
        {"seed": "one"},
        {"algorithm": "magic"},
        {"algorithm": 3},
        {"candidates": [[9.0, 9.0]]},
        {"horizon": "long"},
        {"tolerance": float("nan")},
        {"on_violation": "hope"},
        {"calibration": "good"},
        {"calibration": {}},
        {"worker": ""},
        {"worker": 3},
    ],
)
def test_invalid_options_create_no_study(place: str, study: Study, options: dict[str, Any]) -> None:
    before = Store(place).studies()
    with pytest.raises(ArgumentError, match=r"\w+"):
        Study.open(place, "never", NETWORK, **options)
    with pytest.raises(ArgumentError, match=r"\w+"):
        Study.open(place, "alloy", NETWORK, **options)
    assert Store(place).studies() == before
    assert study.network is NETWORK


@pytest.mark.parametrize("network", [3, "alloy", [], {}])
def test_a_network_of_another_type_is_refused(place: str, network: Any) -> None:
    with pytest.raises(ArgumentError, match="network must be a Network"):
        Study.open(place, "never", network)


def test_a_calibration_is_stored(place: str) -> None:
    unknown: Network = chain(stage("f", controls=X, kernel=None, norm_bound=None))
    made = Study.open(place, "unknown", unknown, calibration=Calibration())
    assert Study.open(place, "unknown").trials == made.trials


# ---- exports


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    url = f"sqlite:///{tmp_path_factory.mktemp('log')}/studies.db"
    study = Study.open(url, "alloy", NETWORK, algorithm="random_search")
    for lease in (None, None, 1000.0):
        study.ask(lease=lease)
    study.tell(0, {"f": [0.1, 0.2], "g": 0.3})
    study.tell_stage(1, "f", [0.1, 0.3])
    study.fail(1, "no reason")
    study.take_up()
    study.refute("no reason")
    return exported(Store(url), "alloy")


def imported(tmp_path: Path, lines: list[str]) -> bool:
    """Return whether a log of these lines is imported; if it is refused, check that the store is unchanged."""
    url = f"sqlite:///{tmp_path}/imports.db"
    store = Store(url)
    name = f"study {len(store.studies())}"
    try:
        assert import_log(store, name, lines) == len(lines)
    except StoreError as error:
        said = str(error)
    else:
        with suppress(CascadaError):  # an edited log may be valid but not usable
            Study.open(url, name).ask()
        return True
    assert "Nothing was imported" in said
    assert name not in store.studies()
    return False


@fuzzed
@given(data=st.data())
def test_logs_with_truncated_missing_duplicate_or_shuffled_lines_are_refused(
    tmp_path: Path, log: list[str], data: st.DataObject
) -> None:
    order = data.draw(st.lists(st.sampled_from(range(len(log))), max_size=len(log) + 2))
    lines = [log[i] for i in order]
    if order == list(range(len(order))) and order:
        return
    assert not imported(tmp_path, lines)
    cut = data.draw(st.integers(0, len("\n".join(log)) - 1))
    text = "\n".join(log)[:cut]
    if not text or text not in ("\n".join(log[:n]) for n in range(len(log))):
        assert not imported(tmp_path, text.split("\n"))


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in parsed JSON."""
    yield at
    for key, entry in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from paths(entry, (*at, key))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([HUGE, 2**31, 2**63, -1, 0, 1, 1e308, "\ud800", "told", "asked", "Separable", "BlockKernel"])
    | st.floats()
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@settings(fuzzed, max_examples=examples(500))
@given(data=st.data())
def test_edited_logs_are_imported_or_refused_as_a_whole(tmp_path: Path, log: list[str], data: st.DataObject) -> None:
    i = data.draw(st.integers(0, len(log) - 1))
    fields = json.loads(log[i])
    *where, last = data.draw(st.sampled_from(list(paths(fields))[1:]))
    inner = fields
    for key in where:
        inner = inner[key]
    if data.draw(st.booleans()):
        inner[last] = data.draw(json_values)
    else:
        del inner[last]
    imported(tmp_path, [*log[:i], json.dumps(fields), *log[i + 1 :]])


@settings(fuzzed, max_examples=examples(200))
@given(line=st.text(max_size=30) | json_values.map(json.dumps), at=st.integers(0, 8))
def test_a_log_with_an_additional_line_is_refused(tmp_path: Path, log: list[str], line: str, at: int) -> None:
    assert not imported(tmp_path, [*log[:at], line, *log[at:]])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"number": 2', '"number": 7', "line 3: .*number should be 2"),
        ('"kind": "told"', '"kind": "sold"', "line 5: there is no event of kind 'sold'"),
        ('"trial": 0', '"trial": 9', "line 2: .*there is no trial 9"),
        ("[0.3]", "[1e999]", "line 5: not JSON: 1e999 is too large"),
        ('"at": ', '"at": 1e999, "was": ', "line 1: not JSON: 1e999 is too large"),
        ('"number": 4', f'"number": {HUGE}', "line 5: number must be a whole number"),
    ],
)
def test_the_error_of_an_invalid_log_names_the_line(
    tmp_path: Path, log: list[str], old: str, new: str, message: str
) -> None:
    store = Store(f"sqlite:///{tmp_path}/imports.db")
    lines = "\n".join(log).replace(old, new, 1).split("\n")
    with pytest.raises(StoreError, match=message):
        import_log(store, "alloy", lines)
    assert store.studies() == []


# ---- CSV


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "a header and at least one run"),
        (["x,y,g"], "a header and at least one run"),
        (["x,g", "1,2"], r"line 1: no column for y\. Columns are the controls x, y .*; got x, g"),
        (["x,y,z", "1,1,1"], "line 1: unknown column 'z'"),
        (["x,x,y", "1,1,1"], "line 1: every column needs a name of its own"),
        (["x,y,g,g.g", "0.1,0.2,0.3,0.4"], r"line 1: .*two columns must not name the same output"),
        (["x,y,g", "0.1,0.2,0.3", "0.1,0.2"], "line 3: 2 cells where the header has 3"),
        (["x,y,g", "0.1,0.2,0.3", "0.1,high,0.4"], "line 3: y must be a number; got 'high'"),
        (["x,y,g", "0.1,0.2,0.3", "", "0.1,,0.4"], "line 4: y must be a number; got ''"),
        (["x,y,g", "0.1,0.2,0.3", "9,0.2,0.4"], "line 3: .*must lie in"),
        (["x,y,g", "0.1,0.2,0.3", "0.5,0.2,nan"], "line 3: g must be a number; got 'nan'"),
        (["x,y,f.u", "0.1,0.2,0.3"], "line 2: .*got 1"),
        (["x,y,f.u,f.v", "0.1,0.2,0.3,0.4", "0.1,0.7,0.3,0.5"], r"line 3: .*as 0\.3, 0\.5, but as 0\.3, 0\.4"),
        (["x,y,g", "0.1,0.2,0.3", "0.1,0.2\r0.3,1"], "line 3: "),
        (["x,y,g", "0.1,0.2," + "9" * 200_000], "line 2: "),
    ],
)
def test_an_invalid_csv_file_adds_nothing(tmp_path: Path, lines: list[str], message: str) -> None:
    study = Study.open(f"sqlite:///{tmp_path}/studies.db", "alloy", NETWORK)
    with pytest.raises((ArgumentError, ContradictionError), match=message):
        add_runs(study, lines)
    assert [event.kind for event in study.events] == ["created"]


@fuzzed
@given(
    lines=st.lists(st.text('xyfguv.,"\n\r 019e-', max_size=15) | st.text(max_size=8), max_size=4),
    header=st.sampled_from(["x,y,g", "x,y", "y,x,f.u,f.v", ""]),
)
def test_random_csv_files_are_added_or_refused_as_a_whole(study: Study, lines: list[str], header: str) -> None:
    refused(study, lambda: add_runs(study, [header, *lines]))


# ---- files


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    study = Study.open(f"sqlite:///{path}", "alloy", NETWORK)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE cascada SET value = '3' WHERE key = 'schema'")
    with pytest.raises(StoreError, match="this store has schema 3, and this version of cascada knows schema 2"):
        Study.open(f"sqlite:///{path}", "alloy")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE cascada SET value = '2' WHERE key = 'schema'")
    assert Study.open(f"sqlite:///{path}", "alloy").events == study.events


@pytest.mark.parametrize("content", [b"x, y, g\n1, 2, 3\n" * 100, b"SQLite format 3\0" + b"\xff" * 500])
def test_a_file_that_is_not_a_database_is_refused_and_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="cannot open the store: "):
        Store(f"sqlite:///{path}")
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["runs.csv"]


def test_places_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "no" / "folder.db", Path("/proc/alloy.db"), tmp_path / ("a" * 300)):
        with pytest.raises(StoreError, match="cannot open the store: "):
            Store(f"sqlite:///{place}")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE cascada_events SET data = '{' WHERE number = 1",
        "UPDATE cascada_events SET data = '[]' WHERE number = 1",
        "UPDATE cascada_events SET data = '{}' WHERE number = 1",
        "UPDATE cascada_events SET kind = 'sold' WHERE number = 1",
        "UPDATE cascada_events SET trial = 7 WHERE number = 1",
        "UPDATE cascada_events SET data = '7' WHERE number = 0",
        "UPDATE cascada_events SET data = '{}' WHERE number = 0",
        "DELETE FROM cascada_events WHERE number = 0",
        "DELETE FROM cascada_events WHERE number = 1",
        "DELETE FROM cascada_events",
        "DROP TABLE cascada_events",
    ],
)
def test_a_damaged_log_raises_an_error_of_the_library(tmp_path: Path, change: str) -> None:
    path = tmp_path / "studies.db"
    study = Study.open(f"sqlite:///{path}", "alloy", NETWORK, algorithm="random_search")
    study.ask()
    study.tell(0, {"f": [0.1, 0.2]})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(change)
    for network in (None, NETWORK):
        with pytest.raises(CascadaError, match=r"\w+"):
            Study.open(f"sqlite:///{path}", "alloy", network)
