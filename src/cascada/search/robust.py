"""Bounds of the worst case over controls that deviate from their settings: max over x of min over |δ| ≤ Δ of g(x + δ).

From above, a few shifts suffice: the minimum over fewer of them is larger. From below, all shifts must be covered:
every δ lies in some part of a cover, and the least lower bound of the parts holds for all of them. Shifts are in user
units. For a logarithmic control they are no translations of its coordinate. Shifted cells are rounded outwards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.confidence import Boxes
from cascada.controls import setting_rounding
from cascada.network import Beliefs, enclose_network, objective_above
from cascada.network.feasibility import feasible_mean
from cascada.network.slack import around_setting
from cascada.search.bounds import NetworkBounds
from cascada.search.box import best_in_box
from cascada.search.incumbent import Incumbent, proven_values
from cascada.search.starts import snapped, with_other_choices
from cascada.space import Control, Domain, Real

# Parts of the cover along each uncertain control, by their number.
_PARTS: Mapping[int, int] = {1: 16, 2: 6, 3: 4}
#: The largest number of uncertain controls.
MOST_UNCERTAIN = max(_PARTS)
_SPLITS = 24  # of the worst part of a cover, for one setting
_BEST_RUNS = 8  # whose points the search for a setting starts from
_STEPS = (0.3, 0.1, 0.03, 0.01, 3e-3)  # of a side: the scales at which a setting is moved
_POINTS = 24  # at each scale


@dataclass(frozen=True, eq=False)
class Deviations:
    """How far controls can be from their settings, (d,) in user units; 0 for those that are exact."""

    domain: Domain  #: all values that occur
    size: Array

    @classmethod
    def of(cls, domain: Domain) -> "Deviations":
        """The deviations that the controls of a domain declare."""
        return cls(domain, np.array([control.deviation for control in domain.controls.values()], dtype=float))

    @cached_property
    def uncertain(self) -> list[int]:
        """The columns of the controls that deviate."""
        return np.flatnonzero(self.size).tolist()

    @cached_property
    def settings(self) -> Domain:
        """The settings that can be chosen: with every deviation the value stays within the range of the control."""
        chosen: dict[str, Control] = dict(self.domain.controls)
        for j in self.uncertain:
            control, size = chosen[self.domain.names[j]], float(self.size[j])
            chosen[self.domain.names[j]] = Real(control.low + size, control.high - size, control.log)
        return Domain(chosen, self.domain.idle)

    @cached_property
    def corners(self) -> Array:
        """Shifts (k, d) of every uncertain control by −Δ, 0 or Δ."""
        return self._grid([np.array([-1.0, 0.0, 1.0])] * len(self.uncertain))

    @cached_property
    def cover(self) -> tuple[Array, Array]:
        """The lower and upper ends of parts (k, d) that cover all shifts."""
        count = _PARTS[len(self.uncertain)]
        ends = np.linspace(-1.0, 1.0, count + 1)
        return self._grid([ends[:-1]] * len(self.uncertain)), self._grid([ends[1:]] * len(self.uncertain))

    def _grid(self, sides: list[Array]) -> Array:
        """All combinations of parts of Δ as shifts."""
        combinations = np.array(list(product(*sides)))
        shifts = np.zeros((len(combinations), len(self.size)))
        shifts[:, self.uncertain] = combinations * self.size[self.uncertain]
        return shifts

    def moved(self, cells: Boxes, least: Array, most: Array) -> Boxes:
        """Cells (n, d) of all values of the settings in cells (n, d) with shifts from `least` to `most`, (n, d) each.

        Values beyond the range of a control, which only rounding leads to, are at its end.
        """
        lower, upper = cells.lower.copy(), cells.upper.copy()
        for j in self.uncertain:
            lower[:, j] = self._shifted(j, lower[:, j], least[:, j], -1)
            upper[:, j] = self._shifted(j, upper[:, j], most[:, j], 1)
        inside = Boxes(np.maximum(lower, self.domain.lower), np.minimum(upper, self.domain.upper))
        return Boxes(np.minimum(inside.lower, self.domain.upper), np.maximum(inside.upper, self.domain.lower))

    def _shifted(self, j: int, ends: Array, shift: Array, direction: int) -> Array:
        """Coordinates (n,) shifted in user units and rounded in a direction."""
        control = self.domain.controls[self.domain.names[j]]
        if not control.log:
            return np.nextafter(ends + shift, direction * np.inf)
        values = np.exp(ends) * (1 + direction * 8 * UNIT_ROUNDOFF) + shift
        inside = np.clip(values * (1 + direction * 2 * UNIT_ROUNDOFF), control.low, control.high)
        logarithms = np.log(inside)
        return logarithms + direction * setting_rounding(logarithms)

    def values(self, points: Array, shift: Array) -> Array:
        """The coordinates (n, d) of settings (n, d) with a shift (d,) or (n, d), not rounded outwards."""
        inside = self.domain.decode(points) + shift
        low = [control.low for control in self.domain.controls.values()]
        high = [control.high for control in self.domain.controls.values()]
        return self.domain.encode(np.clip(inside, low, high))


class RobustBounds(NetworkBounds):
    """Upper bounds over cells of settings of the worst case over all shifts: the smallest over some `shifts` (k, d)."""

    def __init__(self, beliefs: Beliefs, shifts: Array) -> None:
        super().__init__(beliefs)
        self._deviations, self._shifts = Deviations.of(beliefs.network.domain), shifts

    @property
    def domain(self) -> Domain:
        return self._deviations.settings

    def __call__(self, cells: Boxes) -> tuple[Array, Array]:
        k, n = len(self._shifts), len(cells.lower)
        every = Boxes(np.tile(cells.lower, (k, 1)), np.tile(cells.upper, (k, 1)))
        shifts = np.repeat(self._shifts, n, axis=0)
        found = enclose_network(self._beliefs, self._deviations.moved(every, shifts, shifts))
        assert found.affine is not None, "the union form has slopes"
        network = self._beliefs.network
        upper = objective_above(network, found).reshape(k, n)
        slope = np.abs(found.affine.slope[:, network.objective_column]).reshape(k, n, -1)
        return upper.min(axis=0), slope[upper.argmin(axis=0), np.arange(n)]


def worst_case(beliefs: Beliefs, points: Array) -> tuple[Array, Array]:
    """Lower bounds (n,) of what settings (n, d) give under every shift, and the middle (n, d) of the worst part."""
    deviations, n = Deviations.of(beliefs.network.domain), len(points)
    least, most = deviations.cover
    found = _over_parts(
        beliefs, deviations, np.repeat(points, len(least), axis=0), np.tile(least, (n, 1)), np.tile(most, (n, 1))
    )
    by_part = found.reshape(n, len(least))
    worst = by_part.argmin(axis=1)
    return by_part.min(axis=1), 0.5 * (least + most)[worst]


def refined_worst_case(beliefs: Beliefs, point: Array) -> tuple[float, Array]:
    """The same for one setting (d,), with the worst parts of the cover split again and again."""
    deviations = Deviations.of(beliefs.network.domain)
    least, most = (ends.copy() for ends in deviations.cover)
    lower = _over_parts(beliefs, deviations, np.repeat(point[None], len(least), axis=0), least, most)
    sizes = np.where(deviations.size > 0, deviations.size, np.inf)
    for _ in range(_SPLITS):
        i = int(lower.argmin())
        side = int(((most[i] - least[i]) / sizes).argmax())
        middle = 0.5 * (least[i, side] + most[i, side])
        if not least[i, side] < middle < most[i, side]:
            break
        low, high = np.repeat(least[[i]], 2, axis=0), np.repeat(most[[i]], 2, axis=0)
        high[0, side] = low[1, side] = middle
        halves = np.maximum(_over_parts(beliefs, deviations, np.repeat(point[None], 2, axis=0), low, high), lower[i])
        least, most = (
            np.concatenate([np.delete(least, i, axis=0), low]),
            np.concatenate([np.delete(most, i, axis=0), high]),
        )
        lower = np.concatenate([np.delete(lower, i), halves])
    i = int(lower.argmin())
    return float(lower[i]), 0.5 * (least[i] + most[i])


def _over_parts(beliefs: Beliefs, deviations: Deviations, points: Array, least: Array, most: Array) -> Array:
    """Lower bounds (n,) of settings (n, d) over parts of the shifts from `least` to `most` (n, d)."""
    return proven_values(beliefs, deviations.moved(around_setting(beliefs, points), least, most))[0]


def robust_incumbent(beliefs: Beliefs, data: Array, rng: np.random.Generator, earlier: Array) -> Incumbent:
    """The setting with the largest proven worst case that a short search finds.

    It starts from the points of runs `data` (t, V), and from earlier settings (k, d).
    """
    deviations = Deviations.of(beliefs.network.domain)
    domain = deviations.settings

    def mean(points: Array) -> Array:
        shifted = [feasible_mean(beliefs, deviations.values(points, shift)) for shift in deviations.corners]
        return np.min(shifted, axis=0)

    runs = np.unique(np.clip(data[:, : domain.dimension], domain.lower, domain.upper), axis=0)
    near = runs[np.argsort(-mean(runs), kind="stable")[:_BEST_RUNS]]
    highest = best_in_box(mean, domain, rng, near[:1])[0]
    points = snapped(domain, np.concatenate([near, highest[None], earlier]))
    found: Incumbent | None = None
    for step in (*_STEPS, 0.0):
        values, _ = worst_case(beliefs, points)
        i = int(values.argmax())
        if found is None or values[i] > found.value:
            found = Incumbent(points[i], float(values[i]))
        moves = step * (domain.upper - domain.lower) * rng.standard_normal((_POINTS, domain.dimension))
        moved = with_other_choices(domain, rng, found.point, found.point + moves)
        points = snapped(domain, np.concatenate([found.point[None], moved]))
    assert found is not None, "at least one setting was tried"
    return replace(found, value=max(found.value, refined_worst_case(beliefs, found.point)[0]))
