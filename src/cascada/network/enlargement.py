"""Enlarged assumptions: refuted bounds, raised until the data no longer refute them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Evidence
from cascada.network.beliefs import Beliefs, stretch
from cascada.network.network import Network
from cascada.network.prior import prior_beliefs
from cascada.network.stage import Stage
from cascada.outwards import rounded_down

# The smallest consistent value would leave no room for values that were not observed yet.
_MARGIN = 1.5


def enlarged(
    beliefs: Beliefs, data: Array, jitter: float, alone: Sequence[tuple[int, Array]] = ()
) -> tuple[Beliefs, tuple[str, ...]]:
    """Beliefs from the same data (t, V) under larger bounds, and the changes in words.

    `alone` are observations of single stages: see `Beliefs.append_to`. Every refuted bound becomes 1.5 times the
    smallest value that is consistent with the data.
    """
    changes: list[str] = []
    network = beliefs.network
    while beliefs.evidence:  # raising B does not change L, nor the reverse: a few rounds at most
        network, round_ = raised(network, beliefs)
        changes += round_
        beliefs = prior_beliefs(network, jitter).append(data)
        for position, row in alone:
            beliefs = beliefs.append_to(position, row[None])
    return beliefs, tuple(changes)


def raised(network: Network, beliefs: Beliefs) -> tuple[Network, list[str]]:
    """The network with every refuted bound raised, and the changes in words.

    The beliefs are about the network's stages, or about one output of a stage each (see `Stage.part`).
    """
    # A joint norm has no parts: one number bounds all outputs of the stage.
    separate = [node for node in network.nodes if not node.stage.joint]
    whole = {node.stage.part(output).name: (node, output) for node in separate for output in node.stage.outputs}
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
    assert values is not None, "evidence is against a declared bound"
    raised = _MARGIN * found.smallest / per_unit
    if found.output is None:
        bounds[found.assumption] = np.array(raised)
    else:
        values[found.output] = raised
    where = found.of_output(stage.modelled)
    before, most = f"{found.given / per_unit:.4g}", rounded_down(raised, 4)  # the text must not overstate the bound
    return f"{found.assumption} of stage {stage.name!r}{where} raised from {before} to {most}"


def _copied(values: Array | None) -> Array | None:
    return None if values is None else values.copy()
