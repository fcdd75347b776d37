"""What a store, a log or a name may do: nothing that a store names is imported, and no text controls the terminal."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import cascada as cd
from cascada.algorithms import RandomSearch
from cascada.algorithms.foreign import ForeignAlgorithm
from cascada.errors import ArgumentError, CascadaError, StoreError
from cascada.printable import LONGEST_MESSAGE
from cascada.store.database import Store
from cascada.study.catalogue import follow
from cascada.study.log_file import import_log
from tests.fuzz.lab import RED, Lab, network
from tests.thorough import THOROUGH

#: An algorithm in the working folder.
MINE = """
from cascada.algorithms import RandomSearch
open("imported", "w").close()
class Mine(RandomSearch): ...
class Other(RandomSearch): ...
"""
FOREIGN = ("--study", "foreign")
LARGE = 10_000_000 if THOROUGH else 2_000_000  # characters
READING = [
    ("status", *FOREIGN),
    ("status",),
    ("studies",),
    ("best", *FOREIGN),
    ("trials", *FOREIGN),
    ("trials", *FOREIGN, "--csv"),
    ("export", *FOREIGN),
    ("report", *FOREIGN),
    ("tell", *FOREIGN, "1", '{"mix": 1.0}'),
    ("enqueue", *FOREIGN, '{"dose": 0.5, "heat": 0.5}'),
    ("correct", *FOREIGN, "0", "mix", "1.25"),
    ("fail", *FOREIGN, "1"),
]


@pytest.fixture(scope="module")
def same_lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    made = Lab(tmp_path_factory.mktemp("lab"))
    (made.folder / "mine.py").write_text(MINE, encoding="utf-8")
    return made


@pytest.fixture
def lab(same_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    for name in ("evil", "mine"):
        sys.modules.pop(name, None)
    same_lab.restore()
    return same_lab


def lines_with(lab: Lab, old: str, new: str) -> list[str]:
    text = "\n".join(lab.log)
    assert old in text
    return text.replace(old, new, 1).split("\n")


def test_reading_commands_import_nothing_that_a_store_names(lab: Lab) -> None:
    study = cd.Study.open(f"sqlite:///{lab.folder}/lab.db", "foreign")
    study.add_trial({"dose": 0.5, "heat": 0.25}, {"mix": 1.0, "cure": 1.5})
    study.begin_trial({"dose": 0.75, "heat": 0.25})
    before = list(sys.path)
    for command in READING:
        result = lab.call(*command)
        assert result.exit_code == 0, (command, result.output)
        assert sys.path == before, command
    refused = lab.call("ask", *FOREIGN, "--lease", "60")
    assert refused.exit_code == 0, "a trial that waits needs no algorithm"
    refused = lab.call("ask", *FOREIGN)
    assert refused.exit_code == 2
    assert "name it yourself, if you trust it: --algorithm evil:Boom" in refused.stderr
    assert not lab.code_ran


@pytest.mark.parametrize("named", ["os:abort", "sys:exit", "evil:Boom", "no_such_module:Class"])
def test_importing_a_log_imports_no_code(lab: Lab, named: str) -> None:
    lines = lines_with(lab, '"algorithm": "random_search"', f'"algorithm": "{named}"')
    (lab.folder / "made.jsonl").write_text("\n".join(lines), encoding="utf-8")
    result = lab.call("import", "made.jsonl", "--json")
    assert json.loads(result.stdout) == {"study": "made", "events": len(lines)}
    assert lab.call("status", "--study", "made").exit_code == 0
    assert lab.call("ask", "--study", "made", "-n", "2").exit_code == 2
    assert not lab.code_ran


def test_an_algorithm_is_used_when_the_caller_names_the_stored_one(lab: Lab) -> None:
    made = lab.call("ask", "--study", "new", "--spec", "process.toml", "--algorithm", "mine:Mine", "--json")
    assert made.exit_code == 0, made.output
    assert lab.code_ran
    assert lab.call("ask", "--study", "new").exit_code == 2
    assert lab.call("ask", "--study", "new", "--algorithm", "mine:Mine").exit_code == 0
    for other in ("mine:Other", "random_search"):
        refused = lab.call("ask", "--study", "new", "--algorithm", other)
        assert (refused.exit_code, "is stored otherwise: settings.algorithm" in refused.stderr) == (2, True)
    worker = ("worker", "process.toml", "--study", "new", "--budget", "4")
    assert "--algorithm mine:Mine" in lab.call(*worker).stderr
    assert "--algorithm mine:Mine" not in lab.call(*worker, "--algorithm", "mine:Mine").stderr


def test_a_study_of_a_foreign_algorithm_is_told_without_it_and_asked_with_it(lab: Lab) -> None:
    url = f"sqlite:///{lab.folder}/lab.db"
    name = f"{Custom.__module__}:{Custom.__qualname__}"
    cd.Study.open(url, "custom", network(), algorithm=name).close()
    study = cd.Study.open(url, "custom")
    assert study.algorithm == ForeignAlgorithm(name)
    study.add_trial({"dose": 0.5, "heat": 0.25}, {"mix": 1.0, "cure": 1.5})
    assert study.certificate().gap is not None
    assert study.recommended() is None
    with pytest.raises(ArgumentError, match=r"no code is imported because a store names it; name it yourself.*Custom"):
        study.ask()
    assert len(study.trials) == 1
    for given in (name, Custom()):
        assert cd.Study.open(url, "custom", algorithm=given).ask() is not None
    with pytest.raises(ArgumentError, match=r"settings\.algorithm"):
        cd.Study.open(url, "custom", algorithm=RandomSearch())
    assert follow(Store(url, read_only=True), "custom").algorithm == ForeignAlgorithm(name)


class Custom(RandomSearch):
    """An algorithm that is not a part of the library."""


def test_an_algorithm_with_fields_is_given_again_to_ask(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/lab.db"
    given: Any = cd.algorithms.NonAdaptive(runs=3)
    cd.Study.open(url, "design", network(), algorithm=given).close()
    study = cd.Study.open(url, "design")
    study.enqueue_trial({"dose": 0.5, "heat": 0.5})
    assert study.ask() is not None
    with pytest.raises(ArgumentError, match="give the same algorithm again, in Python by algorithm="):
        study.ask()
    assert cd.Study.open(url, "design", algorithm=given).ask() is not None


# ---- logs


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"algorithm": "random_search"', '"algorithm": []', r"line 1: the algorithm of a study is a name.*got \[\]"),
        ('"algorithm": "random_search"', '"algorithm": {"fields": 1}', "line 1: the algorithm of a study is a name"),
        ('"algorithm": "random_search"', '"algorithm": "magic"', "line 1: algorithm must be one of auto"),
        ('"algorithm": "random_search"', '"algorithm": "os:a b;c"', "line 1: algorithm must be one of auto"),
        ('"number": 1', '"number": 0, "number": 1', "line 2: not JSON: number is there twice"),
        ('"settings": {', '"settings": {"seed": 1, "seed": 2, ', "line 1: not JSON: seed is there twice"),
        (
            '"trial": 0',
            '"trial": ' + "[" * 3000 + "]" * 3000,
            "line 2: not JSON: it is nested more than 50 levels deep",
        ),
    ],
)
def test_a_log_with_invalid_values_is_refused(lab: Lab, old: str, new: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        import_log(Store(f"sqlite:///{lab.folder}/lab.db"), "made", lines_with(lab, old, new))


KERNEL: dict[str, Any] = {"type": "SquaredExponential", "lengthscale": 1.0, "variance": 1.0}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"variance": -1.0}, "variance"),
    ({"variance": "much"}, "variance"),
    ({"x": 1}, "x"),
]
FIT: dict[str, Any] = {"kernel": KERNEL, "offset": 0.5, "observations": 3}


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        ("note", {"refuted": 5}, "'refuted' of a note must be a text; got 5"),
        ("note", {"text": []}, "'text' of a note must be a text"),
        ("note", {"refuted": "x", "trials": 5}, "'trials' of a note must be numbers of trials; got 5"),
        ("note", {"refuted": "x", "trials": ["0"]}, "'trials' of a note"),
        ("note", {"refuted": "x", "assumed": "0"}, "'assumed' of a note"),
        ("note", {"junk": 1}, "a note has no field 'junk'"),
        ("calibrated", {"mix.mix": 5}, "has the parts acting and judging; got 5"),
        ("calibrated", {"mix.mix": {"acting": FIT, "judging": {}}}, "has kernel, offset and observations"),
        ("calibrated", {"mix.mix": dict.fromkeys(("acting", "judging"), FIT | {"offset": "0"})}, "must be numbers"),
        ("calibrated", {"mix.mix": dict.fromkeys(("acting", "judging"), FIT | {"kernel": None})}, "one of cascada"),
        *(
            ("calibrated", {"mix.mix": dict.fromkeys(("acting", "judging"), FIT | {"kernel": KERNEL | wrong})}, message)
            for wrong, message in WRONG
        ),
    ],
)
def test_notes_and_calibrations_of_a_log_are_validated(lab: Lab, kind: str, data: Any, message: str) -> None:
    event = {"number": len(lab.log), "kind": kind, "trial": None, "data": data, "at": 0.0}
    store = Store(f"sqlite:///{lab.folder}/lab.db")
    with pytest.raises(StoreError, match=rf"line {len(lab.log) + 1}: .*{message}.*Nothing was imported"):
        import_log(store, "made", [*lab.log, json.dumps(event)])
    assert "made" not in store.studies()


@pytest.mark.parametrize("wrong", ["1.25", '{"mix": 1.25}', '["1.25"]', "[true]", "null"])
def test_outputs_of_a_log_are_lists_of_numbers(lab: Lab, wrong: str) -> None:
    with pytest.raises(StoreError, match="line 3: outputs must be a list of numbers for every stage"):
        import_log(Store(f"sqlite:///{lab.folder}/lab.db"), "made", lines_with(lab, "[1.25]", wrong))


@pytest.mark.parametrize(
    "wrong", [{"initial": 10**15}, {"width": 1e300}, {"safety": 1e300}, {"nu": 1e300}, {"nu": "x"}]
)
def test_absurd_settings_of_a_calibration_are_refused(lab: Lab, wrong: dict[str, Any]) -> None:
    created = json.loads(lab.calibrated_log[0])
    created["data"]["settings"]["calibration"] |= {"family": "matern"} | wrong
    with pytest.raises(StoreError, match=f"line 1: .*{next(iter(wrong))} must be"):
        import_log(Store(f"sqlite:///{lab.folder}/lab.db"), "made", [json.dumps(created), *lab.calibrated_log[1:]])


def test_a_design_of_very_many_runs_is_refused(lab: Lab) -> None:
    lines = lines_with(lab, '"algorithm": "random_search"', f'"algorithm": "non_adaptive", "horizon": {10**15}')
    import_log(Store(f"sqlite:///{lab.folder}/lab.db"), "made", lines)
    result = lab.call("ask", "--study", "made", "-n", "2")
    assert (result.exit_code, "runs of a design must be a whole number from 1 to 1000000" in result.stderr) == (2, True)


def test_names_that_no_database_can_encode_are_not_there(lab: Lab) -> None:
    for command in (("rename", "\ud800", "x"), ("delete", "\ud800", "--yes"), ("export", "--study", "\ud800")):
        result = lab.call(*command)
        assert (result.exit_code, "there is no study '\\ud800'" in result.stderr) == (1, True)


def test_calibrations_that_cascada_writes_are_imported(lab: Lab) -> None:
    assert any('"calibrated"' in line for line in lab.calibrated_log)
    import_log(Store(f"sqlite:///{lab.folder}/lab.db"), "made", lab.calibrated_log)


@pytest.mark.parametrize("data", [{"refuted": 5, "trials": 5}, {"refuted": "x", "trials": "ab"}, {"refuted": []}])
def test_a_store_with_an_invalid_note_is_read_or_refused_by_a_message(lab: Lab, data: dict[str, Any]) -> None:
    insert = "INSERT INTO cascada_events (study, number, kind, trial, data, at) VALUES (1, ?, ?, ?, ?, 0.0)"
    corrected = json.dumps({"stage": "mix", "outputs": [1.125]})
    with closing(sqlite3.connect(lab.folder / "lab.db")) as connection, connection:
        (last,) = connection.execute("SELECT max(number) FROM cascada_events WHERE study = 1").fetchone()
        connection.execute(insert, [last + 1, "note", None, json.dumps(data)])
        connection.execute(insert, [last + 2, "corrected", 0, corrected])
    for command in (("status",), ("studies",), ("status", "--study", "alloy"), ("trials", "--study", "alloy")):
        result = lab.call(*command)
        assert isinstance(result.exception, SystemExit | None), (command, result.exception)


# ---- terminals


def test_escapes_in_names_reasons_and_outputs_are_shown_and_not_obeyed(lab: Lab) -> None:
    (lab.folder / "out.json").write_bytes(b"\x1b[31m{")
    shown = "\\x1b[31mred\\x1b[0m\\u202e"
    for command, part in [
        (("status", "--study", "odd"), shown),
        (("trials", "--study", "odd"), shown),
        (("trials", "--study", "odd", "--csv"), shown),
        (("trials", "--study", "alloy"), shown),
        (("best", "--study", "odd"), shown),
        (("fail", "--study", "alloy", "3", RED), f"trial 3 failed: {shown}"),
        (("tell", "--study", "alloy", "3", json.dumps({RED: 1})), shown),
        (("tell-stage", "--study", "odd", "0", RED, "7"), shown),
        (("tell", "--study", RED, "3", "{}"), shown),
        (("status", "--study", "alloy", RED), shown),
        (("ask", "--study", "alloy", "--spec", f"{RED}.toml"), shown),
        (("import", f"{RED}.jsonl", "--study", "x"), shown),
        (("run", "process.toml", "--study", "made", "--budget", "1"), "\\x1b[31m{"),
        ((RED,), shown),
        ((f"--{RED}",), shown),
    ]:
        result = lab.call(*command)
        assert part in result.output.replace("│\n│", ""), (command, result.output)
        assert all(c.isprintable() or c in "\n\t" for c in result.output), command
    exact = json.loads(lab.call("best", "--study", "odd", "--json").stdout)
    assert RED in exact["outputs"]


@pytest.mark.parametrize(
    "command",
    [
        ("status", "--study", "{}"),
        ("status", "{}"),
        ("{}",),
        ("tell", "--study", "alloy", "{}", "{{}}"),
        ("tell", "--study", "alloy", "3", "{}"),
        ("tell", "--study", "alloy", "3", '{{"{}": 1}}'),
        ("tell", "--study", "alloy", "3", '{{"mix": "{}"}}'),
        ("tell", "--study", "alloy", "3", '{{"mix": {{"{}": 1}}}}'),
        ("tell-stage", "--study", "alloy", "3", "{}", "1"),
        ("tell-stage", "--study", "alloy", "3", "mix", "{}"),
        ("enqueue", "--study", "alloy", '{{"{}": 1}}'),
        ("enqueue", "--study", "alloy", '{{"dose": "{}", "heat": 1}}'),
        ("ask", "--study", "alloy", "--storage", "sqlite:///{}"),
        ("ask", "--study", "alloy", "--storage", "{}"),
        ("ask", "--study", "alloy", "--spec", "{}"),
        ("ask", "--study", "alloy", "--algorithm", "{}"),
        ("add", "{}", "--study", "alloy"),
        ("rename", "alloy", "{}"),
    ],
)
def test_megabytes_of_input_give_a_short_message(lab: Lab, command: tuple[str, ...]) -> None:
    result = lab.call(*(word.format("x" * LARGE) for word in command))
    assert result.exit_code in (1, 2), result.output[:1000]
    assert len(result.output) < 2 * LONGEST_MESSAGE
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize(
    ("call", "name", "text"),
    [
        (("add", "big", "--study", "alloy"), "big", "dose,heat,mix\n0,0,{}\n"),
        (("add", "big", "--study", "alloy"), "big", "{}\n0,0,{}\n"),
        (("import", "big"), "big", "{}"),
        (("import", "big"), "big", '{{"number": "{}", "kind": "{}", "trial": 1, "data": 1, "at": 1}}'),
        (("ask", "--study", "x", "--spec", "big.toml"), "big.toml", "objective = '{}'"),
    ],
)
def test_megabytes_in_a_file_give_a_short_message(lab: Lab, call: tuple[str, ...], name: str, text: str) -> None:
    (lab.folder / name).write_text(text.format(*["y" * (LARGE // 2)] * 2), encoding="utf-8")
    result = lab.call(*call)
    assert result.exit_code in (1, 2)
    assert len(result.output) < 2 * LONGEST_MESSAGE


def test_errors_in_python_stay_whole(lab: Lab) -> None:
    with pytest.raises(CascadaError, match=r"x{200}"):
        cd.Study.open(f"sqlite:///{lab.folder}/lab.db", "x" * 300)
