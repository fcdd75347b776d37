"""Tests of the examples: they run, and print what their pages describe."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from cascada.study import Study
from docs.site.example_notebooks import notebook
from tests.forked import commands
from tests.missing import need_module, need_program
from tests.waiting import LONG

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def cement(tmp_path: Path) -> Path:
    """Return a copy of the example with its kiln compiled."""
    need_program("cc", package="gcc libc6-dev")
    need_program("awk", package="gawk")
    folder = tmp_path / "command-stages"
    shutil.copytree(EXAMPLES / "command-stages", folder, ignore=shutil.ignore_patterns("kiln"))
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", "kiln", "kiln.c", "-lm"], cwd=folder, check=True)
    return folder


def test_the_example_with_stages_in_c_and_awk_runs(cement: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cement.parent)
    done = CliRunner().invoke(app, ["run", "command-stages/process.toml", "--budget", "12", "--json"])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert [trial["state"] for trial in found["trials"]] == ["complete"] * 12
    assert found["best"]["value"] > 30
    for trial in found["trials"]:
        free_lime, crystal, fuel = trial["outputs"]["kiln"]
        assert 0 < free_lime < 5
        assert 10 < crystal < 100
        assert fuel > 14
        assert trial["value"] == trial["outputs"]["mill"][1]


def test_the_stages_keep_all_digits(cement: Path) -> None:
    """Close inputs give different outputs, and the same inputs the same."""
    inputs = ['{"temperature": 1450.0, "burning": 25.0}', '{"burning": 25.000000000000004, "temperature": 1.45e3}']
    printed = [subprocess.check_output(["./kiln"], input=one, cwd=cement, text=True) for one in [*inputs, inputs[0]]]
    assert printed[0] == printed[2]
    assert json.loads(printed[0])["free_lime"] == pytest.approx(json.loads(printed[1])["free_lime"], abs=1e-12)
    assert printed[0] != printed[1]


def test_a_stage_without_its_inputs_fails_with_a_message(cement: Path) -> None:
    for command in (["./kiln"], ["awk", "-f", "mill.awk"]):
        done = subprocess.run(command, input="{}", cwd=cement, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert "there is no" in done.stderr


# ---- scripts


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a `python` that starts quickly."""
    return str(commands(tmp_path_factory.mktemp("forks")) / "python")


