"""What a setting has to satisfy, as far as it can be estimated: limits, and that no stage fails.

For algorithms that choose points by estimates. Penalties lead their ascents to settings that satisfy it, and samples of
the whole network give the probability that a setting does.
"""

from dataclasses import dataclass

import numpy as np

from cascada.algorithms.algorithm import Situation
from cascada.arrays import Array, BoolArray
from cascada.network import Network
from cascada.network.failures import FailureRisk
from cascada.network.limits import Limit, margins, satisfied
from cascada.search.feasible import tightened
from cascada.search.penalty import Penalty

# Of the objective's spread per unit of a limited output: more than any objective gains by breaking a limit.
_STEEPNESS = 30.0
# Limits are tightened by this part of a unit, so that the maximum of a penalised mean satisfies them.
_INWARDS = 1e-4
# From this probability of failure on, a failure is more likely than not.
_EVEN = 0.5


@dataclass(frozen=True, eq=False)
class Demands:
    """The limits of a network and the estimated risk of failures."""

    network: Network
    units: Array  #: the spread of every limited output over the runs
    spread: float  #: of the objective over the runs
    risk: FailureRisk | None

    @classmethod
    def of(cls, situation: Situation) -> "Demands | None":
        """The demands in a situation; None without limits and without failures that count."""
        network, data = situation.beliefs.network, situation.data
        risk = None if situation.failed is None else FailureRisk.of(network, data, situation.failed)
        if not network.limits and risk is None:
            return None
        units = np.array([_spread(data[:, limit.column]) or _width(limit) for limit in network.limits])
        return cls(network, units, _spread(data[:, network.objective_column]) or 1.0, risk)

    def penalty(self, inwards: Array | None = None) -> Penalty:
        """The penalty of settings that break limits tightened by these amounts, one for each limit."""
        least = _INWARDS * self.units
        amounts = least if inwards is None else np.maximum(inwards, least)
        return Penalty(tightened(self.network.limits, amounts), self.units, _STEEPNESS * self.spread, self.risk)

    def margin(self) -> Penalty:
        """What is maximised as long as no feasible setting is known: the margin of the limits alone."""
        return Penalty(self.network.limits, self.units, None, self.risk)

    def hold(self, means: Array) -> BoolArray:
        """Where means of all values (n, V) satisfy the limits, and no failure is likely, (n,)."""
        found = satisfied(self.network.limits, means)
        for stage in () if self.risk is None else self.risk.stages:
            found &= stage.at(means[:, list(stage.columns)]) < _EVEN
        return found

    def nearest(self, situation: Situation) -> Array:
        """Points (k, d) around which to search closely: the run that misses the limits by least, if there is one."""
        d, data = situation.domain.dimension, situation.data
        if not self.network.limits:
            return data[:0, :d]
        margin = (margins(self.network.limits, data) / self.units).min(axis=1)
        return data[[int(np.nanargmax(margin))], :d] if np.isfinite(margin).any() else data[:0, :d]


def _spread(column: Array) -> float:
    """The standard deviation of the observed values (t,); 0 without any."""
    seen = column[np.isfinite(column)]
    return float(seen.std()) if len(seen) else 0.0


def _width(limit: Limit) -> float:
    """The width of a band, else 1."""
    return limit.high - limit.low if np.isfinite(limit.high - limit.low) else 1.0
