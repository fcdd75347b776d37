"""The list of built-in problems, without drawing the functions of the random ones."""

from collections.abc import Iterator
from dataclasses import dataclass

from cascada.problems import PROBLEMS, STRUCTURES, Optimum, by_name
from cascada.problems.recorded import recorded_optimum
from cascada.problems.sampled_chain import CHAIN_INPUTS, CHAIN_SUMMARY


@dataclass(frozen=True)
class Listed:
    """What the list says of a problem."""

    name: str
    structure: str
    dimension: int
    stages: int
    optimum: Optimum


def listed() -> Iterator[Listed]:
    """Yield the built-in problems in their order."""
    for name in PROBLEMS:
        found, wiring = recorded_optimum(name), STRUCTURES.get(name.removeprefix("certified-"))
        if found is not None and wiring is not None:
            controls = {control for plan in wiring.plans for control in plan.controls}
            yield Listed(name, wiring.summary, len(controls), len(wiring.plans), found)
        elif found is not None and name == "sampled-chain":
            yield Listed(name, CHAIN_SUMMARY, len(CHAIN_INPUTS[0]), len(CHAIN_INPUTS), found)
        else:
            problem = by_name(name)
            network = problem.network
            yield Listed(name, problem.summary, network.domain.dimension, len(network.stages), problem.best)
