"""The common style of all figures: a palette for light and dark pages, an empty figure, formats of text and numbers."""

import math
from typing import Any

from cascada.errors import CascadaError

# Okabe and Ito's colours, which colour-blind readers can distinguish.
BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
GREY = "#7F7F7F"
SCALE = "Viridis"
_FEW_DECADES = 2.5  # an axis that spans no more is also labelled between powers of ten
BAND = "rgba(0, 114, 178, 0.18)"


def plotly_objects() -> Any:
    """Import and return `plotly.graph_objects`; `CascadaError` if plotly is not installed."""
    try:
        from plotly import graph_objects  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise CascadaError("figures need plotly: pip install 'cascada[report]'.") from None
    return graph_objects


def figure(title: str, x: str = "", y: str = "", **layout: Any) -> Any:
    """Return an empty figure with a transparent background, so that it has the colours of its page."""
    go = plotly_objects()
    return go.Figure(
        layout={
            "title": {"text": escaped(title), "x": 0.0, "xref": "paper", "font": {"size": 15}},
            "xaxis": {"title": {"text": escaped(x)}, "zeroline": False, "automargin": True},
            "yaxis": {"title": {"text": escaped(y)}, "zeroline": False, "automargin": True},
            "template": "none",
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": "system-ui, sans-serif", "size": 12, "color": "#444444"},
            "margin": {"l": 60, "r": 20, "t": 50, "b": 50},
            "legend": {"orientation": "h", "y": -0.2},
            "height": 420,
            "colorway": [BLUE, ORANGE, GREEN, PURPLE, SKY],
            **layout,
        }
    )


def scale_of_axis(low: float, high: float, *, log: bool) -> dict[str, Any]:
    """Return the options of an axis from `low` to `high` that is logarithmic or linear.

    A logarithmic axis is labelled at powers of ten, where it spans few of them also at 2 and 5 times these, and has
    minor ticks without labels. (Plotly would label every one of them with a digit.)
    """
    if not log or not 0 < low < high:
        return {"type": "log" if log else "linear"}
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    labelled = (1, 2, 5) if math.log10(high / low) <= _FEW_DECADES else (1,)
    ticks = [digit * 10.0**power for power in powers for digit in labelled]
    between = [digit * 10.0**power for power in powers for digit in range(1, 10)]
    minor = {"tickmode": "array", "tickvals": between, "ticks": "outside", "ticklen": 3, "showgrid": False}
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks], "minor": minor}


def escaped(text: object) -> str:
    """Return a text with HTML escaped, as plotly interprets some tags as markup."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def number(value: float | str) -> str:
    """Return a number with five digits; a text as it is."""
    return value if isinstance(value, str) else f"{value:.5g}"
