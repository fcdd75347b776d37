"""Assumptions that data refute, raised until they no longer do."""

from dataclasses import replace

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Evidence
from cascada.network.beliefs import Beliefs, stretch
from cascada.network.network import Network
from cascada.network.prior import prior_beliefs
from cascada.network.stage import Stage
from cascada.outwards import rounded_down

# The smallest consistent value leaves no room for what was not seen yet.
_MARGIN = 1.5


def enlarged(beliefs: Beliefs, data: Array, jitter: float) -> tuple[Beliefs, tuple[str, ...]]:
    """Beliefs from the same data (t, V) under larger bounds, and what was changed, in words.

    Every refuted bound becomes 1.5 times the smallest value that is consistent with the data.
    """
    changes: list[str] = []
    network = beliefs.network
    while beliefs.evidence:  # raising B leaves L as it is, and the other way round: at most a few rounds
        network, round_ = raised(network, beliefs)
        changes += round_
        beliefs = prior_beliefs(network, jitter).append(data)
    return beliefs, tuple(changes)


def raised(network: Network, beliefs: Beliefs) -> tuple[Network, list[str]]:
    """The network with every bound raised that its beliefs have evidence against, and what was changed, in words.

    The beliefs may be of the network's stages, or of one output of a stage each (see `Stage.part`).
    """
    whole = {node.stage.part(o).name: (node, o) for node in network.nodes for o in node.stage.outputs}
    stages: dict[str, Stage] = {}
    changes: list[str] = []
    for name, evidence in beliefs.evidence.items():
        named = name in {node.stage.name for node in network.nodes}
        node, output = (network.node(name), None) if named else whole[name]
        stage = stages.get(node.stage.name, node.stage)
        bounds = {"norm_bound": _copied(stage.norm_bound), "lipschitz": _copied(stage.lipschitz)}
        per_unit = {"norm_bound": 1.0, "lipschitz": stretch(node)}
        if output is not None:
            evidence = tuple(replace(found, output=stage.modelled.index(output)) for found in evidence)
        changes += [_apply(stage, found, bounds, per_unit[found.assumption]) for found in evidence]
        stages[stage.name] = stage.assuming(bounds["norm_bound"], bounds["lipschitz"])
    return network.assuming(stages), changes


def _apply(stage: Stage, found: Evidence, bounds: dict[str, Array | None], per_unit: float) -> str:
    values = bounds[found.assumption]
    assert values is not None, "evidence is against a given bound"
    raised = _MARGIN * found.smallest / per_unit
    if found.output is None:
        bounds[found.assumption] = np.array(raised)
    else:
        values[found.output] = raised
    where = found.of_output(stage.modelled)
    given, most = f"{found.given / per_unit:.4g}", rounded_down(raised, 4)  # what is assumed is at least what is said
    return f"{found.assumption} of stage {stage.name!r}{where} raised from {given} to {most}"


def _copied(values: Array | None) -> Array | None:
    return None if values is None else values.copy()
