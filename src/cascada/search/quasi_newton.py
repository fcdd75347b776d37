"""Maximisation of a function in a box from many starts at once, by a projected quasi-Newton method.

Every call of the function evaluates one point of each start that has not ended, with its gradient. So the number of
calls is that of the slowest start, not the sum over the starts.

A start has its own BFGS approximation B of the Hessian of the negated function. Its direction minimises the quadratic
model gᵀd + dᵀBd/2 over the box. So a step never leaves the box, and many bounds may become active at once. The step is
shortened until the value improves by a part of what the gradient predicts (Armijo's condition). Updates of B are damped
(Powell 1978), which keeps B positive definite and makes steps longer where the function is not concave.

Controls are measured in sides of the box and values in units of `scale`, so the result does not depend on units.
"""

from collections.abc import Callable

import numpy as np

from cascada.arrays import Array, BoolArray, IntArray

Differentiable = Callable[[Array], tuple[Array, Array]]

_FIRST = 0.1  # length of the first step, in sides
_ARMIJO = 1e-4  # part of the predicted improvement that a step must achieve
_SHORTEST, _LONGEST = 0.1, 0.5  # factors by which a step is shortened
_FAILURES = 8  # a step that was shortened this often improves nothing but rounding
_LITTLE = 1e-11  # of `scale`: a start ends if it gains less
_DAMPING = 0.2  # least curvature of an update, as a part of that of B
_CHANGES = 8  # of the set of active bounds in one direction


def climb(
    function: Differentiable, begin: Array, lower: Array, upper: Array, scale: float, steps: int
) -> tuple[Array, Array]:
    """Local maxima (k, n) from k starts, and their values (k,); at most `steps` calls of the function after the first.

    `function` maps points (m, n) to values (m,) and gradients (m, n). Bounds are (n,), or (k, n) for each start; where
    they are equal the coordinate is fixed. A start where the value or the gradient is not finite is returned as it is,
    and no later point is accepted where they are not. `scale` is a difference of values that is not small.
    """
    lower, upper = (np.broadcast_to(bound, begin.shape) for bound in (lower, upper))
    box = _Box(lower, upper)
    at = box.inwards(begin)
    values, slopes = box.evaluated(function, at, np.arange(len(at)), scale)
    running = _finite(values, slopes)
    starts = _Starts(np.flatnonzero(running), at[running], values[running], slopes[running])
    for _ in range(steps):
        if not len(starts.index):
            break
        starts.step(function, box, scale)
        at[starts.index], values[starts.index] = starts.at, starts.values
        starts.keep(~starts.ended)
    points = np.where(running[:, None], box.outwards(at, np.arange(len(at))), begin)
    return points, -values * scale


