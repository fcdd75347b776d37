"""The worth of a plan where norms are estimated: by how much it lowers the expected improvement that is still open.

A plan that completes a run may reach a better value, and the improvement that it is expected to reach counts as well:
nothing is proven here, and the best value is what is wanted.
"""

from dataclasses import dataclass

import numpy as np

from cascada.algorithms.algorithm import Situation
from cascada.algorithms.step_plans import Plan
from cascada.arrays import Array
from cascada.network import Beliefs, composite_mean
from cascada.network.mean import forward
from cascada.network.sampling import sample_network, standard_draws

_SAMPLES = 64
# The weight of the point to run; the rest is shared by this many of as many random points, the most promising.
_OWN, _OTHERS, _RANDOM = 0.5, 16, 256


@dataclass(frozen=True, eq=False)
class Promise:
    """The weighted expected improvement over a value at points (n, d), from samples of the whole network."""

    points: Array
    weights: Array
    level: float
    draws: Array
    open: float  # what can still be gained, by the beliefs that there are

    @classmethod
    def at(cls, situation: Situation, beliefs: Beliefs, x: Array, rng: np.random.Generator) -> "Promise":
        """The promise at a point that was suggested, and at the most promising of some random points."""
        network, domain = beliefs.network, situation.domain
        draws = standard_draws(beliefs, _SAMPLES, rng)
        level = situation.best
        if not np.isfinite(level):
            mean = network.sign * float(composite_mean(beliefs, x[None])[0, network.objective_column])
            level = mean if np.isfinite(mean) else 0.0
        random = domain.encode(domain.decode(rng.uniform(domain.lower, domain.upper, (_RANDOM, domain.dimension))))
        order = np.argsort(-_improvement(beliefs, random, draws, level), kind="stable")[:_OTHERS]
        points = np.concatenate([x[None], random[order]])
        weights = np.append(_OWN, np.full(len(order), (1 - _OWN) / len(order)))
        now = float(weights @ _improvement(beliefs, points, draws, level))
        return cls(points, weights, level, draws, now)

    def fall(self, plan: Plan) -> float:
        """By how much the open improvement falls as if a plan was run, and the run that it completes had its mean."""
        level = self.level
        if plan.end is not None:
            network, d = plan.after.network, self.points.shape[1]
            values = forward(plan.after, plan.end[None, :d], observed=plan.end[None, d:])[0]
            value = network.sign * float(values[0, network.objective_column])
            level = max(level, value) if np.isfinite(value) else level
        return self.open - float(self.weights @ _improvement(plan.after, self.points, self.draws, level))


def _improvement(beliefs: Beliefs, points: Array, draws: Array, level: float) -> Array:
    """The expected improvement (n,) over a value at points (n, d); settings that break a limit improve nothing."""
    drawn = sample_network(beliefs, points, draws)
    gains = np.maximum(np.nan_to_num(drawn.objective, nan=-np.inf) - level, 0.0)
    if beliefs.network.limits:
        gains = gains * drawn.feasible()
    mean: Array = gains.mean(axis=1)
    return mean
