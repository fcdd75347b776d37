"""The figure of benchmark regret: the median over seeds, with bars from the first to the third quartile."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cascada.errors import ArgumentError
from cascada.report.theme import escaped, figure, plotly_objects

_BARS = 10  # on every curve


def plot_regret(curves: Mapping[str, Sequence[Sequence[float]]], title: str = "Simple regret") -> Any:
    """Plot regret curves by algorithm: each a list of runs, and each run a list of regrets, one per evaluation.

    Raises `ArgumentError` if the runs of an algorithm differ in length, or there are none.
    """
    go, shown = plotly_objects(), figure(title, "evaluations", "regret", height=460)
    for name, runs in curves.items():
        if not runs or len({len(run) for run in runs}) != 1 or not len(runs[0]):
            raise ArgumentError(f"the runs of {name!r} must be lists of the same length, at least one of them.")
        values = np.maximum(np.array(runs, dtype=float), 1e-16)
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
        at = np.unique(np.linspace(0, len(median) - 1, _BARS).astype(int))
        x = np.arange(1, len(median) + 1)
        name = escaped(name)
        shown.add_trace(go.Scatter(x=x, y=median, mode="lines", name=name, line={"width": 2}, legendgroup=name))
        bars = {"type": "data", "symmetric": False, "array": (high - median)[at], "arrayminus": (median - low)[at]}
        hidden = {"mode": "markers", "marker": {"size": 1}, "showlegend": False, "legendgroup": name}
        shown.add_trace(go.Scatter(x=x[at], y=median[at], error_y=bars | {"width": 3}, **hidden))
    shown.update_yaxes(type="log")
    return shown
