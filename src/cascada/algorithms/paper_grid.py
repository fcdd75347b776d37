"""GPN-UCB as the paper's experiments compute it (`sec:exp`): a shortcut, and not an upper bound.

For every stage after the first, with D a fixed grid: the envelope takes its minimum over the points of D within a
window of z, and a region Δ is replaced by Δ ∩ D, or by its two ends where that is empty. The radius is the paper's B.
Chains of scalar stages over candidates only; it never yields a gap.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cascada.algorithms.algorithm import Context, Suggestion
from cascada.arrays import Array
from cascada.confidence import Belief
from cascada.confidence.range_maximum import range_maximum, sparse_maxima
from cascada.errors import ArgumentError
from cascada.network import hallucinated
from cascada.search import largest

_BLOCK = 256


@dataclass(frozen=True)
class PaperGrid:
    """D is `points` evenly spaced values of [low, high], the window has the given `radius`."""

    low: float = -5.0
    high: float = 5.0
    points: int = 100
    radius: float = 1.0

    def suggest(self, context: Context, rng: np.random.Generator) -> Suggestion:
        """argmax of the approximate UCB_{t−1} over the candidates, ties broken by the generator."""
        if context.candidates is None:
            raise ArgumentError("PaperGrid is defined over candidates; give candidates= to the study.")
        if context.beliefs.network.sign < 0:
            raise ArgumentError("PaperGrid maximises, as the paper does; negate the last stage to minimise.")
        upper = self.upper(_chain(context), context.candidates)
        return Suggestion(context.candidates[largest(upper, rng)])

    def recommend(self, context: Context) -> Array | None:  # noqa: ARG002
        """None: the best run is the answer."""
        return None

    def upper(self, beliefs: list[Belief], candidates: Array) -> Array:
        """The approximate UCB_t at every candidate, (n,)."""
        first, *later = beliefs
        low, high = _first_stage(first, candidates)
        for belief in later:
            low, high = self._stage(belief, low, high)
        return high  # eq:ucb_chain

    @cached_property
    def grid(self) -> Array:
        """D."""
        return np.linspace(self.low, self.high, self.points)

    def _stage(self, belief: Belief, low: Array, high: Array) -> tuple[Array, Array]:
        """Δ^(i+1) from Δ^(i) = [low, high], each (n,)."""
        top, bottom = (self._envelope(belief, side, self.grid) for side in (1, -1))
        first = np.searchsorted(self.grid, low, side="left")
        last = np.searchsorted(self.grid, high, side="right") - 1
        inside = first <= last
        upper, lower = np.empty_like(high), np.empty_like(low)
        upper[inside] = range_maximum(sparse_maxima(top), first[inside], last[inside])
        lower[inside] = -range_maximum(sparse_maxima(bottom), first[inside], last[inside])
        ends = low[~inside], high[~inside]  # Δ ∩ D is empty: the two ends instead
        upper[~inside] = np.maximum(*(self._envelope(belief, 1, end) for end in ends))
        lower[~inside] = -np.maximum(*(self._envelope(belief, -1, end) for end in ends))
        return lower, upper

    def _envelope(self, belief: Belief, side: int, z: Array) -> Array:
        """The upper envelope (side 1), or minus the lower one (side −1), at z (n,).

        min over z' ∈ D, |z − z'| ≤ radius, of UCB(z') + L|z − z'|; where D has no such z', z' = z alone.
        """
        apart = np.abs(z[:, None] - self.grid)
        values = _upper(belief, side, self.grid)
        reach = np.where(apart <= self.radius, values + _lipschitz(belief) * apart, np.inf).min(axis=1)  # eq:ucb_i
        lonely = np.isinf(reach)
        reach[lonely] = _upper(belief, side, z[lonely])
        return reach


def _first_stage(belief: Belief, candidates: Array) -> tuple[Array, Array]:
    """Δ^(2): the envelope of the first stage, whose domain is the candidates themselves."""
    lcb, ucb = _band(belief, candidates)
    lower, upper = np.empty_like(lcb), np.empty_like(ucb)
    for i in range(0, len(candidates), _BLOCK):
        rise = _lipschitz(belief) * np.linalg.norm(candidates[i : i + _BLOCK, None] - candidates, axis=2)
        upper[i : i + _BLOCK] = (ucb + rise).min(axis=1)  # eq:ucb_i
        lower[i : i + _BLOCK] = (lcb - rise).max(axis=1)  # eq:lcb_i
    return lower, upper


def _band(belief: Belief, points: Array) -> tuple[Array, Array]:
    """μ ∓ Bσ as printed, without numerical slack."""
    prediction = belief.posterior.predict(points)
    width = belief.norm_bound[0] * prediction.sd
    return prediction.mean[:, 0] - width, prediction.mean[:, 0] + width  # eq:LCB_orig, eq:UCB_orig


def _upper(belief: Belief, side: int, z: Array) -> Array:
    """UCB (side 1) or −LCB (side −1) of a stage with one input at z (n,)."""
    lcb, ucb = _band(belief, z[:, None])
    return ucb if side > 0 else -lcb


def _lipschitz(belief: Belief) -> float:
    if belief.lipschitz is None:
        raise ArgumentError("PaperGrid needs a Lipschitz constant for every stage; give lipschitz= to each.")
    return float(belief.lipschitz[0])


def _chain(context: Context) -> list[Belief]:
    """The beliefs of a chain of scalar stages; an error for anything else."""
    beliefs = hallucinated(context.beliefs, context.pending)
    found = []
    for i, stage in enumerate(beliefs.stages):
        if not isinstance(stage.belief, Belief) or len(stage.node.columns) != 1 or (i and len(stage.node.inputs) != 1):
            raise ArgumentError("PaperGrid is defined for chains of scalar stages with controls at the first one only.")
        found.append(stage.belief)
    return found
