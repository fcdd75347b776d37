"""Options and arguments that are numbers, in the same strict form as numbers in files."""

import inspect
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from cascada.literals import number_from, whole_from


def make_strict(command: Any, function: Callable[..., Any]) -> None:
    """Let the numbers of a command, which calls a function, be refused where Typer reads `1_0`, `1.0` or `١`."""
    hints = get_type_hints(function, include_extras=True)
    kinds = {name: _number_type(hints[name]) for name in inspect.signature(function).parameters}
    for parameter in command.params:
        kind = kinds.get(parameter.name)
        if kind is not None:
            parameter.process_value = _strict(parameter, parameter.process_value, kind)


def _strict(parameter: Any, process: Callable[..., Any], kind: type) -> Callable[..., Any]:
    read, what = (whole_from, "a whole number") if kind is int else (number_from, "a number")

    def process_value(ctx: typer.Context, value: Any) -> Any:
        if isinstance(value, str) and read(value.strip()) is None:
            raise typer.BadParameter(f"it must be {what}; got {value!r:.100}.", ctx=ctx, param=parameter)
        return process(ctx, value)

    return process_value


def _number_type(hint: Any) -> type | None:
    """`int` or `float` if an option is a number; None for anything else."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    kinds = (
        [one for one in get_args(hint) if one is not type(None)] if get_origin(hint) in (Union, UnionType) else [hint]
    )
    return kinds[0] if kinds[0] in (int, float) else None
