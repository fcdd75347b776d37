"""A posterior at a fixed set of points, updated in O(t·N) per observation.

Given V = L⁻¹k(X, Q), a new row of L gives a new row v of V, and `μ += v·w`, `σ² −= v²` on all of Q.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array, as_points
from cascada.gp.factor import triangular_solve
from cascada.gp.posterior import Posterior, Prediction


@dataclass
class _Rows:
    """The rows of V in a buffer with spare capacity, shared by a posterior and those appended to it."""

    buffer: Array  # (capacity, N)
    used: int


@dataclass(frozen=True, eq=False)
class TrackedPosterior:
    """Means (N, p) and sds (N,) of a posterior at fixed points (N, d)."""

    posterior: Posterior
    points: Array
    prediction: Prediction
    _variance: Array
    _rows: _Rows

    @classmethod
    def at(cls, posterior: Posterior, points: ArrayLike) -> "TrackedPosterior":
        """Track a posterior at these points."""
        fixed = as_points(points, "points", posterior.dimension).copy()
        n = len(fixed)
        prior = posterior.empty(posterior.kernel, posterior.dimension, posterior.output_count, posterior.jitter)
        variance = np.full(n, posterior.kernel.variance)
        prediction = Prediction(np.zeros((n, posterior.output_count)), np.sqrt(variance))
        start = cls(prior, fixed, prediction, variance, _Rows(np.empty((0, n)), 0))
        return start.follow(posterior)

    def append(self, X: ArrayLike, Y: ArrayLike) -> "TrackedPosterior":
        """The same points with more observations."""
        return self.follow(self.posterior.append(X, Y))

    def follows(self, posterior: Posterior) -> bool:
        """Whether `posterior` is this one with more observations or none, bit for bit."""
        mine, t = self.posterior, self.posterior.count
        return (
            mine.kernel == posterior.kernel
            and np.array_equal(mine.inputs, posterior.inputs[:t])
            and np.array_equal(mine.whitened, posterior.whitened[:t])
            and np.array_equal(mine.factor, posterior.factor[:t, :t])
        )

    def follow(self, posterior: Posterior) -> "TrackedPosterior":
        """The same points under a posterior for which `follows` is true, in O(t·N) per new observation."""
        t, total = self.posterior.count, posterior.count
        if total == t:
            return TrackedPosterior(posterior, self.points, self.prediction, self._variance, self._rows)
        rows = self._room_for(total)
        cross = posterior.kernel(posterior.inputs[t:], self.points)  # (b, N)
        cross -= posterior.factor[t:, :t] @ rows.buffer[:t]
        added = triangular_solve(posterior.factor[t:, t:], np.asfortranarray(cross))
        rows.buffer[t:total] = added
        rows.used = total
        mean = self.prediction.mean + added.T @ posterior.whitened[t:]  # eq:mean
        variance = self._variance - np.einsum("bn,bn->n", added, added)  # eq:var
        prediction = Prediction(mean, np.sqrt(np.maximum(variance, 0.0)))
        return TrackedPosterior(posterior, self.points, prediction, variance, rows)

    def _room_for(self, total: int) -> _Rows:
        """Rows of V with capacity for `total`: the shared buffer, or a copy if it is full or used by another branch."""
        if self._rows.used == self.posterior.count and total <= len(self._rows.buffer):
            return self._rows
        buffer = np.empty((max(2 * self.posterior.count, total, 16), len(self.points)))
        buffer[: self.posterior.count] = self._rows.buffer[: self.posterior.count]
        return _Rows(buffer, self.posterior.count)
