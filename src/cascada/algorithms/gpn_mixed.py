"""GPN-UCB mixed with runs at the maximum of the composite mean: a proof and a good setting from the same runs.

Every run of GPN-UCB serves the proof. If norm bounds are larger than necessary, its runs go for a long time where the
bounds are wide, not where the objective is large. The composite mean does not depend on the norm bounds. Its maximum is
the best setting by all data so far. It is run if it promises a good part of what GPN-UCB's point promises. In one of
every `period` runs it is run even if it promises little, unless the improvement would be negligible: near the end, only
the proof is left. The bound is that of GPN-UCB. It holds for any choice of points.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from cascada.algorithms.acquisition import best_candidate, near_best
from cascada.algorithms.algorithm import Situation, Suggestion
from cascada.algorithms.gpn_ucb import GPNUCB
from cascada.arrays import Array, as_whole_number
from cascada.confidence import Boxes
from cascada.errors import ArgumentError, RefutedError
from cascada.network import Beliefs, enclose_network, hallucinated, objective_above
from cascada.network.feasibility import feasible_mean
from cascada.network.outputs import StageError
from cascada.search import best_in_box

# An improvement is negligible below this part of the standard deviation of the observed values, or of the gap if that
# is less: what remains of the gap is then a matter of the bound.
_OF_SPREAD, _OF_GAP = 5e-3, 1e-2
# The turn of the mean among `period` trials: early, because in the first runs every point serves the proof alike.
_TURN = 1


@dataclass(frozen=True)
class GPNMixed:
    """GPN-UCB, and the maximum of the composite mean where it promises at least `share` of the gap, or in its turn.

    `cells` is the budget of one suggestion by branch and bound (see `GPNUCB`).
    """

    share: float = 0.1
    period: int = 4
    cells: int = 6_000
    certifies: ClassVar[bool] = True  # the bound is that of GPN-UCB for the same data

    def __post_init__(self) -> None:
        number = isinstance(self.share, int | float | np.number) and not isinstance(self.share, bool)
        if not (number and 0 < self.share <= 1):
            raise ArgumentError(f"share must be a number above 0 and at most 1; got {self.share!r:.100}.")
        as_whole_number(self.period, "period", at_least=2)
        as_whole_number(self.cells, "cells")

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        """The point of GPN-UCB, or the maximum of the composite mean."""
        proof = GPNUCB(cells=self.cells).suggest(situation, rng)
        if proof.point is None or not np.isfinite(situation.best) or proof.stopped == "tolerance":
            return proof
        beliefs = hallucinated(situation.beliefs, situation.pending)
        point = _highest_mean(situation, beliefs, rng)
        if point is None:
            return proof
        gain = float(feasible_mean(beliefs, point[None])[0]) - _reached(situation)
        if gain == -np.inf:  # no mean satisfies the limits
            return proof
        gap = _promise(situation, proof, beliefs)
        in_turn = situation.trial % self.period == _TURN
        if gain >= self.share * gap or (in_turn and gain > min(_OF_SPREAD * _spread(situation), _OF_GAP * gap)):
            return replace(proof, point=point)
        return proof

    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        """None: the best run is the result."""
        return None


def _highest_mean(situation: Situation, beliefs: Beliefs, rng: np.random.Generator) -> Array | None:
    """The point (d,) with the largest composite mean that was not run yet; None if there is none."""
    if situation.candidates is not None:
        return best_candidate(situation, feasible_mean(beliefs, situation.candidates), rng)
    found = best_in_box(lambda points: feasible_mean(beliefs, points), situation.domain, rng, near_best(situation))
    return next((point for point in found if not situation.is_taken(point)), None)


def _reached(situation: Situation) -> float:
    """The value that a mean has to beat: the best one, or if readings have errors the best mean at a run."""
    network, run = situation.beliefs.network, situation.best_run
    if not network.read_with_errors or run is None:
        return situation.best
    return max(situation.best, network.sign * float(run[network.objective_column]))


def _promise(situation: Situation, proof: Suggestion, beliefs: Beliefs) -> float:
    """What is left to gain by the bounds: the gap, or without a bound of the domain that of GPN-UCB's point."""
    if proof.bound is not None:
        return proof.bound - situation.best
    assert proof.point is not None, "only asked about a suggested point"
    point = Boxes(proof.point[None], proof.point[None])
    try:
        return float(objective_above(beliefs.network, enclose_network(beliefs, point))[0]) - situation.best
    except RefutedError:
        if not len(situation.pending):
            raise
        return np.inf  # imagined outputs may contradict
    except (StageError, ArgumentError):  # a formula is not defined at some of the possible inputs
        return np.inf


def _spread(situation: Situation) -> float:
    """The standard deviation of the observed values of the objective; infinite as long as all of them are equal."""
    spread = float(np.nanstd(situation.data[:, situation.beliefs.network.objective_column]))
    return spread if spread > 0 else np.inf  # else every rounding error near a run would count as an improvement
