"""Suggestions for mistyped names: the known name that a user probably meant."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from cascada.errors import ArgumentError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C")
_NONE: Mapping[str, str] = {}

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


def with_near_names(function: Callable[_P, _R], instead: Mapping[str, str] = _NONE) -> Callable[_P, _R]:
    """The same function, which raises `ArgumentError` with a near name for an argument that it does not have.

    `instead`: arguments that only similar functions have, and what to do instead.
    """
    known = [name for name in inspect.signature(function).parameters if name != "self"]
    accepted = frozenset(known)
    called = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*args: _P.args, **named: _P.kwargs) -> _R:
        if not accepted.issuperset(named):
            wrong = next(name for name in named if name not in accepted)
            if wrong in instead:
                got = f"{wrong}={named[wrong]!r:.100}"
                raise ArgumentError(f"{called}() does not work with {wrong}=; got {got}. {instead[wrong]}")
            hint = did_you_mean(wrong, known) or f"; its arguments are {', '.join(known)}"
            raise ArgumentError(f"{called}() has no argument {wrong!r}{hint}.")
        return function(*args, **named)

    return checked


def class_with_near_names(**instead: str) -> Callable[[type[_C]], type[_C]]:
    """A decorator of classes: `with_near_names` for their arguments."""

    def changed(kind: type[_C]) -> type[_C]:
        setattr(kind, "__init__", with_near_names(getattr(kind, "__init__"), instead))  # noqa: B009, B010
        return kind

    return changed


def _form(name: str) -> str:
    """A name in the form in which names are compared: spelling of words and separators may differ."""
    return name.strip().lower().replace("-", "_").replace(" ", "_")
