"""The stages of a network that have to be run directly after one another, as one step."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cascada.network.node import Node

Positions = tuple[int, ...]


def feeders(nodes: Sequence["Node"]) -> tuple[Positions, ...]:
    """For every node, the positions of the stages that it is run on: its parents, and those behind formulas."""
    place = {node.stage.name: i for i, node in enumerate(nodes)}
    found: list[set[int]] = []
    for node in nodes:  # parents first
        own: set[int] = set()
        for parent in node.parents:
            own |= found[place[parent]] if nodes[place[parent]].stage.known else {place[parent]}
        found.append(own)
    return tuple(tuple(sorted(own)) for own in found)


def step_groups(nodes: Sequence["Node"]) -> tuple[Positions, ...]:
    """Positions of the stages in groups that are run as one step, in the order of their first stages.

    A stage with `reachable="run"` is in the group of those that it is run on. Formulas are in none.
    """
    fed = feeders(nodes)
    run = [i for i, node in enumerate(nodes) if not node.stage.known]
    group = {i: i for i in run}  # by the first member

    def merge(one: int, other: int) -> None:
        low, high = sorted((group[one], group[other]))
        group.update({i: low for i, first in group.items() if first == high})

    for i in run:
        if nodes[i].stage.reachable == "run":
            for parent in fed[i]:
                merge(parent, i)
    while (circle := _circle(group, fed)) is not None:
        merge(*circle)
    return tuple(tuple(i for i in run if group[i] == first) for first in sorted(set(group.values())))


def _circle(group: dict[int, int], fed: Sequence[Positions]) -> tuple[int, int] | None:
    """Members of two groups each of which is run on the other, directly or through further groups; else None."""
    before: dict[int, set[int]] = {first: set() for first in group.values()}
    for i, first in group.items():
        before[first] |= {group[p] for p in fed[i]} - {first}
    for _ in before:  # until it is transitive
        for above in before.values():
            above |= {far for first in above for far in before[first]}
    pairs = ((one, other) for one in before for other in before[one] - {one})
    return next(((one, other) for one, other in pairs if one in before[other]), None)
