"""The non-adaptive method (`algo:fd`, NonAda): runs a space-filling design, then maximises the composite mean.

All points are known before the first run, so they may be run at the same time (`maximise(executor=...)`). The result is
not the best run but the point where the composite mean is largest; `Study.recommendation` bounds its distance from the
best possible value.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cascada.algorithms.algorithm import Situation, Suggestion, point_key
from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.designs import design, design_of_candidates
from cascada.errors import ArgumentError
from cascada.network import Network, composite_mean
from cascada.search.box import best_in_box
from cascada.space import Domain

# Points per block of means: enough for NumPy, and little memory.
_BLOCK = 4096
# The neighbourhoods of this many of the best runs are searched.
_NEAR = 16


@dataclass(frozen=True)
class NonAdaptive:
    """T points of fill distance O(T^{−1/d}), and the maximiser of the composite mean.

    * `runs`: T; without it, the budget of `maximise` (or the `horizon` of a `Study`).
    * `ranges`: known ranges of outputs, (low, high) by "stage.output", or by stage for all its outputs. Each mean is
      projected onto them before it enters the next stage: the paper's Case 2.
    """

    runs: int | None = None
    ranges: Mapping[str, tuple[float, float]] | None = None
    adaptive: ClassVar[bool] = False  # observed outputs do not matter, so all runs may be under way at once

    def __post_init__(self) -> None:
        whole = isinstance(self.runs, int | np.integer) and not isinstance(self.runs, bool)
        if self.runs is not None and not (whole and self.runs >= 1):
            raise ArgumentError(f"runs must be a whole number, at least 1, or None for the budget; got {self.runs!r}.")

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:  # noqa: ARG002
        """The first point of the design that is not taken; None if there is none.

        Where points may be run twice (no point is ever taken), the point with the number of the trial.
        """
        self._within(situation.beliefs.network)  # raises for wrong names before the first run
        plan = self._plan(situation)
        left = [i for i, key in enumerate(plan.keys) if key not in situation.taken]
        if not situation.taken:
            left = left[situation.trial :]
        return Suggestion(plan.points[left[0]] if left else None, cache=plan)

    def recommend(self, situation: Situation) -> Array | None:
        """argmax of the composite mean, the first of equals; None before the first complete run.

        Over a box the search starts from many points, including the best runs, with a fixed generator: the same
        situation gives the same point.
        """
        network, within = situation.beliefs.network, self._within(situation.beliefs.network)
        if not np.isfinite(situation.best):
            return None

        def mean(points: Array) -> Array:
            parts = [points[i : i + _BLOCK] for i in range(0, len(points), _BLOCK)]
            values = np.concatenate([composite_mean(situation.beliefs, part, within) for part in parts])
            mean = network.sign * values[:, network.objective_column]  # eq:mean_chain, eq:mean_mul, eq:mean_net
            return np.where(np.isnan(mean), -np.inf, mean)  # some formula may not be defined at the means

        if situation.candidates is not None:
            return situation.candidates[int(mean(situation.candidates).argmax())]  # algo:fd
        run = situation.data[:, : situation.domain.dimension]
        near = run[np.argsort(-mean(run), kind="stable")[:_NEAR]]
        return best_in_box(mean, situation.domain, np.random.default_rng(0), near)[0]

    def _plan(self, situation: Situation) -> "_Plan":
        runs = situation.horizon if self.runs is None else self.runs
        if runs is None:
            raise ArgumentError(
                "NonAdaptive must know beforehand how many runs there will be: give a budget to maximise(), "
                "horizon= to the study, or NonAdaptive(runs=...)."
            )
        # The inputs of a stage with some of the controls are a projection of the design, where grid points coincide.
        d, nodes = situation.domain.dimension, situation.beliefs.network.nodes
        grid = all(sum(column < d for column in node.inputs) in (0, d) for node in nodes if node.stage.modelled)
        kept = situation.cache
        if isinstance(kept, _Plan) and kept.is_for(runs, grid, situation.domain, situation.candidates):
            return kept
        if situation.candidates is None:
            points = design(situation.domain, runs, grid=grid)
        else:
            points = design_of_candidates(situation.candidates, situation.domain, runs, grid=grid)
        keys = tuple(point_key(situation.domain, point) for point in points)
        return _Plan(runs, grid, situation.domain, situation.candidates, points, keys)

    def _within(self, network: Network) -> Boxes | None:
        """The ranges as one box (1, V), infinite where nothing is known; None if there are no ranges."""
        if self.ranges is None:
            return None
        if not isinstance(self.ranges, Mapping) or not all(isinstance(name, str) for name in self.ranges):
            raise ArgumentError(f"ranges must be a dict such as {{'stage.output': (low, high)}}; got {self.ranges!r}.")
        lower, upper = np.full((1, network.width), -np.inf), np.full((1, network.width), np.inf)
        # Ranges of single outputs come last, so that they override those of whole stages.
        for name, ends in sorted(self.ranges.items(), key=lambda item: "." in item[0]):
            low, high = _range(name, ends)
            columns = _columns(network, name)
            lower[:, columns], upper[:, columns] = low, high
        # The last projection is left out: a maximiser of the mean also maximises its projection, which has more ties.
        lower[:, network.objective_column], upper[:, network.objective_column] = -np.inf, np.inf
        return Boxes(lower, upper)


@dataclass(frozen=True, eq=False)
class _Plan:
    """A design, kept between suggestions, and the arguments it was made from."""

    runs: int
    grid: bool
    domain: Domain
    candidates: Array | None
    points: Array  # (T, d)
    keys: tuple[bytes, ...]

    def is_for(self, runs: int, grid: bool, domain: Domain, candidates: Array | None) -> bool:
        return (self.runs, self.grid) == (runs, grid) and self.candidates is candidates and self.domain == domain


def _columns(network: Network, name: str) -> list[int]:
    """The columns of "stage.output", or of all outputs of a stage."""
    owner, dot, output = name.partition(".")
    choices = {node.stage.name: node for node in network.nodes}
    if owner not in choices or (dot and output not in choices[owner].stage.outputs):
        every = ", ".join(f"{node.stage.name}.{o}" for node in network.nodes for o in node.stage.outputs)
        raise ArgumentError(f"ranges must name stages or their outputs, {every}; got {name!r}.")
    node = choices[owner]
    return [c for o, c in zip(node.stage.outputs, node.columns, strict=True) if output in ("", o)]


def _range(name: str, ends: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        raise ArgumentError(f"the range of {name!r} must be two numbers (low, high); got {ends!r}.") from None
    if not low <= high or low == math.inf or high == -math.inf:
        raise ArgumentError(f"the range of {name!r} must not be empty: low must not exceed high; got {ends!r}.")
    return low, high
