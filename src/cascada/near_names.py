"""Suggestions for mistyped names: the known name that a user probably meant."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

from cascada.errors import ArgumentError

_P = ParamSpec("_P")
_R = TypeVar("_R")

_SHORTEST_PART = 3  # characters of a name that is part of the one that is meant


def near_name(name: object, names: Iterable[str]) -> str | None:
    """The known name that is most like a mistyped one; None if none is like it.

    >>> near_name("norm", ["norm_bound", "kernel"]), near_name("gpn-ei", ["gpn_ucb", "gpn_ei"])
    ('norm_bound', 'gpn_ei')
    """
    if not isinstance(name, str):
        return None
    from difflib import get_close_matches  # imported only after a mistake

    by_form = {_form(known): known for known in names}
    form = _form(name)
    if form in by_form:
        return by_form[form]
    close = get_close_matches(form, by_form, n=1)
    if close:
        return by_form[close[0]]
    parts = [known for known in by_form if len(form) >= _SHORTEST_PART and form in known]
    return by_form[parts[0]] if parts else None


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """The words " (did you mean …?)" for a mistyped name; empty if no known name is like it."""
    near = near_name(name, names)
    return "" if near is None else f" (did you mean {near}?)"


def with_near_names(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same function, which raises `ArgumentError` with a near name for an argument that it does not have."""
    known = [name for name in inspect.signature(function).parameters if name != "self"]
    accepted = frozenset(known)
    called = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*args: _P.args, **named: _P.kwargs) -> _R:
        if not accepted.issuperset(named):
            wrong = next(name for name in named if name not in accepted)
            hint = did_you_mean(wrong, known) or f"; its arguments are {', '.join(known)}"
            raise ArgumentError(f"{called}() has no argument {wrong!r}{hint}.")
        return function(*args, **named)

    return checked


def _form(name: str) -> str:
    """A name in the form in which names are compared: spelling of words and separators may differ."""
    return name.strip().lower().replace("-", "_").replace(" ", "_")
