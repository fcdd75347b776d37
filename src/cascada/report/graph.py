"""The drawing of a network: stages from top to bottom, with their controls, outputs and the values of a trial.

The width of the page is unknown when the figure is made: it may be a wide screen or a phone. So heights are in pixels,
and all text has to fit into the narrowest page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from cascada.network import Network, Node
from cascada.report.theme import BLUE, GREEN, GREY, escaped, figure, number
from cascada.store.trial import Trial
from cascada.study.reader import Reader

# In pixels.
_NARROW = 296  # width of the drawing on a page of 360 pixels
_TOP, _SIDE, _BOTTOM = 56, 8, 16  # margins
_BOX, _BETWEEN, _REACH, _GAP = 28, 34, 24, 8  # a box's height, from row to row, arrows from controls, and to outputs
_SMALL, _LARGE, _NAME = 8, 11, 12  # font sizes: smallest, largest, and largest of names in boxes
_ASPECT, _BOLD = 0.62, 0.68  # width of a letter as a fraction of the font size, normal and bold; overestimates
_SPACING = 1.35  # line height as a multiple of the font size
_PASSING = 0.35  # width of a value that passes by, as a fraction of a stage's width

_ARROW = {"showarrow": True, "arrowhead": 2, "arrowwidth": 1.5}


@dataclass(frozen=True)
class _Drawn:
    """A stage in its row: its text, width in pixels, and position x as a fraction of the figure's width."""

    node: Node
    x: float
    width: float
    name: str
    letters: float  # font size of the name
    controls: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class _Row:
    """Stages side by side, and the positions of all stages and passing values in the row."""

    places: dict[str, float]
    stages: tuple[_Drawn, ...]
    letters: float  # font size
    sideways: bool  # whether controls and outputs are to the left and to the right of the box, else above and below
    first: bool  # no arrows lead to its stages, so that there is room above them

    @property
    def above(self) -> float:
        """Distance from the top of the row to the boxes."""
        if self.sideways:
            return (self.height - _BOX) / 2
        return max(self.upper(stage) for stage in self.stages)

    @property
    def height(self) -> float:
        """Height of the row with all its text."""
        if self.sideways:
            return max(_BOX, *(self.tall(max(len(s.controls), len(s.outputs))) for s in self.stages))
        return self.above + _BOX + max(self.lower(stage) for stage in self.stages)

    def tall(self, lines: int) -> float:
        """Return the height of this many lines of text."""
        return lines * _SPACING * self.letters + 4 * bool(lines)

    def upper(self, stage: _Drawn) -> float:
        """Return the height of the text above the box: the controls, with an arrow."""
        return self.tall(len(stage.controls)) + _REACH if self.first and stage.controls and not self.sideways else 0.0

    def lower(self, stage: _Drawn) -> float:
        """Return the height of the text below the box."""
        if self.sideways:
            return 0.0
        return self.tall(len(stage.outputs)) + (0.0 if self.first else self.tall(len(stage.controls)))


def plot_network(study: Reader, trial: Trial | None = None) -> Any:
    """Draw the stages from top to bottom, with the values of a trial, by default of the best."""
    trial = study.best_trial if trial is None else trial
    rows = _rows(study.network, trial)
    high = sum(row.height for row in rows) + _BETWEEN * (len(rows) - 1)
    shown = figure(
        "The process" if trial is None else f"The process, with the values of trial {trial.number}",
        height=high + _TOP + _BOTTOM,
        margin={"l": _SIDE, "r": _SIDE, "t": _TOP, "b": _BOTTOM},
        showlegend=False,
        dragmode=False,
    )
    # One vertical unit is one pixel, as zooming is disabled.
    shown.update_xaxes(visible=False, range=[0, 1], fixedrange=True)
    shown.update_yaxes(visible=False, range=[high, 0], fixedrange=True)
    top = 0.0
    for i, row in enumerate(rows):
        _draw_row(shown, row, top)
        if i:
            _draw_edges(shown, rows[i - 1], row, top)
        _draw_passing(shown, row, top)
        top += row.height + _BETWEEN
    return shown


