"""What a study is, as plain JSON: two descriptions are compared before a stored study is resumed.

Functions are never in it, so a study may be resumed with a mended function; all that its points and bounds rest on is.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from cascada.algorithms import Algorithm
from cascada.arrays import Array
from cascada.calibration import Fit
from cascada.errors import ArgumentError
from cascada.kernels import BlockKernel
from cascada.network import Network, Stage
from cascada.space import Control

AMENDABLE = ("kernel", "norm_bound", "lipschitz", "offset")  # what may be changed of a stage of a stored study

_LONG = 100  # letters; of a longer list only the first entry that differs is said


def describe(network: Network, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A network and the settings of its study (algorithm, seed, …) as dicts, lists, texts and numbers."""
    columns = {c: f"{n.stage.name}.{o}" for n in network.nodes for c, o in zip(n.columns, n.stage.outputs, strict=True)}
    parents = {n.stage.name: [columns[c] for c in n.inputs if c in columns] for n in network.nodes}
    stage, output = network.objective
    return {
        "objective": {"stage": stage, "output": output, "sense": "maximise" if network.sign > 0 else "minimise"},
        "stages": [_stage(stage, parents[stage.name]) for stage in network.stages],
        "settings": _plain(settings, "settings", whole=True),
    }


def describe_algorithm(algorithm: str | Algorithm) -> Any:
    """Its name, or its class and fields."""
    if not isinstance(algorithm, str | Algorithm):
        raise ArgumentError(f"algorithm must be a name or have the methods suggest and recommend; got {algorithm!r}.")
    return _plain(algorithm, "algorithm", whole=True)


def described_fits(fits: Mapping[tuple[str, str], Fit]) -> dict[str, Any]:
    """What was fitted to outputs: the kernel and mean that points are chosen by, and those of the gap if others."""
    return {
        f"{stage}.{output}": {
            part: {"kernel": _plain(model.kernel, "kernel"), "offset": model.offset, "observations": fit.count}
            for part, model in (("acting", fit.likely), ("judging", fit.cautious))
        }
        for (stage, output), fit in fits.items()
        if fit.count
    }


def canonical(description: Any) -> str:
    """The one text of a description: the same for the same study, in whatever order its dicts were made."""
    return json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Where two descriptions differ, a sentence each; empty for the same study."""
    stored, given = ({stage["name"]: stage for stage in d["stages"]} for d in (old, new))
    kept, order = [n for n in stored if n in given], [n for n in given if n in stored]
    return [
        *_compare("", {**old, "stages": None}, {**new, "stages": None}),
        *(f"stages.{name}: a stored stage that is not given" for name in stored if name not in given),
        *(f"stages.{name}: a stage that is not stored" for name in given if name not in stored),
        *([f"stages: stored in the order {', '.join(kept)}, given as {', '.join(order)}"] if kept != order else []),
        *(text for name in kept for text in _compare(f"stages.{name}", stored[name], given[name])),
    ]


def amendable(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether nothing differs but what is assumed of stages: kernels, B, L and offsets."""
    bare = ({**d, "stages": [s | dict.fromkeys(AMENDABLE) for s in d["stages"]]} for d in (old, new))
    return len(set(map(canonical, bare))) == 1


def _stage(stage: Stage, parents: list[str]) -> dict[str, Any]:
    try:
        kernel = _plain(stage.kernel, "kernel")
    except ArgumentError as error:
        raise ArgumentError(
            f"stage {stage.name!r}: {error} Use a kernel of the library, such as Matern(2.5) or "
            f"Separable(Matern(2.5)), or name a general one: BlockKernel(name, function)."
        ) from None
    return {
        "name": stage.name,
        "controls": {name: _control(control) for name, control in stage.controls.items()},
        "control_order": list(stage.controls),  # that of the kernel's lengthscales and of a candidate's columns
        "outputs": list(stage.outputs),
        "parents": parents,
        "passes": list(stage.passes),
        "known": stage.known,
        "kernel": kernel,
        "norm_bound": _constants(stage.norm_bound),
        "lipschitz": _constants(stage.lipschitz),
        "offset": _constants(stage.offset),
    }


def _control(control: Control) -> dict[str, Any]:
    kind, number = ("integer", int) if control.integer else ("real", _float)
    return {"type": kind, "low": number(control.low), "high": number(control.high), "log": bool(control.log)}


def _constants(values: Array | None) -> list[float] | None:
    return None if values is None else [_float(value) for value in np.atleast_1d(values)]


def _float(value: Any) -> float:
    return float(value) + 0.0  # adding 0.0 turns −0.0 into 0.0, its equal


def _plain(value: Any, path: str, whole: bool = False) -> Any:
    """A value as JSON has it. With `whole`, 1.0 is written as 1: an option may be given as either."""
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if whole and value.is_integer() and abs(value) < 1e15 else _float(value)
    if isinstance(value, list | tuple):
        return [_plain(entry, f"{path}.{i}", whole) for i, entry in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(entry, f"{path}.{key}", whole) for key, entry in value.items()}
    if type(value) is BlockKernel:
        return {"type": "BlockKernel", "name": value.name}  # the name stands for the function
    if "__dataclass_fields__" in vars(type(value)):  # its own: a subclass that is no dataclass may hold more
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"type": type(value).__name__} | _plain(named, path, whole)
    raise ArgumentError(f"{path} of a stored study must be finite numbers, texts or dataclasses; got {value!r}.")


def _compare(path: str, old: Any, new: Any) -> list[str]:
    if canonical(old) == canonical(new):
        return []
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        found = []
        for key in dict.fromkeys([*old, *new]):
            where = f"{path}.{key}" if path else key
            if key not in new:
                found.append(f"{where}: stored {_text(old[key])}, not given")
            elif key not in old:
                found.append(f"{where}: not stored, given {_text(new[key])}")
            else:
                found += _compare(where, old[key], new[key])
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        if len(old) == 1:
            return _compare(path, old[0], new[0])
        if max(len(canonical(old)), len(canonical(new))) > _LONG:
            i = next(i for i in range(len(old)) if canonical(old[i]) != canonical(new[i]))
            return _compare(f"{path}.{i}", old[i], new[i])
    return [f"{path}: stored {_text(old)}, given {_text(new)}"]


def _text(value: Any) -> str:
    if isinstance(value, list) and len(canonical(value)) > _LONG:
        return f"{len(value)} entries"
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
