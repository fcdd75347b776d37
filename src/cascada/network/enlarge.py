"""Assumptions that data refute, raised until they no longer do."""

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Evidence
from cascada.network.beliefs import Beliefs, stretch
from cascada.network.enclosure import prior_beliefs
from cascada.network.network import Network
from cascada.network.stage import Stage

# The smallest consistent value leaves no room for what was not seen yet.
_MARGIN = 1.5


def enlarged(beliefs: Beliefs, told: Array, jitter: float) -> tuple[Beliefs, tuple[str, ...]]:
    """Beliefs from the same data (t, V) under larger bounds, and what was changed, in words.

    Every refuted bound becomes 1.5 times the smallest value that is consistent with the data.
    """
    changes: list[str] = []
    network = beliefs.network
    while beliefs.evidence:  # raising B leaves L as it is, and the other way round: at most a few rounds
        network, round_ = _raise(network, beliefs)
        changes += round_
        beliefs = prior_beliefs(network, jitter).append(told)
    return beliefs, tuple(changes)


def _raise(network: Network, beliefs: Beliefs) -> tuple[Network, list[str]]:
    stages: dict[str, Stage] = {}
    changes: list[str] = []
    for name, evidence in beliefs.evidence.items():
        stage = network.node(name).stage
        bounds = {"norm_bound": _copied(stage.norm_bound), "lipschitz": _copied(stage.lipschitz)}
        per_unit = {"norm_bound": 1.0, "lipschitz": stretch(network.node(name))}
        changes += [_apply(name, found, bounds, per_unit[found.assumption]) for found in evidence]
        stages[name] = stage.assuming(bounds["norm_bound"], bounds["lipschitz"])
    return network.assuming(stages), changes


def _apply(name: str, found: Evidence, bounds: dict[str, Array | None], per_unit: float) -> str:
    values = bounds[found.assumption]
    assert values is not None, "evidence is against a given bound"
    raised = _MARGIN * found.smallest / per_unit
    if found.output is None:
        bounds[found.assumption] = np.array(raised)
    else:
        values[found.output] = raised
    where = "" if found.output is None else f" of output {found.output}"
    return f"{found.assumption} of stage {name!r}{where} raised from {found.given / per_unit:.4g} to {raised:.4g}"


def _copied(values: Array | None) -> Array | None:
    return None if values is None else values.copy()
