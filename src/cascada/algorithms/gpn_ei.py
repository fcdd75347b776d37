"""GPN-EI: two runs at the maximum of the composite mean, then one where the objective may be better than expected.

For processes whose norms are not known. Gradient ascent finds the maximum of the composite mean. On the joint (x, η)
form of the upper bound, at one to three posterior sds, it finds points where the objective is large if all stages
deviate favourably. The former are run as long as they promise an improvement. The latter are compared by expected
improvement, from samples of the whole network. If the largest expected improvement is negligible, a point far from all
runs is chosen.

Expected improvement alone does not suffice: with many outputs between the controls and the objective, nearly every
point may be best, and expected improvement runs one corner of the box after the other (docs/choosing.md).

With choices, every second turn of expected improvement goes to a swap (`swaps`): the best run with another value of one
choice, as long as some value was not tried near it.

With limits, the ascents are penalised where a limit is broken, and an improvement counts with the probability that the
limits hold: in samples, limited outputs are drawn together with the objective. As long as no feasible run is known, the
point that is most likely to be feasible is run. Failed runs count as broken limits where a stage says so (`demands`).

Beside pending runs, stages are predicted as if each of these had returned its mean, and a run has to promise more than
the best of these means.

If estimated bounds have to be tested before a gap is shown, the run is a probe of them (`probe.py`).

Over candidates, or if a stage has a general operator-valued kernel, the algorithm is cEI.
"""

from dataclasses import dataclass, replace

import numpy as np

from cascada.algorithms.acquisition import near_best, random_free_point
from cascada.algorithms.algorithm import Situation, Suggestion
from cascada.algorithms.cascaded_ei import CascadedEI
from cascada.algorithms.demands import Demands
from cascada.algorithms.expected_improvement import log_expected_improvement
from cascada.algorithms.probe import probe
from cascada.algorithms.swaps import swaps
from cascada.arrays import Array, BoolArray
from cascada.network import Beliefs, StageBelief, composite_mean, hallucinated
from cascada.network.sampling import Samples, sample_network, standard_draws
from cascada.search import ascend, ascend_mean
from cascada.search.ascent import refine_mean
from cascada.search.starts import apart, best_apart

# An improvement below this part of the objective's spread is negligible.
_LITTLE = 1e-5
# At a maximum of the mean away from all runs the threshold is lower, because a small step may be one of many.
_NOTHING = 1e-8
# Distances between runs, in sides of the box: up to the first the place is the same, beyond the second it is new.
_SAME, _NEW = 1e-4, 0.02
# A maximum of the mean that is less likely to be feasible is compared with others further inside the limits,
_SAFE = 0.8
# where the mean satisfies the limits with so many sds to spare.
_SDS = (0.5, 1.0, 2.0)
_STARTS = 4
# Of points that are about as likely to be feasible as the likeliest, the best is run.
_ABOUT = 0.9


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
        beliefs, demands = hallucinated(situation.beliefs, situation.pending), Demands.of(situation)
        sampled = _Sampled(beliefs, self.samples, rng)
        point = None
        if situation.best_point is not None and situation.trial % self.period != 0:
            point = _most_likely(situation, beliefs, demands, sampled, rng)
        if point is None and situation.trial % (2 * self.period) == self.period and np.isfinite(situation.best):
            point = _likeliest_swap(situation, demands, sampled)
        if point is None and demands is not None and np.isinf(situation.best):
            point = self._feasible(situation, beliefs, demands, sampled, rng)
        elif point is None:
            point = self._promising(situation, beliefs, demands, sampled, rng)
        return Suggestion(random_free_point(situation, rng) if point is None else point)

    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        """None: the best run is the result."""
        return None

    def _promising(
        self,
        situation: Situation,
        beliefs: Beliefs,
        demands: Demands | None,
        sampled: "_Sampled",
        rng: np.random.Generator,
    ) -> Array | None:
        """Of the points of GPN-UCB at all widths, the one with the largest expected improvement; else None."""
        penalty = None if demands is None else demands.penalty()
        found = ascend(of_width(beliefs, 1.0), rng, near_best(situation), self.widths, penalty)
        points = _free(situation, found)
        if not len(points):
            return None
        drawn = sampled.at(points)
        samples = drawn.objective
        if np.isinf(situation.best):
            return points[int(samples.mean(axis=1).argmax())]
        best = max(situation.best, _expected_of_pending(situation, beliefs, demands))
        gains, feasible = np.maximum(samples - best, 0.0), None
        if demands is not None:
            feasible = drawn.feasible(demands.risk)
            gains *= feasible
        gain = gains.mean(axis=1)
        new = apart(situation.domain, points, _runs(situation)) > _NEW
        if gain.max() > _LITTLE * _spread(situation) or not new.any():
            return points[int(gain.argmax())]
        likely = _log_improvement(samples, best, feasible)
        return points[int(np.where(new & ~np.isnan(likely), likely, -np.inf).argmax())]

    def _feasible(
        self,
        situation: Situation,
        beliefs: Beliefs,
        demands: Demands,
        sampled: "_Sampled",
        rng: np.random.Generator,
    ) -> Array | None:
        """The point that is most likely to be feasible, as long as no feasible run is known; None if all are taken."""
        acting, near, margin = of_width(beliefs, 1.0), demands.nearest(situation), demands.margin()
        found = [*ascend_mean(acting, rng, near, margin), *ascend(acting, rng, near, self.widths, margin)]
        points = _free(situation, found)
        if not len(points):
            return None
        drawn = sampled.at(points)
        probability = drawn.feasible(demands.risk).mean(axis=1)
        if probability.max() <= 0:
            return points[int(drawn.margin(demands.units).mean(axis=1).argmax())]
        likely = probability >= _ABOUT * probability.max()
        return points[int(np.where(likely, drawn.objective.mean(axis=1), -np.inf).argmax())]


