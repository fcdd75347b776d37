"""Tests that `docs/paper-map.md` names only existing labels of the paper, functions and tests."""

import ast
import importlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LABELS = tuple((Path(__file__).parent / "labels.txt").read_text(encoding="utf-8").split())

HEADER = ("label", "what it says", "implemented by", "test")
NOT_YET = "not yet"
PROOF_STEP = "proof step"
OPEN = {NOT_YET, PROOF_STEP}


# ---------------------------------------------------------------- the checker


@dataclass(frozen=True)
class Row:
    """One row of the map, with the cells as written."""

    line: int
    label: str
    says: str
    implementation: str
    test: str

    def __str__(self) -> str:
        return f"line {self.line} ({self.label})"


def parse_map(text: str) -> list[Row]:
    """Return the rows of every table of the map; all tables have the same four columns."""
    rows: list[Row] = []
    previous = ""
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        starts_table = not previous.startswith("|")
        previous = line
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.removeprefix("|").removesuffix("|"))]
        if len(cells) != len(HEADER):
            raise ValueError(
                f"line {number}: {len(cells)} cells instead of {len(HEADER)}; write a pipe in a cell as \\|"
            )
        if starts_table:
            if tuple(cells) != HEADER:
                raise ValueError(f"line {number}: a table starts with the columns {cells}, not {list(HEADER)}")
        elif not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            rows.append(Row(number, *cells))
    return rows


def names_in(cell: str) -> list[str]:
    """Return the names of a cell: in backticks, separated by commas, and nothing else.

    >>> names_in("`eq:mean`, `eq:var`")
    ['eq:mean', 'eq:var']
    """
    parts = [part.strip() for part in cell.split(",")]
    if not all(re.fullmatch(r"`[^`\s]+`", part) for part in parts):
        raise ValueError(f'"{cell}" is not a list of names in backticks, separated by commas')
    return [part.strip("`") for part in parts]


def problems_with_labels(rows: Iterable[Row], known: Iterable[str]) -> list[str]:
    """Return the problems of the first column: unknown, repeated or missing labels."""
    problems = []
    seen: set[str] = set()
    known = set(known)
    for row in rows:
        try:
            labels = names_in(row.label)
        except ValueError as error:
            problems.append(f"{row}: {error}")
            continue
        problems += [f"{row}: the paper has no label {label}" for label in labels if label not in known]
        for label in labels:
            if label in seen:
                problems.append(f"{row}: {label} is in the map already")
            seen.add(label)
    return problems + [f"{label} has no row" for label in sorted(known - seen)]


def problems_with_row(row: Row, root: Path, package: str) -> list[str]:
    """Return the problems of the other columns: names that do not exist, or a missing test."""
    if not row.says:
        return [f"{row}: says nothing about what the paper says"]
    implementations, problems = _resolve_cell(row.implementation, lambda path: _import_problem(path, package))
    tests, more = _resolve_cell(row.test, lambda node: _test_problem(node, root))
    problems += more
    if implementations and row.test in OPEN:
        problems.append(f'{", ".join(implementations)} has no test, only "{row.test}"')
    if {row.implementation, row.test} == OPEN:
        problems.append(f'"{NOT_YET}" in one column and "{PROOF_STEP}" in the other')
    if tests and row.implementation == NOT_YET:
        problems.append(f"{', '.join(tests)} is there, but nothing that it tests")
    return [f"{row}: {problem}" for problem in problems]


def _resolve_cell(cell: str, problem_of: Callable[[str], str | None]) -> tuple[list[str], list[str]]:
    """Return the names in a cell (none if it is open) and their problems."""
    if cell in OPEN:
        return [], []
    try:
        names = names_in(cell)
    except ValueError as error:
        return [], [f'{error}, nor "{NOT_YET}" or "{PROOF_STEP}"']
    return names, [problem for name in names if (problem := problem_of(name)) is not None]


def _import_problem(path: str, package: str) -> str | None:
    """Return why `package.module.attribute` does not resolve, or None if it does."""
    parts = path.split(".")
    if parts[0] != package:
        return f"{path} is not in the package {package}"
    found: object = None
    depth = 0
    for depth in range(1, len(parts) + 1):
        module = ".".join(parts[:depth])
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            # A missing module ends the search; a module that fails to import is a separate error.
            if error.name != module:
                raise
            depth -= 1
            break
    if depth == 0:
        return f"{path}: the package {package} cannot be imported"
    for i in range(depth, len(parts)):
        if not hasattr(found, parts[i]):
            return f"{path} does not exist: {'.'.join(parts[:i])} has no {parts[i]}"
        found = getattr(found, parts[i])
    return None


