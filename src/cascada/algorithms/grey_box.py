"""The beliefs about all stages, for cUCB, OI and cEI, with the first stages tracked at the candidates."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cascada.algorithms.algorithm import Situation
from cascada.arrays import Array
from cascada.gp import Prediction
from cascada.network import Beliefs, StageBelief, hallucinated
from cascada.network.composite import accumulated, along_means, scaled_by_norms
from cascada.search import Candidates


@dataclass(frozen=True, eq=False)
class Spread:
    """At n points: the composite mean of what is maximised, its width by B and L, and σ̃ (`eq:kusa_sig`); each (n,)."""

    mean: Array
    width: Array
    sd: Array

    @property
    def upper(self) -> Array:
        """UCB_t."""
        return self.mean + self.width

    @property
    def lower(self) -> Array:
        """LCB_t."""
        return self.mean - self.width


@dataclass(frozen=True, eq=False)
class GreyBox:
    """The beliefs with pending runs set to their means; kept between suggestions for speed only."""

    beliefs: Beliefs
    candidates: Candidates | None

    @classmethod
    def of(cls, situation: Situation) -> "GreyBox":
        """The grey box for a situation, from its cache if that is usable."""
        beliefs, kept = hallucinated(situation.beliefs, situation.pending), situation.cache
        if isinstance(kept, GreyBox) and kept.beliefs is beliefs:
            return kept  # a repeated point changed nothing
        if situation.candidates is None:
            return cls(beliefs, None)
        before = kept.candidates if isinstance(kept, GreyBox) else None
        if before is None or before.coordinates is not situation.candidates:
            before = Candidates.of(situation.candidates)
        return cls(beliefs, before.follow(beliefs))

    def kept(self, situation: Situation) -> object:
        """The cache for the next suggestion: nothing that rests on imagined outputs."""
        return situation.cache if len(situation.pending) else self

    @property
    def tracked(self) -> dict[int, Prediction]:
        """Predictions of the first stages at the candidates, by stage; none for joint norms."""
        assert self.candidates is not None, "only asked when there are candidates"
        stages = self.beliefs.stages
        found = self.candidates.tracked.items()
        return {i: tracked.prediction for i, tracked in found if not _joint(stages[i])}

    def are_candidates(self, points: Array) -> bool:
        """Whether these points are the tracked candidates."""
        return self.candidates is not None and points is self.candidates.coordinates

    @cached_property
    def _at_candidates(self) -> Spread:
        assert self.candidates is not None, "only asked when there are candidates"
        return self._spread(self.candidates.coordinates, self.tracked)

    def at(self, points: Array) -> Spread:
        """The spread at points (n, d), coordinates."""
        return self._at_candidates if self.are_candidates(points) else self._spread(points, None)

    def _spread(self, points: Array, tracked: dict[int, Prediction] | None) -> Spread:
        network = self.beliefs.network
        along = along_means(self.beliefs, points, tracked)
        column = network.objective_column
        sd = accumulated(self.beliefs, along.mean, along.sd)  # eq:kusa_sig
        # With one B for all stages the width is B·σ̃; each stage's own B is the natural extension.
        width = accumulated(self.beliefs, along.mean, scaled_by_norms(self.beliefs, along.sd))
        mean, width, sd = network.sign * along.mean[:, column], width[:, column], sd[:, column]
        defined = np.isfinite(mean) & np.isfinite(width) & np.isfinite(sd)  # else some formula is not defined there
        return Spread(np.where(defined, mean, -np.inf), np.where(defined, width, 0.0), np.where(defined, sd, 0.0))


def _joint(stage: StageBelief) -> bool:
    return stage.belief is not None and stage.belief.joint
