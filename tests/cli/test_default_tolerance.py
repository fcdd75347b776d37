"""The default tolerance of `cascada run`: from the first runs, for proven gaps, fixed and stored."""

import json

import pytest
from typer.testing import CliRunner

import cascada as cd
from cascada.cli.default_tolerance import first_runs, stored_tolerance, tolerance_of
from cascada.cli.main import app
from cascada.errors import ArgumentError
from cascada.problems import by_name
from cascada.study import Study

RUN = ["run", "certified-chain"]  # one control: the default is taken from the first 4 runs


def run(*options, code=0):
    done = CliRunner().invoke(app, [*RUN, *options])
    assert done.exit_code == code, done.output
    return done


def test_a_run_ends_at_one_percent_of_the_spread_of_the_first_runs():
    done = run("--json")
    found = json.loads(done.stdout)
    count = 2 * (len(found["trials"][0]["controls"]) + 1)
    values = [trial["value"] for trial in found["trials"][:count]]
    wanted = float(f"{0.01 * (max(values) - min(values)):.2g}")
    assert found["status"] == "tolerance"
    assert found["gap_kind"] == "proven"
    assert found["gap"] <= wanted
    assert count <= len(found["trials"]) < 100
    assert done.stderr == ""


def test_the_default_is_said_in_words_and_zero_switches_it_off():
    first = run("--budget", "12")
    assert "No --tolerance was given, so it ends at a proven gap of 0.0" in first.stderr
    assert "1 % of the spread of the first" in first.stderr
    off = run("--budget", "12", "--tolerance", "0", "--json")
    assert json.loads(off.stdout)["status"] == "budget"
    assert "tolerance" not in run("--budget", "5", "--tolerance", "0").stderr


def test_a_stored_study_keeps_the_tolerance_of_its_first_call(tmp_path):
    url = f"sqlite:///{tmp_path / 'chain.db'}"
    store = ["--storage", url]
    assert "so it ends at a proven gap" in run(*store, "--budget", "8").stderr
    study = Study.open(url, "certified-chain")
    stored = stored_tolerance(study)
    assert stored is not None
    assert stored == tolerance_of(study)
    assert [event.data["tolerance"] for event in study.events if event.kind == "note"] == [stored]
    study.close()
    again = run(*store, "--budget", "40")
    assert f"It ends at a proven gap of {stored!r}, as stored" in again.stderr
    assert "within the tolerance" in again.stdout
    opened = Study.open(url, "certified-chain")
    runs = len(opened.trials)
    assert opened.gap is not None
    assert opened.gap <= stored
    opened.close()
    assert "within the tolerance" in run(*store, "--budget", "40").stdout
    worked = CliRunner().invoke(app, ["worker", "certified-chain", *store, "--study", "certified-chain", "--json"])
    assert len(json.loads(worked.stdout)["trials"]) == runs
    more = run(*store, "--budget", str(runs + 2), "--tolerance", "0", "--json")
    assert len(json.loads(more.stdout)["trials"]) == runs + 2


def test_a_log_with_a_default_tolerance_is_imported(tmp_path):
    store = ["--storage", f"sqlite:///{tmp_path / 'chain.db'}"]
    run(*store, "--budget", "5")
    file = tmp_path / "log.jsonl"
    exported = CliRunner().invoke(app, ["export", *store, "--study", "certified-chain"])
    assert exported.exit_code == 0, exported.output
    file.write_text(exported.stdout)
    other = ["--storage", f"sqlite:///{tmp_path / 'other.db'}"]
    done = CliRunner().invoke(app, ["import", str(file), *other])
    assert done.exit_code == 0, done.output


def test_without_norms_there_is_no_default():
    done = CliRunner().invoke(app, ["run", "drop-wave", "--budget", "8"])
    assert done.exit_code == 0
    assert done.stderr == ""


def test_equal_runs_give_no_default():
    study = Study(cd.chain(cd.Stage("mix", {"dose": cd.Real(0, 1)}, kernel=cd.SquaredExponential(1.0), norm_bound=1.0)))
    for dose in (0.0, 0.2, 0.5):
        study.add_trial({"dose": dose}, {"mix": 0.25})
    assert tolerance_of(study) is None
    study.add_trial({"dose": 0.7}, {"mix": 0.25})
    assert tolerance_of(study) is None
    other = Study(study.network)
    for dose, value in ((0.0, 0.1), (0.2, 0.2), (0.5, 0.3), (0.7, 0.28), (0.9, 0.9)):
        other.add_trial({"dose": dose}, {"mix": value})
    assert tolerance_of(other) == 0.002  # the fifth run is not one of the first


def test_a_negative_tolerance_is_refused():
    assert run("--tolerance", "-1", code=2)


@pytest.mark.parametrize("tolerance", [-1.0, float("nan")])
def test_a_study_does_not_stop_at_an_invalid_tolerance(tolerance):
    study = Study(by_name("certified-chain").network)
    assert first_runs(study) == 2 * (study.network.domain.dimension + 1)
    with pytest.raises(ArgumentError, match="tolerance must be"):
        study.stop_at(tolerance)
