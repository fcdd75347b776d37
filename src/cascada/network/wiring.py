"""Wires between stages: the outputs that enter each stage, and an order in which parents come first."""

from collections.abc import Mapping, Sequence

from cascada.errors import ArgumentError
from cascada.near_names import did_you_mean
from cascada.network.stage import Stage


def wires_of(stage: Stage, parents: Sequence[str], stages: Mapping[str, Stage]) -> list[tuple[str, str]]:
    """The (stage, output) pairs that enter a stage."""
    wires: list[tuple[str, str]] = []
    for parent in parents:
        owner, _, output = parent.partition(".")
        if owner not in stages:
            known = ", ".join(map(repr, stages))
            hint = did_you_mean(owner, stages)
            raise ArgumentError(f"stage {stage.name!r} has the unknown parent {owner!r}{hint}; the stages are {known}.")
        outputs = stages[owner].outputs
        if output and output not in outputs:
            raise ArgumentError(
                f"stage {stage.name!r} has the parent {parent!r}, but {owner!r} has the outputs {', '.join(outputs)}"
                f"{did_you_mean(output, outputs)}."
            )
        wires += [(owner, o) for o in ([output] if output else outputs)]
    names = [output for _, output in wires]
    shared = sorted({name for name in names if names.count(name) > 1})
    if shared:
        raise ArgumentError(
            f"stage {stage.name!r} gets {', '.join(map(repr, shared))} from two parents; rename one of the outputs."
        )
    return wires


def parents_first(stages: Sequence[Stage], wires: Mapping[str, list[tuple[str, str]]]) -> list[Stage]:
    """The stages in an order in which parents come first; raises `ArgumentError` that names a cycle."""
    ordered: list[Stage] = []
    placed: set[str] = set()
    rest = list(stages)
    while rest:
        ready = [stage for stage in rest if all(owner in placed for owner, _ in wires[stage.name])]
        if not ready:
            trail = [rest[0].name]
            while trail.count(trail[-1]) < 2:
                trail.append(next(owner for owner, _ in wires[trail[-1]] if owner not in placed))
            cycle = trail[trail.index(trail[-1]) :]
            raise ArgumentError(f"the stages form a cycle: {' ← '.join(cycle)}. A network must not feed back.")
        ordered += ready
        placed |= {stage.name for stage in ready}
        rest = [stage for stage in rest if stage.name not in placed]
    return ordered
