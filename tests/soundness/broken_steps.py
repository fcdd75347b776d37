"""Deliberately broken versions of what serves steps, for `broken`."""

from functools import partial
from typing import Any

import numpy as np

from cascada.algorithms import steps as rule
from cascada.algorithms.step_trail import Trail
from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.network import Beliefs, composite_mean, read_beliefs
from cascada.network.latent import Latent
from cascada.network.mean import imagined_at
from cascada.network.read_beliefs import ReadBeliefs
from cascada.search import incumbent
from tests.soundness import steps
from tests.soundness.broken import Broken


def _as_run(self: Beliefs, _position: int, values: Array) -> Beliefs:
    """Learn an observation of one stage as if all in its row were of one run."""
    return self.append(values)


def _of_one_run(self: Any, nodes: Any) -> Array:
    """The run up to some stages, whatever their inputs are of: the last one says what the shared controls are."""
    network, run = self._network, np.full(self._network.width, np.nan)
    run[: len(self._x)] = self._x
    for feeder in {s for i in nodes for s in network.feeders[i]}:
        part = self._runs.get(feeder)
        if part is not None:
            run = np.where(np.isfinite(part), part, run)
    columns = [c for i in nodes for c in network.nodes[i].inputs]
    run[columns] = self.now[columns]
    return run


def _with_imagined_steps(situation: Any, stock: Any) -> Beliefs:
    """Beliefs that have learned what was only imagined: the mean of every stage at some settings."""
    beliefs, domain = _imagined(situation, stock), situation.domain
    for x in np.random.default_rng(0).uniform(domain.lower, domain.upper, (60, domain.dimension)):
        row = composite_mean(beliefs, x[None])[0]
        for i, node in enumerate(beliefs.network.nodes):
            if not node.stage.known:
                beliefs = imagined_at(beliefs, i, row)
    return beliefs


def _likely_values(beliefs: Beliefs, cells: Boxes) -> tuple[Array, Array]:
    """The composite mean in the place of a proven value of a setting that was not run."""
    network = beliefs.network
    values = network.sign * composite_mean(beliefs, cells.centre)[:, network.objective_column]
    return values, np.full(len(values), np.inf)


def _one_value_for_all(self: Latent) -> Any:
    """Every run is taken to have gone on with the same output of the first stage."""
    return {name: np.zeros_like(group) for name, group in _groups(self).items()}


def _set_is_read(self: ReadBeliefs, position: int, values: Array) -> ReadBeliefs:
    """Learn a reading at inputs that were set as if the parents had given them."""
    del position
    return self.append(values)


_imagined, _groups = rule._imagined, Latent.groups

BROKEN_STEPS: tuple[Broken, ...] = (
    Broken(
        "an observation at inputs that were set is learned as a run",
        "steps",
        ((Beliefs, "append_to", _as_run),),
        partial(steps.run, 6, 1, ("shared",), ("decoupled",)),
    ),
    Broken(
        "outputs of different runs that were put together are a run",
        "steps",
        ((Trail, "run_of", _of_one_run),),
        partial(steps.run, 12, 5, ("branches",), ("reused",)),
    ),
    Broken(
        "outputs that were only imagined are learned",
        "steps",
        ((rule, "_imagined", _with_imagined_steps),),
        partial(steps.run, 3, 0, ("controls",), ("reused",)),
    ),
    Broken(
        "the value of a setting that was not run is its mean",
        "steps",
        ((incumbent, "proven_values", _likely_values),),
        partial(steps.run, 6, 1, ("controls",), ("reused",)),
    ),
    Broken(
        "outputs of different runs share one true value",
        "steps",
        ((Latent, "groups", _one_value_for_all),),
        partial(steps.run, 6, 1, ("controls",), ()),
    ),
    Broken(
        "a reading at inputs that were set is learned as a run",
        "steps",
        ((ReadBeliefs, "append_to", _set_is_read),),
        partial(steps.run, 6, 1, ("shared",), ()),
    ),
    Broken(
        "the errors of readings at inputs that were set are forgotten",
        "steps",
        ((read_beliefs, "around_readings", lambda readings, error: Boxes(readings - 0 * error, readings + 0 * error)),),
        partial(steps.run, 15, 1, ("shared",), ()),
    ),
)
