"""Multi-start gradient ascent on the joint form of the upper bound, for boxes of too many dimensions to branch over.

With η_ij ∈ [−1, 1] for every modelled output, z_ij = μ_ij(z) + η_ij·ρ_ij·σ_ij(z) takes every value that the norm bound
allows for output j of stage i, so the maximum of the objective over (x, η) is the UCB of the union form. A local
maximum is a good point to run, but never a bound.
"""

from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Belief
from cascada.errors import ArgumentError
from cascada.network import Beliefs, StageBelief
from cascada.network.formula import known_values
from cascada.network.mean import all_outputs, passed_on
from cascada.search.starts import best_apart, snapped, starts

_WIDE, _CLOSE, _ACROSS = 192, 96, 480  # starts: see `starts`
_TRIED = 4  # values of η per start
_REFINED = 8  # this many of the best starts are refined jointly,
_APART = 0.03  # at least this far from each other, in sides of the box,
_POLISHED = 2  # and this many of the results separately
_JOINT_STEPS, _SEPARATE_STEPS = 60, 60


@dataclass(frozen=True, eq=False)
class Joint:
    """The objective as a function of (x, η), with its gradient, for many points at once."""

    beliefs: Beliefs

    @property
    def size(self) -> int:
        """The number of controls plus the number of modelled outputs."""
        return self.beliefs.network.domain.dimension + sum(len(s.node.stage.modelled) for s in self.beliefs.stages)

    def __call__(self, points: Array) -> tuple[Array, Array]:
        """Values (n,) of what is maximised at points (n, size), and gradients (n, size)."""
        network = self.beliefs.network
        n, d = len(points), network.domain.dimension
        values, gradients = np.empty((n, network.width)), np.zeros((n, network.width, self.size))
        values[:, :d] = points[:, :d]
        gradients[:, np.arange(d), np.arange(d)] = 1.0
        position = d
        for stage in self.beliefs.stages:
            inputs, columns = list(stage.node.inputs), list(stage.node.columns)
            count = len(stage.node.stage.modelled)
            eta = points[:, position : position + count]
            out, slope, push = _stage(stage, values[:, inputs], eta)
            values[:, columns] = out
            gradients[:, columns] = slope @ gradients[:, inputs]
            for j, column in enumerate(stage.node.modelled_columns):
                gradients[:, column, position + j] += push[:, j]
            position += count
        column, sign = network.objective_column, network.sign
        return sign * values[:, column], sign * gradients[:, column]

    def values(self, points: Array) -> Array:
        """The values without gradients, (n,): several times cheaper, most of all for formulas."""
        network = self.beliefs.network
        d = network.domain.dimension
        values = np.empty((len(points), network.width))
        values[:, :d] = points[:, :d]
        position = d
        for stage in self.beliefs.stages:
            count = len(stage.node.stage.modelled)
            inputs, eta = values[:, list(stage.node.inputs)], points[:, position : position + count]
            values[:, list(stage.node.columns)] = _outputs(stage, inputs, eta)
            position += count
        return network.sign * values[:, network.objective_column]


def ascend(beliefs: Beliefs, rng: np.random.Generator, near: Array) -> list[Array]:
    """Points (d,), coordinates, best first: local maxima of the joint form from many starts.

    `near` (k, d) are points for further starts (see `starts`), such as the best run so far.
    """
    domain, joint = beliefs.network.domain, Joint(beliefs)
    d = domain.dimension
    x = starts(domain, rng, near, _WIDE, _CLOSE, _ACROSS)
    eta = rng.uniform(-1, 1, (len(x), _TRIED, joint.size - d))
    tried = np.concatenate([np.repeat(x[:, None], _TRIED, axis=1), eta], axis=2)
    values = joint.values(tried.reshape(-1, joint.size)).reshape(len(x), _TRIED)
    begin = tried[np.arange(len(x)), values.argmax(axis=1)]
    chosen = best_apart(domain, x, values.max(axis=1), _REFINED, _APART)
    scale = max(float(np.ptp(values)), np.finfo(np.float64).tiny)  # makes the ascent independent of units
    jointly = _refined(joint, begin[chosen], scale, _JOINT_STEPS)
    order = np.argsort(-joint.values(jointly), kind="stable")
    separately = [_refined(joint, jointly[[i]], scale, _SEPARATE_STEPS)[0] for i in order[:_POLISHED]]
    found = np.concatenate([separately, jointly, begin[chosen]])
    points = snapped(domain, found[:, :d])
    order = np.argsort(-joint.values(np.hstack([points, found[:, d:]])), kind="stable")
    return [points[i] for i in order]


