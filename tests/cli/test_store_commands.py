"""The commands on a store, as a lab calls them: what each prints, and that a wrong call leaves the store as it was."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cascada.cli.main import app
from tests.forked import commands

PROCESS = """
import math
import cascada as cd

kernel = cd.SquaredExponential(1.0)
mix = cd.Stage("mix", controls={"dose": cd.Real(-2, 2)}, kernel=kernel, norm_bound=2.0,
               function=lambda dose: 1.5 * math.exp(-0.5 * (dose - 0.4) ** 2))
cure = cd.Stage("cure", controls={"heat": cd.Real(-2, 2)}, kernel=kernel, norm_bound=2.0,
                function=lambda mix, heat: 1.8 * math.exp(-0.5 * ((mix - 0.9) ** 2 + (heat + 0.3) ** 2)))
network = cd.chain(mix, cure)
worth = cd.Stage("worth", known=True, function=lambda cure: 3 * cure - 1, lipschitz=3.0)
priced = cd.chain(mix, cure, worth)
"""


def mixed(dose: float) -> float:
    return 1.5 * math.exp(-0.5 * (dose - 0.4) ** 2)


def cured(mix: float, heat: float) -> float:
    return 1.8 * math.exp(-0.5 * ((mix - 0.9) ** 2 + (heat + 0.3) ** 2))


Call = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CASCADA_STORAGE", "sqlite:///lab.db")
    (tmp_path / "alloy.py").write_text(PROCESS, encoding="utf-8")
    return tmp_path


def invoke(*arguments: str, text: str | None = None) -> Result:
    """What goes wrong without being said raises here."""
    return CliRunner().invoke(app, list(arguments), input=text, catch_exceptions=False)


@pytest.fixture
def call(folder: Path) -> Call:
    """`call("ask", "--study", "alloy")` in a folder with `alloy.py` and no store."""
    assert not (folder / "lab.db").exists()
    return invoke


def found(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(result: Result, code: int, message: str) -> None:
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert message in " ".join(result.stderr.replace("│", "").split())
    assert "Traceback" not in result.stderr


def test_a_session_in_the_lab(call: Call) -> None:
    first = found(call("run", "alloy.py:network", "--budget", "3", "--json"))
    assert (first["study"], len(first["trials"])) == ("alloy", 3)

    status = found(call("status", "--study", "alloy", "--json"))
    assert status["trials"] == {"waiting": 0, "running": 0, "complete": 3, "failed": 0, "abandoned": 0}
    assert (status["gap"], status["gap_kind"], status["open"]) == (first["gap"], "proven", [])
    assert status["certificate"]["assumptions"] == first["certificate"]["assumptions"]

    trial = found(call("ask", "--study", "alloy", "--json"))
    assert (trial["number"], trial["state"]) == (3, "running")
    mix = mixed(trial["controls"]["dose"])
    text = call("tell-stage", "--study", "alloy", "3", "mix", repr(mix))
    assert text.output == "Trial 3 is running; not told yet: cure.\n"

    (waiting,) = found(call("status", "--study", "alloy", "--json"))["open"]
    assert waiting["controls"] == trial["controls"]
    assert waiting["outputs"] == {"mix": [mix]}
    shown = call("status", "--study", "alloy").output
    assert "trial 3, running since" in shown
    assert f"dose         {trial['controls']['dose']!r}" in shown
    assert "is within" in shown
    assert "norm ≤ 2" in shown

    cure = cured(mix, trial["controls"]["heat"])
    told = found(call("tell", "--study", "alloy", "3", "-", "--json", text=json.dumps({"cure": [cure]})))
    assert (told["state"], told["value"]) == ("complete", cure)
    again = call("tell", "--study", "alloy", "3", json.dumps({"mix": mix, "cure": cure}))
    assert again.output == f"Trial 3 is complete: cure = {cure!r}.\n"

    trials = found(call("trials", "--study", "alloy", "--json"))
    assert [trial["number"] for trial in trials] == [0, 1, 2, 3]
    best = found(call("best", "--study", "alloy", "--json"))
    assert best == max(trials, key=lambda trial: trial["value"])
    assert call("best", "--study", "alloy").output.startswith(f"best value  {best['value']!r} (trial {best['number']})")
    heading, *rows = call("trials", "--study", "alloy").output.splitlines()
    assert heading.split() == ["trial", "state", "dose", "heat", "mix", "cure", "value"]
    assert rows[3].split()[:2] == ["3", "complete"]

    lines = call("export", "--study", "alloy").stdout.splitlines()
    assert [json.loads(line) for line in lines] == found(call("export", "--study", "alloy", "--json"))
    assert found(call("export", "--study", "alloy", "--out", "copy.jsonl", "--json"))["events"] == len(lines)
    assert found(call("import", "copy.jsonl", "--json")) == {"study": "copy", "events": len(lines)}
    call("import", "-", "--study", "elsewhere", "--storage", "sqlite:///other.db", text="\n".join(lines))
    here = found(call("ask", "--study", "alloy", "--json"))
    assert found(call("ask", "--study", "copy", "--json")) == here
    there = found(call("ask", "--study", "elsewhere", "--storage", "sqlite:///other.db", "--json"))
    assert there == here

    listed = found(call("status", "--json"))["studies"]
    assert [(row["study"], row["trials"]["complete"], row["trials"]["running"]) for row in listed] == [
        ("alloy", 4, 1),
        ("copy", 4, 1),
    ]
    table = call("status").output.splitlines()
    assert table[1].split()[:5] == ["alloy", "maximise", "cure.cure", "1", "4"]


NEW = (sys.executable, "-c", "from cascada.cli.main import app; app()")


def test_the_real_command_line(folder: Path) -> None:
    def cascada(*arguments: str, text: str | None = None, program: Sequence[str] = NEW) -> str:
        call = [*program, *arguments]
        done = subprocess.run(call, capture_output=True, text=True, check=True, input=text, cwd=folder, env=environ)
        assert done.stderr == ""
        return done.stdout

    environ = os.environ | {"CASCADA_STORAGE": f"sqlite:///{folder}/lab.db"}
    # The first two calls are new interpreters, the others forks.
    trial = json.loads(cascada("ask", "--study", "alloy", "--spec", "alloy.py:network", "--json"))
    mix = mixed(trial["controls"]["dose"])
    outputs = {"mix": mix, "cure": cured(mix, trial["controls"]["heat"])}
    cascada("tell", "--study", "alloy", str(trial["number"]), "-", text=json.dumps(outputs))
    fork = [str(commands(folder) / "cascada")]
    (folder / "log.jsonl").write_text(cascada("export", "--study", "alloy", program=fork), encoding="utf-8")
    cascada("import", "log.jsonl", "--study", "copy", program=fork)
    asked = [cascada("ask", "--study", study, "--json", program=fork) for study in ("copy", "alloy")]
    assert asked[0] == asked[1]


def test_a_reader_who_leaves_early_is_no_error(call: Call, folder: Path) -> None:
    call("run", "alloy.py:network", "--budget", "2", "--json")
    for command in ("export", "trials", "status"):
        program = [str(commands(folder) / "cascada"), command, "--study", "alloy"]
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(program, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, cwd=folder)
        os.close(writing)
        assert done.stderr == ""


def test_run_goes_on(call: Call) -> None:
    command = ("run", "alloy.py:network", "--study", "a", "--json", "--budget")
    whole = found(call(*command, "6", "--storage", "sqlite:///whole.db"))
    found(call(*command, "2"))
    parts = found(call(*command, "6"))
    assert parts["trials"] == whole["trials"]
    assert found(call(*command, "6"))["trials"] == whole["trials"], "the budget counts all runs"
    text = call("run", "alloy.py:network", "--study", "a", "--budget", "6").output
    assert "All of it is in the study 'a'." in text


def test_run_takes_what_is_stored_and_refuses_what_differs(call: Call, folder: Path) -> None:
    command = ("run", "alloy.py:network", "--json", "--budget")
    found(call(*command, "2", "--seed", "3", "--algorithm", "random_search"))
    assert len(found(call(*command, "3"))["trials"]) == 3
    refused(call(*command, "4", "--seed", "4"), 2, "settings.seed: stored 3, given 4")
    refused(call(*command, "4", "--minimise"), 2, "sense")
    (folder / "alloy.py").write_text(PROCESS.replace("norm_bound=2.0", "norm_bound=2.5"), encoding="utf-8")
    refused(call(*command, "4"), 2, "norm_bound: stored 2.0, given 2.5")
    assert len(found(call(*command, "4", "--amend"))["trials"]) == 4


def test_run_leaves_alone_what_the_lab_asked_for(call: Call) -> None:
    mine = found(call("ask", "--study", "alloy", "--spec", "alloy.py:network", "--json"))
    ran = found(call("run", "alloy.py:network", "--budget", "2", "--json"))
    assert [trial["state"] for trial in ran["trials"]] == ["running", "complete"]  # two in all
    assert ran["trials"][0] == mine
    assert "runs        2 (1 running)" in call("run", "alloy.py:network", "--budget", "2").output


def test_a_trial_that_fails_or_is_given_up_or_chosen(call: Call) -> None:
    study = ("--study", "alloy")
    found(call("ask", *study, "--spec", "alloy.py:network", "-n", "2", "--json"))
    assert found(call("fail", *study, "0", "the furnace broke", "--json"))["reason"] == "the furnace broke"
    assert "trial 1 abandoned: too dangerous" in call("abandon", *study, "1", "too dangerous").output
    wanted = {"dose": 0.5, "heat": -0.25}
    assert "trial 2 waits" in call("enqueue", *study, json.dumps(wanted)).output
    asked = found(call("ask", *study, "--json"))
    assert (asked["number"], asked["controls"]) == (2, wanted)
    states = [trial["state"] for trial in found(call("trials", *study, "--json"))]
    assert states == ["failed", "abandoned", "running"]
    refused(call("enqueue", *study, "0.5"), 2, "give the controls as a dict")
    refused(call("enqueue", *study, "{"), 2, "must be a JSON object")
    refused(call("fail", *study, "7", "no reason"), 2, "there is no trial 7")


def test_a_study_that_minimises(call: Call) -> None:
    found(call("run", "alloy.py:network", "--minimise", "--budget", "3", "--json"))
    values = [trial["value"] for trial in found(call("trials", "--study", "alloy", "--json"))]
    for spec in ((), ("--spec", "alloy.py:network")):
        assert found(call("best", "--study", "alloy", *spec, "--json"))["value"] == min(values)
    assert call("status").output.splitlines()[1].split()[1] == "minimise"


def test_formulas_come_from_the_spec(call: Call) -> None:
    study, spec = ("--study", "alloy"), ("--spec", "alloy.py:priced")
    trial = found(call("ask", *study, *spec, "--json"))
    refused(call("ask", *study), 2, "'worth' is a formula")
    refused(call("status", *study), 2, "'worth' is a formula")
    assert found(call("status", "--json"))["studies"][0]["trials"]["running"] == 1
    mix = mixed(trial["controls"]["dose"])
    cure = cured(mix, trial["controls"]["heat"])
    told = found(call("tell", *study, *spec, "0", json.dumps({"mix": mix, "cure": cure}), "--json"))
    assert told["value"] == pytest.approx(3 * cure - 1)
    call("export", *study, "--out", "copy.jsonl")
    refused(call("import", "copy.jsonl"), 1, "'worth' is a formula")
    found(call("import", "copy.jsonl", *spec, "--json"))
    same = [call("ask", "--study", name, *spec, "--json").stdout for name in ("alloy", "copy")]
    assert same[0] == same[1]


def test_several_trials_at_once_and_leases(call: Call) -> None:
    ask = ("ask", "--study", "alloy", "--spec", "alloy.py:network", "--json")
    several = found(call(*ask, "-n", "3"))
    assert [trial["number"] for trial in several] == [0, 1, 2]
    assert len({tuple(trial["controls"].values()) for trial in several}) == 3
    brief = found(call(*ask, "--lease", "0.001"))
    assert found(call(*ask))["controls"] == brief["controls"], "the lease ran out"
    text = call("ask", "--study", "alloy", "-n", "2").output.splitlines()
    assert (text[0], text[3]) == ("trial 4", "trial 5")
    refused(call(*ask, "--lease", "-1"), 2, "lease must be a number of seconds above 0")
    refused(call(*ask, "-n", "0"), 2, "-n")


def test_no_point_is_worth_a_run(call: Call, folder: Path) -> None:
    one = PROCESS.replace("cd.Real(-2, 2)", "cd.Integer(0, 1)")
    (folder / "alloy.py").write_text(one, encoding="utf-8")
    found(call("run", "alloy.py:network", "--budget", "9", "--algorithm", "random_search", "--json"))
    nothing = call("ask", "--study", "alloy", "--json")
    assert (nothing.exit_code, nothing.stdout) == (0, "null\n")
    assert nothing.stderr == "No point is worth a run.\n"
    assert call("ask", "--study", "alloy", "-n", "2", "--json").stdout == "[]\n"


def test_past_runs(call: Call, folder: Path) -> None:
    rows = [f"{dose},0.5,{mixed(dose)!r},{cured(mixed(dose), 0.5)!r}" for dose in (-1.0, 0.0, 1.0)]
    text = "\n".join(["dose,heat,mix,cure.cure", *rows, f"1.5,0.5,{mixed(1.5)!r},", ""])
    (folder / "past.csv").write_text("\N{BOM}" + text, encoding="utf-8")
    command = ("add", "past.csv", "--study", "alloy", "--spec", "alloy.py:network")
    assert call(*command).output == "4 runs were added.\n"
    assert [trial["state"] for trial in found(call("trials", "--study", "alloy", "--json"))] == [
        *["complete"] * 3,
        "abandoned",
    ]
    added = found(call("add", "-", "--study", "alloy", "--json", text="dose,heat,mix\n2,2," + repr(mixed(2.0))))
    assert added == {"study": "alloy", "added": 1}


FILES = {
    "alloy.py": PROCESS,
    "number.csv": "dose,heat,mix\n0.1,0.5,1\nmuch,0,1\n",
    "outside.csv": "dose,heat,mix\n0.1,0.5,1\n3,0,1\n",
    "short.csv": "dose,heat,mix\n0.1,0.5,1\n1\n",
    "columns.csv": "dose,mix\n0,1\n",
    "clash.csv": "dose,heat,mix\n0.123,0,1\n0.123,1,1.5\n",
    "blank.csv": "dose,heat,mix\n,,\n , ,\n\n",
    "scripts.csv": "dose,heat,mix\n0,0,\u0661\u0662\n",
    "deep.csv": "dose,heat,mix\n0,0," + "[" * 3000 + "\n",
    "past.csv": "dose,heat,mix\n0.123,0,1\n",
    "empty.jsonl": "",
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study of three complete trials and a running one, and with files that are wrong in some way."""
    folder = tmp_path_factory.mktemp("lab")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "binary.csv").write_bytes(b"\xff\xfe\x00")
    store, log = ("--storage", f"sqlite:///{folder}/lab.db"), folder / "alloy.jsonl"
    found(invoke("run", f"{folder}/alloy.py:network", *store, "--budget", "3", "--json"))
    found(invoke("ask", "--study", "alloy", *store, "--json"))
    found(invoke("export", "--study", "alloy", *store, "--out", str(log), "--json"))
    (folder / "cut.jsonl").write_text(log.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    return folder


@pytest.fixture
def used(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(prepared)
    monkeypatch.setenv("CASCADA_STORAGE", "sqlite:///lab.db")
    return prepared


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("ask", "--study", "none"), 1, "there is no study 'none' in this store; it has alloy."),
        (("tell", "--study", "none", "0", "{}"), 1, "no study 'none'"),
        (("best", "--study", "none"), 1, "no study 'none'"),
        (("status", "--study", "none"), 1, "no study 'none'"),
        (("trials", "--study", "none", "--spec", "alloy.py:network"), 1, "no study 'none'"),
        (("export", "--study", "none"), 1, "no study 'none'"),
        (("add", "past.csv", "--study", "none"), 1, "no study 'none'"),
        (("ask", "--study", ""), 2, "a study's name must be printable"),
        (("ask",), 2, "Missing option '--study'"),
        (("ask", "--study", "alloy", "--storage", "sqlite:///typo.db"), 1, "there is no store at typo.db"),
        (("ask", "--study", "alloy", "--storage", "mysql://host/name"), 2, "stores are SQLite or PostgreSQL"),
        (("ask", "--study", "alloy", "--storage", "nonsense"), 2, "a store is a URL like 'sqlite:///alloy.db'"),
        (("ask", "--study", "alloy", "--storage", "sqlite:///alloy.py"), 1, "cannot open the store"),
        (("ask", "--study", "alloy", "--storage", ""), 2, "Give --storage URL"),
        (("run", "alloy.py:network", "--study", "a", "--storage", ""), 2, "Give --storage URL"),
        (("ask", "--study", "alloy", "--spec", "alloy.py:priced"), 2, "stages.worth: a stage that is not stored"),
        (("tell", "--study", "alloy", "9", '{"mix": 1}'), 2, "there is no trial 9; the last one is 3"),
        (("tell", "--study", "alloy", "x", '{"mix": 1}'), 2, "TRIAL': it must be a whole number; got 'x'"),
        (("tell", "--study", "alloy", "3.0", '{"mix": 1}'), 2, "it must be a whole number; got '3.0'"),
        (("tell", "--study", "alloy", "\u0663", '{"mix": 1}'), 2, "it must be a whole number"),
        (("ask", "--study", "alloy", "--lease", "1_0"), 2, "it must be a number; got '1_0'"),
        (("ask", "--study", "alloy", "-n", "1_0"), 2, "it must be a whole number; got '1_0'"),
        (("tell", "--study", "alloy", "3", "mix=1"), 2, "OUTPUTS must be JSON"),
        (("tell", "--study", "alloy", "3", '{"mix": 1'), 2, "OUTPUTS must be JSON"),
        (("tell", "--study", "alloy", "3", "[" * 100_000), 2, "OUTPUTS must be JSON"),
        (("tell", "--study", "alloy", "3", '{"mix":' + "[" * 90 + "]" * 90 + "}"), 2, "more than 50 levels deep"),
        (("tell", "--study", "alloy", "3", "[1]"), 2, "OUTPUTS must be a JSON object of stages"),
        (("tell", "--study", "alloy", "3", '{"mix": 1, "mix": 2}'), 2, "mix is there twice"),
        (("tell", "--study", "alloy", "3", '{"mix": NaN}'), 2, "NaN is not a number in JSON"),
        (("tell", "--study", "alloy", "3", '{"mix": 1e999}'), 2, "1e999 is too large"),
        (("tell", "--study", "alloy", "3", '{"mix": "1"}'), 2, "not a number"),
        (("tell", "--study", "alloy", "3", '{"mix": [1, 2]}'), 2, "1 output (mix); got 2"),
        (("tell", "--study", "alloy", "3", '{"mill": 1}'), 2, "no stage 'mill'; the stages are 'mix', 'cure'"),
        (("tell", "--study", "alloy", "3", '{"mix": 1, "mill": 1}'), 2, "no stage 'mill'"),
        (("tell", "--study", "alloy", "0", '{"mix": 1}'), 1, "told as"),
        (("tell-stage", "--study", "alloy", "0", "cure", "1"), 1, "before and now as 1. If"),
        (("tell-stage", "--study", "alloy", "3", "mill", "1"), 2, "no stage 'mill'"),
        (("tell-stage", "--study", "alloy", "3", "mix", "nan"), 2, "'nan' is no number"),
        (("tell-stage", "--study", "alloy", "3", "mix", "1_0"), 2, "'1_0' is no number"),
        (("tell-stage", "--study", "alloy", "3", "mix", "\u0661\u0662"), 2, "is no number: VALUES must be numbers"),
        (("tell-stage", "--study", "alloy", "3", "mix", "1e999"), 2, "not finite"),
        (("correct", "--study", "alloy", "0", "mix", "\u0661"), 2, "is no number"),
        (("correct", "--study", "alloy", "0", "--controls", "[" * 3000 + "]" * 3000), 2, "more than 50 levels deep"),
        (("correct", "--study", "alloy", "0", "--controls", '{"dose": 1, "dose": 0}'), 2, "dose is there twice"),
        (("enqueue", "--study", "alloy", "[" * 3000 + "]" * 3000), 2, "more than 50 levels deep"),
        (("enqueue", "--study", "alloy", '{"a":' * 3000 + "1" + "}" * 3000), 2, "more than 50 levels deep"),
        (("enqueue", "--study", "alloy", '{"dose": 1, "dose": 0, "heat": 0}'), 2, "dose is there twice"),
        (("enqueue", "--study", "alloy", '{"dose": NaN, "heat": 0}'), 2, "NaN is not a number in JSON"),
        (("tell-stage", "--study", "alloy", "3", "mix", "much"), 2, "'much' is no number: VALUES must be numbers"),
        (
            ("tell-stage", "--study", "alloy", "3", "mix", "1", "--jso"),
            2,
            "there is no option --jso",
        ),
        (("tell-stage", "--study", "alloy", "3", "mix"), 2, "Missing argument"),
        (("tell-stage", "--study", "alloy", "-1", "mix", "1"), 2, "there is no trial -1"),
        (("add", "none.csv", "--study", "alloy"), 2, "cannot read none.csv: No such file"),
        (("add", "number.csv", "--study", "alloy"), 2, "line 3: dose must be a number; got 'much'"),
        (("add", "outside.csv", "--study", "alloy"), 2, "line 3:"),
        (("add", "short.csv", "--study", "alloy"), 2, "line 3: 1 cells where the header has 3"),
        (
            ("add", "columns.csv", "--study", "alloy"),
            2,
            "line 1: no column for heat. Columns are the controls dose, heat and any of the outputs",
        ),
        (("add", "blank.csv", "--study", "alloy"), 2, "the file needs a header and at least one run"),
        (("add", "scripts.csv", "--study", "alloy"), 2, "line 2: mix must be a number"),
        (("add", "deep.csv", "--study", "alloy"), 2, "line 2: mix must be a number"),
        (("add", "clash.csv", "--study", "alloy"), 1, "line 3:"),
        (("add", "binary.csv", "--study", "alloy"), 2, "must be text in UTF-8"),
        (("import", "alloy.jsonl"), 1, "there is a study 'alloy' in this store already"),
        (("import", "number.csv"), 1, "line 1: not JSON"),
        (("import", "cut.jsonl"), 1, "Nothing was imported"),
        (("import", "empty.jsonl"), 1, "no events"),
        (("import", "-"), 2, "give --study NAME"),
        (("import", "none.jsonl"), 2, "cannot read none.jsonl"),
        (("import", "alloy.jsonl", "--study", " a"), 2, "a study's name must be printable"),
        (("export", "--study", "alloy", "--out", "no/such/folder.jsonl"), 1, "cannot write no/such/folder.jsonl"),
    ],
)
def test_a_wrong_call_is_said_and_changes_nothing(
    used: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    before, names = invoke("export", "--study", "alloy").stdout, _files(used)
    refused(invoke(*arguments), code, message)
    assert before
    assert invoke("export", "--study", "alloy").stdout == before
    assert [row["study"] for row in found(invoke("status", "--json"))["studies"]] == ["alloy"]
    assert _files(used) == names


def _files(folder: Path) -> set[str]:
    """Those that are not SQLite's own (lab.db-wal) or Python's."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(("lab.db-", "__pycache__"))}


def test_negative_numbers_are_values(call: Call) -> None:
    found(call("ask", "--study", "alloy", "--spec", "alloy.py:network", "--json"))
    told = found(call("tell-stage", "--study", "alloy", "0", "mix", "-1.25e-1", "--json"))
    assert told["outputs"] == {"mix": [-0.125]}


def test_without_a_store(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CASCADA_STORAGE")
    for command in (("ask", "--study", "a"), ("status",), ("export", "--study", "a"), ("import", "alloy.py")):
        refused(call(*command), 2, "which store? Give --storage URL")
    refused(call("run", "alloy.py:network", "--study", "a"), 2, "which store? Give --storage URL")


def test_before_the_first_result(call: Call) -> None:
    found(call("ask", "--study", "alloy", "--spec", "alloy.py:network", "--json"))
    refused(call("best", "--study", "alloy"), 1, "no run of the study 'alloy' is complete yet")
    status = found(call("status", "--study", "alloy", "--json"))
    assert (status["best"], status["gap"], status["gap_kind"]) == (None, None, None)
    assert "No complete run yet" in call("status", "--study", "alloy").output


def test_refuted_assumptions_are_said(call: Call) -> None:
    found(call("ask", "--study", "alloy", "--spec", "alloy.py:network", "--json"))
    call("tell", "--study", "alloy", "0", '{"mix": 5}')
    refused(call("ask", "--study", "alloy"), 1, "norm_bound")
    assert found(call("status", "--study", "alloy", "--json"))["gap_kind"] == "refuted"
