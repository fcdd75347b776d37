"""The examples, as their pages say."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from cascada.study import Study

EXAMPLES = Path(__file__).parents[1] / "examples"


def needs(program: str) -> None:
    """Skip where a program is missing; but not under CI=true, where nothing is skipped."""
    if shutil.which(program) is None:
        missing(program)


def needs_module(module: str) -> None:
    """The same for a module."""
    if find_spec(module) is None:
        missing(module)


def missing(what: str) -> NoReturn:
    """Skip a test, or fail under CI=true."""
    text = f"no {what} to test the examples with"
    if os.environ.get("CI") == "true":
        pytest.fail(text)
    pytest.skip(text)


@pytest.fixture
def cement(tmp_path: Path) -> Path:
    """A copy with its kiln compiled."""
    for program in ("cc", "awk"):
        needs(program)
    folder = tmp_path / "command-stages"
    shutil.copytree(EXAMPLES / "command-stages", folder, ignore=shutil.ignore_patterns("kiln"))
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", "kiln", "kiln.c", "-lm"], cwd=folder, check=True)
    return folder


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; from cascada.cli.main import app; app(sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_stages_in_c_and_awk(cement: Path) -> None:
    done = run("run", "command-stages/process.toml", "--budget", "12", "--json", cwd=cement.parent)
    assert done.returncode == 0, done.stderr
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


def test_a_stage_without_its_inputs_says_so(cement: Path) -> None:
    for command in (["./kiln"], ["awk", "-f", "mill.awk"]):
        done = subprocess.run(command, input="{}", cwd=cement, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert "there is no" in done.stderr


# ---- scripts made of cells


def script(name: str, folder: Path, budget: int, **environment: str) -> str:
    """What a copy of an example prints, alone in a folder; it must end well, and say nothing on standard error."""
    shutil.copy(EXAMPLES / name, folder)
    settings = {"CASCADA_EXAMPLE_BUDGET": str(budget), "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, name],
        cwd=folder,
        env=os.environ | settings | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def found(pattern: str, text: str) -> tuple[str, ...]:
    """The groups of the one place where a pattern is found."""
    (match,) = re.finditer(pattern, text, re.MULTILINE)
    return match.groups()


@pytest.fixture
def no_plotly(tmp_path: Path) -> str:
    """A folder to import from first, where plotly cannot be imported."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "plotly.py").write_text("raise ImportError('hidden')\n")
    return str(hidden)


def test_chain_and_proof(tmp_path: Path) -> None:
    printed = script("chain_and_proof.py", tmp_path, 5)
    best, gap = (float(*found(pattern, printed)) for pattern in (r"^best +(\S+) J at", r"^gap +(\S+) J, proven$"))
    truth, bound = map(float, found(r"^best of 68,921 settings (\S+), bound (\S+)$", printed))
    assert best <= truth <= bound
    assert bound == pytest.approx(best + gap, rel=1e-12)
    assert "quench: norm of f − 50 ≤ 25" in printed
    assert "status     refuted, after 2 runs; gap None" in printed
    assert "Stage 'quench': The norm_bound is given as 10" in printed
    assert len(found(r"^gap +(\S+) J, estimated$", printed)) == 1
    assert "raised from 10" in printed


def test_lab(tmp_path: Path) -> None:
    needs_module("plotly")
    printed = script("lab.py", tmp_path, 9)
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


def test_lab_without_plotly(tmp_path: Path, no_plotly: str) -> None:
    printed = script("lab.py", tmp_path, 7, PYTHONPATH=no_plotly)
    assert printed.endswith("figures need plotly: pip install 'cascada[report]'.\n")
    assert "7 runs: 1 abandoned, 5 complete, 1 failed" in printed


def test_paper_in_ten_minutes(tmp_path: Path) -> None:
    needs_module("plotly")
    printed = script("paper_in_ten_minutes.py", tmp_path, 4)
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


def test_paper_without_plotly(tmp_path: Path, no_plotly: str) -> None:
    printed = script("paper_in_ten_minutes.py", tmp_path, 4, PYTHONPATH=no_plotly)
    assert printed.count("figures need plotly: pip install 'cascada[report]'.\n") == 4
    assert "for many runs:" in printed


def test_dask_cluster(tmp_path: Path) -> None:
    needs_module("distributed")
    printed = script("dask_cluster.py", tmp_path, 4)
    (order,) = found(r"^4 runs complete, 2 at once, in .* s; they ended in the order \[(.*)\]$", printed)
    assert sorted(order.split(", ")) == ["0", "1", "2", "3"]
    assert "(proven)" in printed
    (tries,) = found(r"^4 of 4 runs complete, after (\d) tries$", printed)
    assert 5 <= int(tries) <= 6  # the other worker's run may have been moved as well


def test_own_algorithm(tmp_path: Path) -> None:
    printed = script("own_algorithm.py", tmp_path, 4)
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


# ---- all of them

SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_a_notebook(name: str) -> None:
    """Cells of prose and of code, of which the first says what this is and how to run it."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert text.startswith("# %% [markdown]\n# # ")
    cells = re.split(r"^# %%", text, flags=re.MULTILINE)[1:]
    assert f"`python {name}`" in cells[0]
    assert all(re.match(r"( \[markdown\])?\n", cell) for cell in cells)
    prose = [cell for cell in cells if cell.startswith(" [markdown]")]
    assert all(line.startswith("#") for cell in prose for line in cell.splitlines()[1:] if line)
    assert all(len(cell.splitlines()) <= 45 for cell in cells)


@pytest.mark.parametrize("page", ["README.md", "command-stages/README.md", *SCRIPTS])
def test_links_lead_somewhere(page: str) -> None:
    path = EXAMPLES / page
    text = " ".join(line.removeprefix("# ") for line in path.read_text(encoding="utf-8").splitlines())
    targets = [target for target in re.findall(r"\]\(([^)]*)\)", text) if not target.startswith("http")]
    missing = [target for target in targets if not (path.parent / target.partition("#")[0]).exists()]
    assert targets
    assert not missing


def test_no_example_is_forgotten() -> None:
    """Each has a row in the README, and a test above."""
    examples = {path.name for path in EXAMPLES.iterdir() if path.suffix == ".py" or (path / "README.md").exists()}
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    listed = {target.partition("/")[0] for target in re.findall(r"^\| \[.*?\]\((.*?)\)", table, re.MULTILINE)}
    assert listed == examples
    here = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in SCRIPTS if f'script("{name}"' not in here] == []
