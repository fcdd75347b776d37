"""The estimated probability that a stage fails, near inputs at which it failed (`Stage(failure="infeasible")`).

At an input of the stage it is the frequency of failures among the runs of that stage, each weighted by its distance to
the power −(d + 1), as in Shepard's interpolation. So it is near 1 next to a failed run, near 0 next to one that ended,
and it becomes sharper as runs are added. One imagined success at a distance of a fifth of the inputs' ranges is counted
with them: far from all runs no failure is expected. An estimate for choosing points, never part of a bound.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.network.network import Network
from cascada.network.node import Node

_REACH = 0.2  # the distance of the imagined success
_CLOSEST = 1e-6  # smaller distances are raised to this one


def failed_stage(network: Network, outputs: Mapping[str, Sequence[float]]) -> str | None:
    """The stage at which a failed run ended: the first one, parents first, without outputs; None if all have some."""
    return next((node.stage.name for node in network.nodes if node.stage.name not in outputs), None)


def counts_as_infeasible(network: Network, outputs: Mapping[str, Sequence[float]]) -> bool:
    """Whether a failed run with these outputs, by stage, counts as one that breaks a limit."""
    name = failed_stage(network, outputs)
    return name is not None and network.node(name).stage.failure == "infeasible"


@dataclass(frozen=True, eq=False)
class StageRisk:
    """The runs of one stage, by their inputs, and the distances between them: root mean squares in `units`."""

    columns: tuple[int, ...]  #: of the stage's inputs
    failed: Array  #: (k, d)
    ended: Array  #: (m, d)
    units: Array  #: (d,)
    codes: tuple[int, ...] = ()  #: positions of the inputs that are codes: two different ones are one unit apart

    def at(self, inputs: Array) -> Array:
        """The probability of a failure at inputs (n, d), (n,)."""
        failed = sum((self._weight(inputs, run)[0] for run in self.failed), np.zeros(len(inputs)))
        ended = sum((self._weight(inputs, run)[0] for run in self.ended), np.full(len(inputs), self._imagined))
        return failed / (failed + ended)

    def gradient(self, inputs: Array) -> tuple[Array, Array]:
        """The same (n,) and its gradient (n, d)."""
        n, d = inputs.shape
        sums, slopes = [np.zeros(n), np.full(n, self._imagined)], [np.zeros((n, d)), np.zeros((n, d))]
        for i, runs in enumerate((self.failed, self.ended)):
            for run in runs:
                weight, slope = self._weight(inputs, run)
                sums[i] += weight
                slopes[i] += slope
        total = sums[0] + sums[1]
        found = (slopes[0] * sums[1][:, None] - slopes[1] * sums[0][:, None]) / total[:, None] ** 2
        return sums[0] / total, found

    @property
    def _power(self) -> int:
        return len(self.columns) + 1

    @property
    def _imagined(self) -> float:
        return float(_REACH**-self._power)

    def _weight(self, inputs: Array, run: Array) -> tuple[Array, Array]:
        """The weights (n,) of one run at inputs (n, d), and their slopes (n, d)."""
        away = (inputs - run) / self.units
        away[:, list(self.codes)] = away[:, list(self.codes)] != 0
        distance = np.sqrt(np.vecdot(away, away) / len(self.columns))
        close = distance < _CLOSEST
        distance = np.where(close, _CLOSEST, distance)
        weight = distance**-self._power
        slope = -self._power * (weight / distance**2)[:, None] * away / (self.units * len(self.columns))
        return weight, np.where(close[:, None], 0.0, slope)


@dataclass(frozen=True, eq=False)
class FailureRisk:
    """The risks of all stages whose failures count as broken limits and that failed at least once."""

    stages: tuple[StageRisk, ...]

    @classmethod
    def of(cls, network: Network, data: Array, failed: Array) -> "FailureRisk | None":
        """From observed runs (t, V) and failed runs (k, V), NaN where nothing was observed; None without failures."""
        declared = [node for node in network.nodes if node.stage.failure == "infeasible"]
        if not len(failed) or not declared:
            return None
        ends = [_first_missing(network, row) for row in failed]
        risks = []
        for node in declared:
            broken = failed[[end is node for end in ends]][:, list(node.inputs)]
            if len(broken):
                known = np.isfinite(data[:, [*node.inputs, *node.columns]]).all(axis=1)
                ended = np.unique(data[known][:, list(node.inputs)], axis=0)
                units = _units(network, node, np.concatenate([data, failed]))
                codes = tuple(node.choices)
                risks.append(StageRisk(node.inputs, np.unique(broken, axis=0), ended, units, codes))
        return cls(tuple(risks)) if risks else None


def _first_missing(network: Network, row: Array) -> Node | None:
    """The first stage, parents first, without outputs in a row (V,)."""
    return next((node for node in network.nodes if np.isnan(row[list(node.columns)]).any()), None)


def _units(network: Network, node: Node, data: Array) -> Array:
    """The unit of each input (d,): the range of a control, or the observed range of a parent's output."""
    domain = network.domain
    sides = domain.upper - domain.lower
    units = [sides[j] if j < domain.dimension else _spread(data[:, j]) for j in node.inputs]
    return np.array([unit if unit > 0 else 1.0 for unit in units])


def _spread(column: Array) -> float:
    seen = column[np.isfinite(column)]
    return float(np.ptp(seen)) if len(seen) else 0.0
