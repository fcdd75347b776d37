"""Commands of steps: next, measure, budgets in money, and what status and trials say of them."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from cascada.study import Study

PROCESS = """
import math
import cascada as cd

k = cd.SquaredExponential(1.0)


def dryer(heat):
    return 0.6 * math.exp(-((heat - 0.5) ** 2) / 2)


def press(dryer, force):
    return math.exp(-((dryer - 0.3) ** 2 + (force + 0.2) ** 2) / 2)


network = cd.chain(
    cd.Stage("dryer", {"heat": cd.Real(-2, 2)}, kernel=k, norm_bound=2.0, function=dryer, cost=10, portions=3),
    cd.Stage("press", {"force": cd.Real(-2, 2)}, kernel=k, norm_bound=2.0, function=press, reachable="REACHABLE"),
)
"""


@pytest.fixture
def lab(tmp_path: Path) -> Any:
    """Calls a command on a study of the process; returns the JSON that it prints, or its output."""
    spec = tmp_path / "lab.py"
    spec.write_text(PROCESS.replace("REACHABLE", "stock"))

    def call(command: str, *arguments: str, code: int = 0, text: bool = False) -> Any:
        named = ["--storage", f"sqlite:///{tmp_path}/lab.db", "--study", "lab"]
        named += ["--spec", f"{spec}:network"] if command in ("next", "measure") else []
        place = [f"{spec}:network"] if command in ("run", "worker") else []
        found = CliRunner().invoke(app, [command, *place, *named, *([] if text else ["--json"]), *arguments])
        assert found.exit_code == code, found.output
        return found.output if text or code else json.loads(found.stdout)

    return call


def dryer(heat: float) -> float:
    return 0.6 * math.exp(-((heat - 0.5) ** 2) / 2)


def test_a_study_is_led_step_by_step(lab: Any) -> None:
    step = lab("next")
    assert (step["stage"], step["trial"], step["takes"], step["cost"]) == ("dryer", 0, {}, 10.0)
    running = lab("status", text=True).partition("trial 0, step dryer, running")[2]
    assert "\n  heat" in running
    assert "\n  force" not in running  # which is not set in this step
    told = lab("tell-stage", "0", "dryer", repr(dryer(step["inputs"]["heat"])))
    assert (told["state"], told["cost"], told["steps"]) == ("partial", 10.0, ["dryer"])
    text = lab("next", text=True)
    assert "trial 1: run press, for 1" in text
    assert "on the output of dryer in trial 0" in text
    assert "per cost" in text
    said = lab("status", text=True)
    assert "spent       10 (dryer 10, press 0)" in said
    assert "trial 1, step press, running" in said
    assert "runs left of press: 2" in said
    assert "Trial 1 is complete" in lab("tell-stage", "1", "press", "-0.25", text=True)
    state = lab("status")
    assert (state["spent"], state["spent_by_stage"]) == (11.0, {"dryer": 10.0, "press": 1.0})
    assert [(item["trial"], item["stage"], item["left"]) for item in state["stock"]] == [(0, "dryer", {"press": 2})]
    assert state["trials"]["partial"] == state["trials"]["complete"] == 1
    assert [trial["cost"] for trial in lab("trials")] == [10.0, 1.0]
    assert "step press" in lab("trials", text=True)
    assert "partial" in lab("status", text=True)


def test_a_step_beyond_the_budget_is_not_asked_for(lab: Any) -> None:
    assert "costs too much for the budget" in lab("next", "--budget-cost", "5", text=True)
    assert lab("next", "--budget-cost", "10")["stage"] == "dryer"


def test_a_measurement_is_stored(lab: Any) -> None:
    measured = lab("measure", "press", '{"dryer": 0.2, "force": -0.5}', "0.9")
    assert measured == {"number": 0, "stage": "press", "inputs": {"dryer": 0.2, "force": -0.5}, "outputs": [0.9]}
    assert "Measurement 1 of press was stored." in lab(
        "measure", "press", '{"dryer": 0.1, "force": 0.5}', "-0.3", text=True
    )
    again = lab("measure", "press", '{"dryer": 0.1, "force": 0.5}', "-0.2", "--replace", "1")
    assert (again["number"], again["outputs"]) == (1, [-0.2])
    assert "Only its outputs" in lab("measure", "press", '{"dryer": 0.3, "force": 0.5}', "1", "--replace", "1", code=2)
    assert "no measurement 7" in lab("measure", "press", '{"dryer": 0.1, "force": 0.5}', "1", "--replace", "7", code=2)
    assert lab("status")["measurements"] == 2
    assert "measured    2 of single stages" in lab("status", text=True)
    assert "press" in lab("measure", "press", '{"force": 0.5}', "1", code=2)
    assert "JSON" in lab("measure", "press", "[1]", "1", code=2)


def test_a_run_with_a_budget_in_money_spends_it_on_steps(lab: Any, tmp_path: Path) -> None:
    first = lab("run", "--budget-cost", "23")
    assert (first["status"], first["cost"] <= 23) == ("budget", True)
    more = lab("worker", "--budget-cost", "40")
    assert first["cost"] < more["cost"] <= 40
    study = Study.open(f"sqlite:///{tmp_path}/lab.db", "lab")
    assert {trial.steps for trial in study.trials} == {("dryer",), ("press",)}
    assert "cost  " in lab("run", "--budget-cost", "41", text=True)
    assert "give one of them" in lab("run", "--budget-cost", "41", "--budget", "3", code=2)
    assert "above 0" in lab("run", "--budget-cost", "0", code=2)


def test_the_csv_of_trials_has_no_outputs_of_single_stages(tmp_path: Path) -> None:
    spec = tmp_path / "lab.py"
    spec.write_text(PROCESS.replace("REACHABLE", "any"))
    named = ["--storage", f"sqlite:///{tmp_path}/lab.db", "--study", "lab"]
    assert CliRunner().invoke(app, ["run", f"{spec}:network", *named, "--budget-cost", "45"]).exit_code == 0
    study = Study.open(f"sqlite:///{tmp_path}/lab.db", "lab")
    alone = [trial for trial in study.trials if not trial.closed]
    assert alone
    lines = CliRunner().invoke(app, ["trials", *named, "--csv"]).stdout.splitlines()
    assert len(lines) == 1 + len(study.trials) - len(alone)
    listed = json.loads(CliRunner().invoke(app, ["studies", *named[:2], "--json"]).stdout)["studies"][0]
    assert study.best_trial is not None
    assert listed["best"] == study.best_trial.value
    assert listed["trials"]["partial"] == [trial.state for trial in study.trials].count("partial")
