"""Best-first branch and bound over the box of controls: an upper bound of the objective, and a point to run next.

Cells with the highest bounds are processed first, a batch at a time. A bound from older data is recomputed before its
cell is cut; a cell whose bound is at most the best observed value is dropped. The search ends at a point to run next if
the bound of the top cell is mostly due to uncertainty at its centre (run the process there) rather than to growth of
the bound over the cell (cut it). So a point that was (nearly) observed is never suggested again; its cell is refined.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cascada.arrays import Array, BoolArray, IntArray
from cascada.confidence import Boxes
from cascada.errors import RefutedError
from cascada.network import Beliefs, enclose_network, objective_above
from cascada.network.slack import around_setting, objective_slack
from cascada.outwards import apart
from cascada.search.leaves import Leaves, halves

# Cells per batch: enough for NumPy, few enough to stay best-first.
_BATCH = 32
# A centre is worth a run if its own bound reaches this part of the way from the best value to the cell's bound.
_WORTH_A_RUN = 0.7
# A side of r lengthscales adds this times r² to the first-order slope when the side to cut is chosen.
_SECOND_ORDER = 0.05

# With `prove`, a search stops if cutting cells could close at most this part of the gap.
_NO_USE = 1e-3

Stopped = Literal["tolerance", "point", "runs", "cells", "seconds", "exhausted"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of a search: the leaves, a bound of the objective over the whole box, and the most promising point."""

    leaves: Leaves
    bound: float
    point: Array | None  # (d,), coordinates
    cells: int
    stopped: Stopped


@dataclass(frozen=True)
class SearchBudget:
    """When a search stops: a gap that is small enough, a number of cells, or a time (which is not reproducible)."""

    tolerance: float = 0.0
    cells: int = 20_000
    seconds: float | None = None


def search(
    beliefs: Beliefs,
    leaves: Leaves,
    best: float,
    version: int,
    budget: SearchBudget,
    *,
    prove: bool = False,
    taken: Callable[[Array], bool] | None = None,
    best_run: Array | None = None,
) -> Outcome:
    """Refine the leaves until the gap is within the tolerance, a point is worth a run, or the budget is used up.

    `version` counts the data behind the beliefs. With `prove` no point ends the search: only the bound counts. `taken`
    returns whether a point was run already or is running. `best_run` (V,) is the run with the best value.

    Raises `RefutedError` if the bound over a cell that contains the best run is lower than its value.
    """
    box = _Box(beliefs, best, best_run)
    deadline = None if budget.seconds is None else time.monotonic() + budget.seconds
    fallback: tuple[float, Array | None] = (-np.inf, None)
    used = 0

    def outcome(stopped: Stopped, point: Array | None = None) -> Outcome:
        if point is None and not prove and stopped in ("cells", "seconds"):  # no centre was processed
            centres = leaves.centre[np.argsort(-leaves.bound, kind="stable")]
            point = next((centre for centre in centres if taken is None or not taken(centre)), None)
        return Outcome(leaves, max(leaves.highest, best), point, used, stopped)

    while True:
        leaves = leaves.take(~(leaves.bound <= best))  # these cannot beat the best value
        if max(leaves.highest, best) - best <= budget.tolerance:
            return outcome("tolerance", fallback[1])
        top = np.argsort(-leaves.bound, kind="stable")[:_BATCH]
        stale = top[leaves.version[top] < version]
        if len(stale):
            leaves = leaves.rebounded(stale, *box.bounds(leaves.cells(stale)), version)
            used += len(stale)
        else:
            centre = leaves.centre[top]
            at_centre, _ = box.bounds(Boxes(centre, centre))
            free = [i for i in range(len(top)) if taken is None or not taken(centre[i])]
            if not prove and free and free[0] == 0 and _worth_a_run(at_centre[0], leaves.bound[top[0]], best):
                return outcome("point", centre[0])
            if prove and leaves.highest - at_centre.max() <= _NO_USE * (leaves.highest - best):
                return outcome("runs")  # a point nearly attains the bound: only a run there lowers it
            i = max(free, key=lambda i: at_centre[i], default=None)
            if i is not None and at_centre[i] > fallback[0]:
                fallback = (float(at_centre[i]), centre[i])
            side, splittable = box.sides(leaves.take(top))
            if not splittable.any():
                return outcome("exhausted", fallback[1])
            parents = leaves.take(top[splittable])
            children = halves(parents, side[splittable], beliefs.network.domain.whole)
            leaves = leaves.take(np.setdiff1d(np.arange(len(leaves)), top[splittable]))
            bound, slope = box.bounds(Boxes(children.lower, children.upper))
            children = children.rebounded(np.arange(len(children)), bound, slope, version)
            leaves = leaves.joined(children)
            used += len(children)
        if used >= budget.cells:
            return outcome("cells", fallback[1])
        if deadline is not None and time.monotonic() > deadline:
            return outcome("seconds", fallback[1])


