"""The figure of one output of a stage: mean, bounds and data over one input, two inputs, or each of several inputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Belief, Boxes
from cascada.errors import ArgumentError, RefutedError
from cascada.network import StageBelief, enclose_network
from cascada.network.limits import Interval, in_words
from cascada.report.panels import axis_key, panel_axes, panel_names
from cascada.report.promising_point import coordinates_of, promising_point
from cascada.report.theme import (
    BAND,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SCALE,
    escaped,
    figure,
    plotly_objects,
    scale_of_axis,
)
from cascada.space import Choice
from cascada.study.reader import Reader

_LINE, _SIDE = 201, 61  # points of a line, and of the side of a map
_MARGIN = 0.1  # added on both sides of an observed range of a parent's output, as a fraction of the range
_INPUT, _LIMIT = "possible input", "limit"  # names of shapes
_DASHED = {"color": PURPLE, "width": 2, "dash": "dash"}  # the line of a limit


def plot_stage(study: Reader, stage: str, output: str | None = None, at: Mapping[str, Any] | None = None) -> Any:
    """Plot the mean, bounds and data of an output, and mark the possible inputs of the stage at the controls `at`.

    By default, `at` is the point where the objective may be best. The figure is a line for one input, a map for two,
    and for more inputs one panel each, along a line through the best run. Raises `ArgumentError` if there is no such
    modelled output.
    """
    part, j = _part(study, stage, output)
    belief = part.per_output
    assert belief is not None, "_part raises if there is none"
    data = belief.posterior.inputs, belief.posterior.outputs[:, j] + part.node.stage.offset[j]
    title = f"{stage}" if output is None or output == stage else f"{stage}: {output}"
    title += _of_values(study, part)
    names, ranges = part.node.input_names, _ranges(study, part, data[0])
    numbers = [i for i in range(len(names)) if i not in part.node.choices]
    middle = _middle(study, part, ranges)
    codes = list(part.node.choices)
    same = (data[0][:, codes] == middle[codes]).all(axis=1)
    data = data[0][same], data[1][same]
    if len(numbers) == 2:
        return _map(study, part, belief, j, title, ranges, data)
    shown = figure(title, showlegend=False)
    for place, i in enumerate(numbers):
        name, panel = names[i], {} if len(numbers) == 1 else panel_axes(shown, place, len(numbers))
        line = np.linspace(*ranges[i], _LINE)
        points = np.tile(middle, (_LINE, 1))
        points[:, i] = line
        _add_line(shown, part, j, points, _shown(study, name, line), panel)
        _add_data(shown, _shown(study, name, data[0][:, i]), data[1], panel)
        low, high = _shown(study, name, np.array(ranges[i]))
        axis = {"title": {"text": escaped(name)}} | scale_of_axis(low, high, log=_log(study, name))
        shown.update_layout({axis_key(panel.get("xaxis", "x")): axis})
    _add_limits(shown, part, j, [panel_names(place)[1] for place in range(len(numbers))])
    if len(numbers) != 1:
        return shown
    only = numbers[0]
    region = _region(study, part, at)
    if region is not None:
        x0, x1 = _shown(study, names[only], region[:, only])
        shown.add_vrect(x0=x0, x1=x1, fillcolor=GREEN, opacity=0.25, line={"width": 1, "color": GREEN}, name=_INPUT)
        if at is not None:  # otherwise the caption explains it
            note = {"text": "green: the input at the chosen setting", "showarrow": False}
            shown.add_annotation(x=0.5, xref="paper", y=1.06, yref="paper", **note)
    return shown


def caption_of_stage(study: Reader, stage: str, output: str, shown: Any) -> str:
    """Return the caption of an output's figure `shown`, which mentions only what is drawn."""
    part, _ = _part(study, stage, output)
    inputs = len(part.node.input_names) - len(part.node.choices)
    believed = f"What is believed of {output} of {stage}{_of_values(study, part)}"
    limit = _limit(part, output)
    limits = "" if limit is None else f" Its limit, {in_words(output, limit)}, is dashed."
    if inputs == 2:
        return f"{believed}: the mean as colours, and the runs it was measured in as dots.{limits}"
    bounds = any(trace.fill for trace in shown.data)  # no band if the data refute its assumptions
    if inputs > 2:
        drawn = "mean (lines) and bounds (bands)" if bounds else "the mean"
        others = "in the middle" if study.best_trial is None else "as in the best run"
        return (
            f"{believed}: {drawn} along each input, the others {others}. Dots are measured values, whatever the other "
            f"inputs were, so they need not lie in the bands.{limits}"
        )
    drawn = "mean (line), bounds (band)" if bounds else "mean (line)"
    marked = any(shape.name == _INPUT for shape in shown.layout.shapes)
    green = "; green is what the input may be at the most promising setting" if marked else ""
    return f"{believed}: {drawn} and measured values (dots){green}.{limits}"