def _refined(joint: Joint, begin: Array, scale: float, iterations: int) -> Array:
    """Local maxima (k, size) from k starts, in one ascent of their sum: a step costs little more than for one point."""
    from scipy.optimize import minimize

    domain, k = joint.beliefs.network.domain, len(begin)
    free = joint.size - domain.dimension
    lower, upper = np.append(domain.lower, -np.ones(free)), np.append(domain.upper, np.ones(free))

    def negated(flat: Array) -> tuple[float, Array]:
        value, gradient = joint(flat.reshape(k, -1))
        return -float(value.sum()) / scale, -gradient.ravel() / scale

    found = minimize(
        negated,
        begin.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(np.tile(lower, k), np.tile(upper, k), strict=True)),
        options={"maxiter": iterations, "maxfun": 2 * iterations},
    )
    return found.x.reshape(k, -1)


def _outputs(stage: StageBelief, inputs: Array, eta: Array) -> Array:
    """Outputs (n, p) of a stage."""
    if stage.node.stage.known:
        return known_values(stage, inputs)
    belief = _followed(stage)
    if belief is None:
        return all_outputs(stage, inputs, None)
    prediction = belief.posterior.predict(inputs)
    return all_outputs(stage, inputs, prediction.mean + eta * (belief.radius * prediction.sd[:, None]))


def _stage(stage: StageBelief, inputs: Array, eta: Array) -> tuple[Array, Array, Array]:
    """Outputs (n, p), their slopes in the inputs (n, p, d), and in η of the modelled outputs (n, count)."""
    declared = stage.node.stage
    n, d, p = len(inputs), inputs.shape[1], len(declared.outputs)
    if declared.known:
        return *_known(stage, inputs), np.empty((n, 0))
    out, slope = np.empty((n, p)), np.zeros((n, p, d))
    for output, values in passed_on(stage, inputs).items():
        j, source = declared.outputs.index(output), stage.node.input_names.index(output)
        logarithmic = output in declared.controls and declared.controls[output].log
        out[:, j] = values
        slope[:, j, source] = values if logarithmic else 1.0
    belief = _followed(stage)
    if belief is None:
        return out, slope, np.empty((n, 0))
    prediction = belief.posterior.predict_gradient(inputs)
    push = belief.radius * prediction.sd[:, None]
    modelled = declared.modelled_positions
    out[:, modelled] = prediction.mean + eta * push + declared.offset
    slope[:, modelled] = prediction.mean_gradient + (eta * belief.radius)[:, :, None] * prediction.sd_gradient[:, None]
    return out, slope, push


def _followed(stage: StageBelief) -> Belief | None:
    """A stage's belief, output by output; None for a stage that only passes on.

    Raises `ArgumentError` for a general operator-valued kernel.
    """
    belief = stage.per_output
    if belief is None and stage.belief is not None:
        raise ArgumentError(
            f"stage {stage.node.stage.name!r} has a general operator-valued kernel, which gradient ascent cannot "
            f"follow; use GPNUCB(search='branch_and_bound')."
        )
    return belief


def _known(stage: StageBelief, inputs: Array) -> tuple[Array, Array]:
    """A formula's values, and its slopes by central differences."""
    values = known_values(stage, inputs)
    slope = np.empty((*values.shape, inputs.shape[1]))
    for j in range(inputs.shape[1]):
        step = 1e-6 * np.maximum(1.0, np.abs(inputs[:, j]))
        ahead, behind = inputs.copy(), inputs.copy()
        ahead[:, j] += step
        behind[:, j] -= step
        slope[:, :, j] = (known_values(stage, ahead) - known_values(stage, behind)) / (2 * step)[:, None]
    return values, slope
