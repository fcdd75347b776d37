"""Tests of the package's structure: the order of its layers, a quick import, short files and the version.

A layer is a folder or file directly under ``src/cascada``. A module imports from its own layer and from
those before it, so that a reader can read the layers in the order of :data:`LAYERS`.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

import cascada

SOURCE = Path(__file__).parents[1] / "src" / "cascada"

LAYERS = (
    "errors",
    "near_names",
    "whole_file",
    "printable",
    "card",
    "literals",
    "arrays",
    "choice",
    "controls",
    "space",
    "designs",
    "outwards",
    "tables",
    "kernels",
    "gp",
    "confidence",
    "network",
    "search",
    "algorithms",
    "calibration",
    "theory",
    "process",
    "store",
    "execution",
    "study",
    "problems",
    "experiments",
    "report",
    "specs",
    "integrations",
    "cli",
)

#: Modules that ``import cascada`` must not load: they are slow to import, and only some parts need them. A module
#: stands for its submodules, too.
HEAVY = (
    "scipy",
    "scipy.optimize",
    "scipy.stats",
    "sqlalchemy",
    "typer",
    "rich",
    "pydantic",
    "matplotlib",
    "plotly",
    "optuna",
    "distributed",
    "cloudpickle",
    "threadpoolctl",
    "numpy.polynomial",
    "socket",
    "sqlite3",
    "subprocess",
    "multiprocessing",
    "cascada.problems",
    "cascada.process",
    "cascada.theory",
    "cascada.experiments",
    "cascada.report",
    "cascada.algorithms.steps",
    "cascada.calibration.process_draws",
    "cascada.study.decision",
    "cascada.study.next_step",
    "cascada.study.probable",
    "cascada.study.table",
    "cascada.study.tabular",
)

MAX_LINES = 400


def imported_modules(tree: ast.Module, package: str) -> Iterator[tuple[int, str]]:
    """Yield line and absolute dotted name of every import in a module of ``package``, also inside functions.

    ``from a import b`` yields ``a.b``: the layer is the same whether b is a module or a name in one.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            # Level 1 is the package itself, each further level one package up.
            kept = parents[: len(parents) - node.level + 1] if node.level else []
            base = ".".join([*kept, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def layer_violations(root: Path) -> list[str]:
    """Return one sentence per module or import under the package folder ``root`` that breaks the order of layers."""
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts == ("__init__",):
            continue
        where = path.relative_to(root.parent).as_posix()
        layer = parts[0]
        if layer not in LAYERS:
            found.append(f"{where}: '{layer}' is no layer; move it into one of {', '.join(LAYERS)}")
            continue
        package = ".".join([root.name, *parts[:-1]])
        for line, name in imported_modules(ast.parse(path.read_text(encoding="utf-8")), package):
            complaint = _complaint(layer, name, root.name)
            if complaint:
                found.append(f"{where}:{line}: {complaint}")
    return found


def _complaint(layer: str, imported: str, top: str) -> str | None:
    first, *rest = imported.split(".")
    if first != top or rest == ["__version__"]:
        return None
    if rest and rest[0] in LAYERS:
        if LAYERS.index(rest[0]) <= LAYERS.index(layer):
            return None
        return f"layer '{layer}' imports '{imported}' from the later layer '{rest[0]}'"
    # The root package collects public names from all layers except the command line, which uses the root package.
    if layer == "cli":
        return None
    return f"layer '{layer}' imports '{imported}', which is in no layer; import from a layer's module"


def loaded_by(statement: str) -> set[str]:
    """Return the names in ``sys.modules`` of a new interpreter after ``statement``."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout))


def test_layers_import_only_from_those_before_them():
    violations = layer_violations(SOURCE)
    assert not violations, "\n" + "\n".join(violations)


def test_importing_cascada_is_quick():
    loaded = loaded_by("import cascada")
    assert "cascada" in loaded
    assert not loaded.intersection({*HEAVY, "numpy", "cascada.network", "cascada.study"})


def test_what_an_optimisation_needs_is_imported_quickly():
    later = {"Command", "delete_study", "load", "rename_study", "studies"}
    needed = set(cascada.__all__) - later
    loaded = loaded_by(f"from cascada import {', '.join(sorted(needed))}")
    assert "cascada.study.optimise" in loaded
    assert not loaded.intersection(HEAVY)


def test_every_name_is_that_of_its_module():
    assert all(getattr(cascada, name) is not None for name in cascada.__all__)
    assert set(cascada.__all__) <= set(dir(cascada))
    listed = [name for names in cascada._NAMES.values() for name in names]
    assert sorted([*listed, "__version__", "algorithms"]) == sorted(cascada.__all__)
    assert cascada.kernels is sys.modules["cascada.kernels"]


def test_every_package_can_be_imported_first():
    """Imports have no fixed order: a name of `cascada` is imported when it is first used."""
    packages = [f"cascada.{path.parent.name}" for path in sorted(SOURCE.glob("*/__init__.py"))]
    assert len(packages) > 15
    code = f"""
import importlib, numpy, os
for name in {packages!r}:
    child = os.fork()
    if child == 0:
        importlib.import_module(name)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_command_that_lists_problems_loads_no_solver_and_no_database():
    loaded = loaded_by(
        "from typer.testing import CliRunner; import cascada.cli.main as m\n"
        "assert CliRunner().invoke(m.app, ['problems']).exit_code == 0"
    )
    assert "cascada.problems.listing" in loaded
    assert not loaded.intersection({"scipy", "sqlalchemy", "matplotlib", "plotly", "pvlib"})


def test_the_check_of_loaded_modules_detects_a_heavy_one():
    assert loaded_by("import cascada.errors, scipy.optimize").issuperset({"scipy", "scipy.optimize"})


def test_no_file_is_longer_than_the_limit():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.py")}
    assert lengths, f"no source under {SOURCE}"
    too_long = {path.relative_to(SOURCE).as_posix(): n for path, n in lengths.items() if n > MAX_LINES}
    assert not too_long, f"more than {MAX_LINES} lines, split by idea: {too_long}"


def test_installed_version_is_the_one_in_the_source():
    assert version("cascada") == cascada.__version__, "the environment is stale; run `make lint` to renew it"


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Write a synthetic package: ``tree({"gp/posterior.py": "import numpy"})`` returns its folder."""

    def write(files: dict[str, str]) -> Path:
        root = tmp_path / "cascada"
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root

    return write


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("__init__.py", "from cascada.cli.main import app"),
        ("gp/posterior.py", "import numpy as np\nfrom scipy import linalg\nfrom cascada_extra import study"),
        ("gp/posterior.py", "import cascada.kernels.matern\nfrom cascada import errors, __version__"),
        ("gp/posterior.py", "from cascada.gp.factor import Factor\nfrom . import factor"),
        (
            "gp/posterior.py",
            "from .factor import Factor\nfrom ..kernels import Matern\nfrom .. import errors",
        ),
        ("gp/__init__.py", "from .posterior import Posterior\nfrom ..kernels import Matern"),
        ("gp/exact/factor.py", "from ...errors import CascadaError\nfrom ..posterior import Posterior"),
        ("cli/demo.py", "import cascada as cd\nfrom cascada import maximise\nimport cascada.study"),
    ],
)
def test_the_layer_check_accepts_imports_from_the_same_and_earlier_layers(tree, file, text):
    assert layer_violations(tree({file: text})) == []


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        (
            "gp/a.py",
            "import cascada.study",
            ":1: layer 'gp' imports 'cascada.study' from the later layer 'study'",
        ),
        (
            "gp/a.py",
            "\nfrom cascada.store.database import Store",
            ":2: layer 'gp' imports 'cascada.store.database.Store'",
        ),
        ("gp/a.py", "from cascada import errors, study", ":1: layer 'gp' imports 'cascada.study'"),
        (
            "gp/a.py",
            "def f():\n    from ..network import Chain",
            ":2: layer 'gp' imports 'cascada.network.Chain'",
        ),
        ("gp/a.py", "if TYPE_CHECKING:\n    from .. import cli", ":2: layer 'gp' imports 'cascada.cli'"),
        ("gp/__init__.py", "from ..confidence import ucb", "from the later layer 'confidence'"),
        ("gp/exact/a.py", "from ...search.tree import Tree", "from the later layer 'search'"),
        ("errors.py", "from .space import Real", ":1: layer 'errors' imports 'cascada.space.Real'"),
        ("gp/a.py", "import cascada as cd", "'cascada', which is in no layer"),
        ("gp/a.py", "from cascada import Matern", "'cascada.Matern', which is in no layer"),
        ("gp/a.py", "from cascada.utils import clip", "'cascada.utils.clip', which is in no layer"),
        ("utils.py", "", ": 'utils' is no layer; move it into one of errors, near_names, whole_file, printable"),
        ("helpers/clip.py", "", ": 'helpers' is no layer"),
    ],
)
def test_the_layer_check_rejects_imports_from_later_or_unknown_layers(tree, file, text, complaint):
    (violation,) = layer_violations(tree({file: text}))
    assert violation.startswith(f"cascada/{file}:")
    assert complaint in violation