def figures_of_stages(study: Reader) -> list[tuple[str, str, Any]]:
    """Return stage, output and figure of every modelled output with data."""
    found = []
    for node in study.network.nodes:
        for output in node.stage.modelled:
            part = _found(study, node.stage.name, output)
            if part is not None and _is_drawn(part[0]):
                found.append((node.stage.name, output, plot_stage(study, node.stage.name, output)))
    return found


def _part(study: Reader, stage: str, output: str | None) -> tuple[StageBelief, int]:
    names = [node.stage.name for node in study.network.nodes]
    if stage not in names:
        raise ArgumentError(f"there is no stage {stage!r}; the stages are {', '.join(names)}.")
    modelled = study.network.node(stage).stage.modelled
    if not modelled or (output is not None and output not in modelled):
        raise ArgumentError(
            f"stage {stage!r} has the modelled outputs {', '.join(modelled) or 'none'}; got {output!r}."
        )
    found = _found(study, stage, modelled[0] if output is None else output)
    if found is None or found[0].per_output is None:
        raise ArgumentError(
            f"stage {stage!r} has one kernel for all outputs, so single outputs have no figure; choose another stage."
        )
    if len(found[0].node.choices) == len(found[0].node.inputs):
        raise ArgumentError(f"stage {stage!r} has no inputs but choices, so it has no figure; choose another stage.")
    return found


def _is_drawn(part: StageBelief) -> bool:
    """Return whether a part has a figure: it has data, and an input that is a number."""
    belief = part.per_output
    return belief is not None and bool(belief.posterior.count) and len(part.node.choices) < len(part.node.inputs)


def _of_values(study: Reader, part: StageBelief) -> str:
    """Return of which values of choices a figure is, " for wood = 'oak'": those of the point that it passes through."""
    inputs = [part.node.input_names[j] for j in part.node.choices]
    values = [f"{name} = {value!r}" for name, value in _values_of_choices(study).items() if name in inputs]
    return part.node.category + (f" for {' and '.join(values)}" if values and not part.node.category else "")


def _values_of_choices(study: Reader) -> dict[str, str]:
    """Return the values of all choices in the best run, or the first ones before there is one."""
    best = study.best_trial
    choices = {name: one for name, one in study.network.domain.controls.items() if isinstance(one, Choice)}
    return {name: one.values[one.low] if best is None else best.controls[name] for name, one in choices.items()}


def _found(study: Reader, stage: str, output: str) -> tuple[StageBelief, int] | None:
    """Return the belief that contains an output, and the output's index in it, or None.

    A calibrated stage has a belief of its own for every output. Of a stage with categories it is that of the values in
    the best run.
    """
    node = study.network.node(stage)
    column = node.columns[node.stage.outputs.index(output)]
    for part in study.beliefs.stages:
        if column in part.node.columns and part.belief is not None:
            if part.categories and part.node.categories is not None:
                values = _values_of_choices(study)
                names = [part.node.input_names[j] for j in part.node.categories.columns]
                codes = {
                    j: part.node.choices[j].coded(values[name], name)
                    for j, name in enumerate(part.node.input_names)
                    if name in names
                }
                row = np.array([[codes.get(j, 0.0) for j in range(len(part.node.inputs))]])
                part = part.categories[int(part.node.categories.of(row)[0])]
            return part, part.node.stage.modelled.index(output)
    return None


def _log(study: Reader, name: str) -> bool:
    control = study.network.domain.controls.get(name)
    return control is not None and control.log


def _shown(study: Reader, name: str, values: Array) -> Array:
    return np.exp(values) if _log(study, name) else values


def _ranges(study: Reader, part: StageBelief, inputs: Array) -> list[tuple[float, float]]:
    domain = study.network.domain
    ranges = []
    for i, column in enumerate(part.node.inputs):
        if column < domain.dimension:
            ranges.append((float(domain.lower[column]), float(domain.upper[column])))
            continue
        low, high = (float(inputs[:, i].min()), float(inputs[:, i].max())) if len(inputs) else (0.0, 1.0)
        room = _MARGIN * (high - low) or 1.0
        ranges.append((low - room, high + room))
    return ranges


def _middle(study: Reader, part: StageBelief, ranges: list[tuple[float, float]]) -> Array:
    """Return the stage's inputs (d,) in the best run, or the middle of their ranges before there is one."""
    best = study.best_trial
    values = [r[0] if j in part.node.choices else sum(r) / 2 for j, r in enumerate(ranges)]
    if best is not None and all(parent in best.outputs for parent in part.node.parents):
        row = coordinates_of(study, best.controls)[0].tolist()
        for node in study.network.nodes:
            row += best.outputs.get(node.stage.name, [np.nan] * len(node.columns))
        values = [row[column] for column in part.node.inputs]
    return np.array(values)


