"""The joint form of the upper bound: the objective as a function of controls and of deviations from the means.

With η_ij ∈ [−1, 1] for every modelled output, z_ij = μ_ij(z) + η_ij·ρ_ij·σ_ij(z) takes every value that the norm bound
allows for output j of stage i, so the maximum of the objective over (x, η) is the UCB of the union form. Without
deviations it is the composite mean.

A process whose objective is minimised takes −η of the objective: then it and its mirrored process have the same values.

Outputs with ranges are clipped to them before they enter later stages, with gradient 0 where they are clipped. What is
maximised and what is penalised is not clipped: an ascent could not move on a plateau.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cascada.arrays import Array, BoolArray
from cascada.confidence import Belief
from cascada.confidence.split_belief import SplitBelief
from cascada.errors import ArgumentError
from cascada.network import Beliefs, StageBelief
from cascada.network.formula import likely_values
from cascada.network.mean import all_outputs, passed_on, within_ranges_of
from cascada.search.penalty import Penalty


@dataclass(frozen=True, eq=False)
class Joint:
    """What is maximised as a function of (x, η), with its gradient, for many points at once.

    It is −∞ where a formula is not defined. With `deviations=False` there is no η: the function is the composite mean.
    A `penalty` is subtracted, or takes the place of the objective.
    """

    beliefs: Beliefs
    deviations: bool = True
    penalty: Penalty | None = None

    @cached_property
    def size(self) -> int:
        """The number of controls plus the number of η."""
        return self.beliefs.network.domain.dimension + (sum(self._counts) if self.deviations else 0)

    @cached_property
    def _counts(self) -> list[int]:
        return [len(stage.node.stage.modelled) for stage in self.beliefs.stages]

    def __call__(self, points: Array) -> tuple[Array, Array]:
        """Values (n,) of what is maximised at points (n, size), and gradients (n, size)."""
        network = self.beliefs.network
        n, d = len(points), network.domain.dimension
        values, gradients = np.empty((n, network.width)), np.zeros((n, network.width, self.size))
        values[:, :d] = points[:, :d]
        gradients[:, np.arange(d), np.arange(d)] = 1.0
        undefined = np.zeros(n, dtype=bool)
        eta, position = self._signed(points[:, d:]), d
        unclipped: dict[int, tuple[Array, Array]] = {}
        for stage, count in zip(self.beliefs.stages, self._counts, strict=True):
            inputs, columns = list(stage.node.inputs), list(stage.node.columns)
            some = eta[:, position - d : position - d + count] if self.deviations else None
            out, slope, push = _stage(stage, values[:, inputs], some)
            undefined |= _without_values(out, slope)
            values[:, columns] = out
            gradients[:, columns] = slope @ gradients[:, inputs]
            if push is not None:
                modelled = stage.node.modelled_columns
                gradients[:, modelled, np.arange(position, position + count)] += push
                position += count
            if stage.node.ranges is not None:
                unclipped |= {column: (values[:, column].copy(), gradients[:, column].copy()) for column in columns}
                inside = within_ranges_of(stage, values[:, columns])
                gradients[:, columns] *= (inside == values[:, columns])[:, :, None]
                values[:, columns] = inside

        def read(column: int) -> tuple[Array, Array]:
            return unclipped.get(column) or (values[:, column], gradients[:, column])

        value, slopes = read(network.objective_column)
        value, slopes = network.sign * value, network.sign * slopes
        if self.penalty is not None:
            cost, steep = self.penalty.of(read)
            assert steep is not None, "gradients were read"
            alone = self.penalty.weight is None
            value, slopes = (-cost, -steep) if alone else (value - cost, slopes - steep)
        slopes[:, d:] = self._signed(slopes[:, d:])
        slopes[:, network.domain.choices] = 0.0  # an ascent keeps their values
        return np.where(undefined, -np.inf, value), slopes

    def values(self, points: Array) -> Array:
        """The values without gradients, (n,): several times cheaper, most of all for formulas."""
        d = self.beliefs.network.domain.dimension
        return self.values_of(points[:, :d], points[:, None, d:])[:, 0]

    def values_of(self, x: Array, eta: Array) -> Array:
        """Values (n, K) at controls (n, d) with K values of η for each, (n, K, size − d).

        A stage whose inputs are controls only is predicted once for all K.
        """
        network = self.beliefs.network
        n, d = x.shape
        shape = eta.shape[:2]
        eta, position = self._signed(eta), 0
        # One column per value: (n, 1) if it is the same for all η of a point, else (n, K).
        columns: dict[int, Array] = {j: x[:, [j]] for j in range(d)}
        undefined = np.zeros((n, 1), dtype=bool)
        unclipped: dict[int, Array] = {}
        for stage, count in zip(self.beliefs.stages, self._counts, strict=True):
            given = [columns[j] for j in stage.node.inputs]
            wide = np.broadcast_shapes(*(column.shape for column in given))
            inputs = np.stack([np.broadcast_to(column, wide) for column in given], axis=-1).reshape(-1, len(given))
            some = eta[:, :, position : position + count] if self.deviations else None
            out = _outputs(stage, inputs, wide, some)
            position += count
            undefined = undefined | _without_values(out)
            if stage.node.ranges is not None:
                unclipped |= {column: out[..., j] for j, column in enumerate(stage.node.columns)}
                out = within_ranges_of(stage, out)
            columns |= {column: out[..., j] for j, column in enumerate(stage.node.columns)}

        def read(column: int) -> tuple[Array, None]:
            return unclipped.get(column, columns[column]), None

        found = network.sign * read(network.objective_column)[0]
        if self.penalty is not None:
            cost = self.penalty.of(read)[0]
            found = -cost if self.penalty.weight is None else found - cost
        return np.where(undefined, -np.inf, np.broadcast_to(found, shape))

    def exceeds(self, points: Array) -> BoolArray:
        """Where the penalty at points (n, size) is above 0, (n,)."""
        if self.penalty is None or self.penalty.weight is None:
            return np.zeros(len(points), dtype=bool)
        free = replace(self, penalty=None)
        return self.values(points) < free.values(points)

    def _signed(self, eta: Array) -> Array:
        """η (..., q) with the sign of what is maximised in the place of the objective."""
        network = self.beliefs.network
        if network.sign > 0 or not self.deviations:
            return eta
        columns = [column for stage in self.beliefs.stages for column in stage.node.modelled_columns]
        return eta * np.where(np.array(columns) == network.objective_column, -1.0, 1.0)


def _without_values(out: Array, slope: Array | None = None) -> BoolArray:
    """Where some output (..., p) is not defined; it is set to 0 there, a number for the later stages."""
    missing = np.isnan(out)
    if missing.any():
        out[missing] = 0.0
        if slope is not None:
            slope[missing] = 0.0
    return np.asarray(missing.any(axis=-1))


def _outputs(stage: StageBelief, inputs: Array, wide: tuple[int, ...], eta: Array | None) -> Array:
    """Outputs (n, K, p) or (n, 1, p) of a stage at inputs in the shape (n, K) or (n, 1), flattened."""
    if stage.node.stage.known:
        return likely_values(stage, inputs).reshape(*wide, -1)
    belief = _followed(stage)
    if belief is None:
        return all_outputs(stage, inputs, None).reshape(*wide, -1)
    if eta is None:
        return all_outputs(stage, inputs, belief.posterior.predict(inputs).mean).reshape(*wide, -1)
    prediction = belief.posterior.predict(inputs)
    declared = stage.node.stage
    drawn = prediction.mean.reshape(*wide, -1) + eta * (belief.radius_at(inputs) * prediction.sd[:, None]).reshape(
        *wide, -1
    )
    found = np.empty((*drawn.shape[:2], len(declared.outputs)))
    for output, values in passed_on(stage, inputs).items():
        found[..., declared.outputs.index(output)] = values.reshape(wide)
    found[..., declared.modelled_positions] = drawn + declared.offset
    return found


def _stage(stage: StageBelief, inputs: Array, eta: Array | None) -> tuple[Array, Array, Array | None]:
    """Outputs (n, p), their slopes in the inputs (n, p, d), and in η of the modelled outputs (n, count), if any."""
    declared = stage.node.stage
    n, d, p = len(inputs), inputs.shape[1], len(declared.outputs)
    if declared.known:
        return *_known(stage, inputs), None
    out, slope = np.empty((n, p)), np.zeros((n, p, d))
    for output, values in passed_on(stage, inputs).items():
        j, source = declared.outputs.index(output), stage.node.input_names.index(output)
        logarithmic = output in declared.controls and declared.controls[output].log
        out[:, j] = values
        slope[:, j, source] = values if logarithmic else 1.0
    belief = _followed(stage)
    if belief is None:
        return out, slope, None
    modelled = declared.modelled_positions
    if eta is None:
        mean, slope[:, modelled] = belief.posterior.mean_gradient(inputs)
        out[:, modelled] = mean + declared.offset
        return out, slope, None
    prediction = belief.posterior.predict_gradient(inputs)
    radius = belief.radius_at(inputs)
    push = radius * prediction.sd[:, None]
    out[:, modelled] = prediction.mean + eta * push + declared.offset
    slope[:, modelled] = prediction.mean_gradient + (eta * radius)[:, :, None] * prediction.sd_gradient[:, None]
    return out, slope, push


def _followed(stage: StageBelief) -> Belief | SplitBelief | None:
    """A stage's belief, output by output; None for a stage that only passes on.

    Raises `ArgumentError` for a general operator-valued kernel.
    """
    belief = stage.followed
    if belief is None and stage.belief is not None:
        raise ArgumentError(
            f"stage {stage.node.stage.name!r} has a general operator-valued kernel, which gradient ascent cannot "
            f"follow; use GPNUCB(search='branch_and_bound')."
        )
    return belief


def _known(stage: StageBelief, inputs: Array) -> tuple[Array, Array]:
    """A formula's values, and its slopes by central differences, all in one call."""
    n, d = inputs.shape
    steps = (1e-6 * np.maximum(1.0, np.abs(inputs)))[:, :, None] * np.eye(d)  # one row for each input that moves
    around = np.concatenate([inputs[:, None], inputs[:, None] + steps, inputs[:, None] - steps], axis=1)
    values = likely_values(stage, around.reshape(-1, d)).reshape(n, 1 + 2 * d, -1)
    apart = 2 * np.einsum("ndd->nd", steps)[:, :, None]
    slope = (values[:, 1 : d + 1] - values[:, d + 1 :]) / apart
    return values[:, 0].copy(), np.nan_to_num(slope.transpose(0, 2, 1).copy())
