"""Plans of steps, the slow way: every label of every stage, and beliefs from scratch for every plan.

For networks of stages with one output each, in stock mode, without formulas.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from cascada.algorithms.stock import Item
from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.network import Beliefs, Network, composite_mean, enclose_network, objective_above, prior_beliefs

#: The stages of a plan in order, and the sources of the items that it takes.
Key = tuple[tuple[int, ...], frozenset[int]]
Observation = tuple[int, Array]  # a stage, and a row (V,) with its inputs and output

_NEAREST = 2


def learned(network: Network, observations: Sequence[Observation]) -> Beliefs:
    """Beliefs from these observations of single stages, one after the other."""
    beliefs = prior_beliefs(network)
    for node, row in observations:
        inputs, outputs = list(network.nodes[node].inputs), list(network.nodes[node].columns)
        only = np.full((1, network.width), np.nan)
        only[0, inputs + outputs] = row[inputs + outputs]
        stages = list(beliefs.stages)
        stages[node] = stages[node].append(only)
        beliefs = Beliefs(network, tuple(stages))
    return beliefs


def plans(
    network: Network, observations: Sequence[Observation], items: Sequence[Item], x: Array
) -> dict[Key, tuple[float, Beliefs]]:
    """The price of every plan at a point x (d,), and the beliefs as if it had been run."""
    beliefs, n = learned(network, observations), len(network.nodes)
    mean = composite_mean(beliefs, x[None])[0]
    found: dict[Key, tuple[float, Beliefs]] = {}
    parents = [[int(p) for p in range(n) if network.nodes[p].stage.name in node.parents] for node in network.nodes]
    for label in itertools.product("-sr", repeat=n):
        run, taken = [i for i in range(n) if label[i] == "r"], [i for i in range(n) if label[i] == "s"]
        lacking = any(label[p] == "-" for i in run for p in parents[i])
        useless = any(not any(s in parents[i] for i in run) for s in taken)
        ends = [i for i in run if not any(i in parents[j] for j in run)]
        if not run or lacking or useless or len(ends) != 1:
            continue
        options = []
        for s in taken:
            column = network.nodes[s].columns[0]
            children = [i for i in run if s in parents[i]]
            usable = [item for item in items if item.node == s and all(item.left[c] >= 1 for c in children)]
            options.append(sorted(usable, key=lambda item: abs(item.row[column] - mean[column]))[:_NEAREST])
        for picked in itertools.product(*options):
            now = np.full(network.width, np.nan)
            now[: len(x)] = x
            source, imagined, price, order = dict[int, int](), [], 0.0, []
            for s, item in zip(taken, picked, strict=True):
                now[network.nodes[s].columns[0]] = item.row[network.nodes[s].columns[0]]
                source[s] = item.source
            for i in run:
                node = network.nodes[i]
                inputs, column = now[list(node.inputs)], node.columns[0]
                children = [j for j in run if i in parents[j]]
                same = [
                    item for item in items if item.node == i and np.array_equal(item.row[list(node.inputs)], inputs)
                ]
                there = [item for item in same if all(item.left[c] >= 1 for c in children)]
                if same and not children:
                    break  # its last step was made before
                if there:
                    now[column] = there[0].row[column]
                    source[i] = there[0].source
                    continue
                belief = beliefs.stages[i].per_output
                assert belief is not None, "every stage is modelled"
                now[column] = same[0].row[column] if same else belief.posterior.mean(inputs[None])[0, 0]
                if not same:
                    imagined.append((i, now.copy()))
                price += node.stage.cost
                order.append(i)
            else:
                used = frozenset(source[p] for i in order for p in parents[i] if p in source)
                found[tuple(order), used] = (price, learned(network, [*observations, *imagined]))
    return found


def excess(beliefs: Beliefs, points: Array, level: float) -> Array:
    """By how much the upper bounds at points (n, d) exceed a value, (n,)."""
    upper = objective_above(beliefs.network, enclose_network(beliefs, Boxes(points, points)))
    return np.maximum(upper - level, 0.0)
