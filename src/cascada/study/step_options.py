"""Options of a study that do not work with stages that can be run by themselves."""

from cascada.errors import ArgumentError
from cascada.network import Network
from cascada.network.latent import forwards_error


def check_step_options(network: Network, *, candidates: bool, safe: bool) -> None:
    """Raise `ArgumentError` if single stages can be run, and something is given for which steps are not defined."""
    stage = next((stage for stage in network.stages if stage.reachable != "run"), None)
    if stage is None:
        return
    forwarding = [s.name for s in network.stages if forwards_error(s)]
    refused = {
        "candidates=": candidates,
        f"deviation=, which {', '.join(network.uncertain)} has": bool(network.uncertain),
        f"context=True, which {', '.join(network.context)} has": bool(network.context),
        "error=SubGaussian(...)": network.scattered,
        "error='estimate'": network.noisy,
        f"forwards='reading' at stage {', '.join(map(repr, forwarding))}": bool(forwarding),
        "safe=True": safe,
    }
    for word, given in refused.items():
        if given:
            raise ArgumentError(
                f"reachable={stage.reachable!r}, which stage {stage.name!r} has, does not work with {word}; leave one "
                f"of them out."
            )
