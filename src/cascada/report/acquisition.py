"""The figure of the objective's mean and bound over one or two controls, which shows where the next run may pay."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.outwards import rounded_down, rounded_up
from cascada.report.history import FEASIBLE, INFEASIBLE
from cascada.report.promising_point import coordinates_of, optimistic, promising_point
from cascada.report.theme import BLUE, GREEN, ORANGE, SCALE, escaped, figure, number, plotly_objects, scale_of_axis
from cascada.store.trial import Trial
from cascada.study.reader import Reader

_LINE, _SIDE = 201, 41
_DIGITS = 5  # of a bound in a hover text
_FLAT = 0.02  # a bound that varies by less than this fraction of its distance to the best run counts as constant


def plot_acquisition(study: Reader, controls: Sequence[str] | None = None) -> Any:
    """Plot the mean and the bound of the objective over one control, or the bound over two.

    The other controls are those of the best run or, before there is one, those of the most promising point. Raises
    `ArgumentError` if `controls` are not one or two controls of the network.
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
    if found is None or np.isnan(found[1]).all():  # refuted, or a limit is broken at all of these points
        return shown
    if len(names) == 1:
        _add_lines(shown, study, axes[0], *found)
    else:
        _add_map(shown, study, names, axes, found[1].reshape(len(axes[1]), len(axes[0])))
        shown.update_yaxes(**scale_of_axis(axes[1][0], axes[1][-1], log=domain.controls[names[1]].log))
    shown.update_xaxes(**scale_of_axis(axes[0][0], axes[0][-1], log=domain.controls[names[0]].log))
    return shown


def caption_of_acquisition(study: Reader) -> str:
    """Return the caption of the figure with default controls: which they are, and the values of the others."""
    names, domain = _chosen(study, None), study.network.domain
    values = domain.named(domain.decode(_middle(study)[None])[0])
    others = [f"{name} = {number(value)}" for name, value in values.items() if name not in names]
    at = f", with {', '.join(others)}" if others else ""
    bound = f"The best that the objective can be over {' and '.join(names)}{at}"
    limits = ""
    if study.network.limits:
        limits = " Where no bound is drawn, it is proven that a limit is broken, up to the resolution of the picture."
    if len(names) == 1:
        return f"{bound} (dotted), and what is expected of it (line).{limits}"
    dots = "Dots are runs (crosses, if they broke a limit)" if study.network.limits else "Dots are runs"
    star = "" if study.best_trial is None else ", and the star is the best run"
    star += "" if study.certificate().recommended is None else ", and the diamond is the recommended setting"
    return f"{bound}. {dots}, whatever their other controls were{star}.{limits}"


def _chosen(study: Reader, controls: Sequence[str] | None) -> tuple[str, ...]:
    domain = study.network.domain
    numbers = [name for name, control in domain.controls.items() if not control.unordered]
    names = tuple(numbers[:2]) if controls is None else tuple(controls)
    named = [name for name in names if name in domain.names and name not in numbers]
    if named or not numbers:
        raise ArgumentError(
            f"the figure is drawn over numbers, and {(named or domain.names)[0]!r} is a choice; choose one or two of "
            f"the controls {', '.join(numbers) or 'with numbers, of which there are none'}."
        )
    if not 1 <= len(names) <= 2 or not set(names) <= set(domain.names) or len(set(names)) != len(names):
        raise ArgumentError(f"choose one or two of the controls {', '.join(domain.names)}; got {', '.join(names)}.")
    return names


def _middle(study: Reader) -> Array:
    """Return the coordinates (d,) of the point that the figure passes through."""
    best, domain = study.best_trial, study.network.domain
    middle = promising_point(study) if best is None else coordinates_of(study, best.controls)[0]
    if middle is not None:
        return middle
    centre = (domain.lower + domain.upper) / 2
    centre[domain.choices] = domain.lower[domain.choices]
    return centre