def _test_problem(node: str, root: Path) -> str | None:
    """Return why `tests/file.py::test_name` or `tests/file.py::TestClass::test_name` is not a test, or None."""
    file, *names = node.split("::")
    if "[" in node:
        return f"{node}: write a parametrised test without its brackets"
    if len(names) not in (1, 2) or not names[-1].startswith("test"):
        return f"{node} is not of the form file.py::test_name or file.py::TestClass::test_name"
    path = (root / file).resolve()
    if not path.is_relative_to(root.resolve()) or not path.is_file():
        return f"{node}: there is no file {file}"
    if "::".join(names) not in _tests_defined_in(path):
        return f"{node}: {file} does not define {'::'.join(names)}"
    return None


@cache
def _tests_defined_in(path: Path) -> frozenset[str]:
    """Return every `function` and `Class::function` of a file without importing it."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name, body=body):
                methods = (item for item in body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef))
                names.update(f"{name}::{method.name}" for method in methods)
    return frozenset(names)


# ---------------------------------------------------------------- the map

ROWS = parse_map((ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8"))


def test_labels_are_sorted_and_distinct() -> None:
    assert list(LABELS) == sorted(set(LABELS))
    assert not [label for label in LABELS if label.startswith(("sec:", "app:"))]


def test_every_label_of_the_paper_has_a_row() -> None:
    problems = problems_with_labels(ROWS, LABELS)
    assert not problems, "\n".join(["docs/paper-map.md:", *problems])


@pytest.mark.parametrize("row", ROWS, ids=[row.label.replace("`", "") for row in ROWS])
def test_a_row_names_only_existing_things(row: Row) -> None:
    problems = problems_with_row(row, ROOT, "cascada")
    assert not problems, "\n".join(["docs/paper-map.md:", *problems])


# ---------------------------------------------------------------- the checker, on broken maps


def table(*rows: str) -> str:
    return "\n".join(["# A map", "", f"| {' | '.join(HEADER)} |", "|---|---|:--|--:|", *rows, "", "The end."])


def check(root: Path, *rows: str, labels: str = "eq:a") -> list[str]:
    """Check a small map of the standard library's `json`, with the tests found under `root`."""
    parsed = parse_map(table(*rows))
    problems = problems_with_labels(parsed, labels.split())
    return problems + [problem for row in parsed for problem in problems_with_row(row, root, "json")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_json.py").write_text(
        "import does_not_exist  # read, never run\n\n"
        "def test_dumps(): ...\n\n"
        "async def test_later(): ...\n\n"
        "def helper():\n    def test_inner(): ...\n\n"
        "class TestDecoder:\n    def test_decode(self): ...\n",
        encoding="utf-8",
    )
    return tmp_path


@pytest.mark.parametrize(
    "row",
    [
        "| `eq:a` | a | `json.dumps` | `tests/test_json.py::test_dumps` |",
        "| `eq:a` | a | `json.decoder.JSONDecoder.decode` | `tests/test_json.py::TestDecoder::test_decode` |",
        "| `eq:a` | a | `json.decoder` | `tests/test_json.py::test_later` |",
        "| `eq:a` | a | `json.dumps`, `json.loads` | `tests/test_json.py::test_dumps`, `tests/test_json.py::test_later` |",  # noqa: E501
        "| `eq:a` | the size \\|a\\| | not yet | not yet |",
        "| `eq:a` | a | proof step | proof step |",
        "| `eq:a` | a | proof step | `tests/test_json.py::test_dumps` |",
    ],
)
def test_a_correct_row_passes(root: Path, row: str) -> None:
    assert check(root, row) == []