# ---- layout


def _rows(network: Network, trial: Trial | None) -> list[_Row]:
    """Return the rows; the row of a stage is the length of the longest path to it."""
    depth: dict[str, int] = {}
    until: dict[str, int] = {}  # the row of a stage's last child
    for node in network.nodes:
        depth[node.stage.name] = row = 1 + max((depth[parent] for parent in node.parents), default=-1)
        until |= {parent: max(row, until.get(parent, 0)) for parent in node.parents}
    rows: list[_Row] = []
    for i in range(1 + max(depth.values())):
        nodes = [node for node in network.nodes if depth[node.stage.name] == i]
        passing = [name for name, last in until.items() if depth[name] < i < last]
        places = _places(nodes, passing, rows[-1].places if rows else {})
        rows.append(_row(nodes, places, trial, first=i == 0))
    return rows


def _places(nodes: Sequence[Node], passing: Sequence[str], before: dict[str, float]) -> dict[str, float]:
    """Return the positions in a row, ordered by those of the parents so that few arrows cross.

    A passing value needs less width than a stage.
    """
    wanted = {name: before[name] for name in passing}
    for node in nodes:
        above = [before[parent] for parent in node.parents]
        wanted[node.stage.name] = sum(above) / len(above) if above else 0.5
    widths = {name: _PASSING if name in passing else 1.0 for name in wanted}
    places, left, total = {}, 0.0, sum(widths.values())
    for name in sorted(wanted, key=wanted.__getitem__):
        places[name] = (left + widths[name] / 2) / total
        left += widths[name]
    return places


def _row(nodes: Sequence[Node], places: dict[str, float], trial: Trial | None, first: bool) -> _Row:
    """Return a row with its text, in a font size that lets the text fit."""
    share = _NARROW / (len(nodes) + _PASSING * (len(places) - len(nodes)))
    drawn = [_drawn(node, places[node.stage.name], trial, share) for node in nodes]
    wide = max(max(map(len, (*stage.controls, *stage.outputs))) for stage in drawn)
    sideways = len(places) == 1 and _fits_sideways(drawn[0])
    letters = _LARGE if sideways else min(max((share - _GAP) / (_ASPECT * wide), _SMALL), _LARGE)
    return _Row(places, tuple(drawn), letters, sideways, first)


def _fits_sideways(stage: _Drawn) -> bool:
    half = (_NARROW - stage.width) / 2
    left, right = (_ASPECT * _LARGE * max(map(len, lines), default=0) for lines in (stage.controls, stage.outputs))
    return left + _REACH <= half and right + _GAP <= half


def _drawn(node: Node, x: float, trial: Trial | None, share: float) -> _Drawn:
    room, stage = int((share - _GAP) / (_ASPECT * _SMALL)), node.stage
    values = trial.outputs.get(stage.name) if trial is not None else None
    outputs = [_lines(name, None if values is None else values[j], room) for j, name in enumerate(stage.outputs)]
    controls = [_lines(name, None if trial is None else trial.controls[name], room) for name in stage.controls]
    name = _cut(stage.name, int((share - 2 * _GAP) / (_BOLD * _SMALL)))
    letters = min(max((share - 2 * _GAP) / (_BOLD * len(name)), _SMALL), _NAME)
    width = max(48.0, _GAP + _BOLD * letters * len(name))
    return _Drawn(
        node, x, width, name, letters, tuple(chain.from_iterable(controls)), tuple(chain.from_iterable(outputs))
    )


def _lines(name: str, value: float | None, room: int) -> list[str]:
    """Return a name and its value as one line, or as two if one is too long; a name that is still too long is cut."""
    equals = "" if value is None else f"= {number(value)}"
    line = f"{name} {equals}".strip()
    return [line] if len(line) <= room else [part for part in (_cut(name, room), equals) if part]


def _cut(name: str, room: int) -> str:
    room = max(room, 3)
    return name if len(name) <= room else f"{name[: room - 1]}…"


# ---- drawing


def _draw_row(shown: Any, row: _Row, top: float) -> None:
    y = top + row.above
    for stage in row.stages:
        _draw_box(shown, stage, y)
        (_draw_sideways if row.sideways else _draw_around)(shown, row, stage, y)