def _region(study: Reader, part: StageBelief, at: Mapping[str, Any] | None) -> Array | None:
    """Return lower and upper bounds (2, d) of the inputs of a stage at the controls `at`, or None if refuted."""
    point = promising_point(study) if at is None else coordinates_of(study, at)[0]
    if point is None:
        return None
    try:
        boxes = enclose_network(study.beliefs, Boxes(point[None], point[None])).boxes
    except RefutedError:
        return None
    columns = list(part.node.inputs)
    return np.vstack([boxes.lower[0, columns], boxes.upper[0, columns]])


def _limit(part: StageBelief, output: str) -> Interval | None:
    return part.node.stage.limits.get(output)


def _possible(part: StageBelief, j: int, values: Array) -> Array:
    """Return values of a modelled output, without its offset, as far as its range allows."""
    low, high = part.node.stage.ranges.get(part.node.stage.modelled[j], (-np.inf, np.inf))
    return np.clip(values + part.node.stage.offset[j], low, high)


def _add_limits(shown: Any, part: StageBelief, j: int, axes: Sequence[str]) -> None:
    """Add a dashed line at each limit of an output, in every panel, named by its y axis."""
    for end in _limit(part, part.node.stage.modelled[j]) or ():
        if np.isfinite(end):
            for axis in axes:
                x = f"{axis.replace('y', 'x')} domain"
                shown.add_shape(type="line", x0=0, x1=1, xref=x, y0=end, y1=end, yref=axis, line=_DASHED, name=_LIMIT)


def _add_line(shown: Any, part: StageBelief, j: int, points: Array, x: Array, panel: Mapping[str, str]) -> None:
    """Add mean and bounds along one input, in a panel of the figure."""
    go, belief = plotly_objects(), part.per_output
    assert belief is not None, "_part raises if there is none"
    mean = _possible(part, j, belief.posterior.predict(points).mean[:, j])
    try:
        bounds = belief.bounds(points)
        band = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False, **panel}
        shown.add_trace(go.Scatter(x=x, y=_possible(part, j, bounds.lower[:, j]), **band))
        upper = _possible(part, j, bounds.upper[:, j])
        shown.add_trace(go.Scatter(x=x, y=upper, fill="tonexty", fillcolor=BAND, **band))
    except RefutedError:
        pass
    shown.add_trace(go.Scatter(x=x, y=mean, mode="lines", line={"color": BLUE, "width": 2}, name="mean", **panel))


def _add_data(shown: Any, x: Array, y: Array, panel: Mapping[str, str]) -> None:
    go = plotly_objects()
    marker = {"color": ORANGE, "size": 7 if not panel else 5}
    shown.add_trace(go.Scatter(x=x, y=y, mode="markers", marker=marker, name="measured", **panel))


def _map(
    study: Reader,
    part: StageBelief,
    belief: Belief,
    j: int,
    title: str,
    ranges: list[tuple[float, float]],
    data: tuple[Array, Array],
) -> Any:
    go, both = plotly_objects(), [j for j in range(len(part.node.inputs)) if j not in part.node.choices]
    names = [part.node.input_names[j] for j in both]
    sides = [np.linspace(*ranges[j], _SIDE) for j in both]
    points = np.tile(_middle(study, part, ranges), (_SIDE * _SIDE, 1))
    points[:, both] = np.stack(np.meshgrid(*sides, indexing="xy"), axis=-1).reshape(-1, 2)
    mean = _possible(part, j, belief.posterior.predict(points).mean[:, j]).reshape(_SIDE, _SIDE)
    shown = figure(title, names[0], names[1], showlegend=False)
    x, y = (_shown(study, name, side) for name, side in zip(names, sides, strict=True))
    shown.add_trace(go.Contour(x=x, y=y, z=mean, colorscale=SCALE, contours={"coloring": "heatmap"}, ncontours=16))
    for end in _limit(part, part.node.stage.modelled[j]) or ():
        if np.isfinite(end):
            at = {"start": end, "end": end, "size": 1, "coloring": "none"}
            shown.add_trace(go.Contour(x=x, y=y, z=mean, contours=at, line=_DASHED, showscale=False, name=_LIMIT))
    seen = [_shown(study, name, data[0][:, j]) for j, name in zip(both, names, strict=True)]
    marker = {"color": "#FFFFFF", "size": 7, "line": {"color": "#000000", "width": 1}}
    text = [f"{value:.5g}" for value in data[1]]
    shown.add_trace(go.Scatter(x=seen[0], y=seen[1], mode="markers", marker=marker, text=text, hoverinfo="x+y+text"))
    for update, name, side in zip((shown.update_xaxes, shown.update_yaxes), names, sides, strict=True):
        low, high = _shown(study, name, side[[0, -1]])
        update(**scale_of_axis(low, high, log=_log(study, name)))
    return shown
