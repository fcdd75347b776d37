"""Descriptions of studies as plain JSON: written, read back as a network, and compared when a study is reopened.

Functions are never part of it, so a study may be reopened with a corrected function; everything else that its points
and bounds rest on is. A field at its default is not written, and an absent field means its default: so descriptions of
older versions stay valid when fields are added.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from cascada.algorithms import NAMES, Algorithm
from cascada.arrays import Array
from cascada.calibration import Calibration, Fit
from cascada.errors import ArgumentError, StoreError
from cascada.kernels import (
    Additive,
    BlockKernel,
    Matern,
    OperatorKernel,
    Radial,
    Separable,
    SquaredExponential,
    Stationary,
)
from cascada.network import Network, Stage
from cascada.network.error import ESTIMATE, error_of_parts
from cascada.store.control_description import completed_control, control_from, describe_control

#: Fields of a stage that may change in a stored study.
AMENDABLE = ("kernel", "norm_bound", "lipschitz", "offset", "limits", "ranges", "error", "cost", "portions")
#: Defaults of a study's settings.
SETTINGS: Mapping[str, Any] = {
    "algorithm": "auto",
    "seed": 0,
    "candidates": None,
    "on_violation": "stop",
    "calibration": None,
    "horizon": None,
    "safe": False,
    "confidence": None,
}
_STAGE: Mapping[str, Any] = {
    "controls": {},
    "control_order": [],
    "parents": [],
    "passes": [],
    "known": False,
    "kernel": None,
    "norm_bound": None,
    "lipschitz": None,
    "offset": [0.0],
    "limits": {},
    "ranges": {},
    "failure": "fail",
    "error": None,
    "forwards": "value",
    "cost": 1.0,
    "reachable": "run",
    "portions": 1,
}
_OBJECTIVE: Mapping[str, Any] = {"sense": "maximise"}

#: Classes whose fields at their defaults are not written.
_CLASSES: Mapping[str, type[Any]] = {
    kind.__name__: kind for kind in (Additive, Matern, Separable, SquaredExponential, Calibration, *NAMES.values())
}

_LONG = 100  # characters; of a longer list only the first entry that differs is shown


def describe(network: Network, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A network and the settings of its study (algorithm, seed, …), without the fields that are at their defaults."""
    columns = {c: f"{n.stage.name}.{o}" for n in network.nodes for c, o in zip(n.columns, n.stage.outputs, strict=True)}
    parents = {n.stage.name: [columns[c] for c in n.inputs if c in columns] for n in network.nodes}
    stage, output = network.objective
    objective = {"stage": stage, "output": output, "sense": "maximise" if network.sign > 0 else "minimise"}
    return {
        "objective": _without_defaults(objective, _OBJECTIVE),
        "stages": [_without_defaults(_stage(stage, parents[stage.name]), _STAGE) for stage in network.stages],
        "settings": _without_class_defaults(
            _without_defaults(_plain(settings, "settings", whole=True), SETTINGS), whole=True
        ),
    }


def checked(data: Any) -> dict[str, Any]:
    """A description from a log with its defaults filled in; `StoreError` if it lacks a part or has an unknown one."""
    whole = isinstance(data, Mapping) and set(data) == {"objective", "stages", "settings"}
    if not whole or not isinstance(data["stages"], list) or not all(isinstance(s, Mapping) for s in data["stages"]):
        raise StoreError("a study is described by its objective, stages and settings; the log has something else.")
    if not isinstance(data["settings"], Mapping) or not set(data["settings"]) <= set(SETTINGS):
        raise StoreError(f"the settings of a study are {', '.join(SETTINGS)}; the log has something else.")
    algorithm = data["settings"].get("algorithm", SETTINGS["algorithm"])
    if not (isinstance(algorithm, str) or (isinstance(algorithm, Mapping) and isinstance(algorithm.get("type"), str))):
        raise StoreError(f"the algorithm of a study is a name, or a class with its fields; got {algorithm!r:.100}.")
    if not isinstance(data["objective"], Mapping):
        raise StoreError("the objective of a study names a stage and an output; the log has something else.")
    for stage in data["stages"]:
        if "name" not in stage:
            raise StoreError("every stage of a study has a name; one in the log has none.")
        unknown = [key for key in stage if key not in (*_STAGE, "name", "outputs")]
        if unknown:
            raise StoreError(f"stage {stage['name']!r:.100} in the log has an unknown field {unknown[0]!r:.100}.")
    return completed(data)


