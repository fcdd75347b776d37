"""GPN-EI: points of GPN-UCB at several widths, of which the one with the largest expected improvement is run.

For processes whose norms are not known. The joint (x, η) form of the upper bound is a strong search: it finds where the
objective could be large if all stages conspired. But one fixed width is either timid or careless, and close to a local
optimum its points differ from the last run by nothing. Expected improvement, by samples of the whole network, weighs
them against each other. Where it says that no point improves by anything to speak of, a point is run that is new.

On candidates, and where a stage has a general operator-valued kernel, cEI.
"""

from dataclasses import dataclass, replace

import numpy as np

from cascada.algorithms.algorithm import Context, Suggestion
from cascada.algorithms.cascaded_ei import CascadedEI
from cascada.algorithms.expected_improvement import log_expected_improvement
from cascada.algorithms.scored import near_best, random_free_point
from cascada.arrays import Array
from cascada.confidence import BallBelief, Belief
from cascada.gp import BlockPosterior
from cascada.network import Beliefs, StageBelief, hallucinated
from cascada.network.sampling import draw_count, sample_objective
from cascada.search import ascend
from cascada.search.starts import apart, best_apart

# Improvements below these parts of the objective's spread are none to speak of: then every other, or every, run is new.
_LITTLE, _NOTHING = 1e-5, 1e-8
# A point this far from all runs, in sides of the box, is new.
_NEW = 0.02


@dataclass(frozen=True)
class GPNEI:
    """The point of GPN-UCB at one of several `widths` (posterior sds) with the largest expected improvement."""

    widths: tuple[float, ...] = (1.0, 3.0)
    samples: int = 128

    def suggest(self, context: Context, rng: np.random.Generator) -> Suggestion:
        """A point that was not run yet; None where every candidate was."""
        if context.candidates is not None or any(_has_no_ascent(stage) for stage in context.beliefs.stages):
            return CascadedEI(self.samples).suggest(context, rng)
        beliefs = hallucinated(context.beliefs, context.pending)
        near = near_best(context)
        found = [point for width in self.widths for point in ascend(of_width(beliefs, width), rng, near)]
        points = np.array([point for point in found if not context.is_taken(point)])
        if not len(points):
            return Suggestion(random_free_point(context, rng))
        draws = rng.spawn(1)[0].standard_normal((self.samples, draw_count(beliefs)))
        return Suggestion(points[self._choice(context, points, sample_objective(beliefs, points, draws))])

    def recommend(self, context: Context) -> Array | None:  # noqa: ARG002
        """None: the best run is the answer."""
        return None

    def _choice(self, context: Context, points: Array, samples: Array) -> int:
        """Which of the points (n, d) to run, from samples (n, S) of what is maximised there."""
        if np.isinf(context.best):
            return int(samples.mean(axis=1).argmax())
        gain = np.maximum(samples - context.best, 0.0).mean(axis=1)
        spread = _spread(context)
        tired = gain.max() <= _NOTHING * spread or (gain.max() <= _LITTLE * spread and context.trial % 2 == 0)
        run = np.concatenate(
            [context.told[:, : context.domain.dimension], context.pending[:, : context.domain.dimension]]
        )
        new = apart(context.domain, points, run) > _NEW
        if not tired or not new.any():
            return int(gain.argmax())
        with np.errstate(invalid="ignore"):
            likely = log_expected_improvement(samples.mean(axis=1) - context.best, samples.std(axis=1))
        return int(np.where(new & ~np.isnan(likely), likely, -np.inf).argmax())


def _has_no_ascent(stage: StageBelief) -> bool:
    """Whether a stage's bounds have no gradients: a general operator-valued kernel."""
    return isinstance(stage.belief, BallBelief) and isinstance(stage.belief.posterior, BlockPosterior)


def of_width(beliefs: Beliefs, width: float) -> Beliefs:
    """The same beliefs with bounds μ ± width·σ, whatever their norms."""

    def changed(stage: StageBelief) -> StageBelief:
        belief = stage.belief
        if isinstance(belief, Belief):
            bound = np.sqrt(belief.posterior.spent + width**2)
            return replace(stage, belief=Belief(belief.posterior, bound, belief.lipschitz))
        if isinstance(belief, BallBelief):
            return replace(stage, belief=replace(belief, norm_bound=float(np.sqrt(belief.posterior.spent + width**2))))
        return stage

    return Beliefs(beliefs.network, tuple(changed(stage) for stage in beliefs.stages))


def _spread(context: Context) -> float:
    """The standard deviation of the objective over runs that are apart from each other: a crowd counts once."""
    network = context.beliefs.network
    values = network.sign * context.told[:, network.objective_column]
    seen = np.isfinite(values)
    points, values = context.told[seen, : context.domain.dimension], values[seen]
    crowdless = best_apart(context.domain, points, values, len(values), _NEW)
    return float(values[crowdless].std())
