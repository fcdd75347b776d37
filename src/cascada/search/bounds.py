"""What branch and bound maximises: bounds of a number over whole cells of controls.

A search refines cells by whatever bounds it is given. Here are the bounds of a network's objective.
"""

from typing import Protocol

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.errors import RefutedError
from cascada.network import Beliefs, enclose_network, objective_above
from cascada.network.slack import around_setting, objective_slack
from cascada.outwards import apart
from cascada.space import Domain


class CellBounds(Protocol):
    """Upper bounds over cells of one domain.

    Calling it with cells (n, d) returns upper bounds (n,) of what is maximised, and by how much that can move along
    every side (n, d): to first order, only to choose the side to cut.
    """

    @property
    def domain(self) -> Domain:
        """The box of controls, whose integer sides are cut between whole numbers."""

    @property
    def lengthscales(self) -> Array:
        """The length over which what is maximised bends, for every control, (d,): only to choose the side to cut."""

    def __call__(self, cells: Boxes) -> tuple[Array, Array]: ...


class NetworkBounds:
    """What all bounds of a network over cells share: its controls, and the lengths over which it bends."""

    def __init__(self, beliefs: Beliefs) -> None:
        self._beliefs = beliefs
        self._lengthscales = control_lengthscales(beliefs)

    @property
    def domain(self) -> Domain:
        return self._beliefs.network.domain

    @property
    def lengthscales(self) -> Array:
        return self._lengthscales


class ObjectiveBounds(NetworkBounds):
    """Bounds of a network's objective, in the sign in which it is maximised.

    `best_run` (V,) is a run with an observed objective. A call raises `RefutedError` if the bound over a cell that
    contains this run is lower than its value. A run outside of the domain is ignored.
    """

    def __init__(self, beliefs: Beliefs, best_run: Array | None = None) -> None:
        super().__init__(beliefs)
        self._column = beliefs.network.objective_column
        self._setting: Boxes | None = None
        if best_run is not None and _inside(self.domain, best_run):
            self._setting = around_setting(beliefs, best_run[None, : self.domain.dimension])
            self._best = beliefs.network.sign * float(best_run[self._column])
            self._slack = objective_slack(beliefs, best_run)

    def __call__(self, cells: Boxes) -> tuple[Array, Array]:
        enclosure = enclose_network(self._beliefs, cells)
        assert enclosure.affine is not None, "the union form has slopes"
        upper = objective_above(self._beliefs.network, enclosure)
        self._check(cells, upper)
        return upper, np.abs(enclosure.affine.slope[:, self._column])

    def _check(self, cells: Boxes, upper: Array) -> None:
        if self._setting is None:
            return
        around = np.all((cells.lower <= self._setting.lower) & (self._setting.upper <= cells.upper), axis=1)
        if np.any(upper[around] < self._best - self._slack):
            sign = self._beliefs.network.sign
            value, limit = apart(sign * self._best, sign * float(upper[around].min()))
            raise RefutedError(
                f"A run gave {value}, but by the assumptions nothing there {'exceeds' if sign > 0 else 'is below'} "
                f"{limit}: a norm_bound, a lipschitz or a known stage's interval is wrong."
            )


def _inside(domain: Domain, run: Array) -> bool:
    """Whether a run (V,) is one of the box: bounds over a slice say nothing about the others."""
    point = run[: domain.dimension]
    return bool(np.all((domain.lower <= point) & (point <= domain.upper)))


def control_lengthscales(beliefs: Beliefs) -> Array:
    """The smallest lengthscale with which a control enters a stage, (d,); the control's range if none is known."""
    domain = beliefs.network.domain
    scales = domain.sides.copy()
    for stage in [part for whole in beliefs.stages for part in whole.categories or (whole,)]:
        belief = stage.per_output
        if belief is None:
            continue
        ell = belief.kernel.lengthscales(len(stage.node.inputs))
        for position, column in enumerate(stage.node.inputs):
            if column < domain.dimension:
                scales[column] = min(scales[column], ell[position])
    return scales