@pytest.mark.parametrize(
    ("implementation", "complaint"),
    [
        ("`json.dump_all`", "json.dump_all does not exist: json has no dump_all"),
        ("`json.decoder.JSONDecoder.undo`", "json.decoder.JSONDecoder has no undo"),
        ("`json.nowhere.dumps`", "json has no nowhere"),
        ("`json.dumps`, `json.dump_all`", "json has no dump_all"),
        ("`csv.reader`", "csv.reader is not in the package json"),
        ("json.dumps", "is not a list of names in backticks"),
        ("`json.dumps` mostly", "is not a list of names in backticks"),
        ("soon", 'nor "not yet" or "proof step"'),
        ("", "is not a list of names in backticks"),
        ("not yet", "is there, but nothing that it tests"),
    ],
)
def test_a_missing_function_is_reported(root: Path, implementation: str, complaint: str) -> None:
    [problem] = check(root, f"| `eq:a` | a | {implementation} | `tests/test_json.py::test_dumps` |")
    assert problem.startswith("line 5 (`eq:a`): ")
    assert complaint in problem


@pytest.mark.parametrize(
    ("test", "complaint"),
    [
        ("`tests/test_json.py::test_dump_all`", "tests/test_json.py does not define test_dump_all"),
        ("`tests/test_json.py::test_inner`", "tests/test_json.py does not define test_inner"),
        ("`tests/test_json.py::test_decode`", "tests/test_json.py does not define test_decode"),
        ("`tests/test_json.py::TestDecoder::test_undo`", "does not define TestDecoder::test_undo"),
        ("`tests/test_yaml.py::test_dumps`", "there is no file tests/test_yaml.py"),
        ("`../test_json.py::test_dumps`", "there is no file ../test_json.py"),
        ("`tests/test_json.py::test_dumps[1]`", "without its brackets"),
        ("`tests/test_json.py`", "is not of the form"),
        ("`tests/test_json.py::helper`", "is not of the form"),
        ("tests/test_json.py::test_dumps", "is not a list of names in backticks"),
        ("not yet", 'json.dumps has no test, only "not yet"'),
        ("proof step", 'json.dumps has no test, only "proof step"'),
    ],
)
def test_a_missing_test_is_reported(root: Path, test: str, complaint: str) -> None:
    [problem] = check(root, f"| `eq:a` | a | `json.dumps` | {test} |")
    assert problem.startswith("line 5 (`eq:a`): ")
    assert complaint in problem


@pytest.mark.parametrize(
    ("label", "complaints"),
    [
        ("`eq:a`", ["eq:b has no row"]),
        ("`eq:a`, `eq:b`, `eq:c`", ["line 5 (`eq:a`, `eq:b`, `eq:c`): the paper has no label eq:c"]),
        ("`eq:a`, `eq:b`, `eq:a`", ["line 5 (`eq:a`, `eq:b`, `eq:a`): eq:a is in the map already"]),
        ("`eq:a`, `eq:b`", []),
        ("eq:a", ['line 5 (eq:a): "eq:a" is not a list of names', "eq:a has no row", "eq:b has no row"]),
    ],
)
def test_a_missing_or_unknown_label_is_reported(root: Path, label: str, complaints: list[str]) -> None:
    problems = check(root, f"| {label} | a | not yet | not yet |", labels="eq:a eq:b")
    assert len(problems) == len(complaints)
    assert all(problem.startswith(complaint) for problem, complaint in zip(problems, complaints, strict=True))


def test_a_second_row_for_a_label_is_reported(root: Path) -> None:
    row = "| `eq:a` | a | not yet | not yet |"
    assert check(root, row, row) == ["line 6 (`eq:a`): eq:a is in the map already"]


def test_empty_and_contradictory_rows_are_reported(root: Path) -> None:
    assert "says nothing" in check(root, "| `eq:a` |  | not yet | not yet |")[0]
    assert "in one column" in check(root, "| `eq:a` | a | not yet | proof step |")[0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (table("| `eq:a` | a | not yet |"), "line 5: 3 cells instead of 4"),
        (
            table("| `eq:a` | the size |a| | not yet | not yet |"),
            "line 5: 6 cells instead of 4; write a pipe",
        ),
        ("| label | says | code | test |\n|---|---|---|---|", "line 1: a table starts with the columns"),
    ],
)
def test_a_malformed_table_is_reported(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        parse_map(text)


def test_a_module_that_fails_to_import_is_not_reported_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_package.py").write_text("import does_not_exist_anywhere\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="does_not_exist_anywhere"):
        _import_problem("broken_package.thing", "broken_package")
    assert _import_problem("no_such_package.thing", "no_such_package") == (
        "no_such_package.thing: the package no_such_package cannot be imported"
    )
