"""`cascada run`, `cascada demo` and `cascada problems` as a user calls them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from cascada.outwards import agreeing, rounded_up
from cascada.study import Study

ROOT = Path(__file__).parents[2]
PROCESS = """
import math
import cascada as cd

kernel = cd.SquaredExponential(1.0)
f = cd.Stage("f", controls={"x": cd.Real(-2, 2)}, kernel=kernel, norm_bound=NORM,
             function=lambda x: 1.5 * math.exp(-0.5 * (x - 0.4) ** 2))
g = cd.Stage("g", kernel=kernel, norm_bound=2.0, function=lambda f: 1.8 * math.exp(-0.5 * (f - 0.9) ** 2))
network = cd.chain(f, g)

def make():
    return network

nothing = 3
"""


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


@pytest.fixture
def process(tmp_path: Path) -> Path:
    path = tmp_path / "my_process.py"
    path.write_text(PROCESS.replace("NORM", "2.0"), encoding="utf-8")
    return path


def test_demo_proves_its_gap(runner: CliRunner) -> None:
    result = runner.invoke(app, ["demo", "--json"])
    found = json.loads(result.output)
    assert result.exit_code == 0
    assert found["gap_kind"] == "proven"
    assert found["gap"] <= 0.01
    assert found["best"]["value"] == max(trial["value"] for trial in found["trials"])
    said = f"After {len(found['trials'])} runs the gap is {rounded_up(found['gap'], 4)}, proven"
    assert all(said in (ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/index.md"))
    text = runner.invoke(app, ["demo", "--budget", "2"]).output
    assert "proven gap" in text
    assert "budget is used up" in text


def test_run_accepts_the_names_that_problems_lists(runner: CliRunner) -> None:
    names = [row["name"] for row in json.loads(runner.invoke(app, ["problems", "--json"]).output)]
    assert "certified-chain" in names
    result = runner.invoke(app, ["run", "certified-chain", "--budget", "3", "--json"])
    assert result.exit_code == 0
    assert len(json.loads(result.output)["trials"]) == 3


def test_run_prints_the_recommendation(runner: CliRunner, process: Path) -> None:
    command = ["run", f"{process}:network", "--algorithm", "non_adaptive", "--budget", "6"]
    found = json.loads(runner.invoke(app, [*command, "--json"]).output)
    recommendation = found["recommendation"]
    assert recommendation["controls"] == found["recommended"]
    assert recommendation["kind"] == "proven"
    assert recommendation["gap"] == pytest.approx(recommendation["bound"] - recommendation["worst"])
    text = runner.invoke(app, command).output
    assert f"Recommended: x = {found['recommended']['x']:.6g}, where the composite mean is" in text
    shown = agreeing(recommendation["worst"], recommendation["bound"])
    assert f"it is within {shown.gap} of the best possible" in text
    assert json.loads(runner.invoke(app, ["run", f"{process}:network", "--json"]).output)["recommendation"] is None


@pytest.mark.parametrize("name", ["network", "make"])
def test_run_accepts_a_python_file(runner: CliRunner, process: Path, name: str) -> None:
    result = runner.invoke(app, ["run", f"{process}:{name}", "--tolerance", "0.01"])
    assert result.exit_code == 0, result.output
    assert "within the tolerance" in result.output
    assert "proven" in result.output


def test_run_minimises(runner: CliRunner, process: Path) -> None:
    result = runner.invoke(app, ["run", f"{process}:network", "--minimise", "--budget", "4", "--json"])
    found = json.loads(result.output)
    assert found["best"]["value"] == min(trial["value"] for trial in found["trials"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nonsense", "cascada problems"),
        ("no_such_file.py:network", "no file"),
        ("no_such_module:network", "could not import"),
        ("{process}:missing", "no object 'missing'"),
        ("{process}:nothing", "must be a Network or a Problem"),
    ],
)
def test_an_invalid_spec_exits_with_code_2_and_no_traceback(
    runner: CliRunner, process: Path, spec: str, message: str
) -> None:
    result = runner.invoke(app, ["run", spec.format(process=process)])
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_refuted_assumptions_exit_with_code_1(runner: CliRunner, process: Path) -> None:
    process.write_text(PROCESS.replace("NORM", "0.1"), encoding="utf-8")
    result = runner.invoke(app, ["run", f"{process}:network"])
    assert result.exit_code == 1
    assert "refute" in result.output
    assert "'f'" in result.output


def test_demo_leaves_a_store_and_a_report(runner: CliRunner, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    for _ in range(2):  # the second demo replaces the first
        found = json.loads(runner.invoke(app, ["demo", "--budget", "2", "--out", str(out), "--json"]).stdout)
        assert len(found["trials"]) == 2
    assert Path(found["report"]).stat().st_size > 1e6
    assert len(Study.open(f"sqlite:///{found['store']}", "demo").trials) == 2
