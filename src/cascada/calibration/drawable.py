"""Whether processes can be drawn from the runs of a network, as a probable gap needs."""

from cascada.errors import ArgumentError
from cascada.kernels import Stationary
from cascada.network import Network


def check_probable(network: Network) -> None:
    """Raise `ArgumentError` if a probable gap is not defined for a process; the error names the feature."""
    if not network.estimated:
        raise ArgumentError(
            "a probable gap is for stages without a kernel or norm_bound; got both for every stage, so that the gap of "
            "the certificate is more: it is proven. Use certificate(), or stop_on='proven'."
        )
    uncertain = {name: network.domain.controls[name].deviation for name in network.uncertain}
    alone = next((f"{stage.name!r}" for stage in network.stages if stage.reachable != "run"), "")
    choices = [repr(network.domain.names[j]) for j in network.domain.choices]
    refused = {
        f"reachable=, which stage {alone} has,": bool(alone),
        "error=": network.noisy or network.read_with_errors,
        f"context=True, which {', '.join(network.context)} has,": bool(network.context),
        f"deviation=, which {', '.join(uncertain)} has,": bool(uncertain),
        f"the choice {', '.join(choices)}": bool(choices),
    }
    for word, given in refused.items():
        if given:
            raise ArgumentError(
                f"a probable gap is not defined with {word.rstrip(',')}; use the gap of the certificate, or leave it "
                f"out."
            )
    for stage in network.stages:
        if stage.modelled and stage.kernel is not None and not isinstance(stage.kernel, Stationary):
            raise ArgumentError(
                f"a probable gap is not defined for the joint norm of {stage.kernel!r} at stage {stage.name!r}; use a "
                f"kernel with one norm per output, or leave the kernel out."
            )


def has_probable_gap(network: Network) -> bool:
    """Whether a probable gap is defined for a process."""
    try:
        check_probable(network)
    except ArgumentError:
        return False
    return True
