"""A batch: a running trial of which some stages were run, and what can still become of it.

A stage that was run is a constant: it gave what it gave. Its controls are fixed, also those that it shares with stages
that were not run. So the bound over the slice of settings with these controls, from beliefs with these constants, holds
for everything that can still be done with the batch, and a lower bound there is reached by going on in this way.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cascada.algorithms import GPNMixed
from cascada.algorithms.algorithm import best_row, bound_certifies, point_key
from cascada.algorithms.expected_improvement import log_expected_improvement
from cascada.algorithms.feasible_search import nearest_margin
from cascada.arrays import Array, BoolArray
from cascada.confidence import Boxes
from cascada.errors import RefutedError
from cascada.network import Beliefs, hallucinated
from cascada.network.feasibility import feasible_mean
from cascada.network.given import given_outputs
from cascada.network.limits import Limit, excluded, satisfied
from cascada.network.sampling import sample_objective, standard_draws
from cascada.network.slack import around_setting
from cascada.outwards import difference_up
from cascada.search import Leaves, ObjectiveBounds, Outcome, SearchBudget, best_in_box, search
from cascada.search.bounds import CellBounds
from cascada.search.box import Score
from cascada.search.feasible import FeasibleBounds, MarginBounds, margin_scales
from cascada.search.incumbent import Incumbent, best_proven, proven_incumbent
from cascada.search.safe import proven_safe
from cascada.search.slices import free_controls, slice_of, with_free
from cascada.search.starts import snapped
from cascada.space import ControlValue, Domain
from cascada.store.trial import Trial
from cascada.study.advisor import named, suggest_with_nothing_pending
from cascada.study.model import Model
from cascada.study.settings import Settings
from cascada.study.state import State

_CELLS = 1_000  # of each search over a batch
_STEPS = 17  # on the way from the plan to a point that is not proven to be safe
_SAMPLES = 128  # of the objective, where norms are estimated
# Keeps the random numbers of a revision apart from those of the algorithm.
_STREAM = 0xBA7C4


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is known of a batch: a point (d,) to go on with, None if none is better than the planned one; its bounds.

    `bound` is an upper bound of what is maximised over all ways to go on: −∞ if none satisfies the limits, None if the
    data contradict the estimates on which it would rest.
    """

    point: Array | None
    bound: float | None
    surest: Incumbent | None


