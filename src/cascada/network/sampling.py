"""Samples of a network from the cascaded posterior: each stage's output drawn at the drawn outputs of its parents.

All points share the draws ξ (common random numbers), so that chance does not blur differences between points. An output
is μ(z) + σ(z)·ξ, or μ(z) + Γ_t(z, z)^{1/2}ξ for a joint norm. Outputs with ranges are clipped to them.

Limited outputs are sampled together with the objective. So an improvement counts in a sample only if the limits hold in
the same sample, times the estimated probability that no stage fails there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array, BoolArray
from cascada.gp import Prediction
from cascada.network.beliefs import Beliefs
from cascada.network.failures import FailureRisk
from cascada.network.formula import likely_values
from cascada.network.mean import passed_on, within_ranges_of
from cascada.network.network import Network

# Samples are computed in blocks of about this many values.
_BLOCK = 1 << 17


def standard_draws(beliefs: Beliefs, samples: int, rng: np.random.Generator) -> Array:
    """Standard normal draws ξ (samples, m), one for every modelled output.

    Those of an objective that is minimised are negated, so that a process and its mirrored process have the same
    samples of what is maximised.
    """
    columns = [column for stage in beliefs.stages if stage.belief is not None for column in stage.node.modelled_columns]
    draws = rng.standard_normal((samples, len(columns)))
    if beliefs.network.sign < 0:
        draws[:, np.array(columns) == beliefs.network.objective_column] *= -1.0
    return draws


@dataclass(frozen=True, eq=False)
class Samples:
    """S samples of all values of a network at n points."""

    network: Network
    columns: Mapping[int, Array]  #: by column: (n, 1) if a value is the same in every sample, else (n, S)
    undefined: BoolArray  #: (n, 1) or (n, S): where a formula has no value
    shape: tuple[int, int]  #: (n, S)

    @property
    def objective(self) -> Array:
        """Samples (n, S) of what is maximised; −∞ where a formula is not defined."""
        values = np.broadcast_to(self.columns[self.network.objective_column], self.shape)
        return np.where(self.undefined, -np.inf, self.network.sign * values)

    def feasible(self, risk: FailureRisk | None = None) -> Array:
        """The probability (n, S) that a sample is feasible: 0 where a limit is broken, else that of no failure."""
        found = np.where(self.undefined, 0.0, np.ones(self.shape))
        for limit in self.network.limits:
            value = self.columns[limit.column]
            found = found * ((value >= limit.low) & (value <= limit.high))
        for stage in () if risk is None else risk.stages:
            inputs = [self.columns[column] for column in stage.columns]
            shape = np.broadcast_shapes(*(column.shape for column in inputs))
            rows = np.stack([np.broadcast_to(column, shape) for column in inputs], axis=-1).reshape(-1, len(inputs))
            found = found * (1.0 - stage.at(rows).reshape(shape))
        return found

    def margin(self, units: Array) -> Array:
        """By how much (n, S) the limits hold, the least of them, in these units (one for each limit)."""
        least = np.full(self.shape, np.inf)
        for limit, unit in zip(self.network.limits, units, strict=True):
            value = self.columns[limit.column]
            least = np.minimum(least, np.minimum(value - limit.low, limit.high - value) / unit)
        return np.where(self.undefined, -np.inf, least)


def improvement(
    beliefs: Beliefs,
    coordinates: Array,
    draws: Array,
    best: float,
    tracked: Mapping[int, Prediction] | None = None,
    risk: FailureRisk | None = None,
) -> Array:
    """The mean over `standard_draws` (S, m) of max{value − best, 0} at coordinates (n, d), as (n,).

    The value is that of what is maximised. A sample counts only with its probability of being feasible: the limits of
    the network hold, and by `risk` no stage fails. With best = −∞ the result is the mean of the values, feasible or
    not. `tracked` are available predictions, by the position of a stage whose inputs are controls only.
    """
    limited = np.isfinite(best) and (bool(beliefs.network.limits) or risk is not None)
    result = np.empty(len(coordinates))
    for block, samples in _blocks(beliefs, coordinates, draws, tracked):
        values = samples.objective
        gains = values if np.isinf(best) else np.maximum(values - best, 0.0)
        result[block] = (gains * samples.feasible(risk) if limited else gains).mean(axis=1)
    return result


def feasibility(
    beliefs: Beliefs,
    coordinates: Array,
    draws: Array,
    units: Array,
    tracked: Mapping[int, Prediction] | None = None,
    risk: FailureRisk | None = None,
) -> Array:
    """The probability (n,) that coordinates (n, d) are feasible, from `standard_draws` (S, m).

    Where no sample is feasible it is the mean of the margin in these units instead, which is negative. So points can be
    compared even if all of them break a limit in every sample.
    """
    result = np.empty(len(coordinates))
    for block, samples in _blocks(beliefs, coordinates, draws, tracked):
        probability = samples.feasible(risk).mean(axis=1)
        result[block] = np.where(probability > 0, probability, np.minimum(samples.margin(units).mean(axis=1), 0.0))
    return result


def sample_objective(
    beliefs: Beliefs, coordinates: Array, draws: Array, tracked: Mapping[int, Prediction] | None = None
) -> Array:
    """Samples (n, S) of what is maximised at coordinates (n, d); −∞ where a formula is not defined."""
    return sample_network(beliefs, coordinates, draws, tracked).objective


def sample_network(
    beliefs: Beliefs, coordinates: Array, draws: Array, tracked: Mapping[int, Prediction] | None = None
) -> Samples:
    """Samples of all values at coordinates (n, d), from `standard_draws` (S, m)."""
    n = len(coordinates)
    # One column per value: (n, 1) if it is the same in every sample, else (n, S).
    columns: dict[int, Array] = {j: coordinates[:, [j]] for j in range(coordinates.shape[1])}
    position = 0
    undefined = np.zeros((n, 1), dtype=bool)  # where a formula has no value
    for i, stage in enumerate(beliefs.stages):
        declared, node = stage.node.stage, stage.node
        shape = np.broadcast_shapes(*(columns[j].shape for j in node.inputs))
        inputs = np.stack([np.broadcast_to(columns[j], shape) for j in node.inputs], axis=-1).reshape(
            -1, len(node.inputs)
        )
        outputs = dict(zip(declared.outputs, node.columns, strict=True))
        if declared.known:
            values = likely_values(stage, inputs)
            undefined = undefined | np.isnan(values).any(axis=1).reshape(shape)
            values = within_ranges_of(stage, np.nan_to_num(values))  # a number for the later stages
            columns |= {column: values[:, [j]].reshape(shape) for j, column in enumerate(node.columns)}
            continue
        columns |= {outputs[name]: values.reshape(shape) for name, values in passed_on(stage, inputs).items()}
        if stage.belief is None:
            continue
        count = len(declared.modelled)
        xi = draws[:, position : position + count]
        position += count
        prediction = (tracked or {}).get(i) or stage.belief.posterior.predict(inputs)
        drawn = stage.belief.sample(prediction, shape, xi)
        columns |= {outputs[name]: drawn[..., j] + declared.offset[j] for j, name in enumerate(declared.modelled)}
        if node.ranges is not None:
            ends = dict(zip(node.columns, zip(*node.ranges, strict=True), strict=True))
            columns |= {column: np.clip(columns[column], *ends[column]) for column in node.modelled_columns}
    return Samples(beliefs.network, columns, undefined, (n, len(draws)))


def _blocks(
    beliefs: Beliefs, coordinates: Array, draws: Array, tracked: Mapping[int, Prediction] | None
) -> Iterator[tuple[slice, Samples]]:
    """Samples at some of the coordinates after the other, so that little memory is needed."""
    size = max(1, _BLOCK // len(draws))
    for start in range(0, len(coordinates), size):
        block = slice(start, start + size)
        some = {i: Prediction(p.mean[block], p.sd[block]) for i, p in (tracked or {}).items()}
        yield block, sample_network(beliefs, coordinates[block], draws, some)
