"""The objective as one function of all controls, for GP-UCB and EI: intermediate outputs are ignored."""

from dataclasses import dataclass

import numpy as np

from cascada.algorithms.algorithm import Situation
from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.gp import Posterior, Prediction, TrackedPosterior
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.kernels import Additive, Matern, Stationary
from cascada.network import Network, Node

_SIDES_PER_LENGTHSCALE = 4.0


@dataclass(frozen=True, eq=False)
class BlackBox:
    """The posterior of what is maximised, minus its offset; kept between suggestions for speed only."""

    data: Array  # (t, d + 1): the controls and values of the complete runs in the posterior
    posterior: Posterior
    offset: float
    candidates: Array | None
    tracked: TrackedPosterior | None  # at the candidates

    @classmethod
    def of(cls, situation: Situation, kernel: Stationary | None) -> "BlackBox":
        """The black box for a situation, from its cache if that is usable; pending runs are set to their means.

        Raises `ArgumentError` unless the kernel is a scalar one.
        """
        network, d = situation.beliefs.network, situation.domain.dimension
        chosen = default_kernel(network) if kernel is None else kernel
        if not isinstance(chosen, Stationary):
            raise ArgumentError(
                f"kernel must be a scalar kernel over all controls, such as Matern(2.5); got {kernel!r}."
            )
        offset = network.sign * _offset(network)
        data = situation.data[:, [*range(d), network.objective_column]].copy()
        data[:, -1] = network.sign * data[:, -1] - offset
        data = data[np.isfinite(data).all(axis=1)]
        kept = situation.cache
        if isinstance(kept, BlackBox) and kept._leads_to(data, chosen, offset):
            posterior = kept.posterior
        else:
            kept, posterior = None, Posterior.empty(chosen, d, 1, _jitter(situation), rounded_inputs=network.noisy)
        known = 0 if kept is None else len(kept.data)
        for row in data[known:, None]:  # one by one, so that the cache does not change any digit
            posterior = posterior.append(row[:, :-1], row[:, -1])
        for point in situation.pending[:, :d]:
            if not (posterior.inputs == point).all(axis=1).any():  # the mean at an observed point is off by the jitter
                posterior = posterior.append(point[None], posterior.predict(point[None]).mean)
        if situation.candidates is None:
            return cls(data, posterior, offset, None, None)
        before = kept.tracked if kept is not None and kept.candidates is situation.candidates else None
        if before is not None and before.follows(posterior):
            tracked = before.follow(posterior)
        else:
            tracked = TrackedPosterior.at(posterior, situation.candidates)
        return cls(data, posterior, offset, situation.candidates, tracked)

    def _leads_to(self, data: Array, kernel: Stationary, offset: float) -> bool:
        same = self.offset == offset and self.posterior.kernel == kernel
        return same and np.array_equal(self.data, data[: len(self.data)])

    def kept(self, situation: Situation) -> object:
        """The cache for the next suggestion: nothing that rests on imagined outputs."""
        return situation.cache if len(situation.pending) else self

    def at(self, points: Array) -> Prediction:
        """Mean and sd at points (n, d), without the offset."""
        if self.tracked is not None and points is self.candidates:
            return self.tracked.prediction
        return self.posterior.predict(points)


def default_kernel(network: Network) -> Stationary:
    """The kernel of a stage whose inputs are exactly all controls, as the paper's first stage; else Matérn-5/2.

    The latter has lengthscales of a quarter of the controls' ranges and the variance of the objective's stage. Inputs
    that do not interact in one stage may interact in the whole process: an additive kernel is replaced by its summand.
    """
    domain = network.domain
    for node in network.nodes:
        kernel = node.stage.kernel
        if isinstance(kernel, Stationary) and node.inputs == tuple(range(domain.dimension)):
            return kernel.kernel if isinstance(kernel, Additive) else kernel
    kernel = _objective(network).stage.kernel
    variance = kernel.variance if isinstance(kernel, Stationary) else 1.0
    lengthscales = domain.sides / _SIDES_PER_LENGTHSCALE
    return Matern(2.5, tuple(float(length) for length in lengthscales), variance=variance)


def default_width(network: Network) -> float:
    """B of the objective's stage; 2, as in the paper's experiments, if that stage is a formula or B is not declared."""
    bound, modelled = _objective(network).stage.norm_bound, _objective(network).stage.modelled
    output = network.objective[1]
    if bound is None or output not in modelled:
        return 2.0
    return float(np.broadcast_to(bound, (len(modelled),))[modelled.index(output)])


def _objective(network: Network) -> Node:
    return network.node(network.objective[0])


def _offset(network: Network) -> float:
    stage, output = _objective(network).stage, network.objective[1]
    if output not in stage.modelled:
        return 0.0
    return float(np.broadcast_to(stage.offset, (len(stage.modelled),))[stage.modelled.index(output)])


def _jitter(situation: Situation) -> float:
    """The jitter of the stages, so that all algorithms of a study use the same."""
    known = [stage.belief.jitter for stage in situation.beliefs.stages if stage.belief is not None]
    return max([SMALLEST_JITTER, *known])
