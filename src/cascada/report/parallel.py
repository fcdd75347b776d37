"""All runs at once, as lines through their controls and outputs."""

from typing import Any

import numpy as np

from cascada.report.theme import SCALE, escaped, figure, plotly_objects
from cascada.study.runner import AnyStudy


def plot_parallel_coordinate(study: AnyStudy) -> Any:
    """One line for every complete run, coloured by its objective; drag along an axis to choose some."""
    go, network = plotly_objects(), study.network
    complete = [trial for trial in study.trials if trial.value is not None]
    shown = figure("Runs, from controls to objective")
    dimensions = [
        _axis(name, [float(trial.controls[name]) for trial in complete], control.log)
        for name, control in network.domain.controls.items()
    ]
    for node in network.nodes:
        for j, output in enumerate(node.stage.outputs):
            values = [
                trial.outputs[node.stage.name][j] if node.stage.name in trial.outputs else np.nan for trial in complete
            ]
            if output not in node.stage.passes and np.isfinite(values).all():
                label = node.stage.name if len(node.stage.outputs) == 1 else f"{node.stage.name}.{output}"
                dimensions.append(_axis(label, values, False))
    if complete:
        line = {"color": [trial.value for trial in complete], "colorscale": SCALE, "showscale": True}
        line["reversescale"] = network.sign < 0  # the best are the brightest
        shown.add_trace(go.Parcoords(line=line, dimensions=dimensions, labelside="bottom"))
    shown.update_layout(margin={"l": 70, "r": 40, "t": 60, "b": 60})
    return shown


def _axis(name: str, values: list[float], log: bool) -> dict[str, Any]:
    if not log or not values:
        return {"label": escaped(name), "values": values}
    ticks = np.unique(np.geomspace(min(values), max(values), 5))
    return {
        "label": f"{escaped(name)} (log)",
        "values": np.log10(values).tolist(),
        "tickvals": np.log10(ticks).tolist(),
        "ticktext": [f"{tick:.3g}" for tick in ticks],
    }