class _Box:
    """The boxes of the starts, (k, n), and coordinates in units of their sides."""

    def __init__(self, lower: Array, upper: Array) -> None:
        self._lower, self._upper, self._sides = lower, upper, upper - lower

    def inwards(self, points: Array) -> Array:
        """Coordinates in [0, 1]; 0 where a coordinate is fixed."""
        inside = np.clip(points, self._lower, self._upper) - self._lower
        return np.divide(inside, self._sides, out=np.zeros_like(inside), where=self._sides > 0)

    def outwards(self, at: Array, index: IntArray) -> Array:
        """Points of the box from coordinates in [0, 1]; exactly on a bound for 0 and 1."""
        points = self._lower[index] + self._sides[index] * at
        return np.where(at >= 1.0, self._upper[index], np.clip(points, self._lower[index], self._upper[index]))

    def evaluated(self, function: Differentiable, at: Array, index: IntArray, scale: float) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, n) of −function/scale in these coordinates."""
        values, gradients = function(self.outwards(at, index))
        with np.errstate(over="ignore", invalid="ignore"):
            return -values / scale, -gradients * self._sides[index] / scale


class _Starts:
    """The starts that have not ended; all arrays have one row for each."""

    def __init__(self, index: IntArray, at: Array, values: Array, slopes: Array) -> None:
        k, n = at.shape
        self.index, self.at, self.values, self.slopes = index, at, values, slopes
        longest = np.maximum(np.linalg.norm(slopes, axis=1), np.finfo(np.float64).tiny)
        self.curvature = (longest / _FIRST)[:, None, None] * np.eye(n)  # B
        self.fresh = np.ones(k, dtype=bool)  # B is still a guess
        self.part = np.ones(k)  # of the direction that is tried next
        self.failures = np.zeros(k, dtype=np.int64)
        self.ended = np.zeros(k, dtype=bool)
        self.direction = _direction(self.curvature, slopes, at)
        self._end_where_flat()

    def keep(self, kept: BoolArray) -> None:
        """Drop the other starts."""
        if kept.all():
            return
        for name, array in vars(self).items():
            setattr(self, name, array[kept])

    def step(self, function: Differentiable, box: _Box, scale: float) -> None:
        """Evaluate one point for each start; where it is accepted, find the next direction."""
        tried = np.clip(self.at + self.part[:, None] * self.direction, 0.0, 1.0)
        values, slopes = box.evaluated(function, tried, self.index, scale)
        predicted = np.vecdot(self.slopes, tried - self.at)
        with np.errstate(invalid="ignore"):
            accepted = _finite(values, slopes) & (values <= self.values + _ARMIJO * predicted) & (predicted < 0)
        self._shorten(~accepted, values, predicted)
        self._advance(accepted, tried, values, slopes)

    def _shorten(self, rejected: BoolArray, values: Array, predicted: Array) -> None:
        """Shorten rejected steps to the minimum of a parabola through both values."""
        if not rejected.any():
            return
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            factor = -predicted / (2 * (values - self.values - predicted))
        factor = np.clip(np.where(np.isfinite(factor), factor, _SHORTEST), _SHORTEST, _LONGEST)
        self.part = np.where(rejected, self.part * factor, self.part)
        self.failures += rejected
        self.ended |= self.failures > _FAILURES

    def _advance(self, accepted: BoolArray, tried: Array, values: Array, slopes: Array) -> None:
        """Move to accepted points, update B, and find the next directions."""
        if not accepted.any():
            return
        i = np.flatnonzero(accepted)
        moved, change = tried[i] - self.at[i], slopes[i] - self.slopes[i]
        gained = self.values[i] - values[i]
        whole = self.part[i] == 1.0
        self.curvature[i] = _updated(self.curvature[i], self.fresh[i], moved, change)
        self.at[i], self.values[i], self.slopes[i] = tried[i], values[i], slopes[i]
        # The gain of a whole step says what is left to gain, once B is more than a guess.
        self.ended[i] = whole & (gained < _LITTLE) & ~self.fresh[i]
        self.fresh[i], self.part[i], self.failures[i] = False, 1.0, 0
        self.direction[i] = _direction(self.curvature[i], self.slopes[i], self.at[i])
        self._end_where_flat()

    def _end_where_flat(self) -> None:
        """End the starts whose quadratic model promises next to nothing."""
        self.ended |= np.vecdot(self.slopes, self.direction) > -_LITTLE


def _finite(values: Array, slopes: Array) -> BoolArray:
    return np.isfinite(values) & np.isfinite(slopes).all(axis=1)


def _product(matrices: Array, vectors: Array) -> Array:
    """The products (k, n) of matrices (k, n, n) and vectors (k, n)."""
    return (matrices @ vectors[:, :, None])[:, :, 0]


def _updated(curvature: Array, fresh: BoolArray, moved: Array, change: Array) -> Array:
    """B after a step `moved` (k, n) that changed the gradient by `change` (k, n): the damped BFGS update."""
    seen = np.vecdot(moved, change)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first = np.vecdot(change, change) / seen  # the usual guess of the curvature after the first step
    guessed = fresh & (seen > 0) & np.isfinite(first) & (first > 0)
    guess = np.where(guessed, first, 1.0)[:, None, None] * np.eye(moved.shape[1])
    curvature = np.where(guessed[:, None, None], guess, curvature)
    bent = _product(curvature, moved)  # Bs
    had = np.vecdot(moved, bent)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(seen < _DAMPING * had, (1 - _DAMPING) * had / (had - seen), 1.0)[:, None]
    damped = weight * change + (1 - weight) * bent
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        changed = (
            curvature
            - bent[:, :, None] * (bent / had[:, None])[:, None, :]
            + damped[:, :, None] * (damped / np.vecdot(moved, damped)[:, None])[:, None, :]
        )
    usable = np.isfinite(changed).all(axis=(1, 2)) & (had > 0)
    return np.where(usable[:, None, None], changed, curvature)


def _direction(curvature: Array, slopes: Array, at: Array) -> Array:
    """Directions (k, n) that minimise the quadratic models over the boxes, by a primal-dual active set method.

    Where the method does not end, or rounding spoils it, the direction is a projected gradient step.
    """
    low, high = -at, 1.0 - at
    diagonal = np.einsum("kii->ki", curvature)
    steepest = np.clip(-slopes / diagonal.max(axis=1, keepdims=True), low, high)
    below, above = (low >= 0) & (slopes > 0), (high <= 0) & (slopes < 0)
    solved = np.zeros(len(at), dtype=bool)
    direction = steepest.copy()
    for _ in range(_CHANGES):
        bound = np.where(below, low, np.where(above, high, 0.0))
        free = ~(below | above)
        matrix = np.where(free[:, :, None] & free[:, None, :], curvature, 0.0)
        np.einsum("kii->ki", matrix)[~free] = 1.0
        right = np.where(free, -slopes - _product(curvature, bound), bound)
        try:
            found = np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:  # some B is singular through rounding
            break
        pull = np.where(free, 0.0, -slopes - _product(curvature, found))  # multipliers of the active bounds
        now_below, now_above = pull + diagonal * (found - low) < 0, pull + diagonal * (found - high) > 0
        same = ((now_below == below) & (now_above == above)).all(axis=1)
        direction = np.where((same & ~solved)[:, None], np.clip(found, low, high), direction)
        solved |= same
        if solved.all():
            break
        below, above = now_below, now_above
    downhill = np.isfinite(direction).all(axis=1) & (np.vecdot(slopes, direction) < 0)
    return np.where(downhill[:, None], direction, steepest)
