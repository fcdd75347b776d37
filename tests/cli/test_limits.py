"""The commands on a study with limits: runs that break one, the best that does not, and the proof that all do."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cascada.cli.main import app

PROCESS = """
import math
import cascada as cd

kernel = cd.SquaredExponential(1.0)

def process(low, high, **options):
    mix = cd.Stage("mix", controls={"dose": cd.Real(-2, 2)}, kernel=kernel, norm_bound=2.0, **options,
                   limits={"mix": (low, high)}, function=lambda dose: 1.5 * math.exp(-0.5 * (dose - 0.4) ** 2))
    cure = cd.Stage("cure", controls={"heat": cd.Real(-2, 2)}, kernel=kernel, norm_bound=2.0,
                    function=lambda mix, heat: 1.8 * math.exp(-0.5 * ((mix - 0.9) ** 2 + (heat + 0.3) ** 2)))
    return cd.chain(mix, cure)

network, loose, never = process(None, 0.5), process(None, 0.7), process(1.9, None)
ranged = process(None, 0.5, ranges={"mix": (0, 1.6)})
"""
Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CASCADA_STORAGE", "sqlite:///lab.db")
    (tmp_path / "alloy.py").write_text(PROCESS, encoding="utf-8")
    return lambda *arguments: CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def found(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def text(result: Result, code: int = 0) -> str:
    assert result.exit_code == code, result.output
    return " ".join((result.stdout + result.stderr).split())


def begin(call: Call, spec: str = "network") -> None:
    """Two trials: one breaks the limit mix ≤ 0.5 and the other satisfies it."""
    assert call("ask", "--study", "alloy", "--spec", f"alloy.py:{spec}", "-n", "2").exit_code == 0


def test_tell_says_at_once_which_limit_a_result_breaks(call: Call) -> None:
    begin(call)
    said = text(call("tell-stage", "--study", "alloy", "0", "mix", "0.62"))
    assert said == "Trial 0 is running; not told yet: cure. It breaks mix ≤ 0.5, because mix = 0.62."
    assert "It breaks mix ≤ 0.5, because mix = 0.62." in text(call("status", "--study", "alloy"))
    said = text(call("tell", "--study", "alloy", "0", '{"cure": 1.2}'))
    assert said == "Trial 0 is complete: cure = 1.2. It breaks mix ≤ 0.5, because mix = 0.62."
    said = text(call("tell", "--study", "alloy", "1", '{"mix": 0.4, "cure": 0.9}'))
    assert said == "Trial 1 is complete: cure = 0.9. It satisfies the limits."
    after = found(call("correct", "--study", "alloy", "1", "mix", "0.55", "--json"))
    assert (after["state"], after["feasible"]) == ("complete", False)


def test_readers_distinguish_feasible_runs(call: Call) -> None:
    begin(call)
    call("tell", "--study", "alloy", "0", '{"mix": 0.62, "cure": 1.2}')
    said = text(call("best", "--study", "alloy"), 1)
    assert "none of the 1 complete runs of the study 'alloy' satisfies mix ≤ 0.5" in said
    said = text(call("status", "--study", "alloy"))
    assert "trials 1 running, 1 complete (1 infeasible) limits mix ≤ 0.5" in said
    assert "best value none: no run satisfied the limits" in said
    assert "No setting is known that satisfies mix ≤ 0.5. So there is no gap." in said
    row = call("studies").stdout.splitlines()[1]
    assert re.search(r"1 complete +none feasible +\d+ \w+ ago$", row)  # no gap beside it, proven or not
    call("tell", "--study", "alloy", "1", '{"mix": 0.4, "cure": 0.9}')
    assert found(call("best", "--study", "alloy", "--json"))["value"] == 0.9
    assert [trial["feasible"] for trial in found(call("trials", "--study", "alloy", "--json"))] == [False, True]
    table = call("trials", "--study", "alloy").stdout.splitlines()
    assert table[0].split()[-1] == "feasible"
    assert [line.split()[-1] for line in table[1:]] == ["no", "yes"]
    csv = call("trials", "--study", "alloy", "--csv").stdout.splitlines()
    assert [line.split(",")[-1] for line in csv] == ["feasible", "no", "yes"]
    (listed,) = found(call("studies", "--json"))["studies"]
    assert (listed["best"], listed["feasible"]) == (0.9, 1)


def test_a_result_recommends_a_setting_that_is_proven_but_not_run(call: Call) -> None:
    shown = call("run", "alloy.py:network", "--study", "alloy", "--tolerance", "0.01", "--budget", "30")
    assert shown.exit_code == 0, shown.output
    content = found(call("status", "--study", "alloy", "--json"))
    certificate = content["certificate"]
    assert certificate["answer"] == "optimum"
    assert certificate["limits"] == ["mix ≤ 0.5"]
    assert certificate["margin"] is None
    assert certificate["recommended"] is None or list(certificate["recommended"]) == [
        "controls",
        "at_least",
        "estimate",
    ]
    assert content["best"]["outputs"]["mix"][0] <= 0.5
    said = text(call("status", "--study", "alloy"))
    assert ("recommended (proven to satisfy the limits and to give at least" in said) == bool(
        certificate["recommended"]
    )
    if certificate["recommended"]:
        at_least = certificate["recommended"]["at_least"]
        assert at_least > content["best"]["value"]
        assert certificate["gap"] == pytest.approx(certificate["bound"] - at_least)
        for value in certificate["recommended"]["controls"].values():
            assert repr(value) in shown.stdout  # with all digits: a setting next to it need not satisfy the limits
    runs = found(call("trials", "--study", "alloy", "--json"))
    infeasible = sum(trial["feasible"] is False for trial in runs)
    assert f"{infeasible} infeasible" in shown.stdout or not infeasible


def test_that_no_setting_satisfies_the_limits_is_a_result(call: Call) -> None:
    result = call("run", "alloy.py:never", "--study", "alloy", "--budget", "30")
    said = text(result)  # with exit code 0
    assert said.startswith("No setting satisfies the limits. best value none: no run satisfied mix ≥ 1.9 runs ")
    proof = "Proven: no setting in the box of controls satisfies mix ≥ 1.9; every setting misses it by at least "
    assert proof in said
    assert proof in text(call("status", "--study", "alloy"))
    asked = call("ask", "--study", "alloy")
    assert (asked.exit_code, asked.stdout) == (0, "")
    assert f"No point is worth a run. {proof}" in " ".join(asked.stderr.split())
    content = found(call("run", "alloy.py:never", "--study", "alloy", "--budget", "30", "--json"))
    assert (content["status"], content["best"], content["gap"]) == ("infeasible", None, None)
    assert content["certificate"]["answer"] == "infeasible"
    assert content["certificate"]["margin"] < 0


def test_a_run_without_a_feasible_result_exits_with_1(call: Call) -> None:
    result = call("run", "alloy.py:network", "--algorithm", "random_search", "--seed", "2", "--budget", "1")
    said = text(result, 1)
    assert "best value none: no run satisfied mix ≤ 0.5" in said
    assert re.search(r"runs 1 \(1 infeasible\)", said)


def test_run_amends_limits_and_says_so_in_its_help(call: Call) -> None:
    begin(call)
    call("tell", "--study", "alloy", "0", '{"mix": 0.62, "cure": 1.2}')
    said = text(call("run", "alloy.py:loose", "--study", "alloy", "--budget", "2"), 2)
    assert "stages.mix.limits.mix: stored [null, 0.5], given [null, 0.7]" in said
    assert "--amend" in said
    result = call("run", "alloy.py:loose", "--study", "alloy", "--budget", "2", "--amend", "--json")
    assert found(result)["trials"][0]["feasible"] is True
    assert "limits or ranges than the stored ones" in text(call("run", "--help")).replace("│ ", "").replace(" │", "")


def test_tell_says_that_a_range_is_refuted_and_how_to_correct_it(call: Call) -> None:
    begin(call, "ranged")
    result = call("tell", "--study", "alloy", "0", '{"mix": 1.7, "cure": 0.4}')
    assert "It breaks mix ≤ 0.5, because mix = 1.7." in result.stdout
    said = " ".join(result.stderr.split())
    assert "The data now refute an assumption: " in said
    assert "trial 0 gave mix = 1.7, but its range is 0 ≤ mix ≤ 1.6." in said
    assert "or amend the range if the range is." in said
    assert "cascada correct --storage sqlite:///lab.db --study alloy 0 mix VALUES --reason TEXT" in said
    call("correct", "--study", "alloy", "0", "mix", "0.17")
    assert "refute" not in text(call("status", "--study", "alloy"))
