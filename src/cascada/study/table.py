"""Decision tables: for every box of contexts one setting, and how far it can be from the best whatever the context is.

A box W of contexts is cut into parts. Over each part U bounds what any setting gives, and L what the setting of the box
gives at least. For a context in a part the setting is within U − L of the best, so it is within the largest of these
differences over the whole box. Each part has a tree of its own, pruned only against L there.

A choice among the contexts has a row, or several, for each of its values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Any

import numpy as np

from cascada.arrays import Array, as_whole_number
from cascada.confidence import Boxes
from cascada.errors import ArgumentError, RefutedError
from cascada.network import Beliefs, Network
from cascada.network.slack import around_setting
from cascada.outwards import as_given, difference_up, rounded_down, rounded_up
from cascada.search import Leaves, ObjectiveBounds, SearchBudget, search
from cascada.search.feasible import FeasibleBounds
from cascada.search.incumbent import proven_values
from cascada.space import Choice, Control, ControlValue, Real
from cascada.study.certificate import GapKind
from cascada.study.context import proven_at
from cascada.study.model import Model
from cascada.study.settings import Settings
from cascada.study.slice import Slice
from cascada.study.state import State

_PARTS = 4  # of a box, at most
_CELLS = 500  # of the search over a part
_SHORTEST = 1 / 64  # of a range: a shorter box has a large gap for want of runs, not because of its length
_LARGE = 8  # tolerances: larger gaps count as equal
_DIGITS = 4

_Box = dict[str, tuple[float, float]]  # context control → its range in user units; of a choice, one code twice


@dataclass(frozen=True)
class TableRow:
    """What to do in a box of contexts: `controls` give at least `at_least` there, and nothing gives more than `bound`.

    `contexts` has the range (low, high) of each control of the context, or the value of a choice.
    With a minimised objective it is at most, and less. `gap` is how far the setting can be from the best setting for
    the same context, whatever that context is. None where no setting is proven to satisfy the limits.
    """

    contexts: Mapping[str, Any]
    controls: Mapping[str, ControlValue] | None
    at_least: float | None
    bound: float
    gap: float | None


@dataclass(frozen=True)
class DecisionTable:
    """Rows for boxes of contexts that cover those that were asked for."""

    rows: tuple[TableRow, ...]
    kind: GapKind
    maximised: bool = True

    @property
    def gap(self) -> float | None:
        """The largest gap of a row; None if some row has none."""
        gaps = [row.gap for row in self.rows]
        return None if not gaps or None in gaps else max(gap for gap in gaps if gap is not None)

    def __str__(self) -> str:
        return "\n".join([f"{self.kind.capitalize()}:", *(f"  {self._line(row)}" for row in self.rows)])

    def _line(self, row: TableRow) -> str:
        where = ", ".join(f"{name} {_shown(ends)}" for name, ends in row.contexts.items())
        if row.controls is None or row.at_least is None or row.gap is None:
            return f"{where}: no setting is known that satisfies the limits"
        # With all digits: what is proven of this setting may not hold for one next to it.
        setting = ", ".join(f"{name} = {as_given(value)}" for name, value in row.controls.items())
        least, down = ("at least", rounded_down) if self.maximised else ("at most", rounded_up)
        return (
            f"{where}: {setting} gives {least} {down(row.at_least, _DIGITS)}, within {rounded_up(row.gap, _DIGITS)} of "
            f"the best whatever it is"
        )


@dataclass(eq=False)
class _Part:
    """A part of a box of contexts, with an upper bound over it of what is maximised."""

    box: _Box
    upper: float


@dataclass(eq=False)
class _Row:
    """A box under construction: its parts, the setting (d,) of the whole box, and what it gives at least."""

    box: _Box
    parts: list[_Part] = field(default_factory=list)
    point: Array | None = None
    lower: list[float] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """By how much the setting can be worse than the best."""
        if self.point is None:
            return np.inf
        return max(difference_up(part.upper, low) for part, low in zip(self.parts, self.lower, strict=True))


def decision_table(
    model: Model,
    state: State,
    settings: Settings,
    contexts: Mapping[str, Sequence[Any]] | None,
    tolerance: float | None,
    rows: int,
) -> DecisionTable:
    """A table for the boxes between given `contexts`, or for boxes that are cut until all gaps are within a tolerance.

    There are at most `rows` of the latter. Raises `ArgumentError` for invalid contexts or if there is no complete run,
    and `RefutedError` if the data refute an assumption.
    """
    network = state.network
    if not network.context:
        raise ArgumentError("a decision table needs controls with context=True; this process has none.")
    as_whole_number(rows, "rows")
    boxes = _boxes(network, contexts)
    if contexts is None and rows < len(boxes):
        raise ArgumentError(
            f"rows must be at least {len(boxes)}, the number of combinations of values of the choices in the context; "
            f"got {rows}. Give more rows, or the values that matter as contexts=."
        )
    if not state.complete:
        raise ArgumentError("a decision table needs at least one complete run; tell one first.")
    if model.kind == "refuted":
        raise RefutedError(" ".join(model.evidence()))
    maker = _Maker(model, settings, network, settings.tolerance or 0.0 if tolerance is None else tolerance)
    try:
        found = [maker.row(box) for box in boxes]
        if contexts is None:
            found = maker.merged(maker.cut_down(found, rows))
    except RefutedError as error:
        model.refuted_by(error)
        raise
    return DecisionTable(tuple(maker.shown(row) for row in found), model.kind, network.sign > 0)


@dataclass(eq=False)
class _Maker:
    model: Model
    settings: Settings
    network: Network
    tolerance: float

    def row(self, box: _Box) -> _Row:
        """A row for a box, with the setting that is proven to be best in its middle."""
        domain = self.network.domain
        middle = {name: _middle(domain.controls[name], ends) for name, ends in box.items()}
        incumbent = proven_at(self.model, self.settings, Slice(self.network, {}, middle))
        made = _Row(box, point=None if incumbent is None else incumbent.point)
        self._add(made, box)
        while made.gap > self.tolerance and len(made.parts) < _PARTS and made.point is not None:
            pairs = zip(made.parts, made.lower, strict=True)
            worst = int(np.argmax([(part.upper - low) * self._size(part.box) for part, low in pairs]))
            halves = self._halves(made.parts[worst].box)
            if halves is None:
                break
            del made.parts[worst], made.lower[worst]
            for half in halves:
                self._add(made, half)
        return made

    def _add(self, row: _Row, box: _Box) -> None:
        beliefs = self._beliefs(box)
        low = -np.inf if row.point is None else self._lower(beliefs, row.point)
        bounds = (FeasibleBounds if self.network.limits else ObjectiveBounds)(beliefs)
        budget = SearchBudget(self.tolerance / 4, _CELLS)
        outcome = search(bounds, Leaves.root(beliefs.network.domain), low, 0, budget, prove=True)
        self.model.cells += outcome.cells
        row.parts.append(_Part(box, outcome.bound))
        row.lower.append(low)

    def _beliefs(self, box: _Box) -> Beliefs:
        controls = self.network.domain.controls
        ranges: dict[str, Control] = {name: _between(controls[name], ends) for name, ends in box.items()}
        return replace(self.model.judging, network=self.model.judging.network.within(ranges))

    def _lower(self, beliefs: Beliefs, point: Array) -> float:
        """What a setting gives at least at every context of a box; −∞ if it may break a limit."""
        domain = beliefs.network.domain
        setting = around_setting(self.model.judging, point[None])
        measured = np.array([name in self.network.context for name in domain.names])
        lower, upper = np.where(measured, domain.lower, setting.lower), np.where(measured, domain.upper, setting.upper)
        return float(proven_values(beliefs, Boxes(lower, upper))[0][0])

    def _halves(self, box: _Box) -> tuple[_Box, _Box] | None:
        """A box cut across its longest side, in parts of the range of the control; None if it is too short."""
        name = max(box, key=lambda one: self._share(one, box))
        if self._share(name, box) < _SHORTEST:
            return None
        low, high = box[name]
        log = self.network.domain.controls[name].log
        middle = float(np.sqrt(low) * np.sqrt(high)) if log else 0.5 * (low + high)
        return ({**box, name: (low, middle)}, {**box, name: (middle, high)}) if low < middle < high else None

    def _share(self, name: str, box: _Box) -> float:
        """The length of a side of a box, in parts of the range of the control; 0 for a value of a choice."""
        control = self.network.domain.controls[name]
        if control.unordered:
            return 0.0
        return _length(control, box[name]) / _length(control, _range(control))

    def _size(self, box: _Box) -> float:
        return max(self._share(name, box) for name in box)

    def cut_down(self, rows: list[_Row], most: int) -> list[_Row]:
        """Rows with smaller boxes; long ones with large gaps are cut first."""
        while len(rows) < most:
            wide = [i for i, row in enumerate(rows) if row.gap > self.tolerance and self._halves(row.box) is not None]
            if not wide:
                break
            large = _LARGE * self.tolerance or np.inf
            worst = max(wide, key=lambda i: min(rows[i].gap, large) * self._size(rows[i].box))
            halves = self._halves(rows[worst].box)
            assert halves is not None, "only boxes that can be cut are considered"
            rows[worst : worst + 1] = [self.row(half) for half in halves]
        return rows

    def merged(self, rows: list[_Row]) -> list[_Row]:
        """Rows whose boxes touch are merged where the setting of one is good enough in both."""
        i = 0
        while i + 1 < len(rows):
            joined = self._joined(rows[i], rows[i + 1])
            if joined is None:
                i += 1
            else:
                rows[i : i + 2] = [joined]
                i = max(i - 1, 0)
        return rows

    def _joined(self, a: _Row, b: _Row) -> _Row | None:
        differ = [name for name in a.box if a.box[name] != b.box[name]]
        if len(differ) != 1 or a.box[differ[0]][1] != b.box[differ[0]][0] or max(a.gap, b.gap) > self.tolerance:
            return None
        name, parts = differ[0], [*a.parts, *b.parts]
        box = {**a.box, name: (a.box[name][0], b.box[name][1])}
        for point in (a.point, b.point):
            assert point is not None, "rows with a gap have a setting"
            row = _Row(box, parts, point, [self._lower(self._beliefs(part.box), point) for part in parts])
            if row.gap <= self.tolerance:
                return row
        return None

    def shown(self, row: _Row) -> TableRow:
        """A finished row."""
        sign, bound = self.network.sign, max(part.upper for part in row.parts)
        least = min(row.lower)
        domain = self.network.domain
        contexts = {name: _context(domain.controls[name], ends) for name, ends in row.box.items()}
        if row.point is None or not np.isfinite(least):
            return TableRow(contexts, None, None, sign * bound, None)
        controls = domain.named(domain.decode(row.point[None])[0])
        chosen = {name: value for name, value in controls.items() if name not in self.network.context}
        return TableRow(contexts, chosen, sign * least, sign * bound, row.gap)


def _boxes(network: Network, contexts: Mapping[str, Sequence[Any]] | None) -> list[_Box]:
    """The boxes between the given values of every context control; `ArgumentError` if they are invalid.

    Without values, one box for every combination of values of the choices.
    """
    controls = network.domain.controls
    if contexts is None:
        sides = [_values(controls[name], None, name) or [_range(controls[name])] for name in network.context]
    elif not isinstance(contexts, Mapping) or set(contexts) != set(network.context):
        raise ArgumentError(
            f"contexts must give the ends of boxes for {', '.join(network.context)}, such as "
            f"{{{network.context[0]!r}: {_example(controls[network.context[0]])}}}; got {contexts!r:.100}."
        )
    else:
        sides = [
            _values(controls[name], contexts[name], name) or list(pairwise(_ends(name, controls[name], contexts[name])))
            for name in network.context
        ]
    return [dict(zip(network.context, box, strict=True)) for box in product(*sides)]


def _example(control: Control) -> str:
    return repr(list(control.values[:2])) if isinstance(control, Choice) else "[0.2, 0.5, 0.8]"


def _values(control: Control, given: Any, name: str) -> list[tuple[float, float]]:
    """The sides of boxes for the given values of a choice, or for all of them; none for another control."""
    if not isinstance(control, Choice):
        return []
    values = list(control.values) if given is None else list(given) if isinstance(given, Sequence) else []
    known = [value for value in values if value in control.values]
    if isinstance(given, str) or not values or known != values or len(set(map(str, values))) < len(values):
        raise ArgumentError(
            f"contexts of {name!r} must be a list of some of its values, {', '.join(map(repr, control.values))}, each "
            f"once; got {given!r:.100}."
        )
    return [(control.coded(value, name),) * 2 for value in values]


def _ends(name: str, control: Control, given: Any) -> list[float]:
    try:
        ends = [float(end) for end in given]
    except (TypeError, ValueError):
        ends = []
    inside = all(control.low <= end <= control.high for end in ends)
    if len(ends) < 2 or not inside or any(a >= b for a, b in pairwise(ends)):
        raise ArgumentError(
            f"contexts of {name!r} must be at least two numbers in ascending order within [{control.low:g}, "
            f"{control.high:g}]; got {given!r:.100}."
        )
    return ends


def _context(control: Control, ends: tuple[float, float]) -> tuple[float, float] | str:
    """A side of a box as it is reported: a range, or the value of a choice."""
    return control.shown(ends[0]) if isinstance(control, Choice) else ends


def _shown(ends: tuple[float, float] | str) -> str:
    """A range of a context, or the value of a choice, in text."""
    return f"= {ends!r}" if isinstance(ends, str) else f"{as_given(ends[0])}–{as_given(ends[1])}"


def _range(control: Control) -> tuple[float, float]:
    return float(control.low), float(control.high)


def _between(control: Control, ends: tuple[float, float]) -> Control:
    """The control within a side of a box."""
    return control.at(control.shown(ends[0])) if isinstance(control, Choice) else Real(*ends, log=control.log)


def _length(control: Control, ends: tuple[float, float]) -> float:
    """The length of a range as a coordinate; 1 for a range of no length."""
    length = float(np.log(ends[1]) - np.log(ends[0])) if control.log else ends[1] - ends[0]
    return length if length > 0 else 1.0  # of a fixed control


def _middle(control: Control, ends: tuple[float, float]) -> ControlValue:
    """A value of the control near the middle of a range."""
    if isinstance(control, Choice):
        return control.shown(ends[0])
    middle = float(np.sqrt(ends[0]) * np.sqrt(ends[1])) if control.log else 0.5 * (ends[0] + ends[1])
    nearest = float(control.nearest(np.array([middle]))[0])
    inside = min(max(nearest, control.low), control.high)
    return int(inside) if control.integer else inside
