"""EI (a baseline of `sec:exp`): the objective as a black box, intermediate outputs ignored.

Where no improvement is likely, EI is far below the smallest float and all points would tie. So its logarithm is used.
"""

import math
from dataclasses import dataclass

import numpy as np

from cascada.algorithms.acquisition import Acquisition, Scored
from cascada.algorithms.algorithm import Situation
from cascada.algorithms.black_box import BlackBox
from cascada.arrays import Array
from cascada.kernels import Stationary

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_SURE = 40.0  # sds above the best value: the rest of the distribution is below rounding
_FAR = 100.0  # sds below the best: 1 − x·m(x) has lost four digits, and the series errs by less than that


@dataclass(frozen=True)
class ExpectedImprovement(Scored):
    """argmax E[max{g(x) − y_max, 0}] under the posterior of g.

    `kernel` is the kernel over all controls (see `black_box.default_kernel`).
    """

    kernel: Stationary | None = None

    def acquisition(self, situation: Situation, rng: np.random.Generator) -> Acquisition:  # noqa: ARG002
        """log EI_{t−1}."""
        box = BlackBox.of(situation, self.kernel)
        best = situation.best - box.offset

        def score(points: Array) -> Array:
            prediction = box.at(points)
            mean = prediction.mean[:, 0]
            # Before the first complete run every value is an improvement, and only the mean counts.
            return mean if math.isinf(best) else log_expected_improvement(mean - best, prediction.sd)

        return Acquisition(score, box.kept(situation))


def log_expected_improvement(gain: Array, sd: Array) -> Array:
    """log E[max{N(gain, sd²), 0}], elementwise: log(sd·(φ(z) + zΦ(z))) with z = gain/sd, without under- or overflow.

    Below z = −1, φ(z) + zΦ(z) = φ(z)·(1 − |z|·m(|z|)) with Mills' ratio m = Φ(−|z|)/φ(z), from the scaled complementary
    error function. The difference cancels as 1/z², so that its series is used for very negative z.
    """
    from scipy.special import erfcx, ndtr

    gain, sd = np.broadcast_arrays(np.asarray(gain, dtype=np.float64), np.asarray(sd, dtype=np.float64))
    result = np.full(gain.shape, -np.inf)  # where no gain is possible
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        z = np.where(gain == 0, 0.0, gain / sd)
    uncertain = sd > 0
    sure = (gain > 0) & (~uncertain | (z > _SURE))
    result[sure] = np.log(gain[sure])
    near = uncertain & (z > -1) & (z <= _SURE)
    density = np.exp(-0.5 * z[near] ** 2 - _HALF_LOG_TWO_PI)
    result[near] = np.log(sd[near]) + np.log(density + z[near] * ndtr(z[near]))
    tail = uncertain & (z <= -1)
    x = -z[tail]
    square = np.minimum(x, 1e150) ** 2
    middle = np.minimum(x, _FAR)
    left = np.log(1.0 - middle * math.sqrt(math.pi / 2) * erfcx(middle / math.sqrt(2)))
    # 1 − x·m(x) = 1/x² − 3/x⁴ + 15/x⁶ − 105/x⁸ + …, off by less than the next term.
    far = np.maximum(square, _FAR**2)
    series = np.log1p((-3 + (15 - 105 / far) / far) / far) - np.log(far)
    result[tail] = np.log(sd[tail]) - 0.5 * square - _HALF_LOG_TWO_PI + np.where(x < _FAR, left, series)
    return result