def completed(description: Mapping[str, Any]) -> dict[str, Any]:
    """A description with its defaults filled in."""
    return {
        "objective": {**_OBJECTIVE, **description["objective"]},
        "stages": [_completed_stage(stage) for stage in description["stages"]],
        "settings": _with_class_defaults({**SETTINGS, **description["settings"]}, whole=True),
    }


def _completed_stage(stage: Mapping[str, Any]) -> dict[str, Any]:
    whole = {**_STAGE, "outputs": [stage["name"]], **stage}
    whole["kernel"] = _with_class_defaults(whole["kernel"])
    if isinstance(whole["controls"], Mapping):
        whole["controls"] = {
            name: completed_control(control) if isinstance(control, Mapping) else control
            for name, control in whole["controls"].items()
        }
    if isinstance(whole["offset"], list) and not any(whole["offset"]):
        whole["offset"] = _STAGE["offset"]  # one zero stands for all outputs
    return whole


def _ordered(values: Mapping[str, Any], *first: str) -> dict[str, Any]:
    """Fields in the order in which they are shown."""
    return {key: values[key] for key in (*first, *(k for k in values if k not in first)) if key in values}


def _class_defaults(value: Mapping[str, Any], whole: bool) -> dict[str, Any]:
    """The plain defaults of the fields of a described object, if its class is known."""
    kind = _CLASSES.get(value["type"]) if isinstance(value.get("type"), str) else None
    return {
        field.name: _plain(field.default, field.name, whole)
        for field in (() if kind is None else fields(kind))
        if field.default is not MISSING
    }


def _with_class_defaults(value: Any, whole: bool = False) -> Any:
    """A plain value in which described objects have all their fields."""
    if not isinstance(value, Mapping):
        return value
    filled = _class_defaults(value, whole) | {k: _with_class_defaults(v, whole) for k, v in value.items()}
    kind = _CLASSES.get(value["type"]) if isinstance(value.get("type"), str) else None
    return filled if kind is None else _ordered(filled, "type", *(field.name for field in fields(kind)))


def _without_class_defaults(value: Any, whole: bool = False) -> Any:
    """A plain value in which described objects have only the fields that are not at their defaults."""
    if not isinstance(value, Mapping):
        return value
    bare = {key: _without_class_defaults(entry, whole) for key, entry in value.items()}
    return _without_defaults(bare, _class_defaults(value, whole))


def _without_defaults(fields: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in fields.items() if k not in defaults or canonical(v) != canonical(defaults[k])}


def with_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The algorithm by its name, if its fields are at their defaults, and no calibration if that is the default."""
    algorithm, calibration = (_without_class_defaults(settings[k], whole=True) for k in ("algorithm", "calibration"))
    names = {kind.__name__: name for name, kind in NAMES.items() if name != "auto"}
    if isinstance(algorithm, Mapping) and set(algorithm) == {"type"}:
        algorithm = names.get(algorithm["type"], algorithm)
    return {
        "algorithm": algorithm if isinstance(algorithm, str) else settings["algorithm"],
        "calibration": None if calibration == {"type": "Calibration"} else settings["calibration"],
    }


def describe_algorithm(algorithm: str | Algorithm) -> Any:
    """The name of an algorithm, or its class and fields; `ArgumentError` if it is not an algorithm."""
    if not isinstance(algorithm, str | Algorithm):
        raise ArgumentError(f"algorithm must be a name or have the methods suggest and recommend; got {algorithm!r}.")
    return _plain(algorithm, "algorithm", whole=True)


def _error(stage: Stage) -> dict[str, Any] | None:
    parts = ("bounded", stage.error_bound), ("sub_gaussian", stage.error_scale)
    return {name: _constants(sizes) for name, sizes in parts if sizes.any()} or None


def described_fits(fits: Mapping[tuple[str, str], Fit]) -> dict[str, Any]:
    """The kernel and mean fitted to each output: those by which points are chosen, and those of the gap.

    With the sd of the noise, if it was fitted as well.
    """
    return {
        f"{stage}.{output}": {
            part: {"kernel": _plain(model.kernel, "kernel"), "offset": model.offset, "observations": fit.count}
            | ({"noise": model.noise} if model.noise else {})
            for part, model in (("acting", fit.likely), ("judging", fit.cautious))
        }
        for (stage, output), fit in fits.items()
        if fit.count
    }


def canonical(description: Any) -> str:
    """The text of a description, which does not depend on the order of its keys."""
    return json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Where two descriptions differ, a sentence each; empty for the same study."""
    old, new = completed(old), completed(new)
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
    """Whether two descriptions differ in nothing but fields that may change."""
    bare = [completed({**d, "stages": [{**s, **dict.fromkeys(AMENDABLE)} for s in d["stages"]]}) for d in (old, new)]
    return not differences(*bare)


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
        "controls": {name: describe_control(control) for name, control in stage.controls.items()},
        "control_order": list(stage.controls),  # the order of lengthscales and of the columns of candidates
        "outputs": list(stage.outputs),
        "parents": parents,
        "passes": list(stage.passes),
        "known": stage.known,
        "kernel": _without_class_defaults(kernel),
        "norm_bound": _constants(stage.norm_bound)
        if stage.norm_bounds is None
        else {value: _constants(bound) for value, bound in stage.norm_bounds.items()},
        "lipschitz": _constants(stage.lipschitz),
        "offset": _constants(stage.offset) if stage.offset.any() else _STAGE["offset"],
        "limits": _intervals(stage.limits),
        "ranges": _intervals(stage.ranges),
        "failure": stage.failure,
        "error": ESTIMATE if stage.noisy else _error(stage),
        "forwards": stage.forwards,
        "cost": _STAGE["cost"] if stage.known else stage.cost,
        "reachable": stage.reachable,
        "portions": int(stage.portions) if math.isfinite(stage.portions) else None,
    }


