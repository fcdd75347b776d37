"""The runs that a model learns from, if there are more than it can use.

The posterior of t runs takes O(t²) memory and time per point. Any subset of the observations gives valid bounds: they
are those of a study in which the other runs were not made. So beyond `MOST_RUNS` runs a model learns from a subset,
which follows from the log alone. The first `MOST_RUNS` runs are all learned, one by one. With the next one a selection
of four fifths of `MOST_RUNS` is made among all runs so far, and every later run is added to it, until there are
`MOST_RUNS` again. Then the next selection is made, among all runs so far.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array, BoolArray, IntArray
from cascada.kernels import Separable
from cascada.network import Network
from cascada.network.limits import margins, satisfied

#: The largest number of runs that a model learns from.
MOST_RUNS = 1_500
#: The same for a network whose kernels or norms are estimated: each fit takes O(t³) time, many times.
MOST_ESTIMATED_RUNS = 500

#: The same for a network that is read with errors: the rows of a stage are weighted anew after every run.
MOST_READ_RUNS = 150
#: The same for readings with scatter, whose averages rest on all of them: beyond it the gap is only estimated.
MOST_SCATTERED_RUNS = 400

# The parts of a selection that are closest to the best run, have the best values, and are the latest, which lie where
# the algorithm expects more: near the cells with the largest bounds. The rest fills the space.
_NEAREST, _BEST, _LATEST = 1 / 4, 1 / 8, 1 / 8


def most_runs(network: Network) -> int:
    """The largest number of runs that a model of this network learns from."""
    # A posterior of a general operator-valued kernel has a row for every output of a run.
    joint = [stage for stage in network.stages if stage.joint and not isinstance(stage.kernel, Separable)]
    widest = max((len(stage.modelled) for stage in joint), default=1)
    if network.read_with_errors:
        return MOST_SCATTERED_RUNS if network.scattered else MOST_READ_RUNS
    return (MOST_ESTIMATED_RUNS if network.estimated else MOST_RUNS) // widest


def selection_size(most: int) -> int:
    """The number of selected runs, which leaves room for later ones."""
    return most - max(1, most // 5)


@dataclass(frozen=True)
class Progress:
    """How far observations were learned: where the last selection was made, and the trials observed since then.

    It depends on the trials of the observations alone, so that a study that is opened again need not make any selection
    but the last one.
    """

    start: int = 0  #: the number of observations before the last selection; 0 without one
    count: int = 0  #: the number of observations so far
    trials: frozenset[int] = frozenset()  #: the trials of the observations since `start`

    def after(self, trials: Iterable[int], most: int) -> "Progress":
        """The progress after more observations, of these trials."""
        start, count, seen = self.start, self.count, set(self.trials)
        room = most - selection_size(most) if start else most
        for trial in trials:
            if trial not in seen and len(seen) == room:
                start, seen, room = count, set(), most - selection_size(most)
            seen.add(trial)
            count += 1
        return Progress(start, count, frozenset(seen))


def selected(network: Network, rows: Array, size: int) -> IntArray:
    """The indices of `size` of the runs (n, V) that a model should learn from, increasing; of all if there are fewer.

    They are the runs with the largest and smallest value of every output, which may refute an assumption by themselves,
    the runs closest to the best one, the best ones, the latest ones, and others that are far from all of these and from
    each other, in the space of all inputs of the stages. With limits, the best ones are the best feasible ones.
    """
    n = len(rows)
    if n <= size:
        return np.arange(n, dtype=np.int64)
    places = _places(network, rows)
    ranked = _ranked(network, rows)
    controls = places[:, : network.domain.dimension]
    nearest = np.argsort(((controls - controls[ranked[0]]) ** 2).sum(axis=1), kind="stable")
    chosen = np.zeros(n, dtype=bool)
    chosen[ranked[0]] = True  # the best run, the earliest if several are equal: whatever the rounding of a distance
    chosen[_extremes(rows[:, network.domain.dimension :])[: size // 2]] = True
    chosen[nearest[: int(_NEAREST * size)]] = True
    chosen[ranked[: int(_BEST * size)]] = True
    chosen[n - int(_LATEST * size) :] = True
    _fill(chosen, places, size)
    return np.flatnonzero(chosen).astype(np.int64)


def _ranked(network: Network, rows: Array) -> IntArray:
    """The indices of the runs (n, V), the best first; infeasible ones come last, by how little they miss a limit."""
    losses = -network.sign * rows[:, network.objective_column]
    infeasible = ~satisfied(network.limits, rows)
    if network.limits:
        losses = np.where(infeasible, -margins(network.limits, rows).min(axis=1), losses)
    return np.lexsort((np.where(np.isfinite(losses), losses, np.inf), infeasible)).astype(np.int64)


def _extremes(outputs: Array) -> list[int]:
    """The runs with the largest and the smallest of every output (n, k) that was observed."""
    observed = [column for column in outputs.T if np.isfinite(column).any()]
    return [int(i) for column in observed for i in (np.nanargmax(column), np.nanargmin(column))]


def _places(network: Network, rows: Array) -> Array:
    """The controls and all other inputs of stages (n, k), each from 0 to 1; 0.5 where nothing was observed."""
    d = network.domain.dimension
    others = sorted({column for node in network.nodes for column in node.inputs if column >= d})
    places = rows[:, [*range(d), *others]].copy()
    for column in places.T:
        seen = column[np.isfinite(column)]
        low, high = (seen.min(), seen.max()) if len(seen) else (0.0, 0.0)
        column[:] = np.where(np.isfinite(column), (column - low) / (high - low), 0.5) if high > low else 0.5
    return places


def _fill(chosen: BoolArray, places: Array, size: int) -> None:
    """Choose more of the places (n, k) until there are `size`: each time the one farthest from all chosen ones."""
    columns = np.ascontiguousarray(places.T)
    distances = np.full(len(places), np.inf)

    def shorten(i: int) -> None:
        away = columns - columns[:, i : i + 1]
        np.minimum(distances, np.einsum("kn,kn->n", away, away), out=distances)
        distances[i] = -1.0  # chosen once

    for i in np.flatnonzero(chosen):
        shorten(int(i))
    for _ in range(size - int(chosen.sum())):
        farthest = int(distances.argmax())
        chosen[farthest] = True
        shorten(farthest)
