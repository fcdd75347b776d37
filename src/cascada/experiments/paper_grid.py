"""GPN-UCB as computed in the paper's experiments (`sec:exp`): a shortcut that is not an upper bound.

For every stage after the first, with D a fixed grid, the envelope is the minimum over the points of D within a window
of z, and a region Δ is replaced by Δ ∩ D, or by its two ends if that is empty. The radius is the paper's B. It supports
only chains of scalar stages over candidates and gives no gap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cascada.algorithms.algorithm import Situation, Suggestion
from cascada.arrays import Array
from cascada.confidence import Belief
from cascada.confidence.range_maximum import range_maximum, sparse_maxima
from cascada.errors import ArgumentError
from cascada.gp import Prediction, TrackedPosterior
from cascada.network import hallucinated
from cascada.search import largest

_BLOCK = 32  # rows of distances processed at once, which fit into a cache


@dataclass(frozen=True)
class PaperGrid:
    """D consists of `points` evenly spaced values of [low, high]; the window has the given `radius`."""

    low: float = -5.0
    high: float = 5.0
    points: int = 100
    radius: float = 1.0

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        """argmax of the approximate UCB_{t−1} over the candidates, ties broken by the generator."""
        if situation.candidates is None:
            raise ArgumentError("PaperGrid is defined over candidates; give candidates= to the study.")
        if situation.beliefs.network.sign < 0:
            raise ArgumentError("PaperGrid maximises, as the paper does; negate the last stage to minimise.")
        kept = self._evaluated(_chain(situation), situation.candidates, situation.cache)
        point = situation.candidates[largest(kept.upper, rng)]
        return Suggestion(point, cache=situation.cache if len(situation.pending) else kept)

    def _evaluated(self, chain: list[Belief], candidates: Array, before: object) -> "_Cache":
        """UCB_{t−1} at the candidates, updated from the cache of the last suggestion if it is valid."""
        if not isinstance(before, _Cache):
            first = _First.of(chain[0], candidates)
            return _Cache(self, first, chain[1:], self._through(first, chain[1:]))
        first = before.first.follow(chain[0], candidates)
        if before.first is first and before.algorithm == self and _same(before.later, chain[1:]):
            return before  # the last point was a repeat
        return _Cache(self, first, chain[1:], self._through(first, chain[1:]))

    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        """None: the best run is recommended."""
        return None

    def upper(self, beliefs: list[Belief], candidates: Array) -> Array:
        """The approximate UCB_t at every candidate, (n,)."""
        first, *later = beliefs
        return self._through(_First.of(first, candidates), later)

    def _through(self, first: "_First", later: Sequence[Belief]) -> Array:
        low, high = first.envelope
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
        ends = low[~inside], high[~inside]  # Δ ∩ D is empty, so its two ends are used
        upper[~inside] = np.maximum(*(self._envelope(belief, 1, end) for end in ends))
        lower[~inside] = -np.maximum(*(self._envelope(belief, -1, end) for end in ends))
        return lower, upper

    def _envelope(self, belief: Belief, side: int, z: Array) -> Array:
        """The upper envelope (side 1), or minus the lower one (side −1), at z (n,).

        min over z' ∈ D, |z − z'| ≤ radius, of UCB(z') + L|z − z'|; if D has no such z', only z' = z.
        """
        apart = np.abs(z[:, None] - self.grid)
        values = _upper(belief, side, self.grid)
        reach = np.where(apart <= self.radius, values + _lipschitz(belief) * apart, np.inf).min(axis=1)  # eq:ucb_i
        lonely = np.isinf(reach)
        reach[lonely] = _upper(belief, side, z[lonely])
        return reach


@dataclass(frozen=True, eq=False)
class _First:
    """The first stage, tracked at the candidates, with L times their distances."""

    belief: Belief
    candidates: Array
    rise: Array  # (n, n)
    tracked: TrackedPosterior

    @classmethod
    def of(cls, belief: Belief, candidates: Array) -> "_First":
        from scipy.spatial.distance import cdist

        rise = _lipschitz(belief) * cdist(candidates, candidates)
        return cls(belief, candidates, rise, TrackedPosterior.at(belief.posterior, candidates))

    def follow(self, belief: Belief, candidates: Array) -> "_First":
        """The stage under another belief: unchanged, updated if possible, or rebuilt."""
        if belief is self.belief and candidates is self.candidates:
            return self
        same = candidates is self.candidates and _lipschitz(belief) == _lipschitz(self.belief)
        if not same or not self.tracked.follows(belief.posterior):
            return _First.of(belief, candidates)
        return _First(belief, candidates, self.rise, self.tracked.follow(belief.posterior))

    @property
    def envelope(self) -> tuple[Array, Array]:
        """Δ^(2)."""
        lcb, ucb = _band(self.belief, self.tracked.prediction)
        lower, upper = np.empty_like(lcb), np.empty_like(ucb)
        block = np.empty((_BLOCK, len(ucb)))
        for i in range(0, len(ucb), _BLOCK):
            rise = self.rise[i : i + _BLOCK]
            upper[i : i + _BLOCK] = np.add(rise, ucb, out=block[: len(rise)]).min(axis=1)  # eq:ucb_i
            lower[i : i + _BLOCK] = -np.subtract(rise, lcb, out=block[: len(rise)]).min(axis=1)  # eq:lcb_i
        return lower, upper


@dataclass(frozen=True, eq=False)
class _Cache:
    """The cache of a suggestion for the next one; it affects only the speed."""

    algorithm: PaperGrid
    first: _First
    later: Sequence[Belief]
    upper: Array


def _same(some: Sequence[Belief], others: Sequence[Belief]) -> bool:
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))


def _band(belief: Belief, prediction: Prediction) -> tuple[Array, Array]:
    """μ ∓ Bσ as printed, without rounding terms."""
    width = belief.norm_bound[0] * prediction.sd
    return prediction.mean[:, 0] - width, prediction.mean[:, 0] + width  # eq:LCB_orig, eq:UCB_orig


def _upper(belief: Belief, side: int, z: Array) -> Array:
    """UCB (side 1) or −LCB (side −1) of a stage with one input at z (n,)."""
    lcb, ucb = _band(belief, belief.posterior.predict(z[:, None]))
    return ucb if side > 0 else -lcb


def _lipschitz(belief: Belief) -> float:
    if belief.lipschitz is None:
        raise ArgumentError("PaperGrid needs a Lipschitz constant for every stage; give lipschitz= to each.")
    return float(belief.lipschitz[0])


def _chain(situation: Situation) -> list[Belief]:
    """The beliefs of a chain of scalar stages; raises `ArgumentError` for other networks."""
    beliefs = hallucinated(situation.beliefs, situation.pending)
    found = []
    for i, stage in enumerate(beliefs.stages):
        if not isinstance(stage.belief, Belief) or len(stage.node.columns) != 1 or (i and len(stage.node.inputs) != 1):
            raise ArgumentError("PaperGrid is defined for chains of scalar stages with controls at the first one only.")
        found.append(stage.belief)
    return found
