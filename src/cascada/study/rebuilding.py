"""A network from what a store knows of it: enough to ask and to tell, without the functions."""

from collections.abc import Mapping
from typing import Any

from cascada.errors import ArgumentError
from cascada.kernels import Additive, Matern, OperatorKernel, Radial, Separable, SquaredExponential, Stationary
from cascada.network import Network, Stage
from cascada.space import Control, Integer, Real


def network_from(description: Mapping[str, Any]) -> Network:
    """The network of a description (see `identity.describe`); `ArgumentError` where functions would be needed."""
    objective = description["objective"]
    network = Network([_stage(stage) for stage in description["stages"]], f"{objective['stage']}.{objective['output']}")
    return network if objective["sense"] == "maximise" else network.mirrored()


def _stage(stage: Mapping[str, Any]) -> Stage:
    if stage["known"]:
        raise ArgumentError(
            f"stage {stage['name']!r} is a formula, and stores hold no functions: give the study its network (in "
            f"Python `network=`, on the command line --spec SPEC: the file or the problem that it was run from)."
        )
    return Stage(
        stage["name"],
        {name: _control(stage["controls"][name]) for name in stage["control_order"]},
        outputs=stage["outputs"],
        parents=stage["parents"],
        kernel=_kernel(stage["kernel"], stage["name"]),
        norm_bound=_constants(stage["norm_bound"]),
        lipschitz=_constants(stage["lipschitz"]),
        offset=_constants(stage["offset"]),
        passes=stage["passes"],
    )


def _control(control: Mapping[str, Any]) -> Control:
    if control["type"] == "integer":
        return Integer(control["low"], control["high"])
    return Real(control["low"], control["high"], log=control["log"])


def _constants(values: list[float] | None) -> Any:
    return None if values is None else values[0] if len(values) == 1 else values


def _kernel(kernel: Mapping[str, Any] | None, stage: str) -> Stationary | OperatorKernel | None:
    if kernel is None:
        return None
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in kernel.items() if k != "type"}
    if kernel["type"] == "Matern":
        return Matern(**fields)
    if kernel["type"] == "SquaredExponential":
        return SquaredExponential(**fields)
    if kernel["type"] in ("Additive", "Separable"):
        inner = _kernel(kernel["kernel"], stage)
        if kernel["type"] == "Additive" and isinstance(inner, Radial):
            return Additive(inner)
        if kernel["type"] == "Separable" and isinstance(inner, Stationary):
            return Separable(inner, kernel["matrix"])
        raise ArgumentError(f"stage {stage!r} has a kernel that cannot be: {kernel!r:.200}.")
    raise ArgumentError(f"stage {stage!r} has the kernel {kernel['type']}, a function: give the study its network.")
