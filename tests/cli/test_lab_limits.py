"""A lab that runs its stages by hand: it amends limits and begins safe studies with `cascada ask` and `cascada add`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cascada.cli.main import app

PROCESS = """
sense = "maximise"

[[stage]]
name = "mix"
kernel = { type = "squared-exponential", lengthscale = 1.0 }
norm_bound = 2.0
limits = { mix = { max = LIMIT } }
controls = { dose = { low = -2, high = 2 } }

[[stage]]
name = "cure it"
outputs = ["cure"]
kernel = { type = "squared-exponential", lengthscale = 1.0 }
norm_bound = 2.0
controls = { heat = { low = -2, high = 2 } }
"""
STUDY = "--study", "alloy"
SPEC = *STUDY, "--spec", "alloy.toml"
START = '{"dose": -1.5, "heat": 0.0}'
Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CASCADA_STORAGE", "sqlite:///lab.db")
    limited(0.5)
    return lambda *arguments: CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def limited(limit: float) -> None:
    Path("alloy.toml").write_text(PROCESS.replace("LIMIT", str(limit)), encoding="utf-8")


def found(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def said(result: Result, code: int = 0) -> str:
    assert result.exit_code == code, result.output
    return " ".join(result.stderr.split())


def asked(call: Call, *options: str) -> Any:
    return found(call("ask", *options, "--json"))


def test_ask_amends_a_limit_and_keeps_all_runs(call: Call) -> None:
    assert asked(call, *SPEC)["number"] == 0
    call("tell", *STUDY, "0", '{"mix": 0.62, "cure it": 1.2}')
    limited(0.7)
    assert "stages.mix.limits.mix: stored [null, 0.5], given [null, 0.7]" in said(call("ask", *SPEC), 2)
    assert asked(call, *SPEC, "--amend")["number"] == 1
    assert found(call("best", *STUDY, "--json"))["value"] == 1.2  # it satisfies the new limit
    assert asked(call, *SPEC, "--amend")["number"] == 2  # nothing to amend any more
    assert "--amend continues a study" in said(call("ask", *STUDY, "--amend"), 2)


def test_a_safe_study_begins_with_its_start(call: Call) -> None:
    missing = said(call("ask", *SPEC, "--safe"), 2)
    assert "needs a run that satisfies mix ≤ 0.5 to start from" in missing
    assert "--start of cascada run and cascada ask" in missing
    first = asked(call, *SPEC, "--safe", "--start", START)
    assert first["controls"] == json.loads(START)
    again = call("ask", *SPEC, "--safe", "--start", START)  # the same command: it waits for the first run
    assert again.stdout == ""
    assert "no run satisfies the limits yet: tell what trial 0 gave." in said(again)
    call("tell", *STUDY, "0", '{"mix": 0.2, "cure it": 0.6}')
    second = asked(call, *SPEC, "--start", START)  # it is safe as stored, and the start is not run again
    assert second["controls"] != first["controls"]
    assert "not proven to satisfy mix ≤ 0.5" in said(call("enqueue", *STUDY, '{"dose": 1, "heat": 0}'), 2)


def test_a_study_that_is_not_safe_does_not_become_safe(call: Call) -> None:
    asked(call, *SPEC)
    assert "settings.safe: stored false, given true" in said(call("ask", *SPEC, "--safe", "--amend"), 2)


def test_a_safe_study_begins_with_runs_of_the_past(call: Call) -> None:
    Path("past.csv").write_text("dose,heat,mix,cure it\n-1.5,0,0.2,0.6\n", encoding="utf-8")
    assert call("add", *SPEC, "--safe", "past.csv").exit_code == 0
    assert asked(call, *STUDY)["number"] == 1
    assert "not proven to satisfy mix ≤ 0.5" in said(call("enqueue", *STUDY, '{"dose": 1, "heat": 0}'), 2)


@pytest.mark.parametrize("how", ["abandoned", "failed"])
def test_a_start_that_gave_nothing_can_be_started_again_after_an_amendment(call: Call, how: str) -> None:
    """The start rests on what the lab knows and on no proof, so an amendment before it does not matter."""
    assert asked(call, *SPEC, "--safe", "--start", START)["number"] == 0
    call("abandon" if how == "abandoned" else "fail", *STUDY, "0", "the mixer broke down")
    limited(0.4)
    again = asked(call, *SPEC, "--amend", "--start", START)
    assert (again["number"], again["controls"]) == (1, json.loads(START))


def test_an_amendment_takes_back_what_was_known_of_the_old_limits(call: Call) -> None:
    asked(call, *SPEC, "--safe", "--start", START)
    call("tell", *STUDY, "0", '{"mix": 0.2, "cure it": 0.6}')
    other = asked(call, *STUDY, "--start", '{"dose": -2, "heat": 2}', "--lease", "1e-9")
    limited(0.19)  # the run of trial 0 breaks this limit, so nothing is proven
    call("ask", *SPEC, "--amend")
    trials = found(call("trials", *STUDY, "--json"))
    assert trials[other["number"]]["state"] == "abandoned"
    assert "not proven to be safe" in trials[other["number"]]["reason"]


def test_the_stage_that_the_evidence_is_about_is_the_one_to_correct(call: Call) -> None:
    asked(call, *SPEC)
    call("tell-stage", *STUDY, "0", "cure it", "0.3")
    warning = said(call("tell-stage", *STUDY, "0", "mix", "2.9"))
    assert "Stage 'mix': The norm_bound is given as 2, but trial 0 is possible only" in warning
    assert "--study alloy 0 mix VALUES" in warning
    call("enqueue", *STUDY, '{"dose": 1, "heat": 0}')
    warning = said(call("tell", *STUDY, "1", '{"cure it": 0.2}'))
    assert "--study alloy 0 mix VALUES" in warning  # not trial 1, which was told last
    call("correct", *STUDY, "0", "mix", "0.29")
    warning = said(call("tell-stage", *STUDY, "1", "mix", "0.9"))
    assert warning == ""
    warning = said(call("correct", *STUDY, "1", "cure it", "20"))
    assert "--study alloy 1 'cure it' VALUES" in warning


def test_run_says_which_stages_people_run(call: Call) -> None:
    for command in (("run", "alloy.toml"), ("worker", "alloy.toml", *STUDY)):
        text = said(call(*command), 2)
        assert "alloy.toml: stages 'mix', 'cure it' have no command" in text
        assert "`cascada ask --spec alloy.toml`" in text
        assert "`cascada tell-stage`" in text
    assert not Path("lab.db").exists()
    whole = Path("alloy.toml").read_text(encoding="utf-8").replace('name = "mix"', 'name = "mix"\ncommand = ["cat"]')
    Path("alloy.toml").write_text(whole, encoding="utf-8")
    assert "stage 'cure it' has no command" in said(call("run", "alloy.toml"), 2)
