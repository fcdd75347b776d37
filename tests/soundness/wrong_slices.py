"""Wrong versions of what is computed for contexts and tables, for `broken`."""

from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.network import Beliefs
from cascada.network.slack import around_setting
from cascada.search import Leaves, ObjectiveBounds, SearchBudget, search
from cascada.search.incumbent import Incumbent, proven_values
from cascada.search.robust import Deviations
from cascada.study.model import Model
from cascada.study.settings import Settings
from cascada.study.slice import Slice


def bound_of_whole_tree(
    model: Model, _settings: Settings, part: Slice, best: float, _budget: SearchBudget | None
) -> tuple[float, str]:
    """The bound over a slice of a tree that was pruned against the best over all contexts."""
    network = model.judging.network
    most = float(np.nanmax(network.sign * model.data[:, network.objective_column]))
    root, budget = Leaves.root(network.domain), SearchBudget(cells=2_000)
    outcome = search(ObjectiveBounds(model.judging), root, most, len(model.data), budget, prove=True)
    left, domain = outcome.leaves, part.domain
    inside = ((left.lower <= domain.upper) & (domain.lower <= left.upper)).all(axis=1)
    return float(max(left.bound[inside].max(initial=-np.inf), best)), outcome.stopped


def lower_in_the_middle(self: Any, beliefs: Beliefs, point: Array) -> float:
    """What a setting gives at least at the middle of a box of contexts, instead of at all of them."""
    domain, middle = beliefs.network.domain, point.copy()
    for name in self.network.context:
        j = domain.names.index(name)
        middle[j] = 0.5 * (domain.lower[j] + domain.upper[j])
    return float(proven_values(beliefs, around_setting(self.model.judging, middle[None]))[0][0])


def at_middles(beliefs: Beliefs, deviations: Deviations, points: Array, least: Array, most: Array) -> Array:
    """Lower bounds of settings in the middle of parts of the shifts, instead of over all of a part."""
    middle = 0.5 * (least + most)
    return proven_values(beliefs, deviations.moved(around_setting(beliefs, points), middle, middle))[0]


def best_run_as_incumbent(model: Model, _settings: Settings) -> Incumbent | None:
    """The best run with its value, which is no worst case."""
    network = model.judging.network
    values = network.sign * model.data[:, network.objective_column]
    if not len(values):
        return None
    deviations, d = Deviations.of(network.domain), network.domain.dimension
    point = model.data[int(values.argmax()), :d]
    inside = np.clip(point, deviations.settings.lower, deviations.settings.upper)
    return Incumbent(inside, float(values.max()))
