"""Limits of a network as Optuna's constraints: numbers by which limits are exceeded, feasible where they are ≤ 0.

Each finite end of a limit is one constraint, such as "moisture ≤ 3.5". Optuna 5 stores every constraint by its name
(`trial.set_constraint`), Optuna 4 stores a list in the order of the constraints (`constraints_func`). Both are read.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cascada.errors import ArgumentError, CascadaError, ContradictionError
from cascada.network import Network
from cascada.network.limits import in_words

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

#: The system attribute of Optuna 4, and the prefix of those of Optuna 5.
KEY = "constraints"

# Difference allowed between a constraint and the same output in an attribute, relative to the output and its limit.
_TOLERANCE = 1e-9

ConstraintsFunction = Callable[["FrozenTrial"], Sequence[float]]


@dataclass(frozen=True)
class Constraint:
    """One end of a limit: output ≤ `end` if `upper`, else output ≥ `end`."""

    name: str
    stage: str
    position: int  # of the output among the outputs of its stage
    end: float
    upper: bool

    def excess(self, value: float) -> float:
        """By how much an output exceeds the end; ≤ 0 where the limit holds."""
        return value - self.end if self.upper else self.end - value

    def output(self, excess: float) -> float:
        """The output that exceeds the end by so much."""
        return self.end + excess if self.upper else self.end - excess


def constraints_of(network: Network) -> tuple[Constraint, ...]:
    """The constraints of a network, parents first, the low end of a limit before its high end."""
    names = [limit.output for limit in network.limits]
    found = []
    for limit in network.limits:
        label = limit.output if names.count(limit.output) == 1 else f"{limit.stage}.{limit.output}"
        position = network.node(limit.stage).stage.outputs.index(limit.output)
        for end, upper in ((limit.low, False), (limit.high, True)):
            if math.isfinite(end):
                name = in_words(label, (-math.inf, end) if upper else (end, math.inf))
                found.append(Constraint(name, limit.stage, position, end, upper))
    return tuple(found)


def excesses(network: Network, outputs: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The constraints whose outputs were observed, by name."""
    return {
        constraint.name: constraint.excess(float(outputs[constraint.stage][constraint.position]))
        for constraint in constraints_of(network)
        if constraint.stage in outputs
    }


def stored(network: Network, trial: "FrozenTrial") -> dict[str, float]:
    """The constraints that a trial has in Optuna, by name; `ArgumentError` if one is not a limit of the network."""
    wanted = [constraint.name for constraint in constraints_of(network)]
    attributes = trial.system_attrs
    listed = attributes.get(KEY)
    found: dict[str, float] = {}
    if listed is not None:
        if len(listed) != len(wanted):
            raise ArgumentError(
                f"trial {trial.number} has {len(listed)} constraints, but the limits of the network are {len(wanted)} "
                f"({_shown(wanted)}). Give one number for each, in this order."
            )
        found = dict(zip(wanted, map(float, listed), strict=True))
    for key, value in attributes.items():
        if key.startswith(f"{KEY}:"):
            name = key.removeprefix(f"{KEY}:")
            if name not in wanted:
                raise ArgumentError(
                    f"trial {trial.number} has the constraint {name!r}, which is not a limit of the network; its "
                    f"limits are {_shown(wanted)}. Give a stage limits= for one of its outputs, and use that name."
                )
            found[name] = float(value)
    return found


def store(network: Network, study: "optuna.Study", trial: "FrozenTrial", values: Mapping[str, float]) -> None:
    """Write constraints that a trial does not have yet into it, as the installed version of Optuna reads them."""
    from optuna.trial import FrozenTrial

    if KEY in trial.system_attrs:
        return
    attributes: dict[str, Any] = {f"{KEY}:{name}": value for name, value in values.items()}
    if not hasattr(FrozenTrial, "set_constraint"):  # Optuna 4, whose list has to be complete
        attributes = {KEY: list(values.values())} if values and len(values) == len(constraints_of(network)) else {}
    for key, value in attributes.items():
        if key not in trial.system_attrs:
            study._storage.set_trial_system_attr(trial._trial_id, key, value)
            trial.system_attrs[key] = value


def called(function: ConstraintsFunction, network: Network, trial: "FrozenTrial") -> dict[str, float]:
    """What a `constraints_func` returns for a trial, by name; `ArgumentError` unless it is a number for each limit."""
    names = [constraint.name for constraint in constraints_of(network)]
    returned = function(trial)
    try:
        values = [float(value) for value in returned]
    except (TypeError, ValueError):
        values = []
    if len(values) != len(names) or any(map(math.isnan, values)):
        raise ArgumentError(
            f"constraints_func must return a number for each limit of the network ({_shown(names)}), at most 0 where "
            f"it holds; got {returned!r:.200}."
        )
    return dict(zip(names, values, strict=True))


def add_outputs(network: Network, trial: "FrozenTrial", outputs: dict[str, tuple[float, ...]]) -> list[CascadaError]:
    """Add outputs of stages with one output that follow from a trial's constraints; return errors of invalid ones.

    An output that is in `outputs` already must agree.
    """
    try:
        known = stored(network, trial)
    except ArgumentError as error:
        return [error]
    errors: list[CascadaError] = []
    for constraint in constraints_of(network):
        excess = known.get(constraint.name)
        if excess is None:
            continue
        if constraint.stage in outputs:
            value = outputs[constraint.stage][constraint.position]
            allowed = _TOLERANCE * (abs(value) + abs(constraint.end))
            if not abs(constraint.excess(value) - excess) <= allowed:
                errors.append(
                    ContradictionError(
                        f"trial {trial.number} has the constraint {constraint.name!r} with the value {excess!r}, but "
                        f"the outputs of stage {constraint.stage!r} give {constraint.excess(value)!r}. The outputs are "
                        f"used: give a constraint as the amount by which the output exceeds its limit."
                    )
                )
        elif len(network.node(constraint.stage).stage.outputs) == 1 and math.isfinite(excess):
            outputs[constraint.stage] = (constraint.output(excess),)
    return errors


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
