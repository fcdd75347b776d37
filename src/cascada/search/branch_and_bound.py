"""Best-first branch and bound over the box of controls: an upper bound of what is maximised, and a point to run next.

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
from cascada.search.bounds import CellBounds
from cascada.search.leaves import Leaves
from cascada.search.tree import Tree

# Cells per batch: few at first, to stay best-first, then this part of those that the search has processed already. So
# most of the cells of a long search are processed many at a time, which is several times faster for NumPy, and a short
# one wastes few.
_FEWEST, _MOST, _SHARE = 32, 512, 16
# The centres of this many of the highest cells are bounded, as points to run next.
_CENTRES = 32
# A centre is worth a run if its own bound reaches this part of the way from the best value to the cell's bound.
_WORTH_A_RUN = 0.7
# A side of r lengthscales adds this times r² to the first-order slope when the side to cut is chosen.
_SECOND_ORDER = 0.05

# With `prove`, a search stops if cutting cells could close at most this part of the gap.
_NO_USE = 1e-3

Stopped = Literal["tolerance", "point", "runs", "cells", "seconds", "exhausted"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of a search: the leaves, an upper bound over the whole box, and the most promising point."""

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
    bounds: CellBounds,
    leaves: Leaves,
    best: float,
    version: int,
    budget: SearchBudget,
    *,
    prove: bool = False,
    taken: Callable[[Array], bool] | None = None,
) -> Outcome:
    """Refine the leaves until the gap is within the tolerance, a point is worth a run, or the budget is used up.

    `best` is a value that is known to be reached. `version` counts the data behind the bounds. With `prove` no point
    ends the search: only the bound counts. `taken` returns whether a point was run already or is running.
    """
    deadline = None if budget.seconds is None else time.monotonic() + budget.seconds
    tree = Tree(leaves, best)
    fallback: tuple[float, Array | None] = (-np.inf, None)
    used = 0

    def outcome(stopped: Stopped, point: Array | None = None) -> Outcome:
        left = tree.leaves()
        if point is None and not prove and stopped in ("cells", "seconds"):  # no centre was processed
            centres = left.centre[np.argsort(-left.bound, kind="stable")]
            point = next((centre for centre in centres if taken is None or not taken(centre)), None)
        return Outcome(left, max(tree.highest, best), point, used, stopped)

    while True:
        highest = tree.highest
        if np.isneginf(highest) or max(highest, best) - best <= budget.tolerance:  # no cell is left, or small enough
            return outcome("tolerance", fallback[1])
        top = tree.top(_batch(used, budget.cells))
        stale = tree.older(top, version)
        if len(stale):
            tree.rebound(stale, bounds, version)
            used += len(stale)
        else:
            parents = tree.take(top)
            centre = parents.centre[:_CENTRES]
            at_centre, _ = bounds(Boxes(centre, centre))
            if not prove and _worth_a_run(at_centre[0], highest, best) and not (taken and taken(centre[0])):
                return outcome("point", centre[0])
            if prove and highest - at_centre.max() <= _NO_USE * (highest - best):
                return outcome("runs")  # a point nearly attains the bound: only a run there lowers it
            for i in np.argsort(-at_centre, kind="stable"):
                if at_centre[i] <= fallback[0]:
                    break
                if not (taken and taken(centre[i])):
                    fallback = (float(at_centre[i]), centre[i])
            side, splittable = _sides(parents, bounds)
            if not splittable.any():
                return outcome("exhausted", fallback[1])
            children = tree.cut(top[splittable], side[splittable], bounds.domain)
            tree.rebound(children, bounds, version)
            used += len(children)
        if used >= budget.cells:
            return outcome("cells", fallback[1])
        if deadline is not None and time.monotonic() > deadline:
            return outcome("seconds", fallback[1])


def _batch(used: int, cells: int) -> int:
    """How many cells to process next, after `used` of at most `cells` in this search."""
    return max(1, min(max(_FEWEST, used // _SHARE), _MOST, (cells - used + 1) // 2))


def _worth_a_run(at_centre: float, bound: float, best: float) -> bool:
    if not np.isfinite(best):
        return True  # before the first run every point is informative
    return at_centre - best >= _WORTH_A_RUN * (bound - best)


def _sides(leaves: Leaves, bounds: CellBounds) -> tuple[IntArray, BoolArray]:
    """The side to cut, and which leaves can be cut at all (a cell of one point cannot)."""
    width = leaves.upper - leaves.lower
    score = np.where(width > 0, leaves.slope + _SECOND_ORDER * (width / bounds.lengthscales) ** 2, -1.0)
    # Nor can a cell be cut that is so narrow that its midpoint rounds to an end, or that contains one value only.
    score = np.where(bounds.domain.divisible(leaves.lower, leaves.upper), score, -1.0)
    return score.argmax(axis=1), score.max(axis=1) >= 0
