"""The packages for OptunaHub: files and front matter as the registry checks them, and examples that run."""

import importlib.util
import math
import re
import sys
import types
from pathlib import Path

import pytest

from tests.missing import need_module

ROOT = Path(__file__).parents[2]
REGISTRY = ROOT / "integrations" / "optunahub" / "package"
PACKAGES = ("samplers/cascada", "callbacks/certified_terminator")
TAG = {"samplers": "sampler", "callbacks": "callback"}


def front_matter(package):
    """Return the fields at the top of a package's README, all of them texts or lists of texts."""
    text = (REGISTRY / package / "README.md").read_text(encoding="utf-8")
    begin, fields, _ = text.split("---\n", 2)
    assert begin == ""
    found = dict(line.split(": ", 1) for line in fields.splitlines())
    return {k: v[1:-1].split(", ") if v.startswith("[") and v.endswith("]") else v for k, v in found.items()}


def loaded(package, registry_root=None):
    """Load a package as OptunaHub does."""
    assert registry_root in (None, "./package/")
    name = f"optunahub_registry_{package.replace('/', '_')}"
    folder = REGISTRY / package
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hub(monkeypatch):
    """Let `import optunahub` give a module that loads packages from this repository."""
    need_module("optuna", "optuna")
    module = types.ModuleType("optunahub")
    vars(module)["load_local_module"] = loaded
    vars(module)["load_module"] = loaded
    monkeypatch.setitem(sys.modules, "optunahub", module)


def test_every_package_of_the_folder_is_tested():
    assert sorted(str(path.parent.relative_to(REGISTRY)) for path in REGISTRY.rglob("README.md")) == sorted(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_front_matter_is_what_the_registry_checks(package):
    found = front_matter(package)
    assert list(found) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert all(isinstance(found[key], str) and found[key] for key in ("author", "title", "description"))
    assert TAG[package.partition("/")[0]] in found["tags"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in found["optuna_versions"])
    assert found["license"] == "MIT License"


@pytest.mark.parametrize("package", PACKAGES)
def test_the_files_of_a_package_are_there(package):
    folder = REGISTRY / package
    assert {"LICENSE", "README.md", "__init__.py", "example.py", "requirements.txt"} == {
        path.name for path in folder.iterdir() if path.name != "__pycache__"
    }
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    headings = re.findall(r"^## (.+)$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == ["Abstract", "APIs", "Installation", "Example", "Others"]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_example_stops_with_a_proven_gap(package, hub, capsys):  # noqa: ARG001
    exec(compile((REGISTRY / package / "example.py").read_text(encoding="utf-8"), "example.py", "exec"), {})
    assert "Proven: no setting in the box of controls gives a value higher than" in capsys.readouterr().out


@pytest.mark.parametrize("package", PACKAGES)
def test_the_example_of_the_readme_runs(package, hub, capsys):  # noqa: ARG001
    text = (REGISTRY / package / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code.replace("n_trials=20", "n_trials=8"), "README.md", "exec"), {})
    assert capsys.readouterr().out


def test_the_terminator_stops_at_the_tolerance_and_not_before(hub):  # noqa: ARG001
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    package = loaded("callbacks/certified_terminator")
    stage = package.Stage("f", {"x": package.Real(-2, 2)}, kernel=package.SquaredExponential(1.0), norm_bound=2.0)
    terminator = package.CertifiedTerminatorCallback(package.chain(stage), tolerance=0.2)
    gaps = []

    def objective(trial):
        return 1.5 * math.exp(-0.5 * (trial.suggest_float("x", -2, 2) - 0.4) ** 2)  # of norm 1.5

    def remember(study, trial):  # noqa: ARG001
        assert terminator.certificate is not None
        gaps.append(terminator.certificate.gap)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1), direction="maximize")
    study.optimize(objective, 60, callbacks=[terminator, remember])
    assert gaps[-1] <= 0.2 < min(gaps[:-1])
    assert 1.5 - study.best_value <= gaps[-1]
