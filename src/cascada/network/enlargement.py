"""Enlarged assumptions: refuted bounds, raised until the data no longer refute them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Evidence
from cascada.network.beliefs import Beliefs, stretch
from cascada.network.network import Network
from cascada.network.node import Node
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
        by_value = _by_value(node, stage)
        per_unit = {"norm_bound": 1.0, "lipschitz": stretch(node)}
        if output is not None:
            evidence = tuple(replace(found, output=stage.modelled.index(output)) for found in evidence)
        for found in evidence:
            of_value = by_value.get(found.category) if found.assumption == "norm_bound" else None
            own: dict[str, Array | None] = bounds if of_value is None else {"norm_bound": of_value}
            changes.append(_apply(stage, found, own, per_unit[found.assumption]))
            if of_value is not None:
                by_value[found.category] = _given(own["norm_bound"])
        each = _in_order(node, by_value)
        stages[stage.name] = stage.assuming(bounds["norm_bound"], bounds["lipschitz"], each)
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


def _by_value(node: Node, stage: Stage) -> dict[str, Array]:
    """Copies of the norm bounds of the categories by their names in evidence, if one choice tells them apart."""
    categories = node.categories
    if categories is None or len(categories.columns) > 1 or stage.norm_bound is None:
        return {}  # bounds of combinations of values are raised together
    values = node.choices[categories.columns[0]].values
    bounds = stage.norm_bounds or dict.fromkeys(values, stage.norm_bound)
    return {name: bounds[value].copy() for name, value in zip(node.category_names, values, strict=True)}


def _in_order(node: Node, by_value: dict[str, Array]) -> dict[str, Array] | None:
    """Norm bounds by value from those by the names of categories; None if all are the same, or there are none."""
    bounds = list(by_value.values())
    if not bounds or all(np.array_equal(bound, bounds[0]) for bound in bounds):
        return None
    assert node.categories is not None, "only a stage with categories has bounds by value"
    values = node.choices[node.categories.columns[0]].values
    return {value: by_value[name] for name, value in zip(node.category_names, values, strict=True)}


def _given(bound: Array | None) -> Array:
    assert bound is not None, "a bound of a value was raised"
    return bound


def _copied(values: Array | None) -> Array | None:
    return None if values is None else values.copy()
