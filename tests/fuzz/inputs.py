"""Generators of inputs: arguments, CSV, TOML, logs and outputs of commands, each a small change of a valid one."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.fuzz.lab import PROCESS, RED, Lab

#: In every address that is generated; no output may contain it.
SECRET = "hunter2"

NUMBERS = [
    *(
        "0",
        "1",
        "2",
        "3",
        "4",
        "-1",
        "1.0",
        "1_0",
        "\u0661\u0662",
        "\uff13",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "1e308",
        "1e-320",
    ),
    *(
        "0x10",
        " 3 ",
        "+3",
        "3,5",
        "1e",
        "",
        "-",
        "--",
        "1" * 400,
        "9" * 5000,
        "2147483648",
        "0.1",
        "-0.0",
        "true",
        "null",
    ),
]
TEXTS = [
    *(
        "",
        " ",
        "alloy",
        "odd",
        "estimated",
        "foreign",
        "none",
        "mix",
        "cure",
        "dose",
        "heat",
        "mix.mix",
        "evil:Boom",
        "os:abort",
    ),
    *(
        "sys:exit",
        RED,
        "\x07\x08\x9b31m",
        "a\nb",
        "a\r\nb",
        "\ud800",
        "\u2028",
        "%s%n{}{0}",
        "'; DROP TABLE cascada_events; --",
    ),
    *(
        "../../etc/passwd",
        "/dev/null",
        "x" * 3_000,
        "\x1b" * 3_000,
        "process.toml",
        "alloy.jsonl",
        "-",
        "--json",
        "--help",
        "caf\u00e9",
    ),
]
JSON = [
    *(
        "{}",
        "[]",
        "1",
        "null",
        '"x"',
        "{",
        "[" * 3000,
        "[" * 3000 + "]" * 3000,
        '{"a":' * 3000 + "1" + "}" * 3000,
        "NaN",
    ),
    *(
        '{"mix": 1.0}',
        '{"cure": 1.0}',
        '{"mix": 1, "mix": 2}',
        '{"mix": [1]}',
        '{"mix": [[1]]}',
        '{"mix": {"mix": 1}}',
        '{"mix": "1_0"}',
    ),
    *(
        '{"dose": 0.5, "heat": 0.5}',
        '{"dose": 9, "heat": 0}',
        '{"dose": "1", "heat": 0}',
        '{"dose": 1e999, "heat": 0}',
        '{"heat": 1}',
    ),
    *(
        '{"\\u001b[31m": 1}',
        '{"mix": 1e101}',
        '{"mix": ' + "9" * 400 + "}",
        '{"mix": "' + "x" * 3000 + '"}',
        '{"dose": true, "heat": 0}',
    ),
]
ADDRESSES = [
    f"postgresql://lab:{SECRET}@127.0.0.1:1/studies",
    f"postgresql://lab@127.0.0.1:1/studies?password={SECRET}",
    f"postgresql://lab@127.0.0.1:1/studies?sslmode=disable&passwrd={SECRET}",
    f"postgresql://lab:{SECRET}@127.0.0.1:port/studies",
    f"postgresql://lab:p@{SECRET}@127.0.0.1:1/studies",
    f"postgres://lab:{SECRET}@127.0.0.1/studies",
    f"mysql://lab:{SECRET}@127.0.0.1/studies?key={SECRET}",
    f"postgresql://lab:{SECRET}",
    f"lab:{SECRET}@127.0.0.1/studies",
    f"host=127.0.0.1 password={SECRET}",
    f"sqlite:///lab.db?token={SECRET}",
    f"sqlite:///missing.db?key={SECRET}",
    *(
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///no/folder/lab.db",
        "sqlite:///process.toml",
        "nonsense",
        "",
    ),
    "sqlite:///" + "x" * 3000,
    "sqlite:///\x1b[31m.db",
]
_STUDY = ("--study", "alloy")
#: A valid call of every command on a store, as a list of words.
CALLS: list[tuple[str, ...]] = [
    ("status",),
    ("status", *_STUDY),
    ("status", "--study", "odd"),
    ("studies",),
    ("best", *_STUDY),
    ("best", "--study", "odd", "--json"),
    ("trials", *_STUDY),
    ("trials", "--study", "odd", "--csv"),
    ("trials", "--study", "odd"),
    ("export", "--study", "odd"),
    ("ask", *_STUDY),
    ("ask", "--study", "foreign"),
    ("ask", "--study", "foreign", "--algorithm", "random_search"),
    ("ask", *_STUDY, "-n", "2", "--lease", "60"),
    ("ask", "--study", "new", "--spec", "process.toml"),
    ("tell", *_STUDY, "3", '{"mix": 1.0}'),
    ("tell-stage", *_STUDY, "3", "mix", "1.0"),
    ("correct", *_STUDY, "0", "mix", "1.125", "--reason", "typing"),
    ("correct", *_STUDY, "0", "--controls", '{"dose": 0.75}'),
    ("retract", *_STUDY, "0", "mix"),
    ("fail", *_STUDY, "3", "it broke"),
    ("abandon", *_STUDY, "3"),
    ("enqueue", *_STUDY, '{"dose": 0.125, "heat": 0.125}'),
    ("add", "-", *_STUDY),
    ("import", "alloy.jsonl", "--study", "copy"),
    ("rename", "odd", "other"),
    ("delete", "odd", "--yes"),
]
CSV = "dose,heat,mix,cure\n0.125,0.25,1.0,1.5\n0.25,0.5,0.5,\n"
CELLS = [*NUMBERS, *TEXTS, '"', '"a""b"', ";", "\t", ",", "\n", "\x00", "=1+1"]


@dataclass(frozen=True)
class Case:
    """A call with its standard input and the files that it reads."""

    kind: str
    arguments: tuple[str, ...]
    text: str | bytes | None = None
    files: dict[str, bytes] = field(default_factory=dict)


def arguments(random: Random, lab: Lab) -> Case:  # noqa: ARG001
    """A call with some words replaced, left out, doubled or added."""
    words = list(random.choice(CALLS))
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at = random.randrange(len(words))
        word = random.choice(random.choice((NUMBERS, TEXTS, JSON)))
        action = random.random()
        if action < 0.65:
            words[max(at, 1) if len(words) > 1 else 0] = word
        elif action < 0.75:
            words.insert(at + 1, word)
        elif action < 0.85 and len(words) > 1:
            del words[at]
        else:
            words += ["--storage", random.choice(ADDRESSES)]
    if random.random() < 0.05:
        words.append(random.choice(ADDRESSES))
    return Case("arguments", tuple(words), text=random.choice((None, CSV, random.choice(JSON))))


def csv(random: Random, lab: Lab) -> Case:  # noqa: ARG001
    """A table with some cells or characters replaced."""
    rows = [line.split(",") for line in CSV.splitlines()]
    for _ in range(random.choice((0, 1, 1, 2))):
        row = random.choice(rows)
        row[random.randrange(len(row))] = random.choice(CELLS)
    text = _joined(random, rows)
    changed = _mutated(random, text) if random.random() < 0.4 else text.encode(errors="surrogatepass")
    options = random.choice(((), (), ("--ignore-unknown",), ("--json",)))
    return Case("csv", ("add", "-", "--study", random.choice(("alloy", "estimated")), *options), text=changed)


def toml(random: Random, lab: Lab) -> Case:  # noqa: ARG001
    """A process description with values, lines or characters replaced; its commands are not run."""
    lines = PROCESS.splitlines()
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        at = random.randrange(len(lines))
        key, equals, _ = lines[at].partition(" = ")
        action = random.random()
        if equals and action < 0.7:
            value = random.choice([*NUMBERS, *JSON, "true", "1979-05-27", "'x'", "{ low = 0 }", "[1, 'a']", '["x", 1]'])
            lines[at] = f"{key} = {value}"
        elif action < 0.8:
            lines[at] = random.choice([*TEXTS, *JSON])
        elif action < 0.9:
            del lines[at]
        else:
            lines.insert(at, random.choice(lines))
    text = "\n".join(lines)
    data = _mutated(random, text) if random.random() < 0.3 else text.encode(errors="surrogatepass")
    return Case("toml", ("ask", "--study", "made", "--spec", "made.toml"), files={"made.toml": data})


def log(random: Random, lab: Lab) -> Case:
    """An exported log with values, keys, lines or characters replaced."""
    lines = list(random.choice((lab.log, lab.calibrated_log)))
    if random.random() < 0.2:
        return Case("log", ("import", "-", "--study", "made"), text=_mutated(random, "\n".join(lines)))
    for _ in range(random.choice((1, 1, 2))):
        at = random.randrange(len(lines))
        action = random.random()
        if action < 0.85:
            if lines[at] in JSON:
                continue  # it was put in before
            fields = json.loads(lines[at])
            _change(random, fields)
            lines[at] = json.dumps(fields)
        elif action < 0.9:
            lines.insert(at, random.choice([*lines, *JSON]))
        elif action < 0.95:
            del lines[at]
        else:
            lines[at] = lines[at].replace("{", '{"number": 0, ', 1) if lines[at] not in JSON else "{"
        if not lines:
            break
    return Case("log", ("import", "-", "--study", "made"), text="\n".join(lines))


def outputs(random: Random, lab: Lab) -> Case:  # noqa: ARG001
    """The output of a program that is a stage."""
    text = random.choice([*JSON, *TEXTS, '{"mix": 1.0}', '{"mix": 1.0, "cure": 1.0}'])
    data = _mutated(random, text) if random.random() < 0.5 else text.encode(errors="surrogatepass")
    call = ("run", "process.toml", "--study", "made", "--budget", "2", "--algorithm", "random_search")
    return Case("outputs", call, files={"out.json": data})


#: Generators and how many of ten inputs each makes.
KINDS: tuple[tuple[Callable[[Random, Lab], Case], int], ...] = (
    (arguments, 40),
    (csv, 15),
    (toml, 15),
    (log, 25),
    (outputs, 5),
)


def case(seed: int, number: int, lab: Lab) -> Case:
    """The input of this number; the same for the same seed."""
    random = Random(f"{seed} {number}")
    makers, weights = zip(*KINDS, strict=True)
    (make,) = random.choices(makers, weights)
    return make(random, lab)


def _joined(random: Random, rows: list[list[str]]) -> str:
    delimiter = random.choice((",", ",", ";", "\t"))
    return "".join(delimiter.join(row) + random.choice(("\n", "\n", "\r\n")) for row in rows)


def _mutated(random: Random, text: str) -> bytes:
    """Bytes that are a text with a few of them replaced, added, left out or cut off."""
    data = bytearray(text.encode(errors="surrogatepass"))
    for _ in range(random.choice((1, 1, 2, 4, 8))):
        at = random.randrange(len(data) + 1)
        action = random.random()
        if action < 0.5:
            data[at : at + 1] = bytes([random.randrange(256)])
        elif action < 0.7:
            del data[at : at + random.randrange(1, 9)]
        elif action < 0.9:
            data[at:at] = random.choice([*NUMBERS, *TEXTS]).encode(errors="surrogatepass")
        else:
            del data[at:]
    return bytes(data)


def _change(random: Random, value: Any) -> None:
    """Replace, add or remove one value somewhere in parsed JSON."""
    while True:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        if not keys:
            value["x" if isinstance(value, dict) else slice(0, 0)] = [_value(random)]
            return
        key = random.choice(keys)
        if isinstance(value[key], dict | list) and random.random() < 0.8:
            value = value[key]
            continue
        if random.random() < 0.8:
            value[key] = _value(random)
        elif random.random() < 0.5 or isinstance(value, list):
            del value[key]
        else:
            value[random.choice(TEXTS)] = _value(random)
        return


def _value(random: Random) -> Any:
    plain: list[Any] = [
        None,
        True,
        0,
        1,
        -1,
        5,
        0.5,
        -2.5,
        1e308,
        1e-308,
        10**9,
        10**15,
        10**400,
        2**31,
        [],
        {},
        [1],
        [[1, 2]],
    ]
    return random.choice(
        [*plain, *TEXTS, {"type": "Matern"}, {"type": "Matern", "nu": -1}, {"a": 1}, [None], ["mix"] * 3]
    )
