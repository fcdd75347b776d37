"""The worth of a plan: how far it lowers the bounds of the most promising settings if outcomes are their means.

What does not lower the highest bounds cannot lower their maximum. So only the point that a search would run counts, and
the centres of the highest cells. Bounds that hold stay: the computed bound at a point can rise with more data, and the
old one is still valid then.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cascada.algorithms.algorithm import Situation, Suggestion
from cascada.algorithms.feasible_search import FeasibleTrees, nearest_margin
from cascada.algorithms.step_plans import Plan
from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.errors import ArgumentError, RefutedError
from cascada.network import Beliefs, composite_mean
from cascada.network.outputs import StageError
from cascada.search import CellBounds, Leaves, ObjectiveBounds
from cascada.search.feasible import FeasibleBounds, MarginBounds, margin_scales

# The weight of the point that a search would run; the rest is shared by the centres of this many of the highest cells.
_OWN, _CELLS = 0.5, 16


@dataclass(frozen=True, eq=False)
class Potential:
    """Φ: the weighted excess of upper bounds at points (n, d) over a value that is known to be reached."""

    points: Array
    weights: Array
    level: float
    upper: Array  # the bounds that hold now
    bounds_of: Callable[[Beliefs], CellBounds]

    @classmethod
    def at(cls, situation: Situation, beliefs: Beliefs, suggestion: Suggestion, x: Array) -> "Potential":
        """Φ at a point that was suggested, and at the highest cells of its search."""
        leaves, reached = suggestion.cache, np.isfinite(situation.best)
        network, level = beliefs.network, situation.best
        bounds_of: Callable[[Beliefs], CellBounds] = ObjectiveBounds
        if isinstance(leaves, FeasibleTrees):
            leaves = leaves.objective if reached else leaves.margin
        if network.limits and reached:
            bounds_of = FeasibleBounds
        elif network.limits:  # as long as nothing feasible is known, the margin of the limits is what is maximised
            scales = margin_scales(situation.beliefs)
            level = nearest_margin(situation.beliefs, situation.data, scales)

            def bounds_of(now: Beliefs) -> CellBounds:
                return MarginBounds(now, scales)

        top = leaves.centre[np.argsort(-leaves.bound, kind="stable")[:_CELLS]] if isinstance(leaves, Leaves) else x[:0]
        points = np.concatenate([x[None], top.reshape(-1, len(x))])
        share = (1 - _OWN) / max(len(top), 1)
        weights = np.append(_OWN, np.full(len(points) - 1, share))
        upper = bounds_of(beliefs)(Boxes(points, points))[0]
        if not np.isfinite(level):
            mean = network.sign * float(composite_mean(beliefs, x[None])[0, network.objective_column])
            level = (
                mean if not network.limits and np.isfinite(mean) else float(upper[np.isfinite(upper)].min(initial=0.0))
            )
        return cls(points, weights, level, upper, bounds_of)

    def fall(self, plan: Plan) -> float:
        """By how much Φ falls as if a plan was run; 0 if imagined outputs contradict one another."""
        return self.fall_with(plan.after)

    def fall_with(self, after: Beliefs) -> float:
        """By how much Φ falls with these beliefs."""
        try:
            upper = self.bounds_of(after)(Boxes(self.points, self.points))[0]
        except (RefutedError, StageError, ArgumentError):
            return 0.0
        lower = np.minimum(upper, self.upper)
        return float(self.weights @ (self._excess(self.upper) - self._excess(lower)))

    def _excess(self, upper: Array) -> Array:
        return np.maximum(upper - self.level, 0.0)
