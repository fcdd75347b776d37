"""GPN-EI: two runs at the maximum of the composite mean, then one where the objective may be better than expected.

For processes whose norms are not known. Gradient ascent finds the maximum of the composite mean. On the joint (x, η)
form of the upper bound, at one to three posterior sds, it finds points where the objective is large if all stages
deviate favourably. The former are run as long as they promise an improvement. The latter are compared by expected
improvement, from samples of the whole network. If the largest expected improvement is negligible, a point far from all
runs is chosen.

Expected improvement alone does not suffice: with many outputs between the controls and the objective, nearly every
point may be best, and expected improvement runs one corner of the box after the other (docs/choosing.md).

If estimated bounds have to be tested before a gap is shown, the run is a probe of them (`probe.py`).

Over candidates, or if a stage has a general operator-valued kernel, the algorithm is cEI.
"""

from dataclasses import dataclass, replace

import numpy as np

from cascada.algorithms.acquisition import near_best, random_free_point
from cascada.algorithms.algorithm import Situation, Suggestion
from cascada.algorithms.cascaded_ei import CascadedEI
from cascada.algorithms.expected_improvement import log_expected_improvement
from cascada.algorithms.probe import probe
from cascada.arrays import Array
from cascada.network import Beliefs, StageBelief, composite_mean, hallucinated
from cascada.network.sampling import sample_objective, standard_draws
from cascada.search import ascend, ascend_mean
from cascada.search.starts import apart, best_apart

# An improvement below this part of the objective's spread is negligible.
_LITTLE = 1e-5
# At a maximum of the mean away from all runs the threshold is lower, because a small step may be one of many.
_NOTHING = 1e-8
# Distances between runs, in sides of the box: up to the first the place is the same, beyond the second it is new.
_SAME, _NEW = 1e-4, 0.02


@dataclass(frozen=True)
class GPNEI:
    """Runs at the maximum of the composite mean; every `period`-th where the bound at one of `widths` is large."""

    widths: tuple[float, ...] = (1.0, 3.0)
    samples: int = 128
    period: int = 3

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        """A point that was not run yet; None if every candidate was."""
        if situation.untested is not None:
            point = probe(situation, rng.spawn(1)[0])
            if point is not None:
                return Suggestion(point)
        if situation.candidates is not None or any(_has_no_ascent(stage) for stage in situation.beliefs.stages):
            return CascadedEI(self.samples).suggest(situation, rng)
        beliefs = hallucinated(situation.beliefs, situation.pending)
        point = None
        if situation.best_point is not None and situation.trial % self.period != 0:
            point = _most_likely(situation, beliefs, rng)
        if point is None:
            point = self._promising(situation, beliefs, rng)
        return Suggestion(random_free_point(situation, rng) if point is None else point)

    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        """None: the best run is the result."""
        return None

    def _promising(self, situation: Situation, beliefs: Beliefs, rng: np.random.Generator) -> Array | None:
        """Of the points of GPN-UCB at all widths, the one with the largest expected improvement; else None."""
        found = ascend(of_width(beliefs, 1.0), rng, near_best(situation), self.widths)
        points = _free(situation, found)
        if not len(points):
            return None
        draws = standard_draws(beliefs, self.samples, rng.spawn(1)[0])
        samples = sample_objective(beliefs, points, draws)
        if np.isinf(situation.best):
            return points[int(samples.mean(axis=1).argmax())]
        gain = np.maximum(samples - situation.best, 0.0).mean(axis=1)
        new = apart(situation.domain, points, _runs(situation)) > _NEW
        if gain.max() > _LITTLE * _spread(situation) or not new.any():
            return points[int(gain.argmax())]
        with np.errstate(invalid="ignore"):
            likely = log_expected_improvement(samples.mean(axis=1) - situation.best, samples.std(axis=1))
        return points[int(np.where(new & ~np.isnan(likely), likely, -np.inf).argmax())]


def _most_likely(situation: Situation, beliefs: Beliefs, rng: np.random.Generator) -> Array | None:
    """The maximum of the composite mean, if it is better there than at the best run; else None.

    The gain is measured from the smaller of the best value and the mean at the best run. Where many runs are in one
    place, a jitter of 1e-10 moves the mean by more than what can still be gained there.
    """
    # Any width will do. The beliefs' own norm bounds may be refuted, and a mean needs none.
    points = _free(situation, ascend_mean(of_width(beliefs, 1.0), rng, near_best(situation)))
    if not len(points):
        return None
    network, best = beliefs.network, situation.best_point
    assert best is not None, "only asked when there is a best run"
    mean = network.sign * composite_mean(beliefs, np.append(points, best[None], axis=0))[:, network.objective_column]
    mean = np.nan_to_num(mean, nan=-np.inf)
    i = int(mean[:-1].argmax())
    same = apart(situation.domain, points[[i]], _runs(situation))[0] <= _SAME
    gain = mean[i] - min(mean[-1], situation.best)
    return points[i] if gain > (_LITTLE if same else _NOTHING) * _spread(situation) else None


def _free(situation: Situation, found: list[Array]) -> Array:
    """Those of the points that are not taken, (n, d)."""
    free = [point for point in found if not situation.is_taken(point)]
    return np.array(free).reshape(-1, situation.domain.dimension)


def _runs(situation: Situation) -> Array:
    """The points of all runs, including the pending ones, (n, d)."""
    d = situation.domain.dimension
    return np.concatenate([situation.data[:, :d], situation.pending[:, :d]])


def _has_no_ascent(stage: StageBelief) -> bool:
    """Whether a stage's bounds have no gradients, because its kernel is a general operator-valued one."""
    return stage.belief is not None and not stage.belief.has_output_beliefs


def of_width(beliefs: Beliefs, width: float) -> Beliefs:
    """The same beliefs with the bounds μ ± width·σ, whatever their norm bounds."""

    def changed(stage: StageBelief) -> StageBelief:
        return stage if stage.belief is None else replace(stage, belief=stage.belief.with_width(width))

    return Beliefs(beliefs.network, tuple(changed(stage) for stage in beliefs.stages))


def _spread(situation: Situation) -> float:
    """The standard deviation of the objective over runs in different places: a cluster of runs counts once."""
    network = situation.beliefs.network
    values = network.sign * situation.data[:, network.objective_column]
    seen = np.isfinite(values)
    points, values = situation.data[seen, : situation.domain.dimension], values[seen]
    spread_out = best_apart(situation.domain, points, values, len(values), _NEW)
    return float(values[spread_out].std())