def _draw_box(shown: Any, stage: _Drawn, y: float) -> None:
    font = {"color": "#FFFFFF", "size": stage.letters}
    box = {"bgcolor": BLUE, "width": stage.width, "height": _BOX - 2, "font": font}  # plotly adds a pixel on each side
    if stage.name != stage.node.stage.name:
        box["hovertext"] = escaped(stage.node.stage.name)
    _write(shown, stage.x, y + _BOX / 2, [f"<b>{escaped(stage.name)}</b>"], box)


def _draw_sideways(shown: Any, row: _Row, stage: _Drawn, y: float) -> None:
    """Draw controls to the left of a box with top y, with an arrow to it, and outputs to the right."""
    half = stage.width / 2
    left = {"ax": -_REACH, "ay": 0, "xshift": -half, "xanchor": "right", "align": "right"}
    right = {"xshift": half + _GAP, "xanchor": "left", "align": "left"}
    _write(shown, stage.x, y + _BOX / 2, _escaped(stage.controls), _green(row) | _ARROW | {"arrowcolor": GREEN} | left)
    _write(shown, stage.x, y + _BOX / 2, _escaped(stage.outputs), {"font": {"size": row.letters}} | right)


def _draw_around(shown: Any, row: _Row, stage: _Drawn, y: float) -> None:
    """Draw outputs below a box with top y; controls above it in the first row, else also below, under the arrows."""
    controls, below = _escaped(stage.controls), y + _BOX
    if row.first:
        down = {"ax": 0, "ay": -_REACH, "yanchor": "bottom"}
        _write(shown, stage.x, y, controls, _green(row) | _ARROW | {"arrowcolor": GREEN} | down)
    else:
        _write(shown, stage.x, below, controls, _green(row) | {"yanchor": "top"})
        below += row.tall(len(controls))
    _write(shown, stage.x, below, _escaped(stage.outputs), {"font": {"size": row.letters}, "yanchor": "top"})


def _draw_edges(shown: Any, before: _Row, row: _Row, top: float) -> None:
    """Draw arrows to the boxes of a row, and lines for the values that pass through it."""
    start = top - _BETWEEN
    for stage in before.stages:
        leads = any(stage.node.stage.name in child.node.parents for child in row.stages)
        end = start - before.height + before.above + _BOX + before.lower(stage)
        if (leads or stage.node.stage.name in row.places) and start - end > 1:
            _draw_line(shown, (stage.x, end), (stage.x, start))
    for stage in row.stages:
        for parent in stage.node.parents:
            x, y = before.places[parent], top + row.above
            ends = {"x": stage.x, "y": y, "ax": x, "ay": start, "axref": "x", "ayref": "y"}
            shown.add_annotation(**_ARROW | ends, arrowcolor=GREY, text="")
            _draw_line(
                shown, (x, start), ((x + stage.x) / 2, (start + y) / 2)
            )  # plotly's arrow begins late, which leaves a hole
    for name in row.places.keys() & before.places.keys():
        _draw_line(shown, (before.places[name], start), (row.places[name], top))


def _draw_passing(shown: Any, row: _Row, top: float) -> None:
    stages = {stage.node.stage.name for stage in row.stages}
    for name, x in row.places.items():
        if name not in stages:
            _draw_line(shown, (x, top), (x, top + row.height))


def _draw_line(shown: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    line = {"color": GREY, "width": 1.5}
    shown.add_shape(type="line", x0=start[0], y0=start[1], x1=end[0], y1=end[1], line=line, layer="below")


def _write(shown: Any, x: float, y: float, lines: Sequence[str], how: dict[str, Any]) -> None:
    if lines:
        shown.add_annotation(**{"x": x, "y": y, "text": "<br>".join(lines), "showarrow": False} | how)


def _escaped(lines: Sequence[str]) -> list[str]:
    return [escaped(line) for line in lines]


def _green(row: _Row) -> dict[str, Any]:
    return {"font": {"color": GREEN, "size": row.letters}}
