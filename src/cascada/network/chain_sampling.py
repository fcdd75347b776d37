"""Fast version of `sampling.improvement` for chains of scalar stages, from tables of a stated accuracy.

After the first stage every sample moves along a line per stage, where mean and variance are read from a table
(`gp.line`). Tables also show which points improve in no sample: an interval that contains all samples is propagated
through the stages, and a point whose last interval lies below the best value has improvement exactly 0.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np

from cascada.arrays import Array, IntArray
from cascada.confidence import Belief
from cascada.confidence.range_maximum import range_maximum, sparse_maxima
from cascada.gp import Prediction
from cascada.gp.line import Line, LineTable, suits
from cascada.network.beliefs import Beliefs

_NODES_PER_LENGTHSCALE = 400
_MOST_LENGTHSCALES = 40
_BLOCK = 1 << 15  # values per block, which fit a cache


@dataclass(frozen=True, eq=False)
class ChainSampler:
    """Tables of the later stages, for draws (S, m) and for the predictions `first` of the first stage."""

    beliefs: Beliefs
    first: Prediction  # at the points, (n, 1) and (n,)
    draws: Array
    tables: tuple[LineTable, ...]

    @classmethod
    def of(cls, beliefs: Beliefs, first: Prediction, draws: Array) -> "ChainSampler | None":
        """Tables that cover every sample; None if the network is not such a chain or a range is too long."""
        if not is_scalar_chain(beliefs):
            return None
        low, high = _ends(first.mean[:, 0] + _offset(beliefs, 0), first.sd, draws[:, 0])
        reach = float(low.min()), float(high.max())
        tables = []
        for i, stage in enumerate(beliefs.stages[1:], start=1):
            posterior = cast("Belief", stage.belief).posterior
            unit = float(posterior.kernel.lengthscales(1)[0])
            if not reach[1] - reach[0] <= _MOST_LENGTHSCALES * unit:
                return None
            nodes = 8 + int(_NODES_PER_LENGTHSCALE * (reach[1] - reach[0]) / unit)
            table = Line(posterior, *reach).table(nodes)
            tables.append(table)
            mean, sd = table.at_nodes
            slack = _slack(table, draws[:, i])
            low, high = _ends(mean + _offset(beliefs, i), sd, draws[:, i])
            reach = float(low.min()) - slack, float(high.max()) + slack
        return cls(beliefs, first, draws, tuple(tables))

    def improvement(self, best: float) -> Array:
        """The mean over the draws of max{value − best, 0} at every point, (n,)."""
        result = np.zeros(len(self.first.sd))
        hopeful = np.flatnonzero(self.highest() > best)
        size = max(1, _BLOCK // len(self.draws))
        for start in range(0, len(hopeful), size):
            some = hopeful[start : start + size]
            gains = self.values(some)
            gains -= best
            np.maximum(gains, 0.0, out=gains)
            result[some] = gains.mean(axis=1)
        return result

    def values(self, points: IntArray) -> Array:
        """Samples (k, S) of what is maximised at the points with these indices."""
        value = self.first.mean[points] + self.first.sd[points, None] * self.draws[:, 0] + _offset(self.beliefs, 0)
        for i, table in enumerate(self.tables, start=1):
            value = table.draw(value, self.draws[:, i])
            value += _offset(self.beliefs, i)
        value *= self.beliefs.network.sign
        return value

    def highest(self) -> Array:
        """An upper bound of all samples of what is maximised, at every point (n,)."""
        low, high = _ends(self.first.mean[:, 0] + _offset(self.beliefs, 0), self.first.sd, self.draws[:, 0])
        for i, table in enumerate(self.tables, start=1):
            mean, sd = table.at_nodes
            bottom, top = _ends(mean + _offset(self.beliefs, i), sd, self.draws[:, i])
            slack = _slack(table, self.draws[:, i])
            first = np.clip(np.floor((low - table.start) / table.step).astype(np.int64), 0, len(mean) - 1)
            last = np.clip(np.ceil((high - table.start) / table.step).astype(np.int64), 0, len(mean) - 1)
            low = -range_maximum(sparse_maxima(-bottom), first, last) - slack
            high = range_maximum(sparse_maxima(top), first, last) + slack
        return high if self.beliefs.network.sign > 0 else -low


def is_scalar_chain(beliefs: Beliefs) -> bool:
    """Whether controls enter at the first stage only and every later stage has one input and suits tables.

    No output may have a range, to which samples would have to be clipped.
    """
    stages = beliefs.stages
    if any(stage.node.ranges is not None for stage in stages):
        return False
    if any(s.belief is None or s.belief.joint or s.node.stage.passes or len(s.node.columns) != 1 for s in stages):
        return False
    d = beliefs.network.domain.dimension
    if max(stages[0].node.inputs) >= d or beliefs.network.objective_column != stages[-1].node.columns[0]:
        return False
    chained = all(b.node.inputs == a.node.columns for a, b in pairwise(stages))
    return chained and all(suits(cast("Belief", stage.belief).posterior) for stage in stages[1:])


def _offset(beliefs: Beliefs, i: int) -> float:
    return float(beliefs.stages[i].node.stage.offset[0])


def _ends(mean: Array, sd: Array, xi: Array) -> tuple[Array, Array]:
    """The lowest and the highest of mean + sd·ξ over all draws."""
    return mean + sd * xi.min(), mean + sd * xi.max()


def _slack(table: LineTable, xi: Array) -> float:
    """How far mean + sd·ξ between two nodes can lie outside the range of its values at them.

    |μ''| ≤ √3·‖μ‖s/ℓ², and σ changes by at most s/ℓ per unit; the table's own errors are added.
    """
    posterior = table.line.posterior
    unit, s = float(posterior.kernel.lengthscales(1)[0]), float(np.sqrt(posterior.kernel.variance))
    step, norm = table.step / unit, float(posterior.mean_norm[0])
    largest = float(np.abs(xi).max())
    own = float(table.mean_error[0]) + np.sqrt(table.variance_error) * largest
    return float(np.sqrt(3) / 8 * norm * s * step**2 + 0.5 * s * step * largest + 2 * own + 1e-12 * (1 + norm))
