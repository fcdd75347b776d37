"""What the objective is believed to be, and can be, over one or two controls: where the next run may pay."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.outwards import rounded_down, rounded_up
from cascada.report.promising import coordinates_of, optimistic, promising_point
from cascada.report.theme import BLUE, ORANGE, SCALE, escaped, figure, number, plotly_objects
from cascada.store.trial import Trial
from cascada.study.reader import Reader

_LINE, _SIDE = 201, 41
_DIGITS = 5  # of a bound that is pointed at
_FLAT = 0.02  # of what the bound is above the best run: less than that from place to place says nothing


def plot_acquisition(study: Reader, controls: Sequence[str] | None = None) -> Any:
    """The mean of the objective and the best it can be, over one control, or the latter over two.

    The other controls are as in the best run, or before it where the objective may be best.
    """
    names, domain = _chosen(study, controls), study.network.domain
    columns = [domain.names.index(name) for name in names]
    sides = [np.linspace(domain.lower[c], domain.upper[c], _LINE if len(names) == 1 else _SIDE) for c in columns]
    grid = np.stack(np.meshgrid(*sides, indexing="xy"), axis=-1).reshape(-1, len(names))
    points = np.tile(_middle(study), (len(grid), 1))
    points[:, columns] = grid
    found = optimistic(study, points)
    shown = figure(
        "Where the objective may be best", names[0], names[1] if len(names) == 2 else study.network.objective[1]
    )
    axes = [np.exp(side) if domain.controls[name].log else side for name, side in zip(names, sides, strict=True)]
    if found is None:
        return shown
    if len(names) == 1:
        _add_lines(shown, study, axes[0], *found)
    else:
        _add_map(shown, study, names, axes, found[1].reshape(len(axes[1]), len(axes[0])))
        shown.update_yaxes(type="log" if domain.controls[names[1]].log else "linear")
    shown.update_xaxes(type="log" if domain.controls[names[0]].log else "linear")
    return shown


def caption_of_acquisition(study: Reader) -> str:
    """What the figure shows if nobody chose controls: over which, and what the others are."""
    names, domain = _chosen(study, None), study.network.domain
    values = domain.decode(_middle(study)[None])[0]
    others = [f"{name} = {number(values[i])}" for i, name in enumerate(domain.names) if name not in names]
    at = f", with {', '.join(others)}" if others else ""
    said = f"The best that the objective can be over {' and '.join(names)}{at}"
    if len(names) == 1:
        return f"{said} (dotted), and what is expected of it (line)."
    return f"{said}. Dots are runs, whatever their other controls were, and the star is the best run."


def _chosen(study: Reader, controls: Sequence[str] | None) -> tuple[str, ...]:
    domain = study.network.domain
    names = tuple(domain.names[:2]) if controls is None else tuple(controls)
    if not 1 <= len(names) <= 2 or not set(names) <= set(domain.names) or len(set(names)) != len(names):
        raise ArgumentError(f"choose one or two of the controls {', '.join(domain.names)}; got {', '.join(names)}.")
    return names


def _middle(study: Reader) -> Array:
    """Coordinates (d,) of the point that the figure goes through."""
    best, domain = study.best_trial, study.network.domain
    middle = promising_point(study) if best is None else coordinates_of(study, best.controls)[0]
    return (domain.lower + domain.upper) / 2 if middle is None else middle


def _add_lines(shown: Any, study: Reader, x: Array, mean: Array, upper: Array) -> None:
    go = plotly_objects()
    shown.add_trace(go.Scatter(x=x, y=mean, mode="lines", name="expected", line={"color": BLUE, "width": 2}))
    word = "at most" if study.network.sign > 0 else "at least"
    line = {"color": ORANGE, "width": 2, "dash": "dot"}
    text, over = _outwards(study, upper), "%{x}: %{text}"
    shown.add_trace(go.Scatter(x=x, y=upper, mode="lines", name=word, line=line, text=text, hovertemplate=over))


def _add_map(shown: Any, study: Reader, names: Sequence[str], axes: Sequence[Array], upper: Array) -> None:
    """Colours, unless they are all the same; the runs, and the best of them."""
    go, best = plotly_objects(), study.best_trial
    if flat(upper, None if best is None else best.value):
        said = f"about {upper.mean():.3g} wherever this map looks:<br>none of it is ruled out yet"
        where = {"x": 0.5, "y": 1, "xref": "paper", "yref": "paper", "yanchor": "bottom"}
        shown.add_annotation(**where, text=said, showarrow=False)
        shown.update_layout(margin={"t": 90}, title={"y": 0.96, "yanchor": "top"})
        edges = [
            np.log10(axis[[0, -1]]) if study.network.domain.controls[n].log else axis[[0, -1]]
            for n, axis in zip(names, axes, strict=True)
        ]
        shown.update_layout(xaxis={"range": edges[0].tolist()}, yaxis={"range": edges[1].tolist()})
    else:
        # Lines between the colours would be speckles where the bound is nearly the same over a part of the map.
        scale = {"colorscale": SCALE, "reversescale": study.network.sign < 0}
        colours = {"contours": {"coloring": "heatmap"}, "line": {"width": 0}, **scale}
        over = {"text": [_outwards(study, row) for row in upper], "hovertemplate": "%{x}, %{y}: %{text}"}
        shown.add_trace(go.Contour(x=axes[0], y=axes[1], z=upper, name="can be", **over, **colours))
    runs = [trial for trial in study.trials if trial.value is not None]
    white = {"color": "#FFFFFF", "size": 7, "line": {"color": "#000000", "width": 1}}
    star = {"color": ORANGE, "size": 15, "symbol": "star", "line": {"color": "#FFFFFF", "width": 1}}
    _add_runs(shown, runs, names, "runs", white)
    _add_runs(shown, [] if best is None else [best], names, "best run", star)
    shown.update_layout(showlegend=False)


def _outwards(study: Reader, bounds: Array) -> list[str]:
    """The best that the objective can be at points (n,), as texts to be shown where they are pointed at."""
    return [(rounded_up if study.network.sign > 0 else rounded_down)(bound, _DIGITS) for bound in bounds]


def flat(upper: Array, best: float | None) -> bool:
    """Whether a bound is so much the same at all points of a map, seen from the best run, that it rules out none."""
    spread = float(np.ptp(upper))
    above = float(np.abs(upper).max() if best is None else np.abs(upper - best).max())
    return spread <= _FLAT * above


def _add_runs(shown: Any, runs: Sequence[Trial], names: Sequence[str], name: str, marker: dict[str, Any]) -> None:
    x, y = ([trial.controls[control] for trial in runs] for control in names)
    text = [f"trial {trial.number}: {escaped(f'{trial.value:.5g}')}" for trial in runs]
    shown.add_trace(
        plotly_objects().Scatter(x=x, y=y, mode="markers", marker=marker, text=text, hoverinfo="text", name=name)
    )