class _Sampled:
    """Samples of the network at any points, with the same draws; they are drawn when they are needed first."""

    def __init__(self, beliefs: Beliefs, count: int, rng: np.random.Generator) -> None:
        self._beliefs, self._count, self._rng = beliefs, count, rng
        self._draws: Array | None = None

    def at(self, points: Array) -> Samples:
        """The samples at points (n, d)."""
        if self._draws is None:
            self._draws = standard_draws(self._beliefs, self._count, self._rng.spawn(1)[0])
        return sample_network(self._beliefs, points, self._draws)


def _log_improvement(samples: Array, best: float, feasible: Array | None) -> Array:
    """The logarithm (n,) of the expected improvement of samples (n, S) as if they were normal; NaN where undefined."""
    with np.errstate(invalid="ignore"):
        likely = log_expected_improvement(samples.mean(axis=1) - best, samples.std(axis=1))
    if feasible is None:
        return likely
    # half a sample more, because none of them may be feasible
    return np.asarray(likely + np.log((feasible.sum(axis=1) + 0.5) / (feasible.shape[1] + 0.5)))


def _likeliest_swap(situation: Situation, demands: Demands | None, sampled: _Sampled) -> Array | None:
    """The swap (see `swaps`) that is most likely to be better than the best run; None if there is none."""
    points = _free(situation, list(swaps(situation)))
    if not len(points):
        return None
    drawn = sampled.at(points)
    feasible = None if demands is None else drawn.feasible(demands.risk)
    likely = _log_improvement(drawn.objective, situation.best, feasible)
    return points[int(np.where(np.isnan(likely), -np.inf, likely).argmax())]


def _most_likely(
    situation: Situation, beliefs: Beliefs, demands: Demands | None, sampled: _Sampled, rng: np.random.Generator
) -> Array | None:
    """The maximum of the composite mean, if it is better there than at the best run; else None.

    The gain is measured from the smaller of the best value and the mean at the best run. Where many runs are in one
    place, a jitter of 1e-10 moves the mean by more than what can still be gained there.
    """
    # Any width will do. The beliefs' own norm bounds may be refuted, and a mean needs none.
    acting, near = of_width(beliefs, 1.0), near_best(situation)
    points = _free(situation, ascend_mean(acting, rng, near, None if demands is None else demands.penalty()))
    if not len(points):
        return None
    best = situation.best_point
    assert best is not None, "only asked when there is a best run"
    mean, hold = _means(beliefs, demands, np.append(points, best[None], axis=0))
    level = max(min(float(mean[-1]), situation.best), _expected_of_pending(situation, beliefs, demands))
    mean = np.where(hold, mean, -np.inf)[:-1]
    i = int(mean.argmax())
    if demands is not None and (worth := _inside(situation, demands, sampled, acting, points, i)) is not None:
        more, hold = _means(beliefs, demands, worth)
        points, mean = np.concatenate([points, worth]), np.append(mean, np.where(hold, more, -np.inf))
        probability = sampled.at(points).feasible(demands.risk).mean(axis=1)
        i = int((np.maximum(mean - level, 0.0) * probability).argmax())
    same = apart(situation.domain, points[[i]], _runs(situation))[0] <= _SAME
    return points[i] if mean[i] - level > (_LITTLE if same else _NOTHING) * _spread(situation) else None


def _means(beliefs: Beliefs, demands: Demands | None, points: Array) -> tuple[Array, BoolArray]:
    """The composite mean (n,) of what is maximised, −∞ where it is not defined, and where the demands are satisfied."""
    network = beliefs.network
    values = composite_mean(beliefs, points, clip_objective=False)
    mean = np.nan_to_num(network.sign * values[:, network.objective_column], nan=-np.inf)
    return mean, np.ones(len(points), dtype=bool) if demands is None else demands.hold(values)


def _expected_of_pending(situation: Situation, beliefs: Beliefs, demands: Demands | None) -> float:
    """The best composite mean of the pending runs that satisfy the demands; −∞ without any.

    The next run has to promise more than that: otherwise it would be made beside the most promising pending run.
    """
    if not len(situation.pending):
        return -np.inf
    mean, hold = _means(beliefs, demands, situation.pending[:, : situation.domain.dimension])
    return float(np.where(hold, mean, -np.inf).max())


def _inside(
    situation: Situation,
    demands: Demands,
    sampled: _Sampled,
    acting: Beliefs,
    points: Array,
    highest: int,
) -> Array | None:
    """Maxima (n, d) of the mean for limits tightened by sds of the outputs; None if the highest is likely feasible.

    At a maximum on a limit, every second run would break it. `points` are maxima without this, best first.
    """
    drawn = sampled.at(points[[highest]])
    if drawn.feasible(demands.risk).mean() >= _SAFE:
        return None
    sds = np.array(
        [np.broadcast_to(drawn.columns[limit.column], drawn.shape).std() for limit in demands.network.limits]
    )
    begin = np.concatenate([points[[highest]], points[:_STARTS]])
    return _free(situation, [p for some in _SDS for p in refine_mean(acting, begin, demands.penalty(some * sds))])


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
