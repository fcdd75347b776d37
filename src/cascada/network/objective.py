"""The objective of a network: the output of a stage that is maximised or minimised."""

from collections.abc import Mapping, Sequence

from cascada.errors import ArgumentError
from cascada.near_names import did_you_mean
from cascada.network.stage import Stage


def objective_among(
    stages: Sequence[Stage], wires: Mapping[str, list[tuple[str, str]]], objective: str | None
) -> tuple[str, str]:
    """The stage and output of the objective: as named, else the single output of the only sink."""
    by_name = {stage.name: stage for stage in stages}
    if objective is not None and not isinstance(objective, str):
        raise ArgumentError(f"objective must be a name, 'stage' or 'stage.output'; got {objective!r}.")
    if objective is not None:
        owner, _, output = objective.partition(".")
        if owner in by_name and not output and len(by_name[owner].outputs) == 1:
            output = by_name[owner].outputs[0]
        if owner not in by_name or output not in by_name[owner].outputs:
            choices = ", ".join(f"{stage.name}.{o}" for stage in stages for o in stage.outputs)
            hint = did_you_mean(objective, choices.split(", "))
            raise ArgumentError(f"objective must name a stage's output, one of {choices}; got {objective!r}{hint}.")
        return owner, output
    used = {owner for wire in wires.values() for owner, _ in wire}
    sinks = [stage for stage in stages if stage.name not in used]
    ends = [f"{stage.name}.{output}" for stage in sinks for output in stage.outputs]
    if len(ends) != 1:
        raise ArgumentError(f"say which output to maximise: objective= one of {', '.join(ends)}.")
    return sinks[0].name, sinks[0].outputs[0]