def _add_lines(shown: Any, study: Reader, x: Array, mean: Array, upper: Array) -> None:
    go = plotly_objects()
    shown.add_trace(go.Scatter(x=x, y=mean, mode="lines", name="expected", line={"color": BLUE, "width": 2}))
    word = "at most" if study.network.sign > 0 else "at least"
    line = {"color": ORANGE, "width": 2, "dash": "dot"}
    text, over = _outwards(study, upper), "%{x}: %{text}"
    shown.add_trace(go.Scatter(x=x, y=upper, mode="lines", name=word, line=line, text=text, hovertemplate=over))


def _add_map(shown: Any, study: Reader, names: Sequence[str], axes: Sequence[Array], upper: Array) -> None:
    """Add a map of the bound, unless it is nearly constant; then the runs and the best run."""
    go, best = plotly_objects(), study.best_trial
    if flat(upper, None if best is None else best.value):
        note = f"about {upper.mean():.3g} wherever this map looks:<br>none of it is ruled out yet"
        where = {"x": 0.5, "y": 1, "xref": "paper", "yref": "paper", "yanchor": "bottom"}
        shown.add_annotation(**where, text=note, showarrow=False)
        shown.update_layout(margin={"t": 90}, title={"y": 0.96, "yanchor": "top"})
        edges = [
            np.log10(axis[[0, -1]]) if study.network.domain.controls[n].log else axis[[0, -1]]
            for n, axis in zip(names, axes, strict=True)
        ]
        shown.update_layout(xaxis={"range": edges[0].tolist()}, yaxis={"range": edges[1].tolist()})
    else:
        # No contour lines: they become speckles where the bound is nearly constant.
        scale = {"colorscale": SCALE, "reversescale": study.network.sign < 0}
        colours = {"contours": {"coloring": "heatmap"}, "line": {"width": 0}, **scale}
        over = {"text": [_outwards(study, row) for row in upper], "hovertemplate": "%{x}, %{y}: %{text}"}
        shown.add_trace(go.Contour(x=axes[0], y=axes[1], z=upper, name="can be", **over, **colours))
    runs = [trial for trial in study.trials if trial.value is not None]
    white = {"color": "#FFFFFF", "size": 7, "line": {"color": "#000000", "width": 1}}
    star = {"color": ORANGE, "size": 15, "symbol": "star", "line": {"color": "#FFFFFF", "width": 1}}
    if study.network.limits:
        white["symbol"] = [INFEASIBLE if trial.feasible is False else FEASIBLE for trial in runs]
    _add_runs(shown, runs, names, "runs", white)
    _add_runs(shown, [] if best is None else [best], names, "best run", star)
    recommended = study.certificate().recommended
    if recommended is not None:
        x, y = ([recommended.controls[name]] for name in names)
        marker = star | {"color": GREEN, "size": 12, "symbol": "diamond"}
        run = "" if recommended.reading is not None else ", not run"
        text, name = [f"recommended setting{run}"], "recommended"
        shown.add_trace(go.Scatter(x=x, y=y, mode="markers", marker=marker, text=text, hoverinfo="text", name=name))
    shown.update_layout(showlegend=False)


def _outwards(study: Reader, bounds: Array) -> list[str]:
    """Return bounds (n,) as hover texts, rounded so that they remain bounds; none where a bound is NaN."""
    rounded = rounded_up if study.network.sign > 0 else rounded_down
    return ["" if np.isnan(bound) else rounded(bound, _DIGITS) for bound in bounds]


def flat(upper: Array, best: float | None) -> bool:
    """Return whether a bound is so nearly constant over a map that it rules out no part of it."""
    if np.isnan(upper).any():  # some of it is ruled out by a limit
        return False
    spread = float(np.ptp(upper))
    above = float(np.abs(upper).max() if best is None else np.abs(upper - best).max())
    return spread <= _FLAT * above


def _add_runs(shown: Any, runs: Sequence[Trial], names: Sequence[str], name: str, marker: dict[str, Any]) -> None:
    x, y = ([trial.controls[control] for trial in runs] for control in names)
    text = [f"trial {trial.number}: {escaped(f'{trial.value:.5g}')}" for trial in runs]
    shown.add_trace(
        plotly_objects().Scatter(x=x, y=y, mode="markers", marker=marker, text=text, hoverinfo="text", name=name)
    )
