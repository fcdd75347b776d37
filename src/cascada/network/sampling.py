"""Samples of the objective from the cascaded posterior: each stage's output drawn at the drawn outputs of its parents.

All points share the draws ξ (common random numbers), so that chance does not blur differences between points. An output
is μ(z) + σ(z)·ξ, or μ(z) + Γ_t(z, z)^{1/2}ξ for a joint norm.
"""

from collections.abc import Mapping

import numpy as np

from cascada.arrays import Array
from cascada.gp import Prediction
from cascada.network.beliefs import Beliefs
from cascada.network.formula import likely_values
from cascada.network.mean import passed_on

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


def improvement(
    beliefs: Beliefs,
    coordinates: Array,
    draws: Array,
    best: float,
    tracked: Mapping[int, Prediction] | None = None,
) -> Array:
    """The mean over `standard_draws` (S, m) of max{value − best, 0} at coordinates (n, d), as (n,).

    The value is that of what is maximised. With best = −∞ the result is the mean of the values. `tracked` are available
    predictions, by the position of a stage whose inputs are controls only.
    """
    result = np.empty(len(coordinates))
    size = max(1, _BLOCK // len(draws))
    for start in range(0, len(coordinates), size):
        block = slice(start, start + size)
        some = {i: Prediction(p.mean[block], p.sd[block]) for i, p in (tracked or {}).items()}
        values = sample_objective(beliefs, coordinates[block], draws, some)
        gains = values if np.isinf(best) else np.maximum(values - best, 0.0)
        result[block] = gains.mean(axis=1)
    return result


def sample_objective(
    beliefs: Beliefs, coordinates: Array, draws: Array, tracked: Mapping[int, Prediction] | None = None
) -> Array:
    """Samples (n, S) of what is maximised at coordinates (n, d); −∞ where a formula is not defined."""
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
            values = np.nan_to_num(values)  # a number for the later stages
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
    network = beliefs.network
    values = np.broadcast_to(columns[network.objective_column], (n, len(draws)))
    return np.where(undefined, -np.inf, network.sign * values)