@dataclass(frozen=True, eq=False)
class Batch:
    """A running trial with the model, the state and the settings of its study."""

    trial: Trial
    model: Model
    state: State
    settings: Settings

    @cached_property
    def begun(self) -> list[str]:
        """The stages that were run."""
        return self.state.rules.begun(self.trial)

    @property
    def stages(self) -> list[str]:
        """The stages that have to be run: all but formulas."""
        return [stage.name for stage in self.state.network.stages if not stage.known]

    @property
    def left(self) -> list[str]:
        """Those of them that were not run yet."""
        return [name for name in self.stages if name not in self.begun]

    @cached_property
    def fixed(self) -> frozenset[str]:
        """The controls of stages that were run."""
        return frozenset(c for name in self.begun for c in self.state.network.node(name).stage.controls)

    @cached_property
    def planned(self) -> Array:
        """The controls as coordinates (d,)."""
        domain = self._domain
        return domain.encode(domain.row(self.trial.controls)[None])[0]

    @property
    def _domain(self) -> Domain:
        return self.state.network.domain

    @property
    def is_listed(self) -> bool:
        """Whether a bound over all settings holds for the plan, too: one of the user's choice may be no candidate."""
        listed = self.settings.listed
        return listed is None or self._domain.row(self.trial.controls) in listed

    @cached_property
    def _free(self) -> BoolArray:
        return free_controls(self._domain, self.fixed)

    def given(self, beliefs: Beliefs) -> Beliefs:
        """Beliefs in which the stages that were run are constants."""
        return given_outputs(beliefs, self.trial.outputs, self.model.known_of(self.trial))

    def controls(self, point: Array) -> dict[str, ControlValue]:
        """A point (d,) in user units, with the fixed controls exactly as they were set."""
        listed = self.settings.listed
        row = None if listed is None else listed.at(point)
        named = self._domain.named(self._domain.decode(point[None])[0] if row is None else row)
        return {name: self.trial.controls[name] if name in self.fixed else value for name, value in named.items()}

    @property
    def broken(self) -> list[Limit]:
        """The limits that the outputs of this batch break, whatever is still done with it."""
        network, final = self.state.network, []
        for node in network.nodes:  # parents first
            own = set(node.stage.controls) <= self.fixed and all(parent in final for parent in node.parents)
            final += [node.stage.name] if own or node.stage.name in self.begun else []
        row = self.model.pending([self.trial])
        return [limit for limit in network.limits if limit.stage in final and self._breaks(limit, row)]

    def _breaks(self, limit: Limit, row: Array) -> bool:
        known = self.model.known_of(self.trial)
        if known is not None:
            return bool(excluded(limit, known.lower, known.upper)[0])
        return bool(np.isfinite(row[0, limit.column]) and not satisfied([limit], row)[0])

    # ---- what can still become of it

    def outlook(self, best: float, tolerance: float) -> Outlook:
        """The bounds and the next point by given or enlarged norms; `best` is known to be reached, −∞ if nothing is.

        Raises `RefutedError` if the data refute an assumption.
        """
        beliefs = self.given(self.model.judging)
        surest = self._surest(beliefs)
        known = np.isfinite(best)
        if not known and surest is not None:
            best = surest.value  # of this batch, so that the bound can be refined
        found = self._search(self._bounds(beliefs), best, tolerance)
        bound, point = found.bound, found.point
        if known:
            point = self._with_others_pending(best, tolerance, point)
            point = self._better(self._bounds(beliefs), point)
            point = self._likely(beliefs, self._bounds(beliefs), best, point)
        elif self.state.network.limits:  # nothing feasible is known: where the limits may hold by most
            margin = self._margin(beliefs)
            bound, point = (bound, margin.point) if margin.bound >= 0 else (-np.inf, None)
        else:  # before the first complete run every point is informative
            point = None
        return Outlook(self._safe(beliefs, point) if self.settings.safe else point, bound, surest)

    def estimated_outlook(self, best: float, tolerance: float) -> Outlook:
        """The same where norms are estimated: the point by expected improvement, the bounds by the estimates."""
        point = self._promising(self.given(self.model.acting), best) if np.isfinite(best) else None
        beliefs = self.given(self.model.judging)
        try:
            bound, surest = self._search(self._bounds(beliefs), best, tolerance).bound, self._surest(beliefs)
        except RefutedError:  # an estimate contradicts the data
            return Outlook(point, None, None)
        return Outlook(point, bound, surest)

    def next_gain(self, best: float, bound: float) -> float | None:
        """What the next run can gain: at most `bound`, and the bound at its point; None if that is not computed.

        Only algorithms whose bound is the certificate's choose their points by the bounds.
        """
        if not bound_certifies(self.settings.algorithm) or self.state.network.estimated:
            return None
        point = suggest_with_nothing_pending(self.model, self.state, self.settings).point
        if point is not None:
            run = self._domain.encode(self._domain.row(named(point, self.state.network, self.settings))[None])
            bound = min(bound, float(_at(self._bounds(self.model.judging), self._around(run))[0]))
        return difference_up(bound, best)

    def _bounds(self, beliefs: Beliefs) -> CellBounds:
        return (FeasibleBounds if beliefs.network.limits else ObjectiveBounds)(beliefs)

    @cached_property
    def _candidates(self) -> Array | None:
        """The candidates with the fixed controls of this batch, and its own plan, (n, d); None for the box."""
        listed = self.settings.listed
        if listed is None:
            return None
        fixed = ~self._free
        same = (listed.rows[:, fixed] == self._domain.row(self.trial.controls)[fixed]).all(axis=1)
        return np.concatenate([self.planned[None], listed.coordinates[same]])

    def _is_taken(self, point: Array) -> bool:
        """Whether another trial has these controls."""
        return point_key(self._domain, self._inside(point)) in self._taken

    @cached_property
    def _taken(self) -> frozenset[bytes]:
        return self.state.taken - set(self.state.rules.point_keys(self.trial))

    def _inside(self, point: Array) -> Array:
        """A point (d,) with the fixed controls of this batch: a slice is a rounding error wide where they are logs."""
        return np.where(self._free, point, self.planned)

    def _search(self, bounds: CellBounds, best: float, tolerance: float) -> Outcome:
        """The bound over all ways to go on, and the point to go on with."""
        if self._candidates is not None:
            upper = _at(bounds, self._around(self._candidates))
            point = next((self._candidates[i] for i in np.argsort(-upper, kind="stable") if self._is_free(i)), None)
            root = Leaves.root(self._domain)
            return Outcome(root, max(float(upper.max()), best), point, len(upper), "exhausted")
        root = Leaves.root(self._domain, slice_of(self.model.judging, self.planned, self.fixed))
        budget = SearchBudget(tolerance, _CELLS)
        return search(bounds, root, best, 0, budget, taken=self._is_taken)

    def _is_free(self, i: int) -> bool:
        assert self._candidates is not None, "only called with candidates"
        return not self._is_taken(self._candidates[i])

    def _around(self, points: Array) -> Boxes:
        return around_setting(self.model.judging, points)

    def _with_others_pending(self, best: float, tolerance: float, point: Array | None) -> Array | None:
        """The point to go on with if other trials are pending, as if each of them had returned its mean."""
        others = [trial for trial in self.state.running if trial.number != self.trial.number]
        if not others:
            return point
        try:
            imagined = self.given(hallucinated(self.model.judging, self.model.pending(others)))
            return self._search(self._bounds(imagined), best, tolerance).point
        except RefutedError:  # imagined outputs may contradict
            return point

    def _better(self, bounds: CellBounds, point: Array | None) -> Array | None:
        """The point if its bound is above that of the planned one; else None."""
        if point is None:
            return None
        upper = _at(bounds, self._around(np.stack([self._inside(point), self.planned])))
        return point if upper[0] > upper[1] else None

    def _safe(self, beliefs: Beliefs, point: Array | None) -> Array | None:
        """The last setting on the way from the plan to a point that is proven to satisfy the limits; None for the plan.

        The plan was proven when it was asked for.
        """
        if point is None:
            return None
        points = self._inside(point)[None]  # a candidate stays exactly as it is
        if self._candidates is None:
            way = self.planned + np.linspace(0.0, 1.0, _STEPS)[::-1, None] * (points - self.planned)
            points = np.where(self._free, snapped(self._domain, way), way)
        proven = proven_safe(beliefs, points)
        return points[int(proven.argmax())] if proven.any() else None

    def _margin(self, beliefs: Beliefs) -> Outcome:
        """Where the limits may hold by most, and a bound of the margin there."""
        scales = margin_scales(self.model.judging)
        closest = nearest_margin(self.model.judging, self.model.data, scales)
        # The search ends as soon as every cell breaks a limit.
        enough = float(np.nextafter(-closest, 0.0)) if np.isfinite(closest) else 0.0
        return self._search(MarginBounds(beliefs, scales), closest, enough)

    def _surest(self, beliefs: Beliefs) -> Incumbent | None:
        """The way to go on with the largest lower bound; None if none is proven to satisfy the limits."""
        if self._candidates is not None:
            return best_proven(beliefs, self._candidates)
        starts = [self.planned]
        run = best_row(self.state.network, self.model.data)
        if run is not None:
            starts.append(self._inside(run[: self._domain.dimension]))
        # Fixed controls keep the coordinates of the setting, around which the lower bound holds.
        box = slice_of(self.model.judging, self.planned, self.fixed)
        within = Boxes(np.where(self._free, box.lower, self.planned), np.where(self._free, box.upper, self.planned))
        return proven_incumbent(beliefs, np.stack(starts), self._generator(), within)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng([_STREAM, self.settings.seed, self.trial.number, len(self.begun)])

    def _promising(self, beliefs: Beliefs, best: float) -> Array | None:
        """The way to go on with the largest expected improvement; None if there is no choice or no improvement."""
        draws = standard_draws(beliefs, _SAMPLES, self._generator())

        def score(points: Array) -> Array:
            samples = sample_objective(beliefs, points, draws)
            with np.errstate(invalid="ignore"):
                gain = log_expected_improvement(samples.mean(axis=1) - best, samples.std(axis=1))
            feasible = np.isfinite(feasible_mean(beliefs, points))
            return np.where(feasible & ~np.isnan(gain), gain, -np.inf)

        return self._highest(score)

    def _likely(self, beliefs: Beliefs, bounds: CellBounds, best: float, point: Array | None) -> Array | None:
        """The way to go on with the largest composite mean where GPNMixed would run it; else the point."""
        algorithm = self.settings.algorithm
        if not isinstance(algorithm, GPNMixed):
            return point
        likely = self._highest(lambda points: feasible_mean(beliefs, points))
        if likely is None:
            return point
        promise = _at(bounds, self._around((self.planned if point is None else self._inside(point))[None]))[0] - best
        gain = feasible_mean(beliefs, likely[None])[0] - best
        return likely if gain > 0 and gain >= algorithm.share * promise else point

    def _highest(self, score: Score) -> Array | None:
        """The way to go on with the largest score of those that are not taken; None if no score is finite."""
        if self._candidates is not None:
            points = self._candidates
        elif self._free.any():
            names = [name for name, free in zip(self._domain.names, self._free, strict=True) if free]
            found = best_in_box(
                lambda values: score(with_free(self.planned, self._free, values)),
                Domain({name: self._domain.controls[name] for name in names}),
                self._generator(),
                self.planned[None, self._free],
            )
            points = with_free(self.planned, self._free, np.array(found))
        else:
            return None
        values = score(points)
        order = np.argsort(-values, kind="stable")
        return next((points[i] for i in order if np.isfinite(values[i]) and not self._is_taken(points[i])), None)


def _at(bounds: CellBounds, cells: Boxes) -> Array:
    """The bounds (n,) of cells (n, d)."""
    return bounds(cells)[0]
