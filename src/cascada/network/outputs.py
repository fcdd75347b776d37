"""Outputs of a stage: what its function returned or a user reported, as numbers in order, and what is wrong with it."""

import math
from collections.abc import Mapping
from numbers import Real as RealNumber
from typing import Any

from cascada.arrays import LARGEST_SCALE
from cascada.errors import CascadaError
from cascada.network.node import Node
from cascada.outwards import six_digits

Outputs = dict[str, tuple[float, ...]]  # stage → its outputs

_LONGEST_TEXT = 4000  # characters of a failure


class StageError(CascadaError):
    """A stage raised, or returned something that is not its outputs; `outputs` keeps the stages before it.

    A stage's function may raise it with a message alone, `StageError("the oven tripped")`, to make its run fail with
    that reason. Stage, controls and outputs are then empty.
    """

    def __init__(
        self,
        stage: str,
        controls: Mapping[str, float] | None = None,
        reason: str | None = None,
        outputs: Outputs | None = None,
    ) -> None:
        if reason is None:  # raised by the user with a message
            super().__init__(stage)
        else:
            settings = ", ".join(f"{name}={six_digits(value)}" for name, value in (controls or {}).items())
            super().__init__(f"stage {stage!r} {reason} at {settings}. The results of the stages before it are kept.")
        self.stage = "" if reason is None else stage
        self.controls = dict(controls or {})
        self.reason = stage if reason is None else reason
        self.outputs = outputs or {}

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is pickled as its message alone, which could not be read back: a worker's error has to travel.
        if not self.stage:
            return type(self), (self.reason,)
        return type(self), (self.stage, self.controls, self.reason, self.outputs)


class StageFailure(CascadaError):
    """An error of the library that makes a stage fail, such as that of a command."""


class StageProblem(Exception):
    """Something that went wrong in a stage; its text continues "stage 'x' …"."""


class UnusableResult(StageProblem):
    """A result that is not a stage's outputs."""


def as_outputs_of(node: Node, result: Any) -> tuple[float, ...]:
    """A stage's result (a number, a sequence or a dict) as its outputs in order; raises with what is wrong with it."""
    names = node.stage.outputs
    noun = "output" if len(names) == 1 else "outputs"
    if isinstance(result, Mapping):
        if set(result) != set(names):
            got = ", ".join(map(str, result)) or "none"
            raise UnusableResult(f"must return the {noun} {', '.join(names)}; got {got:.200}")
        result = [result[name] for name in names]
    elif isinstance(result, str | bytes) or not hasattr(result, "__len__"):
        result = [result]
    elif getattr(result, "ndim", 1) == 0:
        result = [result.item()]
    if len(result) != len(names):
        raise UnusableResult(f"must return {len(names)} {noun} ({', '.join(names)}); got {len(result)}")
    numbers = []
    for name, value in zip(names, result, strict=True):
        if hasattr(value, "item") and getattr(value, "size", 1) == 1:
            value = value.item()
        if isinstance(value, bool) or not isinstance(value, RealNumber):
            raise UnusableResult(f"returned {value!r} for {name!r}, which is not a number")
        try:
            finite = math.isfinite(value)
        except OverflowError:  # a whole number beyond all floats
            finite = False
        if not finite:
            raise UnusableResult(f"returned {value!r:.50} for {name!r}, which is not finite")
        if abs(float(value)) > LARGEST_SCALE:  # its square would not be finite
            raise UnusableResult(f"returned {value!r:.50} for {name!r}, which is larger than {LARGEST_SCALE:g}")
        numbers.append(float(value))
    return tuple(numbers)


def failure_text(error: BaseException) -> str:
    """What went wrong in a stage that raised this error; the text continues "stage 'x' …"."""
    try:
        text = str(error)
    except Exception:  # the error is the user's: converting it to text may raise anything
        text = "(no text)"
    if isinstance(error, StageProblem):
        return text
    verb = "failed" if isinstance(error, StageFailure | StageError) else f"raised {type(error).__name__}"
    full = f"{verb}: {text}"
    return full if len(full) <= _LONGEST_TEXT else f"{full[:_LONGEST_TEXT]}…"
