"""The gap over what was spent: how much each unit of money has brought."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from cascada.report.bound_after import BoundAfter
from cascada.report.history import best_so_far
from cascada.report.theme import BLUE, figure, number, plotly_objects
from cascada.study.reader import Reader

CAPTION_OF_COST = (
    "The gap between the bound and the best complete run, over all that was spent until then. The last point is the "
    "gap of the certificate, which may be that of a setting that was not run."
)


def plot_cost(study: Reader, bounds: Sequence[BoundAfter]) -> Any:
    """Plot the gap over what was spent."""
    x, y = gap_over_cost(study, bounds)
    shown = figure("What the money has brought", "spent", "gap", showlegend=False)
    labels = {"text": [number(gap) for gap in y], "hovertemplate": "spent %{x:.6g}: gap %{text}<extra></extra>"}
    line = {"color": BLUE, "width": 2.5, "shape": "hv"}
    shown.add_trace(plotly_objects().Scatter(x=x, y=y, mode="lines+markers", line=line, marker={"size": 4}, **labels))
    shown.update_yaxes(rangemode="tozero")
    return shown


def gap_over_cost(study: Reader, bounds: Sequence[BoundAfter]) -> tuple[list[float], list[float]]:
    """What was spent, and the gap then, after each of these bounds; last, what is known now."""
    trials, sign = study.trials, study.network.sign
    spent = list(accumulate(trial.cost for trial in trials))
    best = best_so_far([trial for trial in trials if trial.feasible or not study.network.limits], sign)
    x, y = [], []
    for after in bounds:
        reached = [value for run, value in best if run <= after.trial]
        if reached:
            x.append(spent[after.trial])
            y.append(max(sign * (after.bound - reached[-1]), 0.0))
    gap = study.certificate().gap
    return (x, y) if gap is None else ([*x, study.spent], [*y, gap])
