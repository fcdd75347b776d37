"""Interface of an algorithm: `Algorithm`, its argument `Situation` and its result `Suggestion`.

`suggest` is a pure function: an algorithm keeps no state. A new algorithm is a class with `suggest` and `recommend`
(which returns None unless it recommends a point that need not have been run); pass an instance to
`maximise(algorithm=...)` or name it `module:Class` on the command line.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from cascada.arrays import Array, BoolArray
from cascada.network import Beliefs, Network, composite_mean
from cascada.network.limits import satisfied
from cascada.search.incumbent import Incumbent
from cascada.space import Domain


@dataclass(frozen=True, eq=False)
class Situation:
    """Everything that is known when a point is asked for.

    Points are coordinates (`Domain.encode`): user units, or their logarithm for logarithmic controls.
    """

    beliefs: Beliefs  #: the beliefs about the stages
    data: Array  #: (t, V): controls and outputs of every run, NaN where nothing was observed
    pending: Array  #: (k, V): pending runs, like `data`; (k, d) if no output of them was observed
    candidates: Array | None  #: (n, d), or None for the whole box
    #: the best value of what is maximised so far; −∞ before the first complete run. With limits, of what is known to
    #: satisfy them: a run, or a setting that is proven to. With noise, the best composite mean at a run. With bounded
    #: errors, the largest proven lower bound of a setting.
    best: float
    trial: int  #: the number of the trial that is asked for
    tolerance: float = 0.0  #: the gap that is small enough
    cache: Any = None  #: `Suggestion.cache` of the algorithm's last suggestion; it affects speed only
    #: completed and pending points, as `point_key`; none with noise, where another run of a point is of use
    taken: frozenset[bytes] = field(default_factory=frozenset)
    horizon: int | None = None  #: the total number of runs, if known
    #: estimated bounds that a run should test where they rule out a better value; None if no test is needed
    untested: Beliefs | None = None
    #: (k, V), like `data`: failed runs that count as infeasible; None if no stage has `failure="infeasible"`
    failed: Array | None = None
    alone: int = 0  #: the number of observations of single stages that are in no row of `data`

    @property
    def version(self) -> int:
        """A number that grows with what is known or imagined: bounds of cells from less are computed again."""
        return len(self.data) + len(self.pending) + self.alone

    @cached_property
    def best_run(self) -> Array | None:
        """The run with the best value (V,) among those that satisfy the limits; None if there is none.

        With noise or errors, the means at the run with the best mean.
        """
        return best_run(self.beliefs, self.data)

    @property
    def exact_run(self) -> Array | None:
        """The best run (V,), if its value is exact and no run is pending: no bound may be below it. Else None."""
        return None if len(self.pending) or self.beliefs.network.read_with_errors else self.best_run

    @property
    def best_point(self) -> Array | None:
        """The point of the best run (d,); None before the first complete run."""
        return None if self.best_run is None else self.best_run[: self.domain.dimension]

    @property
    def domain(self) -> Domain:
        """The box of controls."""
        return self.beliefs.network.domain

    def is_taken(self, point: Array) -> bool:
        """Whether this point was run or is running: without noise, another run there is useless."""
        return point_key(self.domain, point) in self.taken

    def free_candidates(self) -> BoolArray:
        """The candidates that are not taken, as a mask (n,)."""
        assert self.candidates is not None, "only asked when there are candidates"
        if not self.taken:
            return np.ones(len(self.candidates), dtype=bool)
        return np.array([key not in self.taken for key in _keys(self.domain, self.candidates)], dtype=bool)


@dataclass(frozen=True, eq=False)
class Suggestion:
    """The point (d,) to run next, or None if no point is worth a run.

    `bound` is an upper bound of what is maximised over the whole domain, if the algorithm has one (whether it may serve
    as a certificate: see `bound_certifies`). `cells` is the number of cells that were bounded, `stopped` the reason why
    the search ended, `cache` the `Situation.cache` of the next suggestion.
    """

    point: Array | None
    bound: float | None = None
    cells: int = 0
    stopped: str = "point"
    cache: Any = None
    #: An upper bound of the margin by which limits can hold, as long as no feasible setting is known: below 0 it proves
    #: that there is none.
    margin: float | None = None
    #: With bounded errors: a setting that is proven to give more than `Situation.best`, if one was found; and about the
    #: setting (d,) where `bound` is attained.
    proven: Incumbent | None = None
    highest: Array | None = None


@runtime_checkable
class Algorithm(Protocol):
    """Suggests points.

    Three class attributes are optional. `adaptive = False` says that observed outputs do not matter, so that all runs
    may be under way at once. `uses_beliefs = False` says that neither `Situation.beliefs` nor `Situation.data` matter:
    they are those before the first run, and nothing is learned for a suggestion. `certifies = True` says that
    `Suggestion.bound` may serve as a certificate's bound; it counts only for the algorithms of this library (see
    `bound_certifies`).
    """

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        """The next point. The same situation and generator state give the same result."""
        ...

    def recommend(self, situation: Situation) -> Array | None:
        """A point (d,) to use in the end if it is not the best run; else None."""
        ...


def bound_certifies(algorithm: Algorithm) -> bool:
    """Whether `Suggestion.bound` of this algorithm may serve as the bound of a certificate.

    True if its class itself declares `certifies = True` and is a class of this library.
    """
    # A certificate is called proven, and nothing can check a bound that an algorithm states. So the declaration is not
    # inherited: a subclass may override what makes the bound hold. And a class from elsewhere cannot make it: the study
    # then computes a bound of its own.
    kind = type(algorithm)
    return vars(kind).get("certifies") is True and kind.__module__.partition(".")[0] == "cascada"


def best_run(beliefs: Beliefs, data: Array) -> Array | None:
    """The values (V,) of the best of the runs `data` (t, V): as observed, or if not exact the composite means there."""
    network = beliefs.network
    if not network.noisy and not network.read_with_errors:
        return best_row(network, data)
    complete = np.isfinite(data[:, network.objective_column])
    if not complete.any():
        return None
    return best_row(network, composite_mean(beliefs, data[complete, : network.domain.dimension]))


def best_row(network: Network, data: Array) -> Array | None:
    """The row of `data` (t, V) with the best objective among those that satisfy the limits; None if there is none."""
    values = network.sign * data[:, network.objective_column]
    if network.limits:
        values = np.where(satisfied(network.limits, data), values, np.nan)
    return data[int(np.nanargmax(values))] if np.isfinite(values).any() else None


def point_key(domain: Domain, point: Array) -> bytes:
    """A key that is equal for coordinates of the same point in user units."""
    return _keys(domain, point[None])[0]


def _keys(domain: Domain, points: Array) -> list[bytes]:
    return [row.tobytes() for row in domain.decode(points) + 0.0]  # adding 0.0 turns −0.0 into 0.0
