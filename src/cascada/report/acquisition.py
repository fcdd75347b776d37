"""What the objective is believed to be, and can be, over one or two controls: where the next run may pay."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cascada.errors import ArgumentError
from cascada.report.promising import coordinates_of, optimistic, promising_point
from cascada.report.theme import BLUE, ORANGE, SCALE, escaped, figure, plotly_objects
from cascada.study.runner import AnyStudy

_LINE, _SIDE = 201, 41


def plot_acquisition(study: AnyStudy, controls: Sequence[str] | None = None) -> Any:
    """The mean of the objective and the best it can be, over one control, or the latter over two.

    The other controls are as in the best run, or before it where the objective may be best.
    """
    domain = study.network.domain
    names = tuple(domain.names[:2]) if controls is None else tuple(controls)
    if not 1 <= len(names) <= 2 or not set(names) <= set(domain.names) or len(set(names)) != len(names):
        raise ArgumentError(f"choose one or two of the controls {', '.join(domain.names)}; got {', '.join(names)}.")
    best = study.best_trial
    middle = promising_point(study) if best is None else coordinates_of(study, best.controls)[0]
    columns = [domain.names.index(name) for name in names]
    sides = [np.linspace(domain.lower[c], domain.upper[c], _LINE if len(names) == 1 else _SIDE) for c in columns]
    grid = np.stack(np.meshgrid(*sides, indexing="xy"), axis=-1).reshape(-1, len(names))
    points = np.tile((domain.lower + domain.upper) / 2 if middle is None else middle, (len(grid), 1))
    points[:, columns] = grid
    found = optimistic(study, points)
    shown = figure(
        "Where the objective may be best", names[0], names[1] if len(names) == 2 else study.network.objective[1]
    )
    axes = [np.exp(side) if domain.controls[name].log else side for name, side in zip(names, sides, strict=True)]
    if found is None:
        return shown
    mean, upper = found
    go = plotly_objects()
    runs = [trial for trial in study.trials if trial.value is not None]
    if len(names) == 1:
        shown.add_trace(go.Scatter(x=axes[0], y=mean, mode="lines", name="expected", line={"color": BLUE, "width": 2}))
        word = "at most" if study.network.sign > 0 else "at least"
        line = {"color": ORANGE, "width": 2, "dash": "dot"}
        shown.add_trace(go.Scatter(x=axes[0], y=upper, mode="lines", name=word, line=line))
    else:
        z = upper.reshape(len(axes[1]), len(axes[0]))
        scale = {"colorscale": SCALE, "reversescale": study.network.sign < 0, "contours": {"coloring": "heatmap"}}
        shown.add_trace(go.Contour(x=axes[0], y=axes[1], z=z, name="can be", ncontours=16, **scale))
        x, y = ([trial.controls[name] for trial in runs] for name in names)
        marker = {"color": "#FFFFFF", "size": 7, "line": {"color": "#000000", "width": 1}}
        text = [f"run {trial.number + 1}: {escaped(f'{trial.value:.5g}')}" for trial in runs]
        shown.add_trace(go.Scatter(x=x, y=y, mode="markers", marker=marker, text=text, hoverinfo="text", name="runs"))
        shown.update_layout(showlegend=False)
        shown.update_yaxes(type="log" if domain.controls[names[1]].log else "linear")
    shown.update_xaxes(type="log" if domain.controls[names[0]].log else "linear")
    return shown
