"""Processes in TOML files: their meaning, and the error message of every kind of mistake."""

import copy
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import cascada as cd
from cascada.cli.main import app
from cascada.process.command import Command
from cascada.specs.spec import load
from cascada.specs.toml_file import load_toml
from cascada.specs.toml_tables import ControlTable, FileTable, IntervalTable, MaternTable, StageTable
from cascada.store.description import describe
from tests.thorough import examples

GOOD = """
[[stage]]
name = "melt"
command = ["sed", 's/"x"/"melt"/']

[stage.controls]
x = { low = 1, high = 5 }

[[stage]]
name = "cool"
command = ["sed", 's/.*/{"cool": 1.5}/']

[stage.controls]
n = { low = 1, high = 3, type = "integer" }
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str | bytes, name: str = "process.toml") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return written


def refused(path: Path) -> str:
    with pytest.raises(cd.ArgumentError) as caught:
        load_toml(path)
    message = str(caught.value)
    assert path.name in message
    return message


# ---- the meaning of a file


def test_a_file_is_loaded_as_the_network_that_it_describes(write: Write) -> None:
    path = write(
        """
        objective = "plant.revenue"
        sense = "minimise"

        [[stage]]
        name = "melt"
        outputs = ["heat", "flow"]
        command = ["awk", "-f", "melt.awk"]
        timeout = 60
        retries = 2
        kernel = { type = "matern", nu = 2.5, lengthscale = [50, 1.5], variance = 2 }
        norm_bound = [2.0, 3]
        lipschitz = 3.0
        offset = [1, -0.5]
        limits = { heat = { max = 3.0 }, flow = { min = 1, max = 2 } }
        ranges = { heat = { min = 0 } }
        failure = "infeasible"
        cost = 2
        portions = inf
        [stage.controls]
        T1 = { low = 350, high = 500 }
        t1 = { low = 0.3, high = 30, log = true }

        [[stage]]
        name = "plant"
        parents = ["melt.flow"]
        outputs = ["revenue", "flow"]
        passes = ["flow"]
        command = ["./plant", "--fast"]
        kernel = { type = "squared-exponential" }
        norm_bound = 4
        cost = 0.5
        reachable = "stock"
        portions = 3
        [stage.controls]
        n = { low = 1, high = 9, type = "integer" }
        """
    )
    network = load_toml(path)
    expected = cd.Network(
        [
            cd.Stage(
                "melt",
                controls={"T1": cd.Real(350, 500), "t1": cd.Real(0.3, 30, log=True)},
                outputs=["heat", "flow"],
                kernel=cd.Matern(2.5, (50, 1.5), 2),
                norm_bound=[2.0, 3.0],
                lipschitz=3.0,
                offset=[1.0, -0.5],
                limits={"heat": (None, 3.0), "flow": (1, 2)},
                ranges={"heat": (0, None)},
                failure="infeasible",
                cost=2.0,
                portions=math.inf,
            ),
            cd.Stage(
                "plant",
                controls={"n": cd.Integer(1, 9)},
                parents=["melt.flow"],
                outputs=["revenue", "flow"],
                passes=["flow"],
                kernel=cd.SquaredExponential(),
                norm_bound=4.0,
                cost=0.5,
                reachable="stock",
                portions=3,
            ),
        ],
        objective="plant.revenue",
    ).mirrored()
    assert describe(network, {}) == describe(expected, {})
    melt, plant = network.stages
    assert (melt.timeout, melt.retries, plant.timeout, plant.retries) == (60.0, 2, None, 0)
    assert melt.function == Command(["awk", "-f", "melt.awk"], path.parent, 60.0)
    assert plant.function == Command(["./plant", "--fast"], path.parent)
    assert isinstance(network.stages[1].controls["n"].low, int)


@pytest.mark.parametrize("kind", ['type = "matern", nu = 1.5', 'type = "squared-exponential"'])
@pytest.mark.parametrize("additive", [True, False])
def test_the_key_additive_makes_a_kernel_additive(write: Write, kind: str, additive: bool) -> None:
    kernel = f"kernel = {{ {kind}, lengthscale = [2, 3], additive = {str(additive).lower()} }}"
    path = write(
        f"""
        [[stage]]
        name = "melt"
        command = ["cat"]
        {kernel}
        norm_bound = 2
        [stage.controls]
        x = {{ low = 0, high = 1 }}
        y = {{ low = 0, high = 1 }}
        """
    )
    plain = cd.Matern(1.5, (2, 3)) if "matern" in kind else cd.SquaredExponential((2, 3))
    assert load_toml(path).stages[0].kernel == (cd.Additive(plain) if additive else plain)


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        (None, ["b"]),  # the stage before
        ("[]", []),
        ('["a"]', ["a"]),
        ('"a"', ["a"]),
        ('["a.a", "b"]', ["a", "b"]),
    ],
)
def test_without_parents_a_stage_follows_the_one_before_it(
    write: Write, parents: str | None, expected: list[str]
) -> None:
    stages = [f'[[stage]]\nname = "{name}"\ncommand = ["cat"]\n' for name in "abc"]
    stages[2] += "" if parents is None else f"parents = {parents}\n"
    stages = [f"{text}controls.{name} = {{ low = 0, high = 1 }}\n" for text, name in zip(stages, "xyz", strict=True)]
    network = load_toml(write('objective = "c"\n' + "".join(stages)))
    assert list(network.node("c").parents) == expected
    assert list(network.node("a").parents) == []
    assert list(network.node("b").parents) == ["a"]


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(write: Write) -> None:
    text = "\ufeff" + GOOD.replace("\n", "\r\n").replace("x =", '"Größe µ" =')
    assert load_toml(write(text)).controls == ("Größe µ", "n")


# ---- error messages


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ('name = "melt"\n', "", ["stage[0].name (the [[stage]] number 1) is missing"]),
        ('name = "melt"', "name = 3", ["stage[0].name (the [[stage]] number 1) must be a name", "got 3"]),
        ('name = "melt"', 'name = "a.b"', ["stage[0] (stage 'a.b')", "without a dot"]),
        ('name = "melt"', 'name = "cool"', ["'cool' is used twice"]),
        ('name = "melt"', 'nane = "melt"', ["stage[0].nane", "did you mean name?", "stage[0].name", "is missing"]),
        ('command = ["sed"', 'comand = ["sed"', ["stage[0].comand (stage 'melt')", "did you mean command?"]),
        ("""command = ["sed", 's/"x"/"melt"/']""", "command = []", ["stage[0].command", "list of words", "got []"]),
        ("""command = ["sed", 's/"x"/"melt"/']""", 'command = "sed -n p"', ["no shell", 'got "sed -n p"']),
        ("""command = ["sed", 's/"x"/"melt"/']""", 'command = ["sed", 3]', ["stage[0].command", "got ['sed', 3]"]),
        ("""command = ["sed", 's/"x"/"melt"/']""", 'command = [""]', ["stage[0] (stage 'melt')", "name a program"]),
        ("""command = ["sed", 's/"x"/"melt"/']""", 'command = ["a\\u0000"]', ["stage[0] (stage 'melt')", "NUL"]),
        ("low = 1, high = 5", "low = 5, high = 1", ["stage[0].controls.x (stage 'melt')", "low must be below high"]),
        ("low = 1, high = 5", "low = 1, high = 5, step = 0.3", ["stage[0].controls.x", "a whole number of steps"]),
        ("low = 1, high = 5", 'low = "1", high = 5', ["stage[0].controls.x.low", "must be a number", 'got "1"']),
        ("low = 1, high = 5", "low = true, high = 5", ["stage[0].controls.x.low", "must be a number", "got true"]),
        ("low = 1, high = 5", "low = nan, high = 5", ["stage[0].controls.x.low", "must be a number", "got nan"]),
        ("low = 1, high = 5", "low = 1, high = inf", ["stage[0].controls.x.high", "must be a number", "got inf"]),
        ("low = 1, high = 5", f"low = 1, high = 1{'0' * 400}", ["stage[0].controls.x.high", "must be a number"]),
        ("low = 1, high = 5", "low = 1", ["stage[0].controls.x.high (stage 'melt') is missing"]),
        ("low = 1, high = 5", "low = 1, high = 5, hihg = 3", ["stage[0].controls.x.hihg", "did you mean high?"]),
        ("low = 1, high = 5", "low = 1, high = 5, log = 1", ["stage[0].controls.x.log", "true or false", "got 1"]),
        ("low = 1, high = 5", "low = 0, high = 5, log = true", ["stage[0].controls.x", "needs a range above 0"]),
        (
            "low = 1, high = 5",
            'low = 0, high = 5, type = "int"',
            ["stage[0].controls.x.type", '"real", "integer" or "choice"'],
        ),
        (
            "low = 1, high = 5",
            'type = "choice", values = ["oak", 3]',
            ["stage[0].controls.x.values", "a list of names", "oak"],
        ),
        (
            "low = 1, high = 5",
            'type = "choice", values = ["oak", "oak"]',
            ["stage[0].controls.x", "'oak' is given twice"],
        ),
        (
            "low = 1, high = 5",
            'type = "choice", low = 1, values = ["oak"]',
            ["stage[0].controls.x.low", "is not known"],
        ),
        ("low = 1, high = 3", "low = 1.5, high = 3", ["stage[1].controls.n (stage 'cool')", "whole numbers"]),
        ("low = 1, high = 3", "low = 1, high = 3, step = 1", ["stage[1].controls.n", "no step"]),
        ("x = { low = 1, high = 5 }", "x = [1, 5]", ["stage[0].controls.x", "must be a table", "got [1, 5]"]),
        ("x = { low = 1, high = 5 }", '"" = { low = 1, high = 5 }', ['stage[0].controls.""', "a name"]),
        ("x = { low", "timeout = 3\nx = { low", ["stage[0].controls.timeout", "stands above [stage.controls]"]),
        ("x = { low", "y = { low = 1, high = 2 }\ny = { low", ["A key is given twice", "line 8"]),
        ('name = "melt"', 'name = "melt"\nobjective = "cool"', ["stage[0].objective", "top of the file"]),
        ('name = "melt"', 'name = "melt"\noutputs = ["a", "a"]', ["stage[0] (stage 'melt')", "must differ"]),
        ('name = "melt"', 'name = "melt"\noutputs = []', ["stage[0] (stage 'melt')", "one or more names"]),
        ('name = "melt"', 'name = "melt"\noutputs = [3]', ["stage[0].outputs", "list of names", "got [3]"]),
        ('name = "melt"', 'name = "melt"\npasses = ["z"]', ["stage[0] (stage 'melt')", "passes must name outputs"]),
        ('name = "melt"', 'name = "melt"\nparents = ["z"]', ["unknown parent 'z'"]),
        ('name = "melt"', 'name = "melt"\nparents = ["cool"]', ["cycle"]),
        ('name = "melt"', 'name = "melt"\nparents = 3', ["stage[0].parents", "got 3"]),
        ('name = "melt"', 'name = "melt"\ntimeout = 0', ["stage[0] (stage 'melt')", "seconds above 0"]),
        ('name = "melt"', 'name = "melt"\ntimeout = "60 s"', ["stage[0].timeout", "seconds above 0", 'got "60 s"']),
        ('name = "melt"', 'name = "melt"\nretries = -1', ["stage[0] (stage 'melt')", "0 or more"]),
        ('name = "melt"', 'name = "melt"\nretries = 1.5', ["stage[0].retries", "whole number", "got 1.5"]),
        ('name = "melt"', 'name = "melt"\nretries = true', ["stage[0].retries", "whole number", "got true"]),
        ('name = "melt"', 'name = "melt"\nkernel = "matern"', ["stage[0].kernel", "a table such as"]),
        ('name = "melt"', 'name = "melt"\nkernel = {}', ["stage[0].kernel.type", '"matern" or', "got none"]),
        ('name = "melt"', 'name = "melt"\nkernel = { type = "rbf" }', ["stage[0].kernel.type", 'got "rbf"']),
        ('name = "melt"', 'name = "melt"\nkernel = { type = "matern" }', ["stage[0].kernel.nu", "is missing"]),
        (
            'name = "melt"',
            'name = "melt"\nkernel = { type = "matern", nu = -1 }',
            ["stage[0].kernel (stage 'melt')", "above 0"],
        ),
        (
            'name = "melt"',
            'name = "melt"\nkernel = { type = "squared-exponential", nu = 2.5 }',
            ["stage[0].kernel.nu", "the keys here are type, lengthscale, variance, additive"],
        ),
        (
            'name = "melt"',
            'name = "melt"\nkernel = { type = "squared-exponential", lengthscale = ["1"] }',
            ["stage[0].kernel.lengthscale", "one for every input"],
        ),
        (
            'name = "melt"',
            'name = "melt"\nkernel = { type = "squared-exponential", lengthscale = [1, 2] }\nnorm_bound = 2',
            ["stage 'melt'", "2 lengthscales"],
        ),
        ('name = "melt"', 'name = "melt"\nnorm_bound = 2', ["stage[0] (stage 'melt')", "kernel"]),
        ('name = "melt"', 'name = "melt"\nlipschitz = [1, true]', ["stage[0].lipschitz", "got [1, True]"]),
        ('name = "melt"', 'name = "melt"\noffset = nan', ["stage[0].offset", "got nan"]),
        ('name = "melt"', 'name = "melt"\nlimits = 3', ["stage[0].limits", "{ moisture = { max = 3.0 } }", "got 3"]),
        ('name = "melt"', 'name = "melt"\nlimits = { melt = 3 }', ["stage[0].limits.melt", "must be a table", "got 3"]),
        (
            'name = "melt"',
            'name = "melt"\nlimits = { melt = { maximum = 3 } }',
            ["stage[0].limits.melt.maximum", "did you mean max?"],
        ),
        ('name = "melt"', 'name = "melt"\nranges = { melt = { max = "3" } }', ["stage[0].ranges.melt.max", 'got "3"']),
        ('name = "melt"', 'name = "melt"\ncost = "2"', ["stage[0].cost", "must be a number above 0", 'got "2"']),
        ('name = "melt"', 'name = "melt"\ncost = 0', ["stage[0]", "cost must be a finite number above 0; got 0"]),
        ('name = "melt"', 'name = "melt"\nreachable = "bin"', ["stage[0].reachable", '"run", "stock" or "any"']),
        ('name = "melt"', 'name = "melt"\nportions = 1.5', ["stage[0]", "portions must be a whole number", "got 1.5"]),
        ('name = "melt"', 'name = "melt"\nranges = { melt = { max = inf } }', ["stage[0].ranges.melt.max", "got inf"]),
        ('name = "melt"', 'name = "melt"\nlimits = { x = { max = 3 } }', ["stage[0] (stage 'melt')", "name outputs"]),
        ('name = "melt"', 'name = "melt"\nlimits = { melt = {} }', ["stage[0] (stage 'melt')", "one finite end"]),
        (
            'name = "melt"',
            'name = "melt"\nlimits = { melt = { min = 3, max = 2 } }',
            ["stage[0] (stage 'melt')", "the low end must be below the high end"],
        ),
        ('name = "melt"', 'name = "melt"\nfailure = "no"', ["stage[0].failure", '"fail" or "infeasible"', 'got "no"']),
        ("\n[[stage]]", 'objective = "hot"\n[[stage]]', ["objective must name a stage's output", "'hot'"]),
        ("\n[[stage]]", "objective = 3\n[[stage]]", ["objective must be a name", "got 3"]),
        ("\n[[stage]]", 'sense = "max"\n[[stage]]', ["sense must be", '"minimise"', 'got "max"']),
        ("\n[[stage]]", "timeout = 3\n[[stage]]", ["timeout is not known", "belongs to a stage"]),
        ("low = 1, high = 5 }", "low = 1, high = 5", ["not TOML", "line 7, column"]),
        ("low = 1, high = 3, type", "low = 1, high = , type", ["not TOML", "line 14, column"]),
        ('type = "integer" }\n', 'type = "integer" }\nlast = [1, 2', ["not TOML", "at the end, line 15"]),
    ],
)
def test_the_error_of_a_mistake_names_its_key(write: Write, old: str, new: str, parts: list[str]) -> None:
    assert old in GOOD
    message = refused(write(GOOD.replace(old, new, 1)))
    for part in parts:
        assert part in message
    assert len(message) < 1000


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["stage is missing", "[[stage]]"]),
        (GOOD.replace("[stage", "[stages"), ["stages is not known (did you mean stage?)", "stage is missing"]),
        ("stage = []", ["stage must be a list of tables"]),
        ("stage = [3]", ["stage[0] (the [[stage]] number 1) must be a table; got 3"]),
        ('[stage]\nname = "a"', ["stage must be a list of tables", "[[stage]]"]),
        ('[[stage]]\nname = "a"\ncommand = ["x"]', ["at least one control"]),
        ("x = " + "1" * 5000, ["cannot be read as TOML", "digits"]),
        ("x = " + "[" * 5000, ["cannot be read as TOML"]),
        (b"# ok\n# \xff\n", ["must be text in UTF-8", "line 2"]),
        (b"x = 1\0", ["not TOML", "line 1"]),
        ("#" * ((1 << 20) + 1), ["larger than 1048576 bytes"]),
    ],
)
def test_a_file_that_describes_no_process_raises(write: Write, text: str | bytes, parts: list[str]) -> None:
    message = refused(write(text))
    for part in parts:
        assert part in message


def test_a_missing_or_unreadable_file_raises(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    assert "it is a folder" in refused(tmp_path / "folder.toml")
    assert "there is no file" in refused(tmp_path / "none.toml")
    assert "cascada new" in refused(tmp_path / "none.toml")
    assert "cannot read" in refused(tmp_path / ("long" * 100 + ".toml"))
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    refused(tmp_path / "loop.toml")


def test_one_error_lists_all_mistakes(write: Write) -> None:
    message = refused(write(GOOD.replace("low = 1", 'low = "1"').replace("name", "nane") + "[other]\n"))
    lines = message.splitlines()
    assert len(lines) == 7
    for part in ("other", "stage[0].nane", "stage[0].name", "stage[0].controls.x.low", "stage[1].controls.n.low"):
        assert sum(f"{part} " in line for line in lines) == 1


def test_the_documentation_of_the_format_is_correct(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulators.md").read_text(encoding="utf-8")
    example = page.partition("```toml\n")[2].partition("```")[0]
    path = write(example)
    assert load_toml(path).objective == ("mill", "margin")
    monkeypatch.chdir(path.parent)
    write(example.replace("norm_bound = 60", "norm_bound = 60\ntimeuot = 3").replace("low = 20", 'low = "20"'))
    result = CliRunner().invoke(app, ["run", "process.toml"])
    assert " ".join(result.stderr.split()) in " ".join(page.split())
    for table in (FileTable, StageTable, ControlTable, MaternTable, IntervalTable):
        assert all(re.search(rf"\b{key}\b", page) for key in table.model_fields)


# ---- any input is loaded as a network or raises ArgumentError


def as_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_toml(key)} = {as_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)


KEYS = st.sampled_from(
    [*FileTable.model_fields, *StageTable.model_fields, *ControlTable.model_fields, *MaternTable.model_fields, "melt"]
)
WORDS = st.sampled_from(["melt", "cool", "melt.melt", "x", "matern", "squared-exponential", "integer", "real", ""])
SCALARS = (
    WORDS | st.text(max_size=4) | st.booleans() | st.integers() | st.floats() | st.sampled_from([0, 1, 2, 10**400])
)
VALUES = st.recursive(
    SCALARS,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(KEYS | st.text(max_size=2), v, max_size=3),
    max_leaves=8,
)
PROCESS: dict[str, Any] = {
    "objective": "cool.cool",
    "stage": [
        {
            "name": "melt",
            "command": ["sed", "p"],
            "controls": {"x": {"low": 1, "high": 5}, "y": {"low": 1, "high": 4, "type": "integer"}},
            "kernel": {"type": "matern", "nu": 2.5, "lengthscale": [1, 2], "variance": 1.0},
            "norm_bound": 2.0,
            "outputs": ["melt"],
            "limits": {"melt": {"max": 3.0}},
            "ranges": {"melt": {"min": -1.0, "max": 9}},
        },
        {"name": "cool", "command": ["cat"], "parents": ["melt"], "timeout": 3, "retries": 1, "offset": [1.0]},
    ],
}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return all pairs of a container in a document and a key of it."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


@st.composite
def changed(draw: st.DrawFn) -> dict[str, Any]:
    document = copy.deepcopy(PROCESS)
    for _ in range(draw(st.sampled_from([1, 1, 1, 1, 2, 3]))):
        if not document:
            break
        container, key = draw(st.sampled_from(places(document)))
        change = draw(st.sampled_from(["replace", "delete", "add", "double"]))
        if change == "replace":
            container[key] = draw(VALUES)
        elif change == "delete":
            del container[key]
        elif isinstance(container, list):
            container.append(copy.deepcopy(container[key]) if change == "double" else draw(VALUES))
        else:
            container[draw(KEYS)] = copy.deepcopy(container[key]) if change == "double" else draw(VALUES)
    return document


def loads_or_is_refused(text: bytes, path: Path) -> bool:
    path.write_bytes(text)
    try:
        return isinstance(load_toml(path), cd.Network)
    except cd.ArgumentError as error:
        message = str(error)
    assert path.name in message
    assert len(message.encode()) < 20_000, "the message must be short and printable"
    return False


def test_changed_files_are_loaded_or_raise_an_argument_error(tmp_path: Path) -> None:
    loaded = []

    @given(changed())
    @settings(max_examples=examples(500))
    def check(document: dict[str, Any]) -> None:
        text = "\n".join(f"{as_toml(key)} = {as_toml(value)}" for key, value in document.items())
        loaded.append(loads_or_is_refused(text.encode(), tmp_path / "process.toml"))

    check()
    assert 0.05 < sum(loaded) / len(loaded) < 0.95, "the examples must contain both cases"


@given(st.dictionaries(KEYS, VALUES, max_size=4))
@settings(max_examples=examples(300))
def test_random_tables_are_loaded_or_raise_an_argument_error(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]
) -> None:
    text = "\n".join(f"{as_toml(key)} = {as_toml(value)}" for key, value in document.items())
    loads_or_is_refused(text.encode(), tmp_path_factory.getbasetemp() / "process.toml")


@given(st.data())
@settings(max_examples=examples(300))
def test_random_bytes_are_loaded_or_raise_an_argument_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = GOOD.encode()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.binary(max_size=3)) + text[at + data.draw(st.integers(0, 5)) :]
    loads_or_is_refused(text, tmp_path_factory.getbasetemp() / "process.toml")


# ---- on the command line


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


RUNS = GOOD.replace("""'s/.*/{"cool": 1.5}/'""", """'s/"melt"/"cool"/; s/, "n".*/}/'""")  # cool = melt = x


@pytest.mark.parametrize(("sense", "best"), [("", max), ('sense = "minimise"', min)])
def test_cascada_run_accepts_a_toml_file(
    write: Write, monkeypatch: pytest.MonkeyPatch, sense: str, best: Callable[..., float]
) -> None:
    path = write(sense + RUNS)
    monkeypatch.chdir(path.parent.parent)  # commands run in the file's folder, not in the working folder
    found = json.loads(invoke("run", str(path), "--budget", "4", "--json").stdout)
    values = [trial["value"] for trial in found["trials"]]
    assert len(values) == 4
    assert found["best"]["value"] == best(values)
    assert all(trial["value"] == trial["controls"]["x"] for trial in found["trials"])
    assert all(isinstance(trial["controls"]["n"], int) for trial in found["trials"])


def test_mistakes_in_a_file_are_one_line_and_exit_code_2(write: Write) -> None:
    path = write(GOOD.replace("low = 1", "low = nan"))
    result = invoke("run", str(path))
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "stage[0].controls.x.low (stage 'melt')" in result.stderr
    assert "stage[1].controls.n.low (stage 'cool')" in result.stderr


def test_cascada_run_prints_the_error_of_a_failed_command(write: Write) -> None:
    path = write(GOOD.replace('["sed", \'s/"x"/"melt"/\']', '["sh", "-c", "echo too hot >&2; exit 3"]'))
    result = invoke("run", str(path), "--budget", "9")
    assert result.exit_code == 1
    for part in ("failed", "'melt'", "exit code 3", "too hot"):
        assert part in result.output


@pytest.mark.parametrize("options", [(), ("--jobs", "2")])
@pytest.mark.parametrize("storage", [False, True])
def test_a_missing_program_is_reported_before_any_stage_runs(
    write: Write, storage: bool, options: tuple[str, ...]
) -> None:
    """The first stage may take hours; here it creates a file. The program of the second does not exist."""
    marked = GOOD.replace('["sed", \'s/"x"/"melt"/\']', '["touch", "ran"]')
    path = write(marked.replace('"sed"', '"./no-such-program"'))
    assert "touch" in path.read_text(encoding="utf-8")
    url = f"sqlite:///{path.parent / 'plant.db'}"
    result = invoke("run", str(path), *options, *(["--storage", url, "--study", "plant"] if storage else []))
    assert result.exit_code == 2
    for part in ("stage 'cool'", "no file './no-such-program'", "Nothing was started"):
        assert part in result.stderr
    assert not (path.parent / "ran").exists()
    if storage:
        trials = json.loads(invoke("trials", "--storage", url, "--study", "plant", "--json").stdout)
        assert {trial["state"] for trial in trials} <= {"waiting"}, "the next worker can run them"


def test_a_study_that_needs_no_more_runs_needs_no_programs(write: Write) -> None:
    path = write(GOOD)
    command = "run", str(path), "--budget", "2", "--json", "--storage", f"sqlite:///{path.parent / 'plant.db'}"
    first = json.loads(invoke(*command).stdout)
    path.write_text(GOOD.replace('"sed"', '"./no-such-program"'), encoding="utf-8")
    assert json.loads(invoke(*command).stdout)["best"] == first["best"]


def test_cascada_ask_accepts_a_toml_file_without_its_programs(write: Write) -> None:
    """Asking runs no command, so the simulator may be on another machine."""
    path = write(GOOD.replace('"sed"', '"no-such-program"'))
    url = f"sqlite:///{path.parent / 'lab.db'}"
    result = invoke("ask", "--storage", url, "--study", "lab", "--spec", str(path), "--json")
    trial = json.loads(result.stdout)
    assert set(trial["controls"]) == {"x", "n"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("none.toml", "there is no file none.toml"),
        ("none.toml:network", "without a colon"),
        ("nonsense", "'file.toml'"),
    ],
)
def test_an_invalid_spec_raises(spec: str, message: str) -> None:
    with pytest.raises(cd.ArgumentError, match=message):
        load(spec)


def test_the_ending_of_a_file_may_be_in_capitals(write: Write) -> None:
    assert load(str(write(GOOD, "PROCESS.TOML"))).controls == ("x", "n")


def test_the_timeout_of_a_stage_applies_to_its_command(write: Write) -> None:
    path = write(GOOD.replace('["sed", \'s/"x"/"melt"/\']', '["sleep", "300"]\ntimeout = 0.1'))
    function = load(str(path)).stages[0].function
    assert isinstance(function, Command)
    with pytest.raises(cd.CascadaError, match=r"timed out after 0\.1 s"):
        function(x=math.pi)


def test_a_choice_in_a_file_is_one_in_the_process(tmp_path):
    path = tmp_path / "process.toml"
    path.write_text(
        """
[[stage]]
name = "cut"
kernel = { type = "matern", nu = 2.5 }
norm_bound = { oak = 2, pine = 1.5 }
[stage.controls]
wood = { type = "choice", values = ["oak", "pine"] }
glue = { type = "choice", values = ["hot", "cold"], alike = 0.5, context = true }
x = { low = 0, high = 1 }
"""
    )
    stage = load_toml(path).stages[0]
    assert stage.controls["wood"] == cd.Choice(["oak", "pine"])
    assert stage.controls["glue"] == cd.Choice(["hot", "cold"], alike=0.5, context=True)
    assert stage.norm_bounds is not None
    assert {name: bound.item() for name, bound in stage.norm_bounds.items()} == {"oak": 2.0, "pine": 1.5}
