"""Which stage the gap comes from: how much smaller it would be if one stage were known exactly."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cascada.errors import RefutedError
from cascada.report.promising import promising_point
from cascada.report.theme import BLUE, escaped, figure, plotly_objects
from cascada.search import Joint
from cascada.study.reader import Reader

_TRIED = 2_000
_SEED = 20240501  # any: the same study gives the same figure


def gap_contributions(study: Reader) -> dict[str, float]:
    """By stage, what its uncertainty adds to the best that the objective can be, at the most promising setting.

    An estimate, found by trying what the modelled outputs can be; 0 for stages that are known or add nothing.
    """
    point, names = promising_point(study), [node.stage.name for node in study.network.nodes]
    if point is None:
        return {}
    joint, d = Joint(study.beliefs), study.network.domain.dimension
    eta = np.random.default_rng(_SEED).uniform(-1, 1, (_TRIED, joint.size - d))
    eta[::2] = np.sign(eta[::2])  # most of all the extremes
    owners = [_owner(study, stage.node.columns[0]) for stage in study.beliefs.stages for _ in stage.node.stage.modelled]
    found = {}
    try:
        most = _most(joint, point, eta)
        for name in names:
            known = eta * np.array([owner != name for owner in owners])
            found[name] = max(most - _most(joint, point, known), 0.0)
    except RefutedError:
        return {}
    return found


def plot_gap_contributions(study: Reader, contributions: Mapping[str, float] | None = None) -> Any:
    """Bars: which stage should be measured better? From `gap_contributions`, or those at hand."""
    go, found = plotly_objects(), gap_contributions(study) if contributions is None else contributions
    shown = figure("What each stage's uncertainty adds", study.network.objective[1], "", showlegend=False)
    names = sorted(found, key=found.__getitem__)
    bars = {"x": [found[name] for name in names], "y": [escaped(name) for name in names], "orientation": "h"}
    said = {"text": [three_digits(found[name]) for name in names], "hovertemplate": "%{y}: %{text}<extra></extra>"}
    beside = {"textposition": "outside", "textangle": 0, "cliponaxis": False}
    shown.add_trace(go.Bar(**bars, **said, **beside, marker={"color": BLUE}))
    most = max(found.values(), default=0.0)
    # Room for the numbers at the bars, which are enough: those of the axis would look different.
    shown.update_xaxes(range=[0, 1.3 * most or 1.0], showticklabels=False)
    shown.update_layout(height=160 + 40 * len(names))
    return shown


def caption_of_contributions(contributions: Mapping[str, float]) -> str:
    """What the bars show, and what they do not."""
    bars = "; ".join(f"{name}: {three_digits(value)}" for name, value in contributions.items())
    return (
        f"What each stage's uncertainty adds to the best that the objective can be. {bars}. These are not shares of "
        f"the gap: they neither add up to it nor stay below it."
    )


def three_digits(value: float) -> str:
    """Three digits that count, always, so that numbers below each other can be compared."""
    return f"{value:.0f}" if value == 0 or 100 <= abs(value) < 1e5 else f"{value:#.3g}".rstrip(".")


def _most(joint: Joint, point: Any, eta: Any) -> float:
    return float(joint.values(np.hstack([np.tile(point, (len(eta), 1)), eta])).max())


def _owner(study: Reader, column: int) -> str:
    return next(node.stage.name for node in study.network.nodes if column in node.columns)
