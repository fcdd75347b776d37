"""The network as a drawing: stages as boxes, what flows between them on the edges, values of the best run."""

from typing import Any

from cascada.network import Network, Node
from cascada.report.theme import BLUE, GREEN, GREY, escaped, figure, number, plotly_objects
from cascada.study.runner import AnyStudy
from cascada.study.trial import Trial


def plot_network(study: AnyStudy, trial: Trial | None = None) -> Any:
    """Stages from left to right, with the values of a trial, by default of the best."""
    go, network = plotly_objects(), study.network
    trial = study.best_trial if trial is None else trial
    places = _places(network)
    wide = max(x for x, _ in places.values()) + 1
    tall = max(abs(y) for _, y in places.values()) + 1
    shown = figure(
        "The process" if trial is None else f"The process, with the values of run {trial.number + 1}",
        height=260 + 60 * int(tall),
        showlegend=False,
    )
    shown.update_xaxes(visible=False, range=[-0.9, wide - 0.4])
    shown.update_yaxes(visible=False, range=[-tall, tall])
    for node in network.nodes:
        x, y = places[node.stage.name]
        for parent in node.parents:
            shown.add_annotation(_arrow(places[parent], (x, y)))
        controls = [f"{escaped(name)}{_value(trial, name)}" for name in node.stage.controls]
        if controls:
            shown.add_annotation(_arrow((x, y + 0.75), (x, y)) | {"arrowcolor": GREEN})
            shown.add_annotation(_text(x, y + 0.8, "<br>".join(controls), GREEN) | {"yanchor": "bottom"})
        outputs = [f"{escaped(name)}{_output(trial, node, j)}" for j, name in enumerate(node.stage.outputs)]
        shown.add_annotation(_text(x, y - 0.32, "<br>".join(outputs), GREY) | {"yanchor": "top"})
    names = list(places)
    shown.add_trace(
        go.Scatter(
            x=[places[name][0] for name in names],
            y=[places[name][1] for name in names],
            mode="markers+text",
            text=[f"<b>{escaped(name)}</b>" for name in names],
            textposition="middle center",
            textfont={"color": "#FFFFFF"},
            marker={"symbol": "square", "size": 1, "color": BLUE},
            hoverinfo="skip",
        )
    )
    for name, (x, y) in places.items():
        half = min(0.42, 0.1 + 0.022 * len(name))
        box = {"type": "rect", "x0": x - half, "x1": x + half, "y0": y - 0.25, "y1": y + 0.25, "layer": "below"}
        shown.add_shape(box | {"fillcolor": BLUE, "line": {"width": 0}})
    return shown


def _places(network: Network) -> dict[str, tuple[float, float]]:
    """Where the stages are drawn: as far right as the longest way to them, those side by side one below the other."""
    depth: dict[str, int] = {}
    for node in network.nodes:
        depth[node.stage.name] = 1 + max((depth[parent] for parent in node.parents), default=-1)
    columns: dict[int, list[str]] = {}
    for name, x in depth.items():
        columns.setdefault(x, []).append(name)
    spread = 2.2  # room for controls above and outputs below
    return {
        name: (float(x), spread * ((len(names) - 1) / 2 - i))
        for x, names in columns.items()
        for i, name in enumerate(names)
    }


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> dict[str, Any]:
    return {
        "x": end[0],
        "y": end[1],
        "ax": start[0],
        "ay": start[1],
        "xref": "x",
        "yref": "y",
        "axref": "x",
        "ayref": "y",
        "showarrow": True,
        "arrowhead": 2,
        "arrowwidth": 1.5,
        "arrowcolor": GREY,
        "standoff": 28,
        "startstandoff": 28 if start[0] != end[0] else 0,
        "text": "",
    }


def _text(x: float, y: float, text: str, colour: str) -> dict[str, Any]:
    return {"x": x, "y": y, "text": text, "showarrow": False, "font": {"color": colour, "size": 11}}


def _value(trial: Trial | None, control: str) -> str:
    return "" if trial is None else f" = {number(trial.controls[control])}"


def _output(trial: Trial | None, node: Node, j: int) -> str:
    if trial is None or node.stage.name not in trial.outputs:
        return ""
    return f" = {number(trial.outputs[node.stage.name][j])}"
