"""Numbers and JSON read from text, in one strict form for every input: arguments, CSV, logs, outputs of programs.

Python reads more than people mean: `1_0` as 10, digits of all scripts, `nan`, the last of two values with the same key.
"""

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

# re.ASCII: otherwise \d stands for the digits of all scripts.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_DEEPEST = 50  # levels of JSON; an exported log has ten


def number_from(text: str) -> float | None:
    """The number that a text is; None if it is something else. A number beyond all floats is infinite."""
    return float(text) if _NUMBER.fullmatch(text) else None


def whole_from(text: str) -> int | None:
    """The whole number that a text is; None if it is something else."""
    return int(text) if _WHOLE.fullmatch(text) else None


def json_from(text: str) -> Any:
    """The value of a JSON document; `ValueError` says what is wrong.

    NaN and numbers beyond all floats, a key that is there twice, and deep nesting are refused.
    """
    try:
        found = json.loads(text, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_without_doubles)
        if _is_deep(found):
            raise RecursionError
    except RecursionError:
        raise ValueError(f"it is nested more than {_DEEPEST} levels deep") from None
    return found


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST + 1):
        inner = [entry for entry in level if isinstance(entry, dict | list)]
        if not inner:
            return False
        level = [x for entry in inner for x in (entry.values() if isinstance(entry, dict) else entry)]
    return True


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text:.50} is too large")
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{twice:.50} is there twice")
    return found
