"""GP-UCB (a baseline of `sec:exp`): the objective as a black box, intermediate outputs ignored."""

from dataclasses import dataclass

import numpy as np

from cascada.algorithms.acquisition import Acquisition, Scored
from cascada.algorithms.algorithm import Situation
from cascada.algorithms.black_box import BlackBox, default_width
from cascada.arrays import Array, as_positive
from cascada.kernels import Stationary


@dataclass(frozen=True)
class GPUCB(Scored):
    """argmax μ_{t−1}(x) + B·σ_{t−1}(x).

    `kernel` is the kernel over all controls (see `black_box.default_kernel`), `norm_bound` is B (by default that of the
    objective's stage).
    """

    kernel: Stationary | None = None
    norm_bound: float | None = None

    def __post_init__(self) -> None:
        if self.norm_bound is not None:
            as_positive(self.norm_bound, "norm_bound")

    def acquisition(self, situation: Situation, rng: np.random.Generator) -> Acquisition:  # noqa: ARG002
        """UCB_{t−1}."""
        box = BlackBox.of(situation, self.kernel)
        width = default_width(situation.beliefs.network) if self.norm_bound is None else self.norm_bound

        def score(points: Array) -> Array:
            prediction = box.at(points)
            return prediction.mean[:, 0] + width * prediction.sd

        return Acquisition(score, box.kept(situation))
