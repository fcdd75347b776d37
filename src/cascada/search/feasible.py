"""Bounds over the feasible settings of cells: of the objective, and of the margin by which limits hold."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.confidence import Boxes
from cascada.network import Beliefs, enclose_network, enclose_stage
from cascada.network.feasibility import enclose_feasible
from cascada.network.limits import Limit
from cascada.search.bounds import NetworkBounds, ObjectiveBounds


class FeasibleBounds(ObjectiveBounds):
    """Bounds of a network's objective over the settings of a cell that satisfy limits; −∞ where none does.

    `limits` are the network's own unless given. `best_run` (V,) must satisfy them: see `ObjectiveBounds`.
    """

    def __init__(self, beliefs: Beliefs, best_run: Array | None = None, limits: Sequence[Limit] | None = None) -> None:
        super().__init__(beliefs, best_run)
        self._limits = beliefs.network.limits if limits is None else tuple(limits)
        # What a step of a limited output counts for in units of the objective: they may have different units.
        whole = prior_range(beliefs, self._column)
        self._rates = [whole / prior_range(beliefs, limit.column) for limit in self._limits]

    def __call__(self, cells: Boxes) -> tuple[Array, Array]:
        network = self._beliefs.network
        column, found = network.objective_column, enclose_feasible(self._beliefs, cells, self._limits)
        upper = found.above(column, network.sign)
        self._check(cells, upper)
        # Where a cell is undecided, a side also matters by what it does to the limited outputs.
        slope, undecided = found.slope[:, column].copy(), found.possible & ~found.certain
        for limit, rate in zip(self._limits, self._rates, strict=True):
            if limit.column != column:
                slope[undecided] += rate * found.slope[undecided, limit.column]
        return upper, slope


class MarginBounds(NetworkBounds):
    """Bounds of the margin: by how much a setting satisfies the limit that it satisfies least; negative if it does not.

    Nothing is cut here, because the margin of infeasible settings counts. With several limits, whose units differ, the
    margin of each is divided by its entry of `scales`.
    """

    def __init__(self, beliefs: Beliefs, scales: Array) -> None:
        super().__init__(beliefs)
        self._scales = scales

    def __call__(self, cells: Boxes) -> tuple[Array, Array]:
        enclosure = enclose_network(self._beliefs, cells)
        assert enclosure.affine is not None, "the union form has slopes"
        most, slope = np.full(len(cells.lower), np.inf), np.zeros_like(cells.lower)
        for limit, scale in zip(self._beliefs.network.limits, self._scales, strict=True):
            lower, upper = enclosure.boxes.lower[:, limit.column], enclosure.boxes.upper[:, limit.column]
            margin = np.minimum(upper - limit.low, limit.high - lower) / scale
            most = np.minimum(most, margin + 4 * UNIT_ROUNDOFF * np.abs(margin))  # one subtraction, one division
            slope += np.abs(enclosure.affine.slope[:, limit.column]) / scale
        return most, slope


def margin_scales(beliefs: Beliefs) -> Array:
    """The unit of the margin of every limit, (number of limits,): 1 for a single limit.

    With several limits it is the width of a band, or else the range that the assumptions leave to the output without
    data. It does not depend on data, so that the bounds of a margin stay valid when data are added.
    """
    limits = beliefs.network.limits
    if len(limits) == 1:
        return np.ones(1)
    return np.array([_unit(beliefs, limit) for limit in limits])


def _unit(beliefs: Beliefs, limit: Limit) -> float:
    width = limit.high - limit.low
    return width if np.isfinite(width) else prior_range(beliefs, limit.column)


def prior_range(beliefs: Beliefs, column: int) -> float:
    """How far the output in a column can lie from its offset by the assumptions alone; 1 if they do not say."""
    stage = next(stage for stage in beliefs.stages if column in stage.node.columns)
    if column in stage.node.modelled_columns:
        assert stage.belief is not None, "a modelled output has a belief"
        return float(stage.belief.largest_values[stage.node.modelled_columns.index(column)])
    if stage.span is None:
        return 1.0
    boxes, position = enclose_stage(stage, stage.span, None)[0], stage.node.columns.index(column)
    width = float(boxes.upper[0, position] - boxes.lower[0, position])
    return width if width > 0 else 1.0


def tightened(limits: Sequence[Limit], amounts: Array) -> tuple[Limit, ...]:
    """The limits, each moved inwards by its amount; a band keeps at least its middle half."""
    found = []
    for limit, amount in zip(limits, amounts, strict=True):
        most = min(float(amount), (limit.high - limit.low) / 4)
        found.append(replace(limit, low=limit.low + most, high=limit.high - most))
    return tuple(found)
