"""Contributions of the stages to the gap: how much lower the bound would be if one stage were known exactly."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from cascada.errors import RefutedError
from cascada.report.promising_point import promising_point
from cascada.report.theme import BLUE, escaped, figure, plotly_objects
from cascada.search import Joint
from cascada.study.reader import Reader

_SAMPLES = 2_000
_SEED = 20240501  # arbitrary but fixed: the same study gives the same figure


def gap_contributions(study: Reader) -> dict[str, float]:
    """Return for each stage how much its uncertainty adds to the bound of the objective at the most promising setting.

    This is an estimate from random samples of the possible outputs. It is 0 for known stages and for stages that add
    nothing. The result is empty if the data refute an assumption.
    """
    point, names = promising_point(study), [node.stage.name for node in study.network.nodes]
    if point is None:
        return {}
    joint, d = Joint(study.beliefs), study.network.domain.dimension
    eta = np.random.default_rng(_SEED).uniform(-1, 1, (_SAMPLES, joint.size - d))
    eta[::2] = np.sign(eta[::2])  # the maximum is usually at an extreme
    owners = [_owner(study, stage.node.columns[0]) for stage in study.beliefs.stages for _ in stage.node.stage.modelled]
    found = {}
    try:
        largest = _largest(joint, point, eta)
        for name in names:
            known = eta * np.array([owner != name for owner in owners])
            found[name] = max(largest - _largest(joint, point, known), 0.0)
    except RefutedError:
        return {}
    return found


def plot_gap_contributions(study: Reader, contributions: Mapping[str, float] | None = None) -> Any:
    """Plot the contributions of the stages as bars; computed by `gap_contributions` unless given."""
    go, found = plotly_objects(), gap_contributions(study) if contributions is None else contributions
    shown = figure("What each stage's uncertainty adds", study.network.objective[1], "", showlegend=False)
    names = sorted(found, key=found.__getitem__)
    bars = {"x": [found[name] for name in names], "y": [escaped(name) for name in names], "orientation": "h"}
    labels = {"text": [three_digits(found[name]) for name in names], "hovertemplate": "%{y}: %{text}<extra></extra>"}
    position = {"textposition": "outside", "textangle": 0, "cliponaxis": False}
    shown.add_trace(go.Bar(**bars, **labels, **position, marker={"color": BLUE}))
    largest = max(found.values(), default=0.0)
    ticks = _ticks(largest)
    # The range leaves room for the numbers at the bars.
    shown.update_xaxes(
        range=[0, 1.3 * largest or 1.0], tickvals=ticks, ticktext=[f"{tick:.6g}" for tick in ticks], ticks="outside"
    )
    shown.update_layout(height=160 + 40 * len(names))
    return shown


def caption_of_contributions(contributions: Mapping[str, float]) -> str:
    """Return the caption of the bars."""
    bars = "; ".join(f"{name}: {three_digits(value)}" for name, value in contributions.items())
    return (
        f"What each stage's uncertainty adds to the best that the objective can be. {bars}. These are not shares of "
        f"the gap: they neither add up to it nor stay below it."
    )


def three_digits(value: float) -> str:
    """Return a number with exactly three significant digits, so that numbers below each other can be compared."""
    return f"{value:.0f}" if value == 0 or 100 <= abs(value) < 1e5 else f"{value:#.3g}".rstrip(".")


def _ticks(largest: float) -> list[float]:
    """Return round numbers from 0 to the largest contribution, at most six."""
    if largest <= 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(largest))
    step = next(one * power for one in (0.2, 0.5, 1.0, 2.0) if largest / (one * power) <= 5)
    return [float(f"{i * step:.6g}") for i in range(int(largest / step) + 1)]


def _largest(joint: Joint, point: Any, eta: Any) -> float:
    return float(joint.values(np.hstack([np.tile(point, (len(eta), 1)), eta])).max())


def _owner(study: Reader, column: int) -> str:
    return next(node.stage.name for node in study.network.nodes if column in node.columns)