def _intervals(intervals: Mapping[str, tuple[float, float]]) -> dict[str, list[float | None]]:
    """Intervals by output; no limit is null."""
    return {name: [end if math.isfinite(end) else None for end in ends] for name, ends in intervals.items()}


def _constants(values: Array | None) -> list[float] | None:
    return None if values is None else [_float(value) for value in np.atleast_1d(values)]


def _float(value: Any) -> float:
    return float(value) + 0.0  # adding 0.0 turns −0.0 into 0.0


def _plain(value: Any, path: str, whole: bool = False) -> Any:
    """A value as plain JSON. With `whole`, 1.0 is written as 1, because an option may be given as either."""
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
    if "__dataclass_fields__" in vars(type(value)):  # a subclass may have more fields
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
    if isinstance(value, dict):
        value = {key: part for key, part in value.items() if part is not None}  # what is absent is not worth a word
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def network_from(description: Mapping[str, Any]) -> Network:
    """The network of a description, without functions; `ArgumentError` if it has formulas, which need them."""
    description = completed(description)
    objective = description["objective"]
    stages = [_stage_from(stage) for stage in description["stages"]]
    network = Network(stages, f"{objective['stage']}.{objective['output']}")
    return network if objective["sense"] == "maximise" else network.mirrored()


def _stage_from(stage: Mapping[str, Any]) -> Stage:
    if stage["known"]:
        raise ArgumentError(
            f"stage {stage['name']!r} is a formula, and stores hold no functions: give the study its network (in "
            f"Python `network=`, on the command line --spec SPEC: the file or the problem that it was run from)."
        )
    return Stage(
        stage["name"],
        {name: control_from(stage["controls"][name]) for name in stage["control_order"]},
        outputs=stage["outputs"],
        parents=stage["parents"],
        kernel=kernel_from(stage["kernel"], stage["name"]),
        norm_bound=_constants_from(stage["norm_bound"]),
        lipschitz=_constants_from(stage["lipschitz"]),
        offset=_constants_from(stage["offset"]),
        passes=stage["passes"],
        limits=stage["limits"],
        ranges=stage["ranges"],
        failure=stage["failure"],
        error=ESTIMATE if stage["error"] == ESTIMATE else error_of_parts(**(stage["error"] or {})),
        forwards=stage["forwards"],
        cost=stage["cost"],
        reachable=stage["reachable"],
        portions=math.inf if stage["portions"] is None else stage["portions"],
    )


def _constants_from(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {value: _constants_from(bounds) for value, bounds in values.items()}
    return None if values is None else values[0] if len(values) == 1 else values


def kernel_from(kernel: Mapping[str, Any] | None, stage: str) -> Stationary | OperatorKernel | None:
    """The kernel of a stage from its description; `ArgumentError` if it is invalid or a function."""
    if kernel is None:
        return None
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in kernel.items() if k != "type"}
    if kernel["type"] == "Matern":
        return Matern(**fields)
    if kernel["type"] == "SquaredExponential":
        return SquaredExponential(**fields)
    if kernel["type"] in ("Additive", "Separable"):
        inner = kernel_from(kernel["kernel"], stage)
        if kernel["type"] == "Additive" and isinstance(inner, Radial):
            return Additive(inner)
        if kernel["type"] == "Separable" and isinstance(inner, Stationary):
            return Separable(inner, kernel["matrix"])
        raise ArgumentError(f"stage {stage!r} has a kernel that cannot be: {kernel!r:.200}.")
    raise ArgumentError(f"stage {stage!r} has the kernel {kernel['type']}, a function: give the study its network.")
