"""How the stages of a network are run one at a time: which are run together, on whose outputs, and what they cost."""

from dataclasses import dataclass
from functools import cached_property

from cascada.network import Network


@dataclass(frozen=True, eq=False)
class StepWiring:
    """Groups of stages that are run in one go; stages are given by their position in `Network.nodes`.

    Formulas are evaluated, never run: they are in no group.
    """

    network: Network
    groups: tuple[tuple[int, ...], ...]  #: parents first
    needed: tuple[int, ...]  #: the groups, by index, without which the objective or a limited output is not known

    @classmethod
    def of(cls, network: Network) -> "StepWiring":
        """The wiring of a network."""
        position = {node.stage.name: i for i, node in enumerate(network.nodes)}
        ends = [position[stage] for stage in (network.objective[0], *(limit.stage for limit in network.limits))]
        wanted = {i for end in ends for i in (network.feeders[end] if network.nodes[end].stage.known else (end,))}
        for i in reversed(range(len(network.nodes))):
            if i in wanted:
                wanted |= set(network.feeders[i])
        groups = _parents_first(network)
        return cls(network, groups, tuple(g for g, nodes in enumerate(groups) if wanted & set(nodes)))

    @cached_property
    def ends(self) -> frozenset[int]:
        """The needed groups on which no other needed group is run; several if branches meet in a formula or a limit."""
        fed = {i for g in self.needed for i in self.feeders(g)}
        return frozenset(g for g in self.needed if not fed & set(self.groups[g]))

    def cost(self, nodes: tuple[int, ...]) -> float:
        """What one run of these stages costs."""
        return sum(self.network.nodes[i].stage.cost for i in nodes)

    def feeders(self, group: int) -> tuple[int, ...]:
        """The stages outside of a group whose outputs it is run on."""
        nodes = self.groups[group]
        return tuple(sorted({s for i in nodes for s in self.network.feeders[i]} - set(nodes)))

    def can_be_set(self, group: int) -> bool:
        """Whether all inputs of a group can be set freely."""
        nodes = set(self.groups[group])
        fed = [i for i in nodes if set(self.network.feeders[i]) - nodes]
        return all(self.network.nodes[i].stage.reachable == "any" for i in fed)


def _parents_first(network: Network) -> tuple[tuple[int, ...], ...]:
    """The groups of stages that are run in one go, each after those that it is run on."""
    rest, ordered, placed = list(network.step_groups), [], set[int]()
    while rest:
        ready = next(g for g in rest if all(set(network.feeders[i]) <= placed | set(g) for i in g))
        rest.remove(ready)
        ordered.append(ready)
        placed |= set(ready)
    return tuple(ordered)