def _worth_a_run(at_centre: float, bound: float, best: float) -> bool:
    if not np.isfinite(best):
        return True  # before the first run every point is informative
    return at_centre - best >= _WORTH_A_RUN * (bound - best)


class _Box:
    """Bounds of the objective over cells of controls, and which side of a cell to cut."""

    def __init__(self, beliefs: Beliefs, best: float, best_run: Array | None) -> None:
        self._beliefs = beliefs
        self._best, self._setting = best, None
        if best_run is not None:
            self._setting = around_setting(beliefs, best_run[None, : beliefs.network.domain.dimension])
            self._slack = objective_slack(beliefs, best_run)
        self._column = beliefs.network.objective_column
        self._lengthscales = _lengthscales(beliefs)

    def bounds(self, cells: Boxes) -> tuple[Array, Array]:
        """Upper bounds (n,) of the objective, and by how much it can move along every side (n, d)."""
        enclosure = enclose_network(self._beliefs, cells)
        assert enclosure.affine is not None, "the union form has slopes"
        upper = objective_above(self._beliefs.network, enclosure)
        if self._setting is not None:
            around = np.all((cells.lower <= self._setting.lower) & (self._setting.upper <= cells.upper), axis=1)
            if np.any(upper[around] < self._best - self._slack):
                sign = self._beliefs.network.sign
                value, limit = apart(sign * self._best, sign * float(upper[around].min()))
                raise RefutedError(
                    f"A run gave {value}, but by the assumptions nothing there {'exceeds' if sign > 0 else 'is below'} "
                    f"{limit}: a norm_bound, a lipschitz or a known stage's interval is wrong."
                )
        return upper, np.abs(enclosure.affine.slope[:, self._column])

    def sides(self, leaves: Leaves) -> tuple[IntArray, BoolArray]:
        """The side to cut, and which leaves can be cut at all (a cell of one point cannot)."""
        width = leaves.upper - leaves.lower
        score = np.where(width > 0, leaves.slope + _SECOND_ORDER * (width / self._lengthscales) ** 2, -1.0)
        # Nor can a cell be cut that is so narrow that its midpoint rounds to an end.
        centre = leaves.centre
        whole = np.isin(np.arange(width.shape[1]), self._beliefs.network.domain.whole)
        score = np.where(((centre > leaves.lower) & (centre < leaves.upper)) | (whole & (width > 0)), score, -1.0)
        return score.argmax(axis=1), score.max(axis=1) >= 0


def _lengthscales(beliefs: Beliefs) -> Array:
    """The smallest lengthscale with which a control enters a stage, (d,); the control's range if none is known."""
    domain = beliefs.network.domain
    scales = domain.upper - domain.lower
    for stage in beliefs.stages:
        belief = stage.per_output
        if belief is None:
            continue
        ell = belief.kernel.lengthscales(len(stage.node.inputs))
        for position, column in enumerate(stage.node.inputs):
            if column < domain.dimension:
                scales[column] = min(scales[column], ell[position])
    return scales