def script(name: str, folder: Path, budget: int, python: str = sys.executable, **environment: str) -> str:
    """Run a copy of an example, alone in a folder, and return its output; standard error must be empty."""
    shutil.copy(EXAMPLES / name, folder)
    settings = {"CASCADA_EXAMPLE_BUDGET": str(budget), "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [python, name],
        cwd=folder,
        env=os.environ | settings | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


#: A script that runs the cells of a notebook in one process, and shows the last value of each as Jupyter does.
_RUN_CELLS = """
import ast, json, sys

with open(sys.argv[1], encoding="utf-8") as file:
    content = json.load(file)
names = {"__name__": "__main__"}
for cell in content["cells"]:
    if cell["cell_type"] == "code":
        tree = ast.parse("".join(cell["source"]))
        last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, cell["id"], "exec"), names)
        value = None if last is None else eval(compile(last, cell["id"], "eval"), names)
        if value is not None:
            assert getattr(value, "_repr_html_", lambda: "text")()
"""


def as_notebook(name: str, folder: Path, budget: int, python: str) -> str:
    """Run the cells of an example's notebook, and return what they print; standard error must be empty."""
    (folder / "run_cells.py").write_text(_RUN_CELLS)
    shutil.copy(EXAMPLES / "notebooks" / f"{name}.ipynb", folder)
    settings = {"CASCADA_EXAMPLE_BUDGET": str(budget), "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [python, "run_cells.py", f"{name}.ipynb"],
        cwd=folder,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def found(pattern: str, text: str) -> tuple[str, ...]:
    """Return the groups of the only match of a pattern."""
    (match,) = re.finditer(pattern, text, re.MULTILINE)
    return match.groups()


@pytest.fixture
def no_plotly(tmp_path: Path) -> str:
    """Return a folder that, first in the import path, makes the import of plotly fail."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "plotly.py").write_text("raise ImportError('hidden')\n")
    return str(hidden)


def test_chain_and_proof_prints_a_true_gap(tmp_path: Path, forks: str) -> None:
    printed = as_notebook("chain_and_proof", tmp_path, 5, forks)
    best, gap = (float(*found(pattern, printed)) for pattern in (r"^best +(\S+) J at", r"^gap +(\S+) J, proven$"))
    truth, bound = map(float, found(r"^best of 68,921 settings (\S+), bound (\S+)$", printed))
    assert best <= truth <= bound
    assert bound == pytest.approx(best + gap, rel=1e-12)
    assert "quench: norm of f − 50 ≤ 25" in printed
    assert "status     refuted, after 2 runs; gap None" in printed
    assert "Stage 'quench': The norm_bound is given as 10" in printed
    assert len(found(r"^gap +(\S+) J, estimated$", printed)) == 1
    assert "raised from 10" in printed


def test_lab_stores_its_trials_and_writes_a_report(tmp_path: Path, forks: str) -> None:
    need_module("plotly", "report")
    printed = as_notebook("lab", tmp_path, 9, forks)
    assert "open: trial 2, measured so far: coat" in printed
    assert "9 runs: 1 abandoned, 7 complete, 1 failed" in printed
    page = Path(*found(r"^report (.+)$", printed))
    assert page.is_relative_to(tmp_path)
    assert '"name": "paint"' in page.read_text(encoding="utf-8")
    study = Study.open(f"sqlite:///{page.parent / 'paint.db'}", "paint")
    abandoned, failed = study.trials[1], study.trials[4]
    assert [list(trial.outputs) for trial in (abandoned, failed)] == [["coat"]] * 2
    assert failed.reason == "the oven tripped"
    assert study.certificate().kind == "estimated"


def test_lab_runs_without_plotly(tmp_path: Path, no_plotly: str, forks: str) -> None:
    printed = script("lab.py", tmp_path, 7, forks, PYTHONPATH=no_plotly)
    assert printed.endswith("figures need plotly: pip install 'cascada[report]'.\n")
    assert "7 runs: 1 abandoned, 5 complete, 1 failed" in printed


def test_paper_in_ten_minutes_prints_true_bounds(tmp_path: Path, forks: str) -> None:
    need_module("plotly", "report")
    printed = as_notebook("paper_in_ten_minutes", tmp_path, 4, forks)
    assert "pip install" not in printed
    assert printed.count(", 0 of 401 points outside") == 2
    inside = re.findall(r"^s\d: between (\S+) and (\S+); in truth (\S+)$", printed, re.MULTILINE)
    assert len(inside) == 3
    assert all(float(lower) <= float(value) <= float(upper) for lower, upper, value in inside)
    best, gap = map(float, found(r"^after 4 runs: best (\S+), gap (\S+) \(proven\)$", printed))
    assert float(*found(r"^the truth: (\S+)$", printed)) <= best + gap
    regret = float(*found(r"^R_T of this run = (\S+)$", printed))
    bounds = [float(value) for value in re.findall(r"^   ≤ .* ≤ (\S+) \(", printed, re.MULTILINE)]
    assert len(bounds) == 5
    assert [regret, *bounds] == sorted([regret, *bounds])
    least = float(*found(r"^every algorithm, on average: .* ≥ (\S+) \(thm:lower_sim\)$", printed))
    averages = [float(value) for value in re.findall(r", on average: (\d\S+)$", printed, re.MULTILINE)]
    assert len(averages) == 3
    assert min(averages) >= least


def test_paper_in_ten_minutes_runs_without_plotly(tmp_path: Path, no_plotly: str, forks: str) -> None:
    printed = script("paper_in_ten_minutes.py", tmp_path, 4, forks, PYTHONPATH=no_plotly)
    assert printed.count("figures need plotly: pip install 'cascada[report]'.\n") == 4
    assert "for many runs:" in printed


def test_ceiling_bounds_at_the_ceiling_with_ranges_only(tmp_path: Path, forks: str) -> None:
    printed = as_notebook("ceiling", tmp_path, 4, forks)
    bound = r": one run, (\S+); no setting gives more than (\S+)$"
    value, loose = map(float, found(f"^without ranges{bound}", printed))
    assert value < 140 < 370 < loose < 390
    assert found(f"^with ranges{bound}", printed)[1] == "140"
    assert "reactor: 0 ≤ conversion ≤ 100 at every setting (its range)" in printed
    assert len(re.findall(r"^refuted .* its range is 0 ≤ conversion ≤ 100\..*amend the range", printed, re.M)) == 1
    assert printed.endswith("\nproven ()\n")


def test_dask_cluster_completes_all_runs(tmp_path: Path) -> None:
    need_module("distributed", "dask")
    printed = script("dask_cluster.py", tmp_path, 4)
    (order,) = found(r"^4 runs complete, 2 at once, in .* s; they ended in the order \[(.*)\]$", printed)
    assert sorted(order.split(", ")) == ["0", "1", "2", "3"]
    assert "(proven)" in printed
    (tries,) = found(r"^4 of 4 runs complete, after (\d) tries$", printed)
    assert 5 <= int(tries) <= 6  # the other worker's run may have been moved as well


def test_own_algorithm_prints_regrets_within_the_gaps(tmp_path: Path, forks: str) -> None:
    printed = script("own_algorithm.py", tmp_path, 4, forks)
    pattern = r"^ *(.*): runs \[(.*)\], largest proven gap (\S+), largest regret (\S+)$"
    rows = re.findall(pattern, printed, re.MULTILINE)
    assert [row[0] for row in rows] == ["auto", "Hurwicz", "Hurwicz, pessimist", "random"]
    for _, runs, gap, regret in rows:
        assert all(1 <= int(count) <= 4 for count in runs.split(", "))
        assert float(regret) <= float(gap)
    assert "the same seed, the same runs: True" in printed


def test_the_own_algorithm_has_at_most_thirty_lines() -> None:
    tree = ast.parse((EXAMPLES / "own_algorithm.py").read_text(encoding="utf-8"))
    (own,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert own.end_lineno is not None
    assert own.end_lineno - own.decorator_list[0].lineno + 1 <= 30


# ---- all examples

SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_consists_of_notebook_cells(name: str) -> None:
    """The first cell has a title and the command that runs the script."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert text.startswith("# %% [markdown]\n# # ")
    cells = re.split(r"^# %%", text, flags=re.MULTILINE)[1:]
    assert f"`python {name}`" in cells[0]
    assert all(re.match(r"( \[markdown\])?\n", cell) for cell in cells)
    prose = [cell for cell in cells if cell.startswith(" [markdown]")]
    assert all(line.startswith("#") for cell in prose for line in cell.splitlines()[1:] if line)
    assert all(len(cell.splitlines()) <= 45 for cell in cells)


@pytest.mark.parametrize("page", ["README.md", "command-stages/README.md", *SCRIPTS])
def test_every_link_of_an_example_has_a_target(page: str) -> None:
    path = EXAMPLES / page
    text = " ".join(line.removeprefix("# ") for line in path.read_text(encoding="utf-8").splitlines())
    targets = [target for target in re.findall(r"\]\(([^)]*)\)", text) if not target.startswith("http")]
    missing = [target for target in targets if not (path.parent / target.partition("#")[0]).exists()]
    assert targets
    assert not missing


def test_every_example_has_a_row_in_the_readme_and_a_test() -> None:
    examples = {path.name for path in EXAMPLES.iterdir() if path.suffix == ".py" or (path / "README.md").exists()}
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    listed = {target.partition("/")[0] for target in re.findall(r"^\| \[.*?\]\((.*?)\)", table, re.MULTILINE)}
    assert listed == examples
    here = Path(__file__).read_text(encoding="utf-8")
    ways = {name: (f'script("{name}"', f'as_notebook("{name.removesuffix(".py")}"') for name in SCRIPTS}
    assert [name for name, calls in ways.items() if not any(call in here for call in calls)] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_notebook_of_a_script_has_the_same_cells(name: str) -> None:
    path = EXAMPLES / "notebooks" / name.replace(".py", ".ipynb")
    text = path.read_text(encoding="utf-8")
    assert text == notebook(EXAMPLES / name), "write the notebooks again: python docs/site/example_notebooks.py"
    cells = json.loads(text)["cells"]
    code = [
        line.rstrip("\n") for cell in cells if cell["cell_type"] == "code" for line in cell["source"] if line.strip()
    ]
    lines = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
    assert all(line in lines for line in code)
    prose = "".join(line for cell in cells if cell["cell_type"] == "markdown" for line in cell["source"])
    targets = [target for target in re.findall(r"\]\(([^)]*)\)", prose) if not target.startswith("http")]
    assert [target for target in targets if not (path.parent / target.partition("#")[0]).exists()] == []


def test_every_notebook_belongs_to_a_script() -> None:
    assert {path.stem for path in (EXAMPLES / "notebooks").iterdir()} == {name.removesuffix(".py") for name in SCRIPTS}
