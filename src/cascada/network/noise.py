"""Which stages have noise that is estimated: those that declare it, and those whose inputs are readings with noise."""

from cascada.errors import ArgumentError
from cascada.network.error import ESTIMATE
from cascada.network.network import Network
from cascada.network.stage import Stage


def scattering(network: Network) -> frozenset[str]:
    """The stages whose outputs, as they were read, are not a function of their inputs, as they were read.

    These are the stages with noise, and all stages behind one whose true value is forwarded: its reading, which is all
    that is known of it, is not what they received. Formulas are among them.
    """
    found: set[str] = set()
    for node in network.nodes:  # parents first
        parents = (network.node(name).stage for name in node.parents)
        if node.stage.noisy or any(parent.name in found and parent.forwards == "value" for parent in parents):
            found.add(node.stage.name)
    return frozenset(found)


def can_estimate_noise(network: Network) -> bool:
    """Whether the noise of every modelled stage could be estimated: no stage has bounds that noise would refute."""
    return not any(_is_bounded(stage) for stage in network.stages if stage.modelled)


def with_noise(network: Network, everywhere: bool = False) -> Network:
    """The network in which the noise of all stages that scatter is estimated, or of all modelled stages.

    Raises `ArgumentError` if one of these has a kernel or a bound.
    """
    names = {stage.name for stage in network.stages} if everywhere else scattering(network)
    stages = [stage for stage in network.stages if stage.modelled and stage.name in names]
    for stage in stages:
        if _is_bounded(stage):
            raise ArgumentError(
                f"stage {stage.name!r} has a kernel or a lipschitz, but its inputs are readings of a stage with "
                f"error={ESTIMATE!r}, whose values are not known. Leave them out, or let that stage forward its "
                f"reading: forwards='reading'."
            )
    new = {stage.name: stage.with_noise() for stage in stages if not stage.noisy}
    return network.assuming(new) if new else network


def _is_bounded(stage: Stage) -> bool:
    return stage.kernel is not None or stage.lipschitz is not None
