"""Maxima of drawn processes over a box or a list of candidates, all processes at once.

Every process is evaluated at points in the whole box, around the best run and across it (`starts`), and at all runs.
The best of them are refined together by gradients, and their maxima moved to values that can be set. With limits only
points that satisfy them in the drawn process count. It is a search by samples: the true maximum may be a little higher.
"""

from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array, IntArray
from cascada.network.drawn import DrawnNetwork
from cascada.network.limits import satisfied
from cascada.search.feasible import tightened
from cascada.search.penalty import WIDTHS, Penalty
from cascada.search.quasi_newton import climb
from cascada.search.starts import best_apart, snapped, starts

_WIDE, _CLOSE, _ACROSS = 128, 32, 64  # starts: see `starts`
_REFINED, _STEPS = 3, 12  # of each process so many starts are refined together by so many steps,
_ALONE = 30  # and then the best one by so many
_APART = 0.03  # distance of starts that are refined, in sides of the box
_INSIDE, _STEEP = 1e-3, 10.0  # limits are moved inwards by so many spreads, and their penalty is so steep
_BLOCK = 20_000  # rows that are evaluated at once


@dataclass(frozen=True, eq=False)
class DrawnMaxima:
    """For each of S processes, what is maximised at the best run and at the maximum, and where that is."""

    reached: Array  # (S,)
    highest: Array  # (S,); −∞ where no point satisfied the limits
    points: Array  # (S, d), coordinates


def drawn_maxima(
    process: DrawnNetwork,
    count: int,
    best: Array,
    runs: Array,
    rng: np.random.Generator,
    candidates: Array | None = None,
) -> DrawnMaxima:
    """The maxima of `count` processes; `best` (d,) is the point of the best run, `runs` (t, d) those of all."""
    search = _Search(process, count)
    domain = process.network.domain
    if candidates is not None:
        points = np.concatenate([best[None], candidates])
        values = search.at_all(points)
        allowed = values.copy()
        allowed[:, 0] = -np.inf  # the best run need not be a candidate
        top = allowed.argmax(axis=1)
        return DrawnMaxima(values[:, 0], allowed[np.arange(count), top], points[top])
    tried = np.concatenate([best[None], snapped(domain, starts(domain, rng, best[None], _WIDE, _CLOSE, _ACROSS)), runs])
    values = search.at_all(tried)
    top = values.argmax(axis=1)
    points, highest = tried[top], values[np.arange(count), top]
    path, begin = search.starts(tried, values)
    refined = search.climbed(begin, path, _STEPS)
    refined = np.concatenate([begin, snapped(domain, refined)])  # a start may be better than its maximum, snapped
    path = np.tile(path, 2)
    chosen = _best_of_each(search.values(refined, path), path, count)
    path = path[chosen]
    refined = snapped(domain, search.climbed(refined[chosen], path, _ALONE, settle=True))
    found = search.values(refined, path)
    better = found > highest[path]
    highest[path[better]], points[path[better]] = found[better], refined[better]
    return DrawnMaxima(values[:, 0], highest, points)


class _Search:
    """What is maximised in drawn processes: the objective, −∞ where a limit is broken or nothing is defined."""

    def __init__(self, process: DrawnNetwork, count: int) -> None:
        self._process, self._count = process, count
        self._network, self._scale, self._units = process.network, 1.0, np.ones(len(process.network.limits))

    def values(self, points: Array, path: IntArray) -> Array:
        """What is maximised at points (n, d) of the processes `path` (n,)."""
        return self._judged(self._process(points, path)[0])

    def at_all(self, points: Array) -> Array:
        """The same of all processes at the same points (n, d): (S, n)."""
        each = max(1, _BLOCK // len(points))
        found = []
        for first in range(0, self._count, each):
            path = np.arange(first, min(first + each, self._count))
            rows = self._process(np.tile(points, (len(path), 1)), np.repeat(path, len(points)))[0]
            found.append(self._judged(rows).reshape(len(path), len(points)))
            self._measure(rows)
        return np.concatenate(found)

    def starts(self, points: Array, values: Array) -> tuple[IntArray, Array]:
        """Of every process, the best points (n, d) apart from each other: their processes and coordinates."""
        domain, path, begin = self._network.domain, [], []
        for s in range(self._count):
            chosen = best_apart(domain, points, values[s], _REFINED, _APART)
            path += [s] * len(chosen)
            begin += chosen
        return np.array(path), points[begin]

    def climbed(self, begin: Array, path: IntArray, steps: int, *, settle: bool = False) -> Array:
        """Local maxima (k, d) from starts of the processes `path` (k,). `settle`: discrete controls stay fixed."""
        domain, d = self._network.domain, begin.shape[1]
        # The number of the process is a coordinate that does not change: `climb` drops starts that have ended.
        fixed = path[:, None].astype(np.float64)
        lower, upper = (np.hstack([np.tile(end, (len(begin), 1)), fixed]) for end in (domain.lower, domain.upper))
        if settle:
            lower[:, domain.discrete] = upper[:, domain.discrete] = begin[:, domain.discrete]
        at = climb(self._ascent, np.hstack([begin, fixed]), lower, upper, self._scale, steps)[0]
        return at[:, :d]

    def _ascent(self, rows: Array) -> tuple[Array, Array]:
        """What is maximised, minus a penalty of broken limits, and its gradient, at points with their process."""
        d = rows.shape[1] - 1
        values, gradients = self._process(rows[:, :d], rows[:, d].astype(np.int64), slopes=True)
        assert gradients is not None, "slopes were asked for"
        column, sign = self._network.objective_column, self._network.sign
        found, slope = sign * values[:, column], sign * gradients[:, column]
        if self._network.limits:
            limits = tightened(self._network.limits, _INSIDE * self._units)
            penalty = Penalty(limits, self._units, _STEEP * self._scale, width=WIDTHS[-1])
            lost, steep = penalty.of(lambda j: (values[:, j], gradients[:, j]))
            assert steep is not None, "gradients were given"
            found, slope = found - lost, slope - steep
        return found, np.hstack([slope, np.zeros((len(rows), 1))])

    def _judged(self, values: Array) -> Array:
        """What is maximised in rows of values (n, V)."""
        found = self._network.sign * values[:, self._network.objective_column]
        defined = np.isfinite(found)
        if self._network.limits:
            defined &= satisfied(self._network.limits, values)
        return np.where(defined, found, -np.inf)

    def _measure(self, values: Array) -> None:
        """Set the units of objective and limits from rows of values (n, V)."""
        self._scale = _spread(values[:, self._network.objective_column])
        self._units = np.array([_spread(values[:, limit.column]) for limit in self._network.limits])


def _spread(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return max(float(finite.std()), np.finfo(np.float64).tiny) if len(finite) else 1.0


def _best_of_each(values: Array, path: IntArray, count: int) -> IntArray:
    """The index of the largest value of every process that occurs."""
    found = [np.flatnonzero(path == s) for s in range(count)]
    return np.array([rows[values[rows].argmax()] for rows in found if len(rows)])
