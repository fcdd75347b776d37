"""Descriptions of controls as plain JSON; a field at its default is not written."""

from collections.abc import Mapping
from typing import Any

from cascada.choice import Choice
from cascada.controls import Control, Integer, Real

_SHOWN: Mapping[str, Any] = {"type": "real", "log": False}  # defaults that a comparison of two studies shows
_DEFAULTS: Mapping[str, Any] = {**_SHOWN, "step": None, "context": False, "deviation": 0.0}
_FIRST = ("type", "low", "high", "log")  # in the order in which they are shown
_OF_CHOICE: Mapping[str, Any] = {"alike": None, "context": False}


def describe_control(control: Control) -> dict[str, Any]:
    """A control without the fields that are at their defaults."""
    if isinstance(control, Choice):
        own = {"type": "choice", "values": list(control.values), "alike": control.alike, "context": control.context}
        return {name: value for name, value in own.items() if name not in _OF_CHOICE or value != _OF_CHOICE[name]}
    kind, number = ("integer", int) if control.integer else ("real", _float)
    fields = {
        "type": kind,
        "low": number(control.low),
        "high": number(control.high),
        "log": bool(control.log),
        "step": None if control.step is None else _float(control.step),
        "context": control.context,
        "deviation": _float(control.deviation),
    }
    return {name: value for name, value in fields.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}


def completed_control(control: Mapping[str, Any]) -> dict[str, Any]:
    """A description of a control with the defaults that are shown filled in."""
    if control.get("type") == "choice":
        return dict(control)
    whole = {**_SHOWN, **control}
    return {name: whole[name] for name in (*_FIRST, *(name for name in whole if name not in _FIRST)) if name in whole}


def control_from(control: Mapping[str, Any]) -> Control:
    """The control of a description."""
    if control.get("type") == "choice":
        return Choice(control["values"], control.get("alike"), control.get("context", False))
    whole = {**_DEFAULTS, **control}
    if whole["type"] == "integer":
        return Integer(whole["low"], whole["high"], log=whole["log"], context=whole["context"])
    given = {word: whole[word] for word in ("log", "step", "context", "deviation")}
    return Real(whole["low"], whole["high"], **given)


def _float(value: Any) -> float:
    return float(value) + 0.0  # adding 0.0 turns −0.0 into 0.0
