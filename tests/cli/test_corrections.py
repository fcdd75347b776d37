"""Commands that correct, list, rename and delete, CSV both ways, and how often a command opens the store."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from cascada.store.database import Store
from cascada.study import Study
from tests.cli.test_store_commands import PROCESS, cured, found, invoke, mixed, refused

STUDY = ("--study", "alloy")
TYPO = 28.12


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a process and no store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CASCADA_STORAGE", "sqlite:///lab.db")
    (tmp_path / "alloy.py").write_text(PROCESS, encoding="utf-8")
    return tmp_path


def asked() -> Any:
    return found(invoke("ask", *STUDY, "--spec", "alloy.py:network", "--json"))


@pytest.fixture
def right(lab: Path) -> dict[str, float]:
    """The right outputs of trial 0, which is running."""
    assert lab.exists()
    controls = asked()["controls"]
    mix = mixed(controls["dose"])
    return {"mix": mix, "cure": cured(mix, controls["heat"])}


# ---- correct and retract


def test_a_typo_is_said_at_once_and_corrected(right: dict[str, float]) -> None:
    told = invoke("tell", *STUDY, "0", json.dumps(right | {"mix": TYPO}))
    assert told.exit_code == 0
    assert told.stdout == f"Trial 0 is complete: cure = {right['cure']!r}.\n"
    first, second = told.stderr.splitlines()
    assert first.startswith("The data now refute an assumption: Stage 'mix': The norm_bound is given as 2, but trial 0")
    command = "cascada correct --storage sqlite:///lab.db --study alloy 0 mix VALUES --reason TEXT"
    assert second == f"If a value is wrong, correct it: {command}"
    assert found(invoke("status", *STUDY, "--json"))["gap_kind"] == "refuted"

    corrected = invoke("correct", *STUDY, "0", "mix", repr(right["mix"]), "--reason", "decimal point")
    assert corrected.exit_code == 0
    assert corrected.output == f"Trial 0 was corrected. Trial 0 is complete: cure = {right['cure']!r}.\n"
    status = found(invoke("status", *STUDY, "--json"))
    assert status["gap_kind"] == "proven"
    assert status["corrections"] == {"0": [f"mix was corrected, before: {TYPO} (decimal point)"]}
    assert f"corrections\n  trial 0      mix was corrected, before: {TYPO}" in invoke("status", *STUDY).output
    table = invoke("trials", *STUDY).output
    assert f"mix was corrected, before: {TYPO} (decimal point)" in table


def test_a_stage_told_wrongly_is_named_in_the_command(right: dict[str, float]) -> None:
    told = invoke("tell-stage", *STUDY, "0", "mix", str(TYPO), "--json")
    assert json.loads(told.stdout)["outputs"] == {"mix": [TYPO]}
    assert told.stderr.endswith("correct --storage sqlite:///lab.db --study alloy 0 mix VALUES --reason TEXT\n")
    fine = invoke("correct", *STUDY, "0", "mix", repr(right["mix"]), "--json")
    assert (json.loads(fine.stdout)["outputs"], fine.stderr) == ({"mix": [right["mix"]]}, "")
    still = invoke("correct", *STUDY, "0", "mix", f"-{TYPO}", "--json")
    assert "The data now refute an assumption" in still.stderr
    assert invoke("tell-stage", *STUDY, "0", "cure", repr(right["cure"])).stderr != ""  # it still is


def test_controls_are_corrected(right: dict[str, float]) -> None:
    found(invoke("tell", *STUDY, "0", json.dumps(right), "--json"))
    before = found(invoke("trials", *STUDY, "--json"))[0]["controls"]
    after = found(invoke("correct", *STUDY, "0", "--controls", '{"heat": 0.5}', "--reason", "misread", "--json"))
    assert after["controls"] == before | {"heat": 0.5}
    assert f"before: heat = {before['heat']!r} (misread)" in invoke("trials", *STUDY).output


def test_a_retracted_stage_can_be_told_again(right: dict[str, float]) -> None:
    found(invoke("tell", *STUDY, "0", json.dumps(right), "--json"))
    said = invoke("retract", *STUDY, "0", "cure", "--reason", "wrong sample").output
    assert said == "Stage 'cure' of trial 0 was retracted. Trial 0 is running; not told yet: cure.\n"
    (summary,) = found(invoke("studies", "--json"))["studies"]
    assert (summary["trials"]["running"], summary["trials"]["complete"], summary["best"]) == (1, 0, None)
    assert found(invoke("tell-stage", *STUDY, "0", "cure", repr(right["cure"]), "--json"))["state"] == "complete"
    again = found(invoke("retract", *STUDY, "0", "mix", "--json"))
    assert (again["state"], again["outputs"]) == ("complete", {"cure": [right["cure"]]})


def test_the_summary_of_an_objective_that_is_a_formula_follows_corrections(lab: Path) -> None:
    assert lab.exists()
    spec = ("--spec", "alloy.py:priced")
    controls = found(invoke("ask", *STUDY, *spec, "--json"))["controls"]
    mix = mixed(controls["dose"])
    cure = cured(mix, controls["heat"])
    outputs = {"mix": mix, "cure": cure, "worth": 3 * cure - 1}
    found(invoke("tell", *STUDY, *spec, "0", json.dumps(outputs), "--json"))

    def summary() -> Any:
        (row,) = found(invoke("studies", "--json"))["studies"]
        return {state: count for state, count in row["trials"].items() if count}, row["best"]

    assert summary() == ({"complete": 1}, None)
    found(invoke("retract", *STUDY, *spec, "0", "mix", "--json"))
    assert summary() == ({"complete": 1}, None)
    found(invoke("retract", *STUDY, *spec, "0", "cure", "--json"))
    assert summary() == ({"running": 1}, None)
    refused(invoke("correct", *STUDY, *spec, "0", "worth", "1"), 2, "has no outputs of stage 'worth' to correct")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("correct", "0", "mix"), 2, "correct takes a stage with the right number for each of its outputs"),
        (("correct", "0"), 2, "correct takes a stage with the right number"),
        (("correct", "0", "mix", "1", "--controls", "{}"), 2, "correct takes a stage with the right number"),
        (("correct", "0", "mix", "much"), 2, "'much' is no number: VALUES must be numbers"),
        (("correct", "0", "mix", "1_0"), 2, "'1_0' is no number"),
        (("correct", "0", "mix", "nan"), 2, "'nan' is no number"),
        (("correct", "0", "mix", "1", "2"), 2, "1 output (mix); got 2"),
        (("correct", "0", "mix", "1", "--resaon", "x"), 2, "there is no option --resaon"),
        (("correct", "0", "mill", "1"), 2, "there is no stage 'mill'"),
        (("correct", "0", "cure", "1"), 2, "trial 0 has no outputs of stage 'cure' to correct"),
        (("correct", "0", "mix", "1"), 2, "there is nothing to correct"),
        (("correct", "9", "mix", "1"), 2, "there is no trial 9"),
        (("correct", "0", "--controls", "0.5"), 2, "--controls must be a JSON object"),
        (("correct", "0", "--controls", '{"dose"'), 2, "--controls must be a JSON object"),
        (("correct", "0", "--controls", '{"dose": 9}'), 2, "control 'dose' must lie in [-2, 2]; got 9"),
        (("correct", "0", "--controls", '{"dosis": 0}'), 2, "unknown: 'dosis'"),
        (("retract", "0", "cure"), 2, "trial 0 has no outputs of stage 'cure' to retract"),
        (("retract", "0", "mill"), 2, "there is no stage 'mill'"),
        (("retract", "0"), 2, "Missing argument"),
        (("tell-stage", "0", "cure", "1_0"), 2, "'1_0' is no number"),
    ],
)
def test_a_wrong_correction_changes_nothing(
    right: dict[str, float], arguments: tuple[str, ...], code: int, message: str
) -> None:
    assert right
    found(invoke("tell-stage", *STUDY, "0", "mix", "1", "--json"))
    before = invoke("export", *STUDY).stdout
    refused(invoke(arguments[0], *STUDY, *arguments[1:]), code, message)
    assert invoke("export", *STUDY).stdout == before


def test_a_trial_under_a_lease_is_not_corrected(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lab.exists()
    asked()
    study = Study.open("sqlite:///lab.db", "alloy", worker="furnace 2")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("cascada.store.transaction.this_process", lambda: "another machine:1")
        trial = study.ask(lease=600.0)
    assert trial is not None
    study.tell_stage(trial, "mix", 1.0)
    refused(invoke("correct", *STUDY, "1", "mix", "0.5"), 1, "trial 1 is being run by the worker 'furnace 2'")
    refused(invoke("delete", "alloy", "--yes"), 1, "the worker 'furnace 2' is running trial 1 of the study 'alloy'")
    refused(invoke("rename", "alloy", "steel"), 1, "the worker 'furnace 2' is running trial 1")


# ---- studies, delete, rename


def test_the_studies_of_a_store_are_listed_renamed_and_deleted(right: dict[str, float]) -> None:
    found(invoke("tell", *STUDY, "0", json.dumps(right), "--json"))
    found(invoke("ask", "--study", "empty", "--spec", "alloy.py:network", "--json"))
    first, second = found(invoke("studies", "--json"))["studies"]
    assert (first["name"], first["best"], first["gap_kind"]) == ("alloy", right["cure"], "proven")
    assert first["objective"] == {"sense": "maximise", "stage": "cure", "output": "cure"}
    assert first["trials"] == {"waiting": 0, "running": 0, "complete": 1, "failed": 0, "abandoned": 0}
    assert (second["name"], second["best"], second["trials"]["running"]) == ("empty", None, 1)
    heading, row, _ = invoke("studies").output.splitlines()
    assert heading.split() == ["study", "objective", "trials", "best", "gap", "last", "event"]
    assert row.split()[:7] == ["alloy", "maximise", "cure.cure", "1", "complete", repr(right["cure"]), "proven"]
    assert row.endswith("ago")

    assert invoke("rename", "alloy", "steel").output == "The study 'alloy' is now 'steel'.\n"
    assert found(invoke("rename", "steel", "alloy 2", "--json")) == {"study": "alloy 2", "was": "steel"}
    assert found(invoke("best", "--study", "alloy 2", "--json"))["value"] == right["cure"]
    refused(invoke("rename", "alloy 2", "empty"), 1, "there is a study 'empty' in this store already")
    refused(invoke("rename", "alloy", "b"), 1, "there is no study 'alloy' in this store; it has alloy 2, empty")
    refused(invoke("rename", "alloy 2", " b"), 2, "a study's name must be printable")

    kept = invoke("delete", "alloy 2", text="n\n")
    assert kept.exit_code == 1
    assert "Delete the study 'alloy 2' with its 1 trial? [y/N]" in kept.stdout
    assert invoke("delete", "alloy 2", text="").exit_code == 1  # no answer
    refused(invoke("delete", "alloy 2", "--json"), 2, "nothing was deleted: with --json, say --yes as well")
    refused(invoke("delete", "alloy"), 1, "there is no study 'alloy'")
    assert len(found(invoke("studies", "--json"))["studies"]) == 2
    gone = invoke("delete", "alloy 2", text="y\n")
    assert gone.exit_code == 0
    assert gone.stdout.endswith("The study 'alloy 2' was deleted.\n")
    assert found(invoke("delete", "empty", "--yes", "--json")) == {"deleted": "empty", "trials": 1}
    assert invoke("studies").output == "The store has no studies.\n"
    assert found(invoke("studies", "--json")) == {"studies": []}


@pytest.mark.parametrize("arguments", [("studies",), ("delete", "alloy", "--yes"), ("rename", "alloy", "b")])
def test_a_mistyped_store_is_not_created(lab: Path, arguments: tuple[str, ...]) -> None:
    refused(invoke(*arguments), 1, "there is no store at lab.db")
    refused(invoke(*arguments, "--storage", ""), 2, "which store? Give --storage URL")
    assert {path.name for path in lab.iterdir()} <= {"alloy.py", "__pycache__"}


def test_a_damaged_study_can_be_deleted(right: dict[str, float]) -> None:
    assert right
    with sqlite3.connect("lab.db") as connection:
        connection.execute("UPDATE cascada_events SET data = '{}' WHERE number = 0")
    connection.close()
    assert found(invoke("delete", "alloy", "--yes", "--json")) == {"deleted": "alloy", "trials": 1}


# ---- CSV


def test_csv_is_written_and_read_bit_for_bit(lab: Path) -> None:
    found(invoke("run", "alloy.py:network", "--budget", "4", "--json"))
    found(invoke("ask", *STUDY, "-n", "2", "--json"))
    found(invoke("tell-stage", *STUDY, "4", "mix", "1e-17", "--json"))
    text = invoke("trials", *STUDY, "--csv").stdout
    assert text.splitlines()[0] == "dose,heat,mix,cure"
    assert len(text.splitlines()) == 6  # the trial without outputs is left out
    (lab / "copy.csv").write_text(text, encoding="utf-8")
    added = found(invoke("add", "copy.csv", "--study", "copy", "--spec", "alloy.py:network", "--json"))
    assert added == {"study": "copy", "added": 5}
    old, new = (found(invoke("trials", "--study", name, "--json")) for name in ("alloy", "copy"))
    assert [(t["controls"], t["outputs"], t["value"]) for t in new] == [
        (t["controls"], t["outputs"], t["value"]) for t in old[:5]
    ]
    assert [trial["state"] for trial in new] == ["complete"] * 4 + ["abandoned"]
    assert invoke("trials", "--study", "copy", "--csv").stdout == text
    refused(invoke("trials", *STUDY, "--csv", "--json"), 2, "--csv and --json are two formats; give one of them")


def test_csv_of_formulas_is_read_again(lab: Path) -> None:
    spec = ("--spec", "alloy.py:priced")
    found(invoke("run", "alloy.py:priced", "--study", "alloy", "--budget", "2", "--json"))
    (lab / "copy.csv").write_text(invoke("trials", *STUDY, *spec, "--csv").stdout, encoding="utf-8")
    found(invoke("add", "copy.csv", "--study", "copy", *spec, "--json"))
    assert invoke("trials", "--study", "copy", *spec, "--csv").stdout == (lab / "copy.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "dose,heat,mix,cure\n0.5,-0.25,1.25,0.75\n",
        "dose;heat;mix;cure\n0,5;-0,25;1,25;0,75\n",
        "dose;heat;mix;cure\n0.5;-0.25;1.25;0.75\n",
        "dose\theat\tmix\tcure\n5e-1\t-0,25\t+1.25\t.75\n",
        "\N{BOM}cure.cure, mix.mix , heat,dose\r\n0.75 ,1.25, -0.25,0.5\r\n\r\n",
        '\n"dose";"heat";"mix";"cure"\n"0,5";"-0,25";"1,25";"0,75"\n',
    ],
    ids=["commas", "decimal commas", "semicolons", "tabs", "spaces and order", "quotes and a blank line"],
)
def test_every_usual_form_of_csv_is_read(lab: Path, text: str) -> None:
    (lab / "past.csv").write_text(text, encoding="utf-8", newline="")
    found(invoke("add", "past.csv", *STUDY, "--spec", "alloy.py:network", "--json"))
    (trial,) = found(invoke("trials", *STUDY, "--json"))
    assert trial["controls"] == {"dose": 0.5, "heat": -0.25}
    assert trial["outputs"] == {"mix": [1.25], "cure": [0.75]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file needs a header and at least one run"),
        ("\n  \n", "the file needs a header and at least one run"),
        ("dose,heat,mix\n", "the file needs a header and at least one run"),
        ("dose,heat,mxi\n1,1,1\n", "line 1: unknown column 'mxi' (did you mean 'mix'?)"),
        ("dose,heat,mix,operator\n1,1,1,2\n", "say --ignore-unknown"),
        ("dosis,heat,mix\n1,1,1\n", "line 1: no column for dose; unknown column 'dosis' (did you mean 'dose'?)"),
        ("Dose;Heat;Mix\n1;1;1\n", "line 1: no column for dose, heat; unknown column 'Dose' (did you mean 'dose'?)"),
        ("\n\ndose,mix\n1,1\n", "line 3: no column for heat"),
        ("dose,heat,mix,cure\n1,1,1,1\n1,1.5,,\n", "line 3: the run has no outputs; leave it out"),
        ("dose,heat,mix\n1,1,1\n1,1,1_0\n", "line 3: mix must be a number; got '1_0'"),
        ("dose,heat,mix\n1,1,nan\n", "line 2: mix must be a number; got 'nan'"),
        ("dose,heat,mix\n1,inf,1\n", "line 2: heat must be a number; got 'inf'"),
        ("dose,heat,mix\n1,1,\N{FULLWIDTH DIGIT ONE}\n", "line 2: mix must be a number"),
        ("dose,heat,mix\n1,1,1e999\n", "line 2: trial 0: stage 'mix' returned inf for 'mix', which is not finite"),
        ('dose,heat,mix\n1,1,"1,5"\n', "line 2: mix must be a number; got '1,5'"),
        ("dose;heat;mix\n1;1;1.234,5\n", "line 2: mix must be a number; got '1.234,5'"),
        ("dose;heat;mix\n1;1;1,234,5\n", "line 2: mix must be a number; got '1,234,5'"),
        ("dose,heat,mix,mix.mix\n1,1,1,1\n", "two columns must not name the same output"),
    ],
)
def test_a_wrong_file_creates_no_study(lab: Path, text: str, message: str) -> None:
    (lab / "past.csv").write_text(text, encoding="utf-8")
    result = invoke("add", "past.csv", *STUDY, "--spec", "alloy.py:network")
    refused(result, 2, message)
    assert "Nothing was added" in result.stderr
    if "trial 0" not in message:  # only the study can say that
        assert not (lab / "lab.db").exists()


def test_unknown_columns_are_ignored_on_request(lab: Path) -> None:
    (lab / "past.csv").write_text("date,dose,heat,mix,by\nMonday,1,1,1.25,Ann\n", encoding="utf-8")
    add = ("add", "past.csv", *STUDY, "--spec", "alloy.py:network")
    refused(invoke(*add), 2, "unknown column 'date'")
    assert invoke(*add, "--ignore-unknown").output == "One run was added.\n"
    assert found(invoke("trials", *STUDY, "--json"))[0]["outputs"] == {"mix": [1.25]}
    (lab / "past.csv").write_text("date,dose,mix\nMonday,1,1.25\n", encoding="utf-8")
    refused(invoke(*add, "--ignore-unknown"), 2, "line 1: no column for heat")


# ---- functions that are missing, and how often a store is opened


@pytest.mark.parametrize("command", ["run", "worker"])
def test_a_process_without_functions_creates_nothing(lab: Path, command: str) -> None:
    without = PROCESS.replace("cure = cd.Stage", "spare = cd.Stage")
    without += '\ncure = cd.Stage("cure", controls={"heat": cd.Real(-2, 2)}, kernel=kernel, norm_bound=2.0)\n'
    without = without.replace("network = cd.chain(mix, cure)\n", "").replace(
        "priced = cd.chain(mix, cure, worth)\n", ""
    )
    (lab / "alloy.py").write_text(without + "network = cd.chain(mix, cure)\n", encoding="utf-8")
    refused(invoke(command, "alloy.py:network", *STUDY, "--json"), 2, "'cure'")
    assert {path.name for path in lab.iterdir()} <= {"alloy.py", "__pycache__"}


def test_a_command_opens_the_store_once(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lab.exists()
    count = 0
    init = Store.__init__

    def counted(store: Store, *arguments: Any, **options: Any) -> None:
        nonlocal count
        count += 1
        init(store, *arguments, **options)

    monkeypatch.setattr(Store, "__init__", counted)

    def openings(*arguments: str) -> int:
        nonlocal count
        count = 0
        found(invoke(*arguments, "--json"))
        return count

    run = ("run", "alloy.py:network", "--budget")
    assert openings(*run, "2") == 1  # which creates the study
    assert openings(*run, "3") == 1
    assert openings("ask", *STUDY) == 1
    assert openings("tell-stage", *STUDY, "3", "mix", "1.25") == 1
    assert openings("tell", *STUDY, "3", '{"cure": 1.5}') == 1
    assert openings("correct", *STUDY, "3", "cure", "1.25") == 1
    assert openings("retract", *STUDY, "3", "cure") == 1
    for command in ("status", "best", "trials"):
        assert openings(command, *STUDY) == 1
    assert openings("status") == openings("studies") == openings("rename", "alloy", "b") == 1
