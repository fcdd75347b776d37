"""Runs for the worst case over uncertain controls: the setting with the largest bound, at its least certain shift.

The bound of a setting is the smallest upper bound over a few shifts. The process is run at the setting with the shift
at which its lower bound is least (the choice of StableOpt, with bounds that hold): there a run lowers the bound or
raises what is proven.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cascada.algorithms.algorithm import Situation, Suggestion
from cascada.algorithms.probe import probe
from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.errors import RefutedError
from cascada.network import Beliefs, enclose_network, hallucinated
from cascada.search import Leaves, SearchBudget, search
from cascada.search.robust import Deviations, RobustBounds, refined_worst_case

_CELLS = 1_500
_TRIED = 64  # random shifts


@dataclass(frozen=True)
class Robust:
    """What chooses the points of every study with uncertain controls. `Situation.best` must be a proven worst case."""

    cells: int = _CELLS
    certifies: ClassVar[bool] = True  # a bound is returned only if it rests on no imagined outputs

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        """The setting with the largest bound of its worst case, at a shift of which little is known."""
        if situation.untested is not None:
            point = probe(situation, rng.spawn(1)[0])
            if point is not None:
                return Suggestion(point)
        try:
            return self._suggest(situation, hallucinated(situation.beliefs, situation.pending), rng)
        except RefutedError:
            if not len(situation.pending):
                raise
            return self._suggest(situation, situation.beliefs, rng)  # imagined outputs may contradict

    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        """None: the proven setting of the certificate is the result."""
        return None

    def _suggest(self, situation: Situation, beliefs: Beliefs, rng: np.random.Generator) -> Suggestion:
        deviations = Deviations.of(situation.domain)
        root = Leaves.root(deviations.settings)
        leaves = situation.cache if isinstance(situation.cache, Leaves) else root
        version = 2 * (len(situation.data) + len(situation.pending))  # there are two searches for the same data
        bounds = RobustBounds(beliefs, deviations.corners)
        budget = SearchBudget(tolerance=situation.tolerance, cells=self.cells)
        outcome = search(bounds, leaves, situation.best, version, budget)
        setting = outcome.point
        if setting is not None:
            # A second look with the worst shift of this setting, which the corners need not contain.
            shifts = np.concatenate([deviations.corners, refined_worst_case(beliefs, setting)[1][None]])
            again = search(RobustBounds(beliefs, shifts), outcome.leaves, situation.best, version + 1, budget)
            outcome, setting = again, again.point if again.point is not None else setting
        point = None if setting is None else self._run(situation, beliefs, deviations, setting, rng)
        if len(situation.pending):  # bounds from imagined outputs prove nothing: the tree is not kept
            return Suggestion(point, None, outcome.cells, outcome.stopped, situation.cache)
        return Suggestion(point, outcome.bound, outcome.cells, outcome.stopped, outcome.leaves)

    def _run(
        self, situation: Situation, beliefs: Beliefs, deviations: Deviations, setting: Array, rng: np.random.Generator
    ) -> Array | None:
        """Where to run the process for a setting: at its worst shift, or else where least is known of it."""
        worst = deviations.values(setting[None], refined_worst_case(beliefs, setting)[1])[0]
        if not situation.is_taken(worst) and _width(beliefs, worst[None])[0] > 0.1 * _widest(
            beliefs, deviations, setting
        ):
            return worst
        shifts = rng.uniform(-1.0, 1.0, (_TRIED, len(deviations.size))) * deviations.size
        points = deviations.values(np.repeat(setting[None], _TRIED, axis=0), shifts)
        order = np.argsort(-_width(beliefs, points), kind="stable")
        return next((points[i] for i in order if not situation.is_taken(points[i])), None)


def _width(beliefs: Beliefs, points: Array) -> Array:
    """How far apart the bounds of the objective are at points (n, d), (n,)."""
    boxes, column = enclose_network(beliefs, Boxes(points, points)).boxes, beliefs.network.objective_column
    return boxes.upper[:, column] - boxes.lower[:, column]


def _widest(beliefs: Beliefs, deviations: Deviations, setting: Array) -> float:
    """The largest of these distances at the corners of a setting."""
    points = deviations.values(np.repeat(setting[None], len(deviations.corners), axis=0), deviations.corners)
    return float(_width(beliefs, points).max())
