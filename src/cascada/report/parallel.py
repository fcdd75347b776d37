"""The parallel-coordinates figure: all runs as lines through their controls and outputs.

It is drawn with plain lines. Plotly's own parallel coordinates need WebGL and execute text as code, which the policy of
the live page forbids.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cascada.network import Network
from cascada.report.theme import GREY, ORANGE, escaped, figure, plotly_objects
from cascada.space import Choice
from cascada.store.trial import Trial, best_of
from cascada.study.reader import Reader

# From the worst fifth to the best: distinct on light and dark pages, and ordered by lightness.
_COLOURS = ("#77779A", "#3B6FB0", "#1F9E89", "#6CBF4B", "#D0A700")
_CROWDED = 6  # with more axes, their numbers alternate between two rows


@dataclass(frozen=True)
class _Axis:
    """A vertical axis: the value of every run, NaN if not observed, and its height from 0 to 1."""

    name: str
    log: bool
    values: tuple[float, ...]
    heights: tuple[float | None, ...]  # None interrupts the line
    ends: tuple[float, float]
    names: tuple[str, ...] = ()  # of the values of a choice, whose codes are the values

    @classmethod
    def of_choice(cls, name: str, names: Sequence[str], chosen: Sequence[str]) -> "_Axis":
        """Return the axis of a choice, on which all its values have the same distance."""
        top, codes = len(names) - 1, [names.index(one) for one in chosen]
        heights = tuple(round(code / top, 4) if top else 0.5 for code in codes)
        return cls(name, False, tuple(map(float, codes)), heights, (0.0, float(top)), tuple(names))

    def text(self, run: int) -> str:
        """Return the value of a run as text."""
        return escaped(self.names[int(self.values[run])]) if self.names else f"{self.values[run]:.5g}"

    def labels(self) -> list[tuple[float, str]]:
        """Return the heights at which values stand beside the axis, and these values."""
        if not self.names:
            return [(0.0, _plain(self.ends[0], 3)), (1.0, _plain(self.ends[1], 3))]
        top = len(self.names) - 1
        return [(code / top if top else 0.5, escaped(one)) for code, one in enumerate(self.names)]

    @classmethod
    def of(cls, name: str, values: Sequence[float], log: bool = False) -> "_Axis":
        """Return the axis of these values, at least one of which was observed."""
        seen = [value for value in values if math.isfinite(value)]
        low, high = min(seen), max(seen)
        scaled = np.log if log else np.asarray
        bottom, top = float(scaled(low)), float(scaled(high))
        heights = (scaled(values) - bottom) / (top - bottom) if top > bottom else 0.5 + 0.0 * scaled(values)
        # Four digits are finer than a pixel and keep the report small enough to mail.
        return cls(
            name,
            log,
            tuple(values),
            tuple(round(h, 4) if math.isfinite(h) else None for h in heights.tolist()),
            (low, high),
        )


def plot_parallel_coordinate(study: Reader) -> Any:
    """Plot one line per complete run from controls to outputs, coloured by its objective; the best run is on top."""
    go, network = plotly_objects(), study.network
    complete = [trial for trial in study.trials if trial.value is not None]
    shown = figure("Runs, from controls to objective")
    if not complete:
        return shown
    axes = _axes(network, complete)
    ranked = sorted(range(len(complete)), key=lambda i: network.sign * (complete[i].value or 0.0))
    groups = [part.tolist() for part in np.array_split(ranked, min(len(_COLOURS), len(ranked)))]
    ends = [(complete[group[0]].value or 0.0, complete[group[-1]].value or 0.0) for group in groups]
    names = _legend([(min(pair), max(pair)) for pair in ends])
    named: dict[str, tuple[str, list[int]]] = {}  # fifths of the same values are one group
    for colour, group, name in zip(_COLOURS[-len(groups) :], groups, names, strict=True):
        named.setdefault(name, (colour, []))[1].extend(group)
    for name, (colour, group) in named.items():
        line = {"color": colour, "width": 1.3}
        shown.add_trace(go.Scatter(**_lines(axes, complete, group), line=line, opacity=0.75, name=name))
    best = best_of(complete, network.sign, limited=bool(network.limits))
    at = [i for i, trial in enumerate(complete) if trial is best]
    if at:
        shown.add_trace(go.Scatter(**_lines(axes, complete, at), line={"color": ORANGE, "width": 3.5}, name="best run"))
    _draw_axes(shown, axes)
    return shown


def _axes(network: Network, complete: Sequence[Trial]) -> list[_Axis]:
    """Return the axes: controls, then observed outputs without those that a stage passes on from an earlier one."""
    axes = [
        _Axis.of_choice(name, control.values, [trial.controls[name] for trial in complete])
        if isinstance(control, Choice)
        else _Axis.of(name, [float(trial.controls[name]) for trial in complete], control.log)
        for name, control in network.domain.controls.items()
    ]
    for node in network.nodes:
        name = node.stage.name
        for j, output in enumerate(node.stage.outputs):
            values = [trial.outputs[name][j] if name in trial.outputs else math.nan for trial in complete]
            if output not in node.stage.passes and any(map(math.isfinite, values)):
                axes.append(_Axis.of(name if len(node.stage.outputs) == 1 else f"{name}.{output}", values))
    return axes


def _lines(axes: Sequence[_Axis], complete: Sequence[Trial], runs: Sequence[int]) -> dict[str, Any]:
    """Return several runs as one trace, with an interruption after each."""
    x: list[int | None] = []
    y: list[float | None] = []
    values: list[str | None] = []
    numbers: list[int | None] = []
    for i in runs:
        x += [*range(len(axes)), None]
        y += [*(axis.heights[i] for axis in axes), None]
        values += [*(axis.text(i) for axis in axes), None]
        numbers += [*[complete[i].number] * len(axes), None]
    hover = "trial %{customdata}: %{text}<extra></extra>"
    return {"x": x, "y": y, "text": values, "customdata": numbers, "hovertemplate": hover, "mode": "lines"}


def _draw_axes(shown: Any, axes: Sequence[_Axis]) -> None:
    for at, axis in enumerate(axes):
        shown.add_shape(type="line", x0=at, x1=at, y0=0, y1=1, line={"color": GREY, "width": 1}, layer="below")
        row = 12 * (at % 2) if len(axes) > _CROWDED else 0
        for height, value in axis.labels():
            side = "top" if height == 0 else "bottom"  # a value in the middle stands above its height
            shift = -3 - row if side == "top" else 3 + (row if height == 1 else 0)
            shown.add_annotation(
                x=at, y=height, text=value, yanchor=side, yshift=shift, showarrow=False, font={"size": 10}
            )
    names = [f"{escaped(axis.name)} (log)" if axis.log else escaped(axis.name) for axis in axes]
    edge = 0.4
    shown.update_xaxes(
        tickvals=list(range(len(axes))),
        ticktext=names,
        range=[-edge, len(axes) - 1 + edge],
        showgrid=False,
        ticks="",
        autotickangles=[0, 90],  # a slanted name of the last axis would leave the picture
    )
    shown.update_yaxes(visible=False, range=[-0.16, 1.16], fixedrange=True)
    # Axis names may be long and vertical. At the container's edge, plotly leaves room for the legend below them.
    below = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"}
    room = {"l": 20, "r": 20, "t": 50, "b": 50}
    shown.update_layout(margin=room, height=460, hovermode="closest", legend=below)


def _legend(ends: Sequence[tuple[float, float]]) -> list[str]:
    """Return the names of groups from their lowest and highest values, with so many digits that they differ."""
    found: list[str] = []
    for digits in range(4, 10):
        found = [_between(low, high, digits) for low, high in ends]
        if len(set(found)) == len(found):
            break
    return found


def _between(low: float, high: float, digits: int) -> str:
    first, last = _plain(low, digits), _plain(high, digits)
    return first if first == last else f"{first} to {last}"


def _plain(value: float, digits: int) -> str:
    """Return a number with this many digits; in scientific notation only if very large or small."""
    return f"{value:.0f}" if 10 ** (digits - 1) <= abs(value) < 1e5 else f"{value:.{digits}g}"
